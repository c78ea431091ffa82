"""Check the proofs in ``proofs/`` with Rocq and record the theorems.

The book shows the record ``pu_lib/claims/proofs.json``. As a script, this module installs Rocq with
``apt-get`` if no password is needed, compiles the files that have changed, and prints the axioms
that each theorem in ``proofs/theorems.toml`` depends on. It fails if a file does not compile,
leaves a goal unproved or declares an axiom, or if a theorem depends on axioms other than those of
the classical real numbers. If the variable CI is set, it also fails if the record differs from the
committed one. It requires only Python.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PROOFS = ROOT / "proofs"
RECORD = ROOT / "pu_lib" / "claims" / "proofs.json"
LIBRARY = "PolicyUpdates"

PACKAGES = ["coq", "libcoq-interval"]
ADVICE = (
    "Rocq or its library of interval arithmetic was not found and could not be installed. "
    "On Debian and Ubuntu:\n"
    "    apt-get install coq libcoq-interval\n"
    "elsewhere:\n"
    "    opam repo add coq-released https://coq.inria.fr/opam/released\n"
    "    opam install coq.8.16.1 coq-interval.4.6.1"
)

# The axioms with which Rocq's library defines the real numbers and classical logic.
ALLOWED = (
    "ClassicalDedekindReals.sig_forall_dec",
    "ClassicalDedekindReals.sig_not_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
)

# Commands that leave a goal unproved, declare an axiom or disable a check of the kernel.
FORBIDDEN = re.compile(
    r"\b(?:Admitted|admit|give_up|Axioms?|Parameters?|Conjectures?|Hypothes[ie]s|Variables?"
    r"|bypass_check|Unset\s+(?:Guard|Positivity|Universe)\s+Checking)\b"
)

Record = dict[str, Any]


def sources(folder: Path = PROOFS) -> list[str]:
    """Return the names of the sources in the order of ``_CoqProject``."""
    lines = (folder / "_CoqProject").read_text(encoding="utf-8").split("\n")
    return [line for line in lines if line.endswith(".v")]


def theorems(folder: Path = PROOFS) -> list[Record]:
    """Return the entries of ``theorems.toml``."""
    listed: list[Record] = tomllib.loads((folder / "theorems.toml").read_text("utf-8"))["theorem"]
    return listed


def digest(folder: Path = PROOFS) -> str:
    """Return the SHA-256 digest of the sources, their names and the list of theorems."""
    sha256 = hashlib.sha256()
    for name in ["theorems.toml", *sorted(sources(folder))]:
        sha256.update(name.encode() + b"\0" + (folder / name).read_bytes() + b"\0")
    return sha256.hexdigest()


def without_comments(text: str) -> str:
    """Return a source without strings and comments; comments may be nested."""
    characters, depth = [], 0
    for token in re.findall(r'\(\*|\*\)|"[^"]*"|.', text, re.DOTALL):
        if token == "(*":
            depth += 1
        elif token == "*)":
            depth = max(0, depth - 1)
        elif depth == 0 and len(token) == 1:
            characters.append(token)
    return "".join(characters)


def forbidden(text: str) -> list[str]:
    """Return the forbidden commands in a source."""
    return FORBIDDEN.findall(without_comments(text))


def assumptions(printed: str) -> list[str]:
    """Return the names in the output of ``Print Assumptions``."""
    lines = printed.splitlines()
    names = [line.split(":")[0].strip() for line in lines if line and not line[0].isspace()]
    return sorted(name for name in names if name and name != "Axioms" and " " not in name)


def not_allowed(names: list[str]) -> list[str]:
    """Return the names that are not axioms of the classical real numbers."""
    return [name for name in names if not f".{name}".endswith(tuple(f".{x}" for x in ALLOWED))]


def installed() -> bool:
    """Return whether Rocq and its library of interval arithmetic are installed."""
    if shutil.which("coqc") is None:
        return False
    where = subprocess.run(["coqc", "-where"], capture_output=True, text=True, check=True)
    paths = [Path(where.stdout.strip()) / "user-contrib"]
    paths += map(Path, filter(None, os.environ.get("COQPATH", "").split(os.pathsep)))
    return any((path / "Interval").is_dir() for path in paths)


def install() -> None:
    """Install Rocq with apt-get, as root or if sudo needs no password."""
    root = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    if shutil.which("apt-get") is None or (root and shutil.which("sudo") is None):
        return
    print(f"Installing {' and '.join(PACKAGES)} by apt-get (about 160 MB) ...", flush=True)
    update = [*root, "apt-get", "update"]
    install = [*root, "apt-get", "install", "--yes", "--no-install-recommends", *PACKAGES]
    for command in (update, install):
        subprocess.run(command, capture_output=True, check=False)


def version() -> str:
    """Return the version of Rocq, such as 8.16.1."""
    done = subprocess.run(["coqc", "--print-version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[0]


def compile_all(build: Path) -> None:
    """Compile the files that have changed, and print one line per file.

    Parameters
    ----------
    build : Path
        Folder to which the sources are copied and in which they are compiled. Existing results are
        reused.

    Raises
    ------
    SystemExit
        If a file does not compile.
    """
    build.mkdir(parents=True, exist_ok=True)
    for name in sources():
        text, copy = (PROOFS / name).read_text(encoding="utf-8"), build / name
        imports = " ".join(re.findall(r"Require (?:Import )?([^.]*)\.", text)).split()
        used = [build / f"{word}.vo" for word in imports if f"{word}.v" in sources()]
        compiled = copy.with_suffix(".vo")
        if (
            compiled.exists()
            and copy.read_text(encoding="utf-8") == text
            and all(other.stat().st_mtime <= compiled.stat().st_mtime for other in used)
        ):
            print(f"proofs/{name:24} as before", flush=True)
            continue
        compiled.unlink(missing_ok=True)
        copy.write_text(text, encoding="utf-8")
        start = time.perf_counter()
        done = subprocess.run(["coqc", "-q", "-Q", ".", LIBRARY, name], cwd=build, check=False)
        if done.returncode != 0:
            raise SystemExit(f"proofs/{name} does not compile; the lines are those of the file.")
        print(f"proofs/{name:24} {time.perf_counter() - start:6.1f} s", flush=True)


def query(build: Path, listed: list[Record]) -> list[tuple[str, list[str]]]:
    """Return each theorem's statement, as printed by Rocq, and the axioms it depends on."""
    modules = sorted({Path(entry["file"]).stem for entry in listed})
    lines = [
        "Require Import Reals.",
        f"From {LIBRARY} Require Import Definitions.",
        f"From {LIBRARY} Require {' '.join(modules)}.",
        "Open Scope R_scope.",
        "Set Printing Width 90.",
    ]
    for number, entry in enumerate(listed):
        name = f"{Path(entry['file']).stem}.{entry['name']}"
        lines += [
            f'Redirect "statement{number}" Check {name}.',
            f'Redirect "axioms{number}" Print Assumptions {name}.',
        ]
    with tempfile.TemporaryDirectory() as folder:
        query = Path(folder, "Query.v")
        query.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = ["coqc", "-q", "-Q", str(build), LIBRARY, "Query.v"]
        subprocess.run(command, cwd=folder, check=True)
        answers = []
        for number in range(len(listed)):
            printed = Path(folder, f"statement{number}.out").read_text(encoding="utf-8")
            axioms = Path(folder, f"axioms{number}.out").read_text(encoding="utf-8")
            body = printed.split(":", 1)[1].rstrip("\n").split("\n")
            statement = "\n".join(line.removeprefix("       ") for line in body).strip()
            answers.append((statement, assumptions(axioms)))
        return answers


def differences(old: Record, new: Record) -> list[str]:
    """Return descriptions of the differences between the committed and the new record.

    Statements are compared only if the same version of Rocq printed them, since versions print
    differently. Otherwise, the digest of the sources shows whether they are the same.
    """
    changed = [] if old.get("sources") == new["sources"] else ["the hash of the sources"]
    known = {(entry["file"], entry["theorem"]): entry for entry in old.get("theorems", [])}
    if known.keys() != {(entry["file"], entry["theorem"]) for entry in new["theorems"]}:
        changed.append("the list of theorems")
    for entry in new["theorems"]:
        before = known.get((entry["file"], entry["theorem"]), entry)
        for key in entry:
            if before.get(key) != entry[key] and not (
                key == "statement" and old.get("rocq") != new["rocq"]
            ):
                changed.append(f"{key} of {entry['theorem']}")
    return changed


def main() -> None:
    """Check all proofs and update the record, as described in the module docstring."""
    listed, names = theorems(), sources()
    stray = {path.name for path in PROOFS.glob("*.v")} ^ set(names)
    if stray:
        raise SystemExit(f"proofs/_CoqProject and the folder differ in {', '.join(sorted(stray))}.")
    for name in names:
        words = forbidden((PROOFS / name).read_text(encoding="utf-8"))
        if words:
            raise SystemExit(f"proofs/{name} must not say {', '.join(sorted(set(words)))}.")
    if not installed():
        install()
    if not installed():
        raise SystemExit(ADVICE)
    build = ROOT / "_build" / "proofs" / version()
    compile_all(build)
    record: Record = {"rocq": version(), "sources": digest(), "theorems": []}
    for entry, (statement, axioms) in zip(listed, query(build, listed), strict=True):
        print(f"\n{entry['name']} ({entry['file']}) rests on")
        print("\n".join(f"    {axiom}" for axiom in axioms) or "    no axiom", flush=True)
        if not_allowed(axioms):
            raise SystemExit(f"{entry['name']} must not rest on {', '.join(not_allowed(axioms))}.")
        record["theorems"].append(
            {
                "title": entry["title"],
                "claims": entry["claims"],
                "part": entry.get("part", ""),
                "covers": entry["covers"],
                "file": f"proofs/{entry['file']}",
                "theorem": entry["name"],
                "statement": statement,
                "assumptions": axioms,
            }
        )
    old = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    changes = differences(old, record)
    if changes and os.environ.get("CI"):
        raise SystemExit(
            f"{RECORD.name} is not the record of what was proved: {'; '.join(changes)}. "
            "Run `make proofs` and commit it."
        )
    if changes:
        sys.path.insert(0, str(ROOT))  # the library may not be installed
        from pu_lib.files import replace_file

        replace_file(RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    print(f"\n{len(listed)} theorems proved; {'wrote' if changes else 'as in'} {RECORD.name}.")


if __name__ == "__main__":
    main()
