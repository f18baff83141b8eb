"""What a run tells while it trains: lines anywhere, bars on a terminal, nothing to nobody."""

import errno
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import divaug
from divaug.lab.recipes import override, recipe
from divaug.lab.train.distributed import Processes
from divaug.lab.train.meters import Averages
from divaug.lab.train.progress import Bars, Lines, Silent, reporter_for
from divaug.lab.train.runs import read_metrics, read_result
from divaug.lab.train.voice import Voice
from tests.training_helpers import toy_recipe

SOURCE = str(Path(divaug.__file__).parents[1])
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCE}
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


def test_a_run_whose_reader_goes_away_comes_to_its_end(tmp_path):
    """As with `divaug train … | head -1`."""
    small = ("train_images=64", "batch_size=8", "epochs=8", "checkpoint_every=4")
    words = [word for change in small for word in ("--set", change)]
    command = ["-m", "divaug", "train", "demo-default", "--device", "cpu", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(
        [sys.executable, *command, "--out", str(tmp_path / "run")], env=ENVIRONMENT, **pipes
    ) as process:
        assert process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read()
    assert (process.returncode, error) == (0, b"")
    assert read_result(tmp_path / "run")["finished"]
    assert len([x for x in read_metrics(tmp_path / "run") if x["kind"] == "epoch"]) == 8


BROKEN = """
import os, sys, time
from divaug.lab.train.meters import Averages
from divaug.lab.train.progress import {kind}
from tests.training_helpers import toy_recipe

read, write = os.pipe()
os.dup2(write, 1)
os.close(write)
told = {kind}()
told.start(toy_recipe(epochs=1), 2, 0)
assert os.read(read, 7) == b"recipe "
os.close(read)
told.advance()
told.interval(Averages(0.5, 0.25, 0.125, 8), 100.0)
for _ in range(3):
    time.sleep({seconds})  # long enough for a bar to be drawn anew
    told.note("nobody hears this")
told.close()
print("nor this", flush=True)
sys.stderr.write("DONE")
"""


@pytest.mark.parametrize(("kind", "seconds"), [("Lines", 0), ("Bars", 0), ("Bars", 0.3)])
def test_both_reporters_fall_silent(kind, seconds):
    done = subprocess.run(
        [sys.executable, "-c", BROKEN.format(kind=kind, seconds=seconds)],
        env=ENVIRONMENT | {"FORCE_COLOR": "1", "TERM": "xterm"},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "DONE")


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EINVAL], ids=["POSIX", "Windows"])
def test_a_reader_that_is_gone_is_no_trouble_on_any_system(monkeypatch, tmp_path, number):
    with (tmp_path / "out").open("w", encoding="utf-8") as file:

        class Gone(io.StringIO):
            fileno = file.fileno

            def write(self, _):
                raise OSError(number, os.strerror(number))

        monkeypatch.setattr(sys, "stdout", Gone())
        assert Voice().write("text") == 4
        print("to nobody", file=file)
    assert (tmp_path / "out").read_bytes() == b""


def test_other_trouble_with_the_output_is_told(monkeypatch):
    class Full(io.StringIO):
        def write(self, _):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        flush = write

    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(OSError, match="No space left"):
        Voice().write("text")
