"""Where numbers come from: everything that differs is named, and nothing is said twice."""

from dataclasses import replace

import pytest

from divaug.lab.measure import Measurement
from divaug.lab.reproduce.options import PAPER_ROW, Options, recipe_of
from divaug.lab.reproduce.origins import origin
from divaug.lab.reproduce.outcomes import Outcome, provenance, runs_sheet
from divaug.lab.reproduce.page import render
from divaug.lab.reproduce.records import MeasurementRecord
from divaug.lab.reproduce.sheets import Column, Sheet
from divaug.lab.reproduce.store import Store
from divaug.lab.reproduce.targets import TARGETS
from tests.reproduction_helpers import PLACE, made_run

GPU = PLACE | {"gpu": "Some GPU", "precision": "bfloat16", "python": "3.13"}
GPU |= {"packages": {"torch": "2.11", "numpy": "2"}}
COMMAND = "divaug reproduce supervised --data cifar10.npz {} --jobs 2 {} --results results"


def started(command="divaug", **changes):
    return GPU | {"command": command.split()} | changes


def test_many_commands_become_one_with_the_names_of_what_differs():
    """Fifteen starts, as a table of nine methods over several short starts has them."""
    commands = [
        COMMAND.format(f"--method {name}", f"--minutes {minutes}")
        for name in ("default", "divaug", "random")
        for minutes in (5, 6, 7, 8, 9)
    ]
    runs = [[started(command)] for command in commands]
    assert origin("run", runs, "`runs.csv`") == (
        "15 runs on Some GPU (bfloat16); Python 3.13, torch 2.11; commit abc; "
        "`divaug reproduce supervised --data cifar10.npz --jobs 2 --results results` with various "
        "`--method`, `--minutes` (see `runs.csv`)."
    )


def test_a_single_command_stands_as_it_was_given():
    text = origin("run", [[started("__main__.py train a --seed=1 --eager")]], "`runs.csv`")
    assert text.endswith("; commit abc; `divaug train a --seed=1 --eager`.")
    assert text.startswith("1 run on ")


def test_an_option_that_some_lack_or_repeat_differs():
    commands = ("divaug a --row x --method p", "divaug a --row x --method p --method q",
                "divaug a --row x --method p --eager", "divaug b --row y")  # fmt: skip
    text = origin("run", [[started(command)] for command in commands], "here")
    assert "`divaug a --row x` with various `--method`, `--eager`, `divaug b --row y` (see" in text


def test_what_differs_between_works_is_named_and_much_of_it_counted():
    works = [[started(commit=f"{i}" * 40, gpu=f"GPU {i % 2}")] for i in range(7)]
    text = origin("timing", works, "`costs/`")
    assert text.startswith("7 timings on GPU 0 (bfloat16) / GPU 1 (bfloat16); ")
    assert f"commits {'0' * 12}, {'1' * 12}, {'2' * 12}, {'3' * 12} and 3 more; " in text


@pytest.mark.parametrize(
    "change", [{"gpu": "Other"}, {"precision": "float32"}, {"packages": {"torch": "2.12"}}]
)
def test_a_run_whose_starts_differ_is_told(change):
    whole = replace(made_run(), starts=(started(), started()))
    moved = replace(made_run(seed=1), starts=(started(**change), started()))
    assert "went on" not in provenance([whole])
    text = provenance([whole, moved])
    assert "1 of them went on with another machine or other versions" in text
    assert text.count("Some GPU (bfloat16)") == 1
    (first, second) = runs_sheet([whole, moved]).rows
    keys = ("machine", "precision", "versions")
    assert not any(", then " in first[key] for key in keys)
    assert sum(", then " in second[key] for key in keys) == 1


def test_measurements_say_where_they_were_made():
    scorer = recipe_of(PAPER_ROW, "none", 0, Options())
    values = Measurement(**dict.fromkeys(Measurement.__dataclass_fields__, 1))
    one = MeasurementRecord(scorer, "randaugment", values, started("divaug reproduce diversity"))
    store = Store(measurements={one.hash: one})
    for name in ("diversity", "affinity"):
        (sheet, *_) = TARGETS[name].outcome(Options(), store).sheets
        expected = "1 measurement on Some GPU (bfloat16); Python 3.13, torch 2.11; commit abc; "
        assert expected + "`divaug reproduce diversity`." in " ".join(sheet.table().sentences), name


def test_a_page_shows_code_without_backticks_and_nothing_as_markup():
    behind = "2 runs by `divaug b <c>`."
    notes = ("By `divaug a --set x=<b>` with `--seed` <i>.", "A lone ` is none.")
    sheet = Sheet("a", "A", (Column("a", "a"),), ({"a": "1"},), notes, behind)
    page = render(Outcome("a", "A", (sheet,), sentences=("See `b`.",)))
    assert "By <code>divaug a --set x=&lt;b&gt;</code> with <code>--seed</code> &lt;i&gt;." in page
    assert "See <code>b</code>." in page
    assert "2 runs by <code>divaug b &lt;c&gt;</code>." in page
    assert "`" not in page
