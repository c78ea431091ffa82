"""A stranger adds an update, a domain, a claim and a chapter, each in one place, in a copy.

What `CONTRIBUTING.md` tells is done here to a copy of the repository; then everything that goes
through updates, domains, claims or chapters is asked for the new one.
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
@dataclass(frozen=True)
class Replicator(Update):
    """Grow every probability in proportion to its action's value."""

    name, title, label = "rep", "replicator update", "REP"
    parametrization = "direct"

    @property
    def kernel(self) -> Kernel | None:
        """One step at one state in plain arithmetic."""
        return _replicate

    def to_policy(self, theta: Floats) -> Floats:
        return theta.copy()

    def to_parameters(self, pi: Floats) -> Floats:
        return pi.copy()

    def advance(
        self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator | None
    ) -> Floats:
        grown = theta * (1.0 + weight * (q - q.min(axis=-1, keepdims=True)))
        return np.asarray(grown / grown.sum(axis=-1, keepdims=True))


def _replicate(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    low, total = q[0], 0
    for a in range(n_actions):
        low = min(low, q[a])
    for a in range(n_actions):
        theta[a] *= 1 + weight * (q[a] - low)
        total += theta[a]
    for a in range(n_actions):
        theta[a] /= total
'''

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


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository to which one of each has been added."""
    root = tmp_path_factory.mktemp("rooms") / "copy"
    # compiled code comes along: what the copy does not change is not compiled again
    kept = shutil.ignore_patterns(".*", "node_modules", "_build", "*.egg-info")
    shutil.copytree(ROOT, root, ignore=kept, symlinks=True)
    append(root / "pu_lib" / "updates.py", UPDATE)
    append(root / "pu_lib" / "domains.py", DOMAIN)
    append(root / "pu_lib" / "chapters" / "rates" / "checks.py", CHECK)
    append(root / "pu_lib" / "chapters" / "rates" / "claims.toml", CLAIM)
    (root / "pu_lib" / "chapters" / "regret").mkdir()
    (root / "pu_lib" / "chapters" / "regret" / "claims.toml").write_text(
        'title = "Regret"\norder = 55\n'
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Regret\n\nNone.")])
    nbformat.write(notebook, root / "book" / "regret.ipynb")
    return root


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def ask(copy: Path, *arguments: str, code: int = 0) -> str:
    """Run the copy's Python and return what it prints, also of errors if the code is not 0."""
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
from pu_lib.claims.tables import table_1, summary
import json
titles = [text.get_text() for ax in draw_flows().axes for text in ax.texts]
print(json.dumps([titles, table_1(), summary()]))
"""

COUNTS = """
import json, pu_lib
from pu_lib.chapters.unlearning.quantities import count
from pu_lib.chapters.domino.quantities import domino
race = pu_lib.race("ladder", step_sizes=[1.0], runs=2, max_steps=2000)
chunks = pu_lib.sweep("ladder", "runs", step_sizes=[1.0], runs=1, max_steps=500)
print(json.dumps([count(10, "rep", 1), domino(3, "rep", 1), [e.update for e in race], chunks]))
"""


def test_an_update_is_found_by_figures_tables_counts_races_and_sweeps(copy: Path) -> None:
    titles, table, _ = json.loads(ask(copy, "-c", FIGURES))
    assert "REP" in titles
    assert "REP" in table
    count, domino, raced, chunks = json.loads(ask(copy, "-c", COUNTS))
    assert count >= 10
    assert domino >= 7
    assert "rep" in raced
    assert chunks == len(raced)
    for command in ("unlearn", "domino", "sweep"):
        assert "rep" in ask(copy, "-m", "pu_lib", command, "--help")
    assert "after:cost" in ask(copy, "-m", "pu_lib", "claims", "--record", "after:cost")


def test_a_domain_is_found_by_runs_and_the_command_line(copy: Path) -> None:
    line = "import pu_lib; print(pu_lib.run('ladder prize=2', 'mce', 5))"
    assert "MCE, 5 updates on 3 states" in ask(copy, "-c", line)
    assert "ladder" in ask(copy, "-m", "pu_lib", "sweep", "--help")
    race = ("race", "ladder", "--update", "mce", "--runs", "1", "--step-size", "1")
    assert "mce" in ask(copy, "-m", "pu_lib", *race)


def test_a_claim_is_found_by_the_ledger_and_its_pages(copy: Path) -> None:
    command = ("-m", "pu_lib", "claims", "--json", "--record", "sec:asymp/new")
    assert "nothing is recorded" in ask(copy, *command[:-2], "sec:asymp/new", code=1)
    (row,) = json.loads(ask(copy, *command))
    assert (row["status"], row["chapter"]) == ("holds", "rates")
    code = "from pu_lib.claims.tables import ledger_table; print(ledger_table('rates'))"
    assert "Probabilities are at most one." in ask(copy, "-c", code)
    code = "from pu_lib.claims import confirm; print(confirm('sec:asymp/new')._repr_html_())"
    assert "zero for one" in ask(copy, "-c", code)


def test_a_chapter_is_found_by_the_contents_and_the_ledger(copy: Path) -> None:
    ask(copy, "tools/toc.py")
    listed = re.findall(r"file: book/(\S+)", (copy / "_toc.yml").read_text())
    assert listed.index("regret") == listed.index("rates") + 1
    code = "from pu_lib.claims import chapters; print(chapters()['regret'])"
    assert ask(copy, "-c", code).strip() == "Regret"


LISTS = re.compile(r"""["']pg-sm["'],\s*["']pg-es["'],\s*["']di["']""")


def test_no_list_of_updates_is_written_out() -> None:
    sources = [*(ROOT / "pu_lib").rglob("*.py"), *(ROOT / "book").glob("*.ipynb")]
    found = [path.name for path in sources if LISTS.search(path.read_text().replace('\\"', '"'))]
    assert found == []
