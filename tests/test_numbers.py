"""No result stands on a page only because someone typed it.

A number with at least two digits that count, or a share in per cent, is looked for in what the same
page runs: in its code, where assertions compare with it, in the figures that it draws, and in what
was measured of the claims that it judges. Where it is none of these, `numbers.toml` says where it
comes from. The sentences of the ledger are held to the same rule; they have their claim's verdict.
"""

import ast
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest

from pu_lib.claims import recorded

ROOT = Path(__file__).parent.parent
MADE = {"trust"}  # of figures, by tools/report.py
PAGES = sorted(
    path
    for path in (ROOT / "book").iterdir()
    if path.suffix in (".ipynb", ".md") and path.stem not in MADE
)
CHAPTERS = ROOT / "pu_lib" / "chapters"
LISTED = tomllib.loads((Path(__file__).parent / "numbers.toml").read_text("utf-8"))["number"]

CODE = re.compile(
    r"^(`{3,}|~{3,})(?:\{code-cell\}|\{ledger\}|\w*\s*$).*?^\1\s*$", re.MULTILINE | re.DOTALL
)
NUMBER = re.compile(
    r"(?<![\w.])(?P<digits>\d{1,3}(?:[ \u00a0]\d{3})+|\d+)(?P<decimals>\.\d+)?(?P<power>e-?\d+)?"
    r"(?!\w|[.-]\d)(?P<share>\s?%)?"
)
# No numbers of anything: code, addresses, options of directives, parts of the paper, exponents.
SKIPPED = re.compile(
    r"`[^`]*`|\]\([^)]*\)|https?://\S+|arXiv:\S+|^:[\w-]+:.*$|x86-64|\d+-bit|\^\{[^{}]*\}|_\{[^{}]*\}|[\^_]."
    r"|\b(?:[Ss]ections?|[Ss]ec\.|[Ee]quations?|[Ee]q\.|[Aa]ppendix|Theorems?|Figures?|Tables?|Python)"
    r" \d[\d.–]*(?: (?:and|to) \d[\d.]*)?",
    re.MULTILINE,
)
PLACE = re.compile(r"(?<![\\$^_\w])\{[^{}$\\]*\}")
TIMES_TEN = re.compile(r"\\(?:cdot|times)\s*10\^\{?(-?\d+)\}?")


class Number(NamedTuple):
    """A number as it is written: its value, the place of its last digit, and whether it says %."""

    value: float
    last: int
    share: bool
    counting: int
    around: str


def plain(text: str) -> str:
    """Return prose with its numbers written as code writes them."""
    text = re.sub(r"\\,|\{,\}|\u2009|\u202f|~", "\u00a0", text).replace("\\%", "%")
    return SKIPPED.sub(" ", TIMES_TEN.sub(r"e\1", text))


def numbers(text: str) -> Iterator[Number]:
    """Yield the numbers in a paragraph."""
    told = plain(text)
    for found in NUMBER.finditer(told):
        digits, decimals = re.sub(r"\D", "", found["digits"]), (found["decimals"] or ".")[1:]
        kept = (digits + decimals).lstrip("0")
        rounded = len(digits) > 3 or told[: found.start()].endswith(("about ", "some "))
        zeros = len(digits) - len(digits.rstrip("0")) if rounded and not decimals else 0
        yield Number(
            float(f"{digits}.{decimals or 0}{found['power'] or ''}"),
            int((found["power"] or "e0")[1:]) - len(decimals) + zeros,
            bool(found["share"]),
            len(kept if decimals else kept.rstrip("0")),
            " ".join(told[max(0, found.start() - 50) : found.end() + 30].split()),
        )


def is_result(number: Number) -> bool:
    """Return whether a number says more than a small parameter or a year does."""
    year = number.last == 0 and 1900 <= number.value < 2100
    return number.share or (number.counting >= 2 and not year)


def agrees(number: Number, known: Iterable[float]) -> bool:
    """Return whether one of some numbers, rounded to the digits that are written, is that one."""
    half = 0.5000001 * 10.0**number.last
    scales = (1.0, 100.0) if number.share else (1.0,)
    return any(abs(scale * x - number.value) <= half for x in known for scale in scales)


def typed(text: str, known: Iterable[float]) -> list[str]:
    """Return the results in a paragraph that nothing known accounts for, with words around them."""
    return [n.around for n in numbers(text) if is_result(n) and not agrees(n, known)]


# What is known


def computed(*code: ast.AST) -> set[float]:
    """Return the numbers in code, and those in its strings."""
    found: set[float] = set()
    for node in chain.from_iterable(map(ast.walk, code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {float(x) for x in re.findall(r"\d+(?:\.\d+)?", node.value)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            found.add(float(node.value))
    return found


def drawn(source: str) -> set[float]:
    """Return the numbers in the code of the figures that a page draws: parameters and ranges."""
    found: set[float] = set()
    for package, name in re.findall(r"from (pu_lib[.\w]*) import (\w+)", source):
        for module in (package, f"{package}.{name}"):
            path = ROOT / f"{module.replace('.', '/')}.py"
            figures = "show" in path.parts or "figures" in path.stem
            for part in (
                ast.parse(path.read_text("utf-8")).body if figures and path.exists() else []
            ):
                called = isinstance(part, ast.FunctionDef) and part.name in source
                if called or isinstance(part, ast.Assign):
                    found |= computed(part)
    return found


@cache
def claims() -> dict[str, dict[str, str]]:
    files = [tomllib.loads(path.read_text("utf-8")) for path in CHAPTERS.glob("*/claims.toml")]
    return {claim["id"]: claim for file in files for claim in file.get("claim", [])}


@cache
def measured() -> dict[str, set[float]]:
    """Return what the last recorded run of each check found."""
    found = {}
    for name, row in recorded().items():
        shown = [tally["shown"][2:4] for tally in row["tallies"]]  # both sides, and where
        told = json.dumps([row["figures"], shown])
        found[name] = {n.value for n in numbers(told)}
    return found


@cache
def checks() -> dict[str, set[float]]:
    """Return the numbers in the code of each check: its arguments and what it compares with."""
    found = {}
    for path in CHAPTERS.glob("*/checks*.py"):
        for part in ast.parse(path.read_text("utf-8")).body:
            for given in getattr(part, "decorator_list", []):
                if isinstance(given, ast.Call) and ast.unparse(given.func) == "check":
                    found[ast.literal_eval(given.args[0])] = computed(part.args, *part.body)
    return found


def of_claim(name: str) -> set[float]:
    """Return the numbers of a claim's check, those it measured, and those that the paper prints."""
    printed = claims()[name]["statement"] if claims()[name]["scope"] != "book" else ""
    told = {n.value for n in numbers(printed)}
    return measured().get(name, set()) | checks().get(name, set()) | told


# Where it is looked for


def code_of(page: Path) -> str:
    if page.suffix == ".ipynb":
        cells = nbformat.read(page, 4).cells
        return "\n".join(c.source for c in cells if c.cell_type == "code")
    blocks = re.findall(r"\{code-cell\}.*?\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    return re.sub(r"^:.*$", "", "\n".join(blocks), flags=re.MULTILINE)


def prose_of(page: Path) -> Iterator[str]:
    """Yield the paragraphs of a page, the captions of its figures and the words for them."""
    cells = nbformat.read(page, 4).cells if page.suffix == ".ipynb" else []
    told = [c.source for c in cells if c.cell_type == "markdown"]
    for text in told or [page.read_text("utf-8")]:
        yield from re.split(r"\n\s*\n", CODE.sub("", text))
    for cell in cells:
        if "mystnb" in cell.metadata:
            yield cell.metadata.mystnb.figure.caption
            yield cell.metadata.mystnb.image.alt


@cache
def known_to(page: Path) -> set[float]:
    """Return the numbers that a page computes, and those of the claims that it judges."""
    source = code_of(page)
    judged = set(re.findall(r'"([\w:./-]+)"', source)) & claims().keys()
    return (
        computed(ast.parse(source)) | drawn(source) | {x for name in judged for x in of_claim(name)}
    )


def flat(text: str) -> str:
    """Return a text without its line breaks, which move when a word is changed."""
    return " ".join(text.split())


def listed(place: str, text: str) -> set[float]:
    """Return the numbers in a paragraph of a page or a claim that come from elsewhere."""
    given: set[float] = set()
    for entry in LISTED:
        words = entry.get("paragraph", entry.get("text"))
        if entry["at"] == place and flat(words) in flat(text):
            given |= {n.value for n in numbers(text if "paragraph" in entry else words)}
    return given


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_number_on_a_page_is_computed_there(page: Path) -> None:
    wrong = [
        words
        for text in prose_of(page)
        for words in typed(text, known_to(page) | listed(page.stem, text))
    ]
    assert not wrong, "assert these on the page, or say in numbers.toml where they come from: " + (
        "\n".join(wrong)
    )


@pytest.mark.parametrize("name", claims())
def test_every_number_in_a_claim_was_measured(name: str) -> None:
    claim = claims()[name]
    told = [PLACE.sub("", claim.get("sentence", "")), claim.get("wrong", "")]
    for text in (*told, claim.get("correction", "")):
        assert not typed(text, of_claim(name) | listed(name, text))


# The rule itself


def test_listed_numbers_stand_where_they_are_said_to() -> None:
    places = {page.stem: "\n\n".join(prose_of(page)) for page in PAGES}
    places |= {name: "\n".join(map(str, claim.values())) for name, claim in claims().items()}
    for entry in LISTED:
        words = entry.get("paragraph", entry.get("text"))
        assert len(entry) == 3
        assert len(entry["source"]) > 10
        assert flat(words) in flat(places[entry["at"]]), f"drop or mend it: {words}"


def test_wrong_numbers_are_found_and_rounded_ones_accepted() -> None:
    page = ROOT / "book" / "argument.ipynb"
    assert typed("PG-SM needs 588 updates.", known_to(page))
    assert not typed("PG-SM needs 587 updates.", known_to(page))
    assert not typed("0.71, 71 %, and 1.235e-5", {0.7097, 1.23456e-5})
    assert len(typed("0.72, 72 %, and 1.236e-5", {0.7097, 1.23456e-5})) == 3
    assert not typed("some 842 000 steps", {841_960})
    assert typed("some 843 000 steps", {841_960})


def test_most_wrong_last_digits_are_found() -> None:
    """Move the last digit of every result on every page: chance accepts one in four, no more."""
    noticed = tried = 0
    for page in PAGES:
        for text in prose_of(page):
            for number in filter(is_result, numbers(text)):
                for step in (-2, -1, 1, 2):
                    wrong = number._replace(value=number.value + step * 10.0**number.last)
                    tried += 1
                    noticed += not agrees(wrong, known_to(page))
    assert noticed > 0.7 * tried, (noticed, tried)
