"""Every result on a page is computed there, measured by a claim, or listed with its source.

A result is a number with at least two significant digits, or a percentage. The tests search for it
in the code of the page (such as its assertions), in the figures that the page draws, and in the
findings of the claims that it checks. `numbers.toml` lists all other numbers with their sources.
The same rule applies to the sentences of the ledger.
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
MADE = {"trust"}  # pages that tools/report.py generates from measurements
PAGES = sorted(
    path
    for path in (ROOT / "book").iterdir()
    if path.suffix in (".ipynb", ".md") and path.stem not in MADE
)
CHAPTERS = ROOT / "pu_lib" / "chapters"
LISTED = tomllib.loads((Path(__file__).parent / "numbers.toml").read_text("utf-8"))["number"]

CODE = re.compile(
    r"^(`{3,}|~{3,})(?:\{(?:code-cell|index|ledger|teaching)\}|\w*\s*$).*?^\1\s*$",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(
    r"(?<![\w.])(?P<digits>\d{1,3}(?:[ \u00a0]\d{3})+|\d+)(?P<decimals>\.\d+)?(?P<power>e-?\d+)?"
    r"(?!\w|[.-]\d)(?P<share>\s?%)?"
)
# Text without results: times of exercises, code, URLs, options of directives, references to the
# paper, and exponents.
SKIPPED = re.compile(
    r"\((?:easy|medium|hard), \d+ minutes\)|"
    r"`[^`]*`|\]\([^)]*\)|https?://\S+|arXiv:\S+|^:[\w-]+:.*$|x86-64|\d+-bit|\^\{[^{}]*\}|_\{[^{}]*\}|[\^_]."
    r"|\b(?:[Ss]ections?|[Ss]ec\.|[Ee]quations?|[Ee]q\.|[Aa]ppendix|Theorems?|Figures?|Tables?|Python)"
    r" \d[\d.–]*(?: (?:and|to) \d[\d.]*)?",
    re.MULTILINE,
)
PLACE = re.compile(r"(?<![\\$^_\w])\{[^{}$\\]*\}")
TIMES_TEN = re.compile(r"\\(?:cdot|times)\s*10\^\{?(-?\d+)\}?")


class Number(NamedTuple):
    """Number in a text.

    The fields are its value, the place of its last digit, whether it is a percentage, the number of
    its significant digits, and its context.
    """

    value: float
    last: int
    share: bool
    counting: int
    around: str


def plain(text: str) -> str:
    """Return prose with its numbers formatted as in code."""
    text = re.sub(r"\\,|\{,\}|\u2009|\u202f|~", "\u00a0", text).replace("\\%", "%")
    return SKIPPED.sub(" ", TIMES_TEN.sub(r"e\1", text))


def numbers(text: str) -> Iterator[Number]:
    """Yield the numbers in a paragraph."""
    written = plain(text)
    for match in NUMBER.finditer(written):
        digits, decimals = re.sub(r"\D", "", match["digits"]), (match["decimals"] or ".")[1:]
        significant = (digits + decimals).lstrip("0")
        rounded = len(digits) > 3 or written[: match.start()].endswith(("about ", "some "))
        zeros = len(digits) - len(digits.rstrip("0")) if rounded and not decimals else 0
        yield Number(
            float(f"{digits}.{decimals or 0}{match['power'] or ''}"),
            int((match["power"] or "e0")[1:]) - len(decimals) + zeros,
            bool(match["share"]),
            len(significant if decimals else significant.rstrip("0")),
            " ".join(written[max(0, match.start() - 50) : match.end() + 30].split()),
        )


def is_result(number: Number) -> bool:
    """Return whether a number is a result rather than a small parameter or a year."""
    year = number.last == 0 and 1900 <= number.value < 2100
    return number.share or (number.counting >= 2 and not year)


def agrees(number: Number, known: Iterable[float]) -> bool:
    """Return whether any known number, rounded to the digits of `number`, equals it."""
    half = 0.5000001 * 10.0**number.last
    scales = (1.0, 100.0) if number.share else (1.0,)
    return any(abs(scale * x - number.value) <= half for x in known for scale in scales)


def unexplained(text: str, known: Iterable[float]) -> list[str]:
    """Return the unknown results in a paragraph together with the surrounding words."""
    return [n.around for n in numbers(text) if is_result(n) and not agrees(n, known)]


# Known numbers


def computed(*code: ast.AST) -> set[float]:
    """Return the numbers in code, including those in its strings."""
    values: set[float] = set()
    for node in chain.from_iterable(map(ast.walk, code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            values |= {float(x) for x in re.findall(r"\d+(?:\.\d+)?", node.value)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            values.add(float(node.value))
    return values


def numbers_in_figures(source: str) -> set[float]:
    """Return the numbers in the code of a page's figures, such as parameters and ranges."""
    values: set[float] = set()
    for package, name in re.findall(r"from (pu_lib[.\w]*) import (\w+)", source):
        for module in (package, f"{package}.{name}"):
            path = ROOT / f"{module.replace('.', '/')}.py"
            figures = {"drawing", "explorers"} & {*path.parts} or "figures" in path.stem
            for part in (
                ast.parse(path.read_text("utf-8")).body if figures and path.exists() else []
            ):
                called = isinstance(part, ast.FunctionDef) and part.name in source
                if called or isinstance(part, ast.Assign):
                    values |= computed(part)
    return values


@cache
def claims() -> dict[str, dict[str, str]]:
    files = [tomllib.loads(path.read_text("utf-8")) for path in CHAPTERS.glob("*/claims.toml")]
    return {claim["id"]: claim for file in files for claim in file.get("claim", [])}


@cache
def measured() -> dict[str, set[float]]:
    """Return the numbers in the record of each claim."""
    by_claim = {}
    for name, row in recorded().items():
        worst = [[tally["closest"], tally["at"]] for tally in row["tallies"]]
        text = json.dumps([row["figures"], worst])
        by_claim[name] = {n.value for n in numbers(text)}
    return by_claim


@cache
def checks() -> dict[str, set[float]]:
    """Return the numbers in the arguments and the body of each check."""
    by_claim = {}
    for path in CHAPTERS.glob("*/checks*.py"):
        for part in ast.parse(path.read_text("utf-8")).body:
            for decorator in getattr(part, "decorator_list", []):
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "check":
                    by_claim[ast.literal_eval(decorator.args[0])] = computed(part.args, *part.body)
    return by_claim


def numbers_of_claim(name: str) -> set[float]:
    """Return the numbers in a claim's check, record and printed statement."""
    printed = claims()[name]["statement"] if claims()[name]["scope"] != "book" else ""
    in_statement = {n.value for n in numbers(printed)}
    return measured().get(name, set()) | checks().get(name, set()) | in_statement


# Pages


def code_of(page: Path) -> str:
    if page.suffix == ".ipynb":
        cells = nbformat.read(page, 4).cells
        return "\n".join(c.source for c in cells if c.cell_type == "code")
    blocks = re.findall(r"\{code-cell\}.*?\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    return re.sub(r"^:.*$", "", "\n".join(blocks), flags=re.MULTILINE)


def prose_of(page: Path) -> Iterator[str]:
    """Yield the paragraphs of a page and the captions and alternative texts of its figures."""
    cells = nbformat.read(page, 4).cells if page.suffix == ".ipynb" else []
    markdown = [c.source for c in cells if c.cell_type == "markdown"]
    for text in markdown or [page.read_text("utf-8")]:
        yield from re.split(r"\n\s*\n", CODE.sub("", text))
    for cell in cells:
        if "figure" in cell.metadata.get("mystnb", {}):
            yield cell.metadata.mystnb.figure.caption
            yield cell.metadata.mystnb.image.alt


@cache
def known_numbers(page: Path) -> set[float]:
    """Return the numbers that a page computes and those of the claims that it judges."""
    source = code_of(page)
    judged = set(re.findall(r'"([\w:./-]+)"', source)) & claims().keys()
    return (
        computed(ast.parse(source))
        | numbers_in_figures(source)
        | {x for name in judged for x in numbers_of_claim(name)}
    )


def one_line(text: str) -> str:
    """Return a text without line breaks."""
    return " ".join(text.split())


def listed(place: str, text: str) -> set[float]:
    """Return the numbers in a paragraph that `numbers.toml` lists for a page or claim."""
    values: set[float] = set()
    for entry in LISTED:
        words = entry.get("paragraph", entry.get("text"))
        if entry["at"] == place and one_line(words) in one_line(text):
            values |= {n.value for n in numbers(text if "paragraph" in entry else words)}
    return values


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_numbers_on_a_page_are_computed_there(page: Path) -> None:
    wrong = [
        words
        for text in prose_of(page)
        for words in unexplained(text, known_numbers(page) | listed(page.stem, text))
    ]
    assert not wrong, "assert these on the page, or say in numbers.toml where they come from: " + (
        "\n".join(wrong)
    )


@pytest.mark.parametrize("name", claims())
def test_numbers_in_a_claim_are_computed_by_its_check(name: str) -> None:
    claim = claims()[name]
    texts = [PLACE.sub("", claim.get("sentence", "")), claim.get("wrong", "")]
    for text in (*texts, claim.get("correction", "")):
        assert not unexplained(text, numbers_of_claim(name) | listed(name, text))


# Tests


def test_listed_numbers_appear_at_their_place() -> None:
    places = {page.stem: "\n\n".join(prose_of(page)) for page in PAGES}
    places |= {name: "\n".join(map(str, claim.values())) for name, claim in claims().items()}
    for entry in LISTED:
        words = entry.get("paragraph", entry.get("text"))
        assert len(entry) == 3
        assert len(entry["source"]) > 10
        assert one_line(words) in one_line(places[entry["at"]]), f"delete or correct it: {words}"


def test_incorrect_numbers_are_detected_and_rounded_numbers_accepted() -> None:
    page = ROOT / "book" / "argument.ipynb"
    assert unexplained("PG-SM needs 588 updates.", known_numbers(page))
    assert not unexplained("PG-SM needs 587 updates.", known_numbers(page))
    assert not unexplained("0.71, 71 %, and 1.235e-5", {0.7097, 1.23456e-5})
    assert len(unexplained("0.72, 72 %, and 1.236e-5", {0.7097, 1.23456e-5})) == 3
    assert not unexplained("some 842 000 steps", {841_960})
    assert unexplained("some 843 000 steps", {841_960})


def test_most_incorrect_last_digits_are_detected() -> None:
    """At most 30 % of results with a changed last digit are accepted by chance."""
    noticed = tried = 0
    for page in PAGES:
        for text in prose_of(page):
            for number in filter(is_result, numbers(text)):
                for step in (-2, -1, 1, 2):
                    wrong = number._replace(value=number.value + step * 10.0**number.last)
                    tried += 1
                    noticed += not agrees(wrong, known_numbers(page))
    assert noticed > 0.7 * tried, (noticed, tried)
