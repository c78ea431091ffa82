"""Write the notebooks for Colab: each with a first cell that installs the library.

Colab opens a notebook alone, without the repository around it. The publishing workflow puts the
notebooks that this program writes on the branch ``colab``, which the book's Colab buttons open.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Copy every notebook of ``book/`` to a folder, with the installing cell in front."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", help="the repository's public address")
    parser.add_argument("target", type=Path, help="the folder to write to")
    arguments = parser.parse_args()
    install = f'%pip install --quiet "pu-lib[notebook] @ git+{arguments.repository}"'
    for path in sorted((ROOT / "book").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cell = {"cell_type": "code", "id": "install", "metadata": {}, "source": install}
        notebook["cells"].insert(0, cell | {"execution_count": None, "outputs": []})
        copy = arguments.target / "book" / path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
