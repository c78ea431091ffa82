"""Find or install Chromium, which the tests of the pages and the PDF need.

As a script, this module installs Chromium with ``apt-get`` if no password is needed, and otherwise
prints instructions. It never fails, because only some tests need a browser.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

# The first has no user interface. It is smaller and faster, but not all distributions provide it.
NAMES = (
    "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome",
    "google-chrome-stable",
)  # fmt: skip
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str | None:
    """Return the path of Chromium, or None. The variable CHROMIUM takes precedence if it is set."""
    if named := os.environ.get("CHROMIUM"):
        if path := shutil.which(named):
            return path
        raise SystemExit(f"The variable CHROMIUM names {named}, which is not a program.")
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def install() -> None:
    """Install Chromium with apt-get, as root or if sudo needs no password."""
    root = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    if shutil.which("apt-get") is None or (root and shutil.which("sudo") is None):
        return
    apt = [*root, "apt-get"]
    subprocess.run([*apt, "update"], capture_output=True, check=False)
    for name in NAMES[:2]:
        done = subprocess.run([*apt, "install", "--yes", name], capture_output=True, check=False)
        if done.returncode == 0:
            return


if __name__ == "__main__":
    if chromium() is None:
        print("Installing Chromium for the tests of the pages ...", flush=True)
        install()
    if chromium() is None:
        print(
            "No Chromium was found and it could not be installed: the tests of the pages are "
            "skipped (they fail where the variable CI is set). Install it, or name the program "
            "in the variable CHROMIUM.",
            file=sys.stderr,
        )
