"""Write the notebooks for Colab, with a first cell that installs the library.

Colab opens a single notebook without its repository. The publishing workflow commits the notebooks
that this program writes to the branch ``colab``, which the book's Colab buttons open.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Copy all notebooks of ``book/`` to a folder and insert the cell that installs the library."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", help="public URL of the repository")
    parser.add_argument("target", type=Path, help="folder to write to")
    arguments = parser.parse_args()
    for path in sorted((ROOT / "book").glob("*.ipynb")):
        copy = arguments.target / "book" / path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = with_install_cell(path.read_text(encoding="utf-8"), arguments.repository)
        copy.write_text(text, encoding="utf-8")


def with_install_cell(text: str, repository: str) -> str:
    """Return the text of a notebook with a first cell that installs the library.

    Parameters
    ----------
    text : str
        The notebook as JSON. An existing installation cell is replaced.
    repository : str
        Public URL of the repository.
    """
    notebook = json.loads(text)
    # The clone precedes the installed library on the path, because it also has the book's runs.
    install = "\n".join(
        [
            f"!git clone --quiet --depth 1 {repository} /tmp/pu-lib",
            '%pip install --quiet "/tmp/pu-lib[notebook]"',
            "import sys; sys.path.insert(0, '/tmp/pu-lib')",
        ]
    )
    cell = {"cell_type": "code", "id": "install", "metadata": {}, "source": install}
    cells = [cell for cell in notebook["cells"] if cell.get("id") != "install"]
    notebook["cells"] = [cell | {"execution_count": None, "outputs": []}, *cells]
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    main()
