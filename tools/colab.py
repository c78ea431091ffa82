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
    for path in sorted((ROOT / "book").glob("*.ipynb")):
        copy = arguments.target / "book" / path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = with_install_cell(path.read_text(encoding="utf-8"), arguments.repository)
        copy.write_text(text, encoding="utf-8")


def with_install_cell(text: str, repository: str) -> str:
    """Return the text of a notebook whose first cell installs the library.

    Parameters
    ----------
    text : str
        A notebook as JSON, with or without this cell.
    repository : str
        The repository's public address.
    """
    notebook = json.loads(text)
    install = f'%pip install --quiet "pu-lib[notebook] @ git+{repository}"'
    cell = {"cell_type": "code", "id": "install", "metadata": {}, "source": install}
    cells = [cell for cell in notebook["cells"] if cell.get("id") != "install"]
    notebook["cells"] = [cell | {"execution_count": None, "outputs": []}, *cells]
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    main()
