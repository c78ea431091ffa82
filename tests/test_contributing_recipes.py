"""The recipes of CONTRIBUTING.md work in a copy of the repository.

The tests add an update, a domain, a claim, a chapter, a figure and an explorer, and verify that
they appear in figures, tables, counts, races, sweeps, commands and pages.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parent.parent

UPDATE = '''

@register
class Replicator(Update):
    """Grow every probability in proportion to its action's value."""

    name, title, label = "rep", "replicator update", "REP"
    parametrization = "direct"
    to_policy = to_parameters = staticmethod(np.copy)

    @property
    def kernel(self) -> Kernel | None:
        """One step at one state in plain arithmetic."""
        return kernels.replicate

    def advance(self, theta, q, weight, rng):
        grown = theta * (1.0 + weight * (q - q.min(axis=-1, keepdims=True)))
        return grown / grown.sum(axis=-1, keepdims=True)
'''

KERNEL = """

def replicate(theta, pi, q, best, weight, n_actions):
    low, total = q[0], 0
    for a in range(n_actions):
        low = min(low, q[a])
    for a in range(n_actions):
        theta[a] *= 1 + weight * (q[a] - low)
        total += theta[a]
    for a in range(n_actions):
        theta[a] /= total


KERNELS = (*KERNELS, replicate)
"""

DOMAIN = '''

def ladder(n_states: int = 3, prize: float = 1.0, discount: float = 0.9) -> FiniteMDP:
    """Return a ladder: action 0 climbs, and pays at the top; action 1 falls to the ground."""
    transitions = np.zeros((n_states, 2, n_states))
    transitions[:, 1, 0] = 1.0
    for state in range(n_states):
        transitions[state, 0, min(state + 1, n_states - 1)] = 1.0
    rewards = np.zeros((n_states, 2))
    rewards[-1, 0] = prize
    return FiniteMDP(transitions, rewards, np.eye(n_states)[0], discount)


register_domain(Domain("ladder", ladder, "The ladder", target=0.5))
'''

CHECK = '''

@check("sec:asymp/new", wrong={"zero for one": {"bound": 0.0}})
def probabilities_are_at_most_one(compare: Recorder, bound: float = 1.0) -> None:
    """A probability is at most one."""
    compare.at_most("probability", 0.5, bound)
'''

CLAIM = """
[[claim]]
id = "sec:asymp/new"
number = "Section 3.2"
section = "3.2"
kind = "remark"
statement = "Probabilities are at most one."
scope = "remark"
status = "holds"
"""

CHAPTER = 'title = "Regret"\norder = 55\n'

EXPLORER = """
from pu_lib.explorers.chapters import FirstStep

__all__ += ["FirstStep"]
"""

FENCED = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def printed(recipe: str, language: str) -> str:
    """Return the code of a recipe in CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    text = text.partition(f"**Add {recipe}.**")[2].partition("\n**")[0]
    return dict(FENCED.findall(text))[language]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository in which all recipes have been followed."""
    root = tmp_path_factory.mktemp("recipes") / "copy"
    # Compiled code is also copied, so that only changed modules are recompiled.
    left_out = shutil.ignore_patterns(".*", "node_modules", "_build", "*.egg-info")
    shutil.copytree(ROOT, root, ignore=left_out, symlinks=True)
    for path, text in {
        "updates.py": UPDATE,
        "kernels.py": KERNEL,
        "domains.py": DOMAIN,
        "chapters/rates/checks.py": CHECK,
        "chapters/rates/claims.toml": CLAIM,
        "chapters/rates/figures.py": "\n\n" + printed("a figure", "python"),
        "explorers/chapters.py": "\n\n" + printed("an explorer", "python"),
        "explorers/__init__.py": EXPLORER,
        "chapters/regret/__init__.py": '"""Claims of the chapter `book/regret.ipynb`."""\n',
        "chapters/regret/claims.toml": CHAPTER,
    }.items():
        (root / "pu_lib" / path).parent.mkdir(exist_ok=True)
        with (root / "pu_lib" / path).open("a", encoding="utf-8") as file:
            file.write(text)
    rates = nbformat.read(root / "book" / "rates.ipynb", 4)
    rates.cells.append(
        nbformat.v4.new_code_cell(
            'confirm("sec:asymp/new")', id="new", metadata={"tags": ["remove-input"]}
        )
    )
    rates.cells.append(
        nbformat.v4.new_code_cell(
            "show.draw_odds()", id="odds", metadata=json.loads(printed("a figure", "json"))
        )
    )
    nbformat.write(rates, root / "book" / "rates.ipynb")
    live = root / "pu_lib" / "explorers"
    (live / "first_step.js").write_text(printed("an explorer", "js"), encoding="utf-8")
    markdown, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    notebook = nbformat.v4.new_notebook(
        cells=[
            markdown("# Regret\n\n**What is lost?**", id="question"),
            code("from pu_lib.explorers import Noise\n\nNoise()", id="explorer"),
            markdown("## The answer", id="the-answer"),
            code(
                'from pu_lib.claims.tables import versus\n\nversus(("sec:asymp", "A.", "B."))',
                id="answer",
            ),
        ],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(notebook, root / "book" / "regret.ipynb")
    return root


def python(copy: Path, *arguments: str, code: int = 0) -> str:
    """Run Python in the copy and return its output, including standard error if `code` is not 0."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, f"{done.stdout}{done.stderr}"
    return f"{done.stdout}{done.stderr}" if code else done.stdout


FIGURES = """
from pu_lib.chapters.updates.figures import draw_flows
from pu_lib.chapters.table1.tables import table_1
print([text.get_text() for ax in draw_flows().axes for text in ax.texts])
print(table_1())
"""

COUNTS = """
import json, pu_lib
from pu_lib.chapters.unlearning.quantities import count
from pu_lib.chapters.domino.quantities import domino
race = pu_lib.race("ladder", step_sizes=[1.0], runs=2, max_steps=2000)
swept = pu_lib.sweep("ladder", "runs", step_sizes=[1.0], runs=1, max_steps=500)
counts = count(10, "rep", 1), domino(3, "rep", 1)
print(json.dumps([*counts, [e.update for e in race], swept.computed]))
"""


def test_new_update_is_in_figures_tables_counts_races_and_sweeps(copy: Path) -> None:
    titles, _, table = python(copy, "-c", FIGURES).partition("\n")
    assert "REP" in titles
    assert "REP" in table
    count, domino, raced, chunks = json.loads(python(copy, "-c", COUNTS))
    assert count >= 10
    assert domino >= 7
    assert "rep" in raced
    assert chunks == len(raced)
    for command in ("unlearn", "domino", "sweep"):
        assert "rep" in python(copy, "-m", "pu_lib", command, "--help")


def test_new_update_is_in_the_explorers_once_the_steps_are_made(
    copy: Path, node: str | None
) -> None:
    if node is None:
        pytest.skip("no node on the path")
    tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_translate.py")
    live = "tests/explorers/test_live.py"
    new = "compute_every or up_to_date or (rep and (bits_of_the_kernel or parameters_of))"
    assert "2 failed" in python(copy, *tests, live, "-k", "compute_every or up_to_date", code=1)
    python(copy, "tools/translate.py")
    assert "failed" not in python(copy, *tests, live, "-k", new)


def test_new_domain_runs_and_is_on_the_command_line(copy: Path) -> None:
    line = "import pu_lib; print(pu_lib.run('ladder prize=2', 'mce', 5))"
    assert "MCE, 5 updates on 3 states" in python(copy, "-c", line)
    assert "ladder" in python(copy, "-m", "pu_lib", "sweep", "--help")
    race = ("race", "ladder", "--update", "mce", "--runs", "1", "--step-size", "1")
    assert "mce" in python(copy, "-m", "pu_lib", *race)


def test_new_claim_is_recorded_and_shown(copy: Path) -> None:
    claims = ("-m", "pu_lib", "claims", "--json")
    assert "nothing is recorded" in python(copy, *claims, "sec:asymp/new", code=1)
    (row,) = json.loads(python(copy, *claims, "--record", "sec:asymp/new"))
    assert (row["status"], row["chapter"]) == ("holds", "rates")
    code = "from pu_lib.claims.tables import ledger_table; print(ledger_table('rates'))"
    assert "Probabilities are at most one." in python(copy, "-c", code)
    code = "from pu_lib.claims import confirm; print(confirm('sec:asymp/new')._repr_html_())"
    assert "zero for one" in python(copy, "-c", code)


def test_new_chapter_is_in_the_contents(copy: Path) -> None:
    python(copy, "tools/toc.py")
    listed = re.findall(r"file: book/(\S+)", (copy / "_toc.yml").read_text())
    assert listed.index("regret") == listed.index("more-on-rates") + 1
    code = "from pu_lib.claims import chapters; print(chapters()['regret'])"
    assert python(copy, "-c", code).strip() == "Regret"
    rules = ("tests/test_book.py", "tests/lint/test_layout.py")
    python(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *rules)


def test_new_figure_is_drawn_and_described(copy: Path) -> None:
    code = "from pu_lib.chapters.rates.figures import draw_odds; draw_odds()._repr_png_()"
    python(copy, "-c", code)
    rules = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/lint/test_notebooks.py")
    python(copy, *rules, "-k", "rates or unique")


def test_new_explorer_opens_and_keeps_its_settings(copy: Path) -> None:
    (copy / "node_modules").symlink_to(ROOT / "node_modules")
    tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/explorers", "-k")
    python(copy, *tests, "FirstStep or survive_a_reload")
