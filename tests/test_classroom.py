"""Each exercise says how hard it is; sheets have no solution, and keys have all of them."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "tools"), str(ROOT / "sphinx_ext")]

import classroom  # noqa: E402
import plain  # noqa: E402
from pu_exercises import (  # noqa: E402
    Chapter,
    Exercise,
    chapters,
    exercise_table,
    exercises,
    page_table,
)

FOUND = list(chapters())
CHAPTERS = [chapter for chapter in FOUND if chapter.exercises]
EXERCISES = [each for chapter in CHAPTERS for each in chapter.exercises]

per_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)


@pytest.fixture(scope="module")
def book() -> classroom.Words:
    return classroom.Words()


def texts(notebook: dict[str, Any]) -> dict[str, str]:
    return {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.label)
def test_title_of_an_exercise_ends_in_difficulty_and_time(exercise: Exercise) -> None:
    assert exercise.level, (
        f"the title of {exercise.label} in {exercise.page}.ipynb ends in no '(easy, 10 minutes)'"
    )
    assert 5 <= exercise.minutes <= 60
    assert exercise.title
    assert exercise.solution, f"{exercise.label} has no solution"


def test_every_exercise_and_solution_of_the_book_is_found() -> None:
    counts: dict[str, set[str]] = {"exercise": set(), "solution": set()}
    for path in (ROOT / "book").glob("*.ipynb"):
        for cell in nbformat.read(path, 4).cells:
            for box in plain._directives(cell.source.split("\n")):
                if box.name == "exercise":
                    counts["exercise"].add(box.options["label"])
                elif box.name == "solution":
                    counts["solution"].add(box.title)
    labels = [each.label for each in EXERCISES]
    assert len(labels) == len(set(labels))
    assert set(labels) == counts["exercise"] == counts["solution"]


@per_chapter
def test_sheet_has_each_exercise_once_and_no_solution(
    chapter: Chapter, book: classroom.Words
) -> None:
    sheet = classroom.notebook(chapter, book, key=False)
    nbformat.validate(nbformat.from_dict(sheet))
    cells = texts(sheet)
    for each in chapter.exercises:
        text = plain.plain_markdown(each.text, book, each.page)
        assert sum(text in cell for cell in cells.values()) == 1
        assert cells[f"{each.label}-answer"] == ""
    whole = "\n".join(cells.values())
    assert "olution" not in whole.replace("has a solution", "")
    for each in chapter.exercises:
        for line in each.solution.split("\n"):
            is_shared = len(line) < 20 or line.startswith(("from ", "import "))
            assert is_shared or line.strip() not in whole


@per_chapter
def test_key_has_every_solution(chapter: Chapter, book: classroom.Words) -> None:
    key = classroom.notebook(chapter, book, key=True)
    nbformat.validate(nbformat.from_dict(key))
    whole = "\n".join(texts(key).values())
    assert whole.count("**Solution.**") == len(chapter.exercises)
    for each in chapter.exercises:
        programs = classroom.PROGRAM.findall(each.solution)
        assert programs == [] or sum(c["cell_type"] == "code" for c in key["cells"]) > 1
        for part in classroom.PROGRAM.split(each.solution):
            is_code = part in programs
            text = part if is_code else plain.plain_markdown(part, book, each.page)
            assert text.strip() in whole
    assert not plain.MYST.search(whole)


@per_chapter
def test_cells_of_sheet_and_key_run(chapter: Chapter, book: classroom.Words) -> None:
    for key in (False, True):
        space: dict[str, Any] = {}
        for cell in classroom.notebook(chapter, book, key)["cells"]:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), cell["id"], "exec"), space)


def test_set_up_imports_what_exercises_name() -> None:
    (domino,) = (chapter for chapter in CHAPTERS if chapter.name == "domino")
    code = classroom.set_up(domino)
    assert "from pu_lib.chapters.domino.quantities import recursion" in code
    names = [alias.name for line in ast.parse(code).body for alias in line.names]  # type: ignore[attr-defined]
    assert len(names) == len(set(names))


def test_published_sheets_install_the_library(book: classroom.Words) -> None:
    address = "https://github.com/someone/book"
    cells = classroom.notebook(CHAPTERS[0], book, False, address)["cells"]
    assert address in "".join(cells[1]["source"])


def test_printed_sheet_has_formulas_and_room_for_answers(book: classroom.Words) -> None:
    (chapter,) = (chapter for chapter in CHAPTERS if chapter.name == "domino")
    sheet, key = classroom.pages([classroom.notebook(chapter, book, key) for key in (False, True)])
    assert sheet.count('<div class="answer">') == len(chapter.exercises)
    assert '<div class="answer">' not in key
    for page in (sheet, key):
        assert "<mjx-container" in page
        assert "<mjx-merror" not in page
        assert "$" not in re.sub(r"<(style|pre)>.*?</\1>", "", page, flags=re.DOTALL)


def test_make_class_writes_notebooks_and_names_chapters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classroom, "chromium", lambda: None)
    monkeypatch.setattr(sys, "argv", ["classroom.py", "rates", "--target", str(tmp_path)])
    assert classroom.main() == 0
    said = capsys.readouterr().out
    assert said.startswith("rates: 3 exercises, 55 minutes\n")
    assert "PDF files need Chromium" in said
    assert sorted(file.name for file in (tmp_path / "rates").iterdir()) == [
        "key.ipynb",
        "sheet.ipynb",
    ]
    sheet = json.loads((tmp_path / "rates" / "sheet.ipynb").read_text("utf-8"))
    assert "".join(sheet["cells"][0]["source"]).startswith("# ")
    monkeypatch.setattr(sys, "argv", ["classroom.py", "nowhere"])
    assert classroom.main() == 2
    assert "no exercises in nowhere; expected updates, " in capsys.readouterr().err


def test_make_class_prints_if_there_is_a_browser(tmp_path: Path) -> None:
    if classroom.chromium() is None:
        pytest.skip("there is no Chromium")
    # A process of its own: Playwright runs only once in a process, and the other tests need it.
    command = [sys.executable, classroom.__file__, "domino", "--target", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("domino: 4 exercises, 70 minutes\n")
    for name in ("sheet", "key"):
        assert (tmp_path / "domino" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert not (tmp_path / "domino" / f"{name}.html").exists()


# Tables for teachers


PAGE = """# Small

Words words.

:::{exercise} By hand (hard, 30 minutes)
:label: ex-a
Why?
:::

::::{solution} ex-a
:class: dropdown
So.
::::

:::{exercise}
:label: ex-b
How?
:::"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "book").mkdir()
    code = "from pu_lib.explorers import Price\n\nPrice()"
    cells = [nbformat.v4.new_markdown_cell(PAGE), nbformat.v4.new_code_cell(code)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbformat.write(notebook, tmp_path / "book" / "small.ipynb")
    (tmp_path / "_toc.yml").write_text(
        "root: book/index\nparts:\n- chapters:\n  - file: book/small\n  - file: book/notes\n"
    )
    return tmp_path


def test_exercises_of_a_page_are_parsed(small: Path) -> None:
    assert list(exercises(small, "small")) == [
        Exercise("small", "ex-a", "By hand", "hard", 30, "Why?", "So."),
        Exercise("small", "ex-b", "", "", 0, "How?", ""),
    ]


def test_tables_for_teachers(small: Path) -> None:
    found = list(chapters(small))
    assert page_table(found)[2:] == ["| {doc}`small` | 5 min | 3 min | 2 in 30 minutes |"]
    assert exercise_table(found)[2:] == [
        "| {doc}`small` | {ref}`By hand <ex-a>` | hard | 30 |",
        "|  | {ref}`Exercise <ex-b>` |  |  |",
    ]


def test_lectures_last_80_minutes_and_name_exercises() -> None:
    text = (ROOT / "book" / "teaching.md").read_text("utf-8")
    lectures = re.findall(r"^## Lecture \d.*?(?=^## )", text + "\n## ", re.DOTALL | re.MULTILINE)
    assert len(lectures) == 3
    for lecture in lectures:
        slots = re.findall(r"^\| (\d+) to (\d+) \|", lecture, re.MULTILINE)
        starts, ends = zip(*slots, strict=True)
        assert starts == ("0", *ends[:-1])
        assert ends[-1] == "80"
        assert set(re.findall(r"\{ref\}`(ex-[\w-]+)`", lecture)) <= {e.label for e in EXERCISES}
        assert "{ref}`ex-" in lecture
