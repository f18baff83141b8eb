"""Reporters of a run: lines anywhere, bars on a terminal."""

import io
import re
import sys

import pytest

from divaug.recipes import override, recipe
from divaug.training.distributed import Processes
from divaug.training.meters import Averages
from divaug.training.progress import Bars, Lines, Silent, reporter_for
from tests.training_helpers import toy_recipe

LINE = {
    "epoch": 1, "loss": 0.5, "accuracy": 0.25, "diversity": 0.125, "test_accuracy": 0.75,
    "images_per_second": 1234.0, "seconds": 12.0,
}  # fmt: skip


def test_lines_tell_what_happened(capsys):
    told = Lines()
    told.start(override(recipe("demo-divaug"), ["epochs=3", "seed=5"]), 10, 0)
    told.epoch(LINE)
    told.epoch(LINE | {"diversity": 0.0})
    text = capsys.readouterr().out.splitlines()
    assert text[0] == (
        "recipe demo-divaug: tiny-resnet-8 on fashion_mnist_small with divaug; changed: epochs=3, "
        "seed=5 (every field in recipe.json)"
    )
    assert text[1] == "training for 3 epochs of 10 steps"
    assert text[2] == (
        "epoch 2/3  loss 0.5000  accuracy 25.00%  diversity 0.1250  test accuracy 75.00%  "
        "1,234 images/s  12 s"
    )
    assert "diversity" not in text[3]


def test_one_epoch_of_one_step_is_no_plural(capsys):
    Lines().start(toy_recipe(epochs=1), 1, 0)
    named, plan = capsys.readouterr().out.splitlines()
    # Of a recipe that no table has there is nothing to compare with.
    assert named == "recipe toy: tiny-resnet-8 on toy with default (every field in recipe.json)"
    assert plan == "training for 1 epoch of 1 step"


class Terminal(io.StringIO):
    """Text that is drawn as on a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


def as_terminal(monkeypatch, columns=80):
    """Make standard output a terminal; returns what is shown on it."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown)
    for name, value in {"TERM": "xterm", "LINES": "25", "COLUMNS": str(columns)}.items():
        monkeypatch.setenv(name, value)
    return shown


def drawn(monkeypatch, columns, epochs=200, steps=390, taken=2):
    """The last state of the bar, without colours."""
    from rich.text import Text

    shown = as_terminal(monkeypatch, columns)
    told = Bars()
    told.start(toy_recipe(epochs=epochs), steps, 0)
    for _ in range(taken):
        told.advance()
    told.interval(Averages(2.1756, 0.2, 0.0153, 8), 24404.0)
    told.note("[brackets] stay")
    told.epoch(LINE)
    told.close()
    text = Text.from_ansi(shown.getvalue()).plain
    assert "[brackets] stay" in text
    assert f"epoch 2/{epochs}  loss 0.5000" in text
    return text.rstrip().splitlines()[-1].rstrip()


FIELDS = ("24,404 images/s", "loss 2.1756", "accuracy 20.0%", "diversity 0.015")
BAR = "[━╸╺]"


@pytest.mark.parametrize("epochs", [1, 200, 1200])
@pytest.mark.parametrize("columns", [100, 120, 200])
def test_a_wide_terminal_shows_everything(monkeypatch, columns, epochs):
    line = drawn(monkeypatch, columns, epochs)
    assert len(line) <= columns
    pattern = rf"epoch 1/{epochs} {BAR}{{6,}} +\d+% {'  '.join(FIELDS)} [-\d]+:[-\d]+:[-\d]+"
    assert re.fullmatch(pattern, line), line


@pytest.mark.parametrize("taken", [2, 780])
@pytest.mark.parametrize(("columns", "fields"), [(80, 3), (64, 2), (40, 0)])
def test_a_narrow_one_leaves_out_numbers_and_keeps_bar_and_time_left(
    monkeypatch, columns, fields, taken
):
    line = drawn(monkeypatch, columns, epochs=2, taken=taken)
    assert len(line) <= columns
    numbers = "  ".join(FIELDS[:fields])
    epoch, share = (1, 0) if taken == 2 else (2, 100)
    pattern = rf"epoch {epoch}/2 {BAR}{{6,}} +{share}% {numbers} ?[-\d]+:[-\d]+:[-\d]+"
    assert re.fullmatch(pattern, line), line


def test_the_time_left_is_whole_on_the_narrowest(monkeypatch):
    """The bar gives way first."""
    for columns in (28, 30, 34):
        line = drawn(monkeypatch, columns, epochs=2)
        assert re.fullmatch(rf"epoch 1/2 {BAR}* +0% +[-\d]+:[-\d]+:[-\d]+", line), line


def test_bars_on_a_terminal_and_lines_elsewhere(monkeypatch):
    as_terminal(monkeypatch)
    assert type(reporter_for(Processes())) is Bars
    assert type(reporter_for(Processes(rank=1, count=2))) is Silent
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert type(reporter_for(Processes())) is Lines


def test_without_rich_there_are_lines_on_a_terminal_too(monkeypatch):
    as_terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "rich", None)
    assert type(reporter_for(Processes())) is Lines
