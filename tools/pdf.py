"""Print the book to ``_build/book.pdf``, with an outline.

Sphinx builds a single page with its ``singlehtml`` builder and the cached outputs of the notebooks.
Chromium prints that page.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from browser import ARGUMENTS, chromium
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PDF = ROOT / "_build" / "book.pdf"
NUMBER = (
    '<div style="font: 8px sans-serif; width: 100%; text-align: center">'
    '<span class="pageNumber"></span></div>'
)


def print_page(page: Page, path: Path) -> None:
    """Print a loaded page to a PDF file with an outline and page numbers."""
    page.wait_for_timeout(3000)  # until the widgets have drawn their first frames
    page.pdf(  # the style sheet sets the margins
        path=path,
        format="A4",
        display_header_footer=True,
        header_template="<span></span>",
        footer_template=NUMBER,
        outline=True,
        tagged=True,
    )


def main() -> int:
    """Build the single page, print it and show the path of the file."""
    program = chromium()
    if program is None:
        print("The PDF needs Chromium: install it, or name it in the variable CHROMIUM.")
        return 1
    builder = Path(sys.executable).parent / "jupyter-book"
    build = [str(builder), "build", ".", "--builder", "singlehtml"]
    if subprocess.run(build, cwd=ROOT, check=False).returncode:
        return 1
    # The paths of images and scripts in the single page are relative to the root of the build.
    folder = ROOT / "_build" / "singlehtml"
    page_file = folder / "book.html"
    page_file.write_text((folder / "book" / "index.html").read_text(encoding="utf-8"), "utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        page = browser.new_page(color_scheme="light")
        page.goto(page_file.as_uri(), timeout=120_000)
        print_page(page, PDF)
        browser.close()
    print(f"The book is printed to {PDF} ({PDF.stat().st_size / 1e6:.1f} MB).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
