"""README and docs: the code runs, the numbers are the measured ones, the links lead somewhere."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tools import update_docs

from divaug.cli import run
from divaug.reproduction import TARGETS, Options
from divaug.reproduction.page import render
from divaug.reproduction.store import read_store, save
from divaug.reproduction.writing import markdown
from tests.reproduction_helpers import made_run, made_semi_run

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def code_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


WITH_CODE = [page for page in PAGES if code_blocks(page)]


def _with_marks(page):
    # Frameworks warn of much (few workers, no GPU) that is no fault of the page.
    warned = [pytest.mark.filterwarnings("ignore")] if page.stem == "frameworks" else []
    return pytest.param(page, marks=warned, id=page.name)


@pytest.mark.parametrize("page", [_with_marks(page) for page in WITH_CODE])
def test_the_code_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what the code writes is not left in the project
    for block in code_blocks(page):
        exec(compile(block, str(page), "exec"), {"__name__": "readme"})


@pytest.mark.slow
def test_the_readmes_commands_run_offline_in_a_clone(tmp_path, monkeypatch):
    def offline(*_, **__):
        raise AssertionError("a download")

    monkeypatch.setattr("urllib.request.urlopen", offline)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(ROOT / "results")
    lines = re.findall(r"^divaug .*", (ROOT / "README.md").read_text(), re.MULTILINE)
    for line in lines:
        with pytest.raises(SystemExit) as end:
            run(shlex.split(line, comments=True)[1:])
        assert end.value.code == 0, line
    assert {path.name for path in tmp_path.iterdir()} == {
        "preview.png",
        "results",
        "runs",
        "tables",
    }


def test_some_pages_have_code():
    assert ROOT / "README.md" in WITH_CODE
    assert len(WITH_CODE) >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_parts_are_up_to_date(page):
    assert update_docs.filled(page.read_text()) == page.read_text(), (
        "run python tools/update_docs.py"
    )


@pytest.fixture(scope="module")
def records():
    return read_store(ROOT / "results")


@pytest.mark.parametrize("target", TARGETS)
def test_the_committed_results_are_what_the_records_give_and_no_more(target, records):
    outcome, folder = TARGETS[target].outcome(Options(), records), ROOT / "results" / target
    texts = {"table.md": markdown(outcome)}
    texts |= {f"{sheet.name}.csv": sheet.csv() for sheet in outcome.sheets}
    figures = {f"{one.name}.{kind}" for one in outcome.drawings for kind in ("svg", "png")}
    # A figure that no command draws any more would show what nobody stands by.
    assert {path.name for path in folder.iterdir()} == {*texts, *figures, "index.html"}
    for name, text in texts.items():
        assert (folder / name).read_text(encoding="utf-8") == text, f"{name}: run divaug report"
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert without_pictures(page) == without_pictures(render(outcome)), "run divaug report"


def without_pictures(page):
    """A page but for the bytes of its pictures, which differ between versions of matplotlib."""
    return re.sub(r'src="data:image/png;base64,[^"]*"', 'src="picture"', page)


def test_an_edited_number_is_noticed():
    text = (ROOT / "docs" / "selection.md").read_text()
    begin = text.index("<!-- begin bench-select -->")
    edited = text[:begin] + re.sub(r"\d+×", "999×", text[begin:], count=1)
    assert edited != text
    assert update_docs.filled(edited) == text


def test_the_tables_of_results_come_from_the_records(tmp_path, monkeypatch):
    parts = {name: text for name, text in update_docs.PARTS.items() if name.startswith("results-")}
    caches = (update_docs._records, update_docs._reproduced, update_docs._accuracies)

    def texts(folder):
        monkeypatch.setattr(update_docs, "RECORDS", folder)
        for one in caches:
            one.cache_clear()
        return {name: text() for name, text in parts.items()}

    try:
        assert set(texts(tmp_path / "empty").values()) == {"Nothing was run yet."}
        save(tmp_path, made_run(200))
        save(tmp_path, made_semi_run("divaug", 20, 0.9))
        found = texts(tmp_path)
    finally:
        for one in caches:
            one.cache_clear()
    for name in ("results-cifar10", "results-supervised"):
        line = next(text for text in found[name].splitlines() if "DivAug (k-means++)" in text)
        assert line.strip("| ").split(" | ")[1:4] == ["96.9 ± 0.1", "90.00", "1"]
        assert "—, not run" in found[name]
    text = found["results-semi-supervised"]
    assert "| DivAug (k-means++) | 6.94 ± 0.12 | 200,000 | 10.00 | 1 | 20,000 |" in text
    assert text.startswith("Not the paper's schedule: runs of 20,000 steps")
    assert "(../results/evolution/evolution-operations.svg)" in found["results-evolution"]
    assert found["results-cost"] == "Nothing was run yet."


def test_a_part_of_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="bench-select"):
        update_docs.filled("<!-- begin nothing -->\n<!-- end nothing -->")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_project_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_every_page_is_in_the_table_of_contents():
    listed = set((ROOT / "docs" / "index.md").read_text().split())
    for page in (ROOT / "docs").glob("*.md"):
        assert page.stem == "index" or page.stem in listed


def test_the_tool_checks_from_the_command_line():
    command = [sys.executable, str(ROOT / "tools" / "update_docs.py"), "--check"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
