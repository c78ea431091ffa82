"""List the installed packages and their licences, one per line."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNNAMED = "not stated"


def first_line(text: str) -> str:
    """Return the first non-empty line, which is usually the name of the licence."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def of_distribution(distribution: metadata.Distribution) -> str:
    """Return the licence of a distribution from its metadata or licence file."""
    stated = distribution.metadata
    classifiers = [
        line.rsplit("::", 1)[1].strip()
        for line in stated.get_all("Classifier") or []
        if line.startswith("License ::")
    ]
    files = (file for file in distribution.files or [] if file.stem.upper().startswith("LICEN"))
    return (
        stated.get("License-Expression")
        or ", ".join(classifiers)
        or first_line(stated.get("License") or "")
        or next((first_line(file.read_text()) for file in files), UNNAMED)
    )


def python_packages() -> dict[str, str]:
    """Return the licences of the installed Python distributions by name and version."""
    return {
        f"{distribution.name} {distribution.version}": of_distribution(distribution)
        for distribution in metadata.distributions()
    }


def node_packages() -> dict[str, str]:
    """Return the licences of the Node packages in the lockfile by name and version."""
    packages = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    return {
        f"{path.removeprefix('node_modules/')} {package['version']}": package.get(
            "license", UNNAMED
        )
        for path, package in packages.items()
        if path
    }


if __name__ == "__main__":
    for packages in (python_packages(), node_packages()):
        for name in sorted(packages, key=str.lower):
            print(f"{name:<45}{packages[name]}")
