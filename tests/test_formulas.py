"""Tests of the formulas that checks evaluate and claims print."""

import math
import re
import tomllib
from fractions import Fraction
from importlib import import_module, resources

import pytest
from flint import arb

from pu_lib.claims import chapters, folder_of, judge, select
from pu_lib.claims.formulas import (
    Formula,
    ceil,
    exp,
    floor,
    formula,
    insert_formulas,
    log,
    log1p,
    sqrt,
)


@formula
def steps(h, w):
    return 1 + (h - 1) * (floor(1 / w) + 1)


@formula
def growth(n, w):
    if n == 0:
        return 0
    return 32 * exp(8 * w + 3) / w**3 * n * log(n)


@formula
def decaying(n):
    return 3 * n - 4 * sqrt(n) + 1


def test_exact_numbers_give_exact_results() -> None:
    """The bound is the integer 1 + 2 (floor(5/2) + 1) = 7, not a float."""
    assert steps(3, Fraction(2, 5)) == 7
    assert isinstance(steps(3, Fraction(2, 5)), int)
    assert decaying(4) == 5
    assert growth(0, 1) == 0
    assert growth(2, 1.0) == pytest.approx(64 * math.exp(11) * math.log(2))
    assert arb(5) in decaying(arb(4)) or decaying(arb(4)) == 5


def test_latex_matches_hand_solution() -> None:
    assert steps.latex(w=r"\eta d") == (
        r"1+(h-1)\left(\left\lfloor\frac{1}{\eta d}\right\rfloor+1\right)"
    )
    assert growth.latex(w=r"\eta") == r"\frac{32e^{8\eta+3}}{\eta^{3}}n\log n"
    assert decaying.latex() == r"3n-4\sqrt{n}+1"


def test_latex_depends_on_the_constants() -> None:
    @formula
    def changed(n):
        return 3 * n - 3 * sqrt(n) + 1

    assert changed.latex() == r"3n-3\sqrt{n}+1" != decaying.latex()


@formula
def power(x, y):
    return (x + 1) ** 2 - (y - x) / 2


@formula
def minimum(n, w):
    return min(n, floor(1 / w)) - -n


@formula
def unknown(x):
    return math.gamma(x)


def test_latex_puts_sums_in_parentheses() -> None:
    assert power.latex() == r"(x+1)^{2}-\frac{y-x}{2}"
    assert minimum.latex() == r"\min\{n,\left\lfloor\frac{1}{w}\right\rfloor\}--n"


@formula
def rounded(n, w):
    return min(n, ceil(1 / w)) + 1 / w * log1p(2 * w * n)


@formula
def same(n):
    return n


@formula
def logarithm(x):
    return log((x + 1) / x)


def test_parentheses_are_as_tall_as_a_fraction() -> None:
    assert logarithm.latex() == r"\log\left(\frac{x+1}{x}\right)"


def test_log1p_is_accurate_for_small_numbers() -> None:
    """For w = 1e-20, log(1 + 2 w n) / w equals 2 n up to a relative error below 1e-19."""
    assert rounded.latex() == (
        r"\min\{n,\left\lceil\frac{1}{w}\right\rceil\}+\frac{1}{w}\log(1+2wn)"
    )
    assert rounded.latex(w=r"\eta").endswith(r"\frac{1}{\eta}\log(1+2\eta n)")
    assert rounded(3, 1e-20) == pytest.approx(9)
    assert rounded(5, 0.4) == pytest.approx(3 + 2.5 * math.log(5))
    assert ceil(Fraction(5, 2)) == 3
    assert float(log1p(arb("1e-40"))) == pytest.approx(1e-40)


def test_latex_rejects_unsupported_functions() -> None:
    with pytest.raises(ValueError, match=r"cannot print math.gamma\(x\)"):
        unknown.latex()
    with pytest.raises(ValueError, match="steps: no argument eta"):
        steps.latex(eta="w")


def test_insert_formulas_fills_placeholders() -> None:
    text = r"at most $<<steps: h=|\mathcal S|, w=\eta>>$ and $<<decaying>>$"
    assert insert_formulas(text, {"steps": steps, "decaying": decaying}) == (
        r"at most $1+(|\mathcal S|-1)\left(\left\lfloor\frac{1}{\eta}\right\rfloor+1\right)$ "
        r"and $3n-4\sqrt{n}+1$"
    )
    # a space is inserted if a LaTeX command would otherwise merge with the next letter
    texts = (r"n\ge<<same>>", r"n\ge<<decaying>>", r"<<same: n=\eta>>x")
    same_or_decaying = {"same": same, "decaying": decaying}
    assert [insert_formulas(text, same_or_decaying) for text in texts] == [
        r"n\ge n",
        r"n\ge3n-4\sqrt{n}+1",
        r"\eta x",
    ]
    with pytest.raises(ValueError, match="no formula 'missing'; there are: steps"):
        insert_formulas("<<missing>>", {"steps": steps})


# Formulas of the book


def printed_formulas() -> dict[str, tuple[Formula, list[str]]]:
    """Return every formula that a claim prints, together with the claims that print it."""
    printed: dict[str, tuple[Formula, list[str]]] = {}
    for chapter in chapters():
        folder = f"pu_lib.chapters.{folder_of(chapter)}"
        text = (resources.files(folder) / "claims.toml").read_text("utf-8")
        for row in tomllib.loads(text).get("claim", ()):
            for name in re.findall(r"<<(\w+)", " ".join(map(str, row.values()))):
                formula_of_name = vars(import_module(f"{folder}.quantities"))[name]
                printed.setdefault(f"{chapter}: {name}", (formula_of_name, []))[1].append(row["id"])
    return printed


PRINTED = printed_formulas()


def test_formulas_in_claims_stand_between_dollars() -> None:
    for chapter in chapters():
        folder = f"pu_lib.chapters.{folder_of(chapter)}"
        text = (resources.files(folder) / "claims.toml").read_text("utf-8")
        for row in tomllib.loads(text).get("claim", ()):
            for key, value in row.items():
                prose = re.sub(r"\$[^$]*\$", "", str(value))
                assert "<<" not in prose, f"{row['id']}, {key}: put the formula between dollars"


@pytest.mark.parametrize("name", PRINTED)
def test_changed_formula_differs_from_the_record(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim prints the bound of its check, so that a different bound changes the findings."""
    changed, claims = PRINTED[name]
    right = changed._function

    def larger(*numbers):
        value = right(*numbers)
        return value * (Fraction(101, 100) if isinstance(value, int | Fraction) else 1.01)

    monkeypatch.setattr(changed, "_function", larger)
    differing = []
    for claim in dict.fromkeys(claims):
        try:
            differing += judge(claim).differences
        except (ValueError, TypeError, AssertionError) as error:  # the float replaces an integer
            differing.append(str(error))
    assert differing, f"no check of {', '.join(claims)} compares with {name}"


def test_changed_constant_in_theorem_5_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound 3n - 3 sqrt(n) + 1 is also valid, but differs from the recorded one."""
    (name,) = [name for name in PRINTED if "decaying_pg" in name]
    right = PRINTED[name][0]

    @formula
    def changed(n):
        return 3 * n - 3 * sqrt(n) + 1

    claims = select(["Theorem 5(i)"])
    assert [line for claim in claims for line in judge(claim).differences] == []
    assert right.latex(n="n") == r"3n-4\sqrt{n}+1"
    monkeypatch.setattr(right, "_function", changed._function)
    assert right.latex(n="n") == r"3n-3\sqrt{n}+1"
    differences = [line for claim in claims for line in judge(claim).differences]
    assert any(r"3n-3\sqrt{n}+1" in line for line in differences)
