"""Who may write a run's folder, when a run may begin in it, and what TensorBoard finds there."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import divaug
from divaug.lab.train import train
from divaug.lab.train.console import Silent
from divaug.lab.train.folder import read_metrics
from tests.training_helpers import StopAfter, same_story, toy_data, toy_recipe

DATA = toy_data()
SOURCE = str(Path(divaug.__file__).parents[1])
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCE}


def run(recipe, out, **keywords):
    return train(recipe, out, **({"data": DATA, "device": "cpu", "reporter": Silent()} | keywords))


def files_of(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def command(out, *words, epochs=500):
    small = ("train_images=64", "batch_size=8", "log_every=2", f"epochs={epochs}")
    changes = [word for change in small for word in ("--set", change)]
    return [
        *(sys.executable, "-m", "divaug", "train", "demo-default", "--device", "cpu"),
        *("--out", str(out), *changes, *words),
    ]


def start(words):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(words, env=ENVIRONMENT, **pipes)


def wait_until(reached, process):
    begun = time.monotonic()
    while not reached():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() - begun < 60
        time.sleep(0.02)


def size_of(path):
    return path.stat().st_size if path.exists() else 0


def test_a_second_process_is_refused_and_the_killed_one_makes_room(tmp_path):
    out = tmp_path / "run"
    metrics = out / "metrics.jsonl"
    first = start(command(out))
    wait_until(lambda: size_of(metrics), first)
    try:
        for words in (("--resume",), ()):
            second = start(command(out, *words))
            try:
                _, said = second.communicate(timeout=30)
            finally:
                second.kill()
            assert second.returncode == 2
            assert len(said.splitlines()) == 1
            expected = "is being written by another process" if words else "exists and is not empty"
            assert expected in said
        before = size_of(metrics)
        wait_until(lambda: size_of(metrics) > before, first)
        page = str(tmp_path / "report.html")
        reading = [sys.executable, "-m", "divaug", "report", str(out), "--out", page]
        assert subprocess.run(reading, env=ENVIRONMENT, check=False).returncode == 0
    finally:
        first.kill()
        first.communicate()
    steps = [line["step"] for line in read_metrics(out)]
    assert steps == sorted(steps)
    again = start(command(out, "--resume"))
    wait_until(lambda: len(json.loads((out / "environment.json").read_text())) == 2, again)
    again.terminate()
    _, said = again.communicate(timeout=60)
    assert (again.returncode, said) == (143, "")


class AnotherBegins(Silent):
    """Runs something before the first step of a run."""

    def __init__(self, begin):
        self.begin = begin

    def start(self, *_):
        self.begin()


def test_of_two_fresh_starts_the_later_one_to_write_is_refused(tmp_path):
    """Both have found no folder; the other one writes, or has written, when this one begins to."""
    other = FileLock(tmp_path / "run" / ".lock")

    def begin():
        (tmp_path / "run").mkdir()
        other.acquire()

    with pytest.raises(BlockingIOError, match="is being written by another process"):
        run(toy_recipe(), tmp_path / "run", reporter=AnotherBegins(begin))
    assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]
    other.release()

    def write_whole():
        run(toy_recipe(epochs=1), tmp_path / "whole")

    with pytest.raises(FileExistsError, match="another process has begun a run"):
        run(toy_recipe(), tmp_path / "whole", reporter=AnotherBegins(write_whole))
    assert json.loads((tmp_path / "whole" / "recipe.json").read_text())["epochs"] == 1


def test_no_lock_is_put_into_a_folder_that_is_no_run(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="is no run"):
        run(toy_recipe(), tmp_path, resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("stop", [None, 8])
def test_lost_checkpoints_do_not_start_a_run_over(tmp_path, stop):
    recipe = toy_recipe()
    run(recipe, tmp_path / "run", reporter=StopAfter(stop) if stop else Silent())
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    before = files_of(tmp_path / "run")
    with pytest.raises(ValueError, match=r"checkpoints .*they are gone.*move the folder away"):
        run(recipe, tmp_path / "run", resume=True)
    assert files_of(tmp_path / "run") == before


def test_a_run_that_was_killed_before_its_first_checkpoint_begins_anew(tmp_path):
    recipe = toy_recipe(checkpoint_every=2)
    whole = run(recipe, tmp_path / "whole")

    class Killed(Silent):
        def epoch(self, _):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(recipe, tmp_path / "run", reporter=Killed(), tensorboard=True)
    assert len(read_metrics(tmp_path / "run")) == 4
    assert run(recipe, tmp_path / "run", resume=True, tensorboard=True).test == whole.test
    assert same_story(tmp_path / "whole", tmp_path / "run")


@pytest.mark.parametrize("out", ["file", "file/below", "file/below/deep"])
def test_a_place_where_no_folder_can_be_is_refused_before_the_work(tmp_path, monkeypatch, out):
    monkeypatch.setattr("divaug.lab.train.run._resumed_data", None)
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match=r"`out` must be a folder, and .*file is a file"):
        run(toy_recipe(), tmp_path / out)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_may_not_be_written_to_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("divaug.lab.train.folder.os.access", lambda path, _mode: path != tmp_path)
    with pytest.raises(PermissionError, match=f"{tmp_path} cannot be written"):
        run(toy_recipe(), tmp_path / "deep" / "run")
    assert not (tmp_path / "deep").exists()


def curves(folder):
    """What TensorBoard shows: name → steps and values."""
    found = EventAccumulator(str(folder / "tensorboard"))
    found.Reload()
    return {
        name: [(event.step, pytest.approx(event.value, rel=1e-6)) for event in found.Scalars(name)]
        for name in found.Tags()["scalars"]
    }


def expected_curves(folder):
    """What the record says: every real number, by kind and name."""
    expected = {}
    for line in read_metrics(folder):
        for name, value in line.items():
            if isinstance(value, float):
                expected.setdefault(f"{line['kind']}/{name}", []).append((line["step"], value))
    return expected


@pytest.mark.parametrize("stops", [(), (7,), (3, 5)])
def test_tensorboard_shows_the_record_and_no_step_twice(tmp_path, stops):
    recipe, out = toy_recipe(epochs=3, augmenter="divaug"), tmp_path / "run"
    for i, steps in enumerate(stops):
        run(recipe, out, resume=i > 0, reporter=StopAfter(steps), tensorboard=True)
    run(recipe, out, resume=bool(stops), tensorboard=True)
    found = curves(out)
    assert found == expected_curves(out)
    assert [step for step, _ in found["interval/loss"]] == list(range(2, 19, 2))
    assert [step for step, _ in found["epoch/test_accuracy"]] == [6, 12, 18]


def test_tensorboard_forgets_what_came_after_the_checkpoint_that_a_run_goes_on_from(tmp_path):
    recipe = toy_recipe(epochs=3)
    result = run(recipe, tmp_path / "run", tensorboard=True)
    shutil.rmtree(result.checkpoint)  # the one before is taken: two epochs
    time.sleep(1)  # event files are read in the order of the seconds in their names
    run(recipe, tmp_path / "run", resume=True, tensorboard=True)
    assert curves(tmp_path / "run") == expected_curves(tmp_path / "run")
    assert len(list((tmp_path / "run" / "tensorboard").iterdir())) == 2


def test_without_tensorboard_its_curves_are_refused_before_the_work(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "tensorboard" else find(name)
    )
    with pytest.raises(ImportError, match=r"needs tensorboard.*pip install '\.\[tensorboard\]'"):
        run(toy_recipe(), tmp_path / "run", tensorboard=True)
    assert not (tmp_path / "run").exists()
