"""Who may write a run's folder, when a run may begin in it, and what TensorBoard finds there."""

import errno
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import divaug
from divaug.training import locks, places, train
from divaug.training.locks import LOCK, Lock
from divaug.training.progress import Silent
from divaug.training.runs import read_metrics
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
    other = Lock(tmp_path / "run")

    def begin():
        (tmp_path / "run").mkdir()
        other.take()

    with other, pytest.raises(BlockingIOError, match="is being written by another process"):
        run(toy_recipe(), tmp_path / "run", reporter=AnotherBegins(begin))
    assert [path.name for path in (tmp_path / "run").iterdir()] == [LOCK]

    def write_whole():
        run(toy_recipe(epochs=1), tmp_path / "whole")

    with pytest.raises(FileExistsError, match="another process has begun a run"):
        run(toy_recipe(), tmp_path / "whole", reporter=AnotherBegins(write_whole))
    assert json.loads((tmp_path / "whole" / "recipe.json").read_text())["epochs"] == 1


def test_a_folder_with_nothing_but_a_lock_is_empty(tmp_path):
    (tmp_path / "run").mkdir()
    with Lock(tmp_path / "run") as lock:
        lock.take()
    assert places.is_empty(tmp_path / "run")
    assert run(toy_recipe(epochs=1), tmp_path / "run").finished
    assert not places.is_empty(tmp_path / "run")


def test_no_lock_is_put_into_a_folder_that_is_no_run(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="is no run"):
        run(toy_recipe(), tmp_path, resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_system_without_locks_is_written_all_the_same(tmp_path, monkeypatch):
    import fcntl

    def unknown(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unknown)
    assert run(toy_recipe(epochs=1), tmp_path / "run").finished


def test_a_system_without_locks_is_written_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(locks.importlib.util, "find_spec", lambda _: None)
    with Lock(tmp_path) as one, Lock(tmp_path) as two:
        one.take()
        two.take()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stop", [None, 8])
def test_lost_checkpoints_do_not_start_a_run_over(tmp_path, stop):
    recipe = toy_recipe()
    run(recipe, tmp_path / "run", reporter=StopAfter(stop) if stop else Silent())
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    for killed in (False, True):
        if killed:  # then the epochs alone tell that there was a checkpoint
            (tmp_path / "run" / "result.json").unlink()
        before = files_of(tmp_path / "run")
        with pytest.raises(ValueError, match=r"checkpoints of .* are gone.*move the folder away"):
            run(recipe, tmp_path / "run", resume=True)
        assert files_of(tmp_path / "run") == before


@pytest.mark.parametrize("kept", [0, 2])
def test_a_run_whose_record_lacks_epochs_before_the_checkpoint_does_not_go_on(tmp_path, kept):
    """The file is missing, or its end is; what is left would make a run with too few epochs."""
    recipe, metrics = toy_recipe(epochs=3), tmp_path / "run" / "metrics.jsonl"
    whole = run(recipe, tmp_path / "whole")
    run(recipe, tmp_path / "run", reporter=StopAfter(17))  # six steps an epoch
    text = metrics.read_text()
    if kept:
        metrics.write_text("".join(text.splitlines(keepends=True)[:kept]))
    else:
        metrics.unlink()
    before = files_of(tmp_path / "run")
    message = r"metrics.jsonl lacks 2 of the epochs .* step 17 \(epoch 1 is the first\)"
    with pytest.raises(ValueError, match=message):
        run(recipe, tmp_path / "run", resume=True)
    assert files_of(tmp_path / "run") == before
    metrics.write_text(text)
    assert run(recipe, tmp_path / "run", resume=True).test == whole.test
    assert same_story(tmp_path / "whole", tmp_path / "run")


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
    assert curves(tmp_path / "run") == expected_curves(tmp_path / "run")


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("file/below", "`out` must be a folder, and .*file is a file"),
        ("file/below/deep", "`out` must be a folder, and .*file is a file"),
        ("link", "`out` must be a folder, and .*link is a link to nothing"),
        ("link/below", "`out` must be a folder, and .*link is a link to nothing"),
        ("/proc/divaug", "no folder can be made in /proc|may not write to /proc"),
    ],
)
def test_a_place_where_no_folder_can_be_is_refused_before_the_work(
    tmp_path, monkeypatch, out, message
):
    if out.startswith("/proc") and not Path("/proc/self").exists():
        pytest.skip("there is no /proc")

    def forbidden(*_, **__):
        raise AssertionError("data was read, with nowhere to write to")

    monkeypatch.setattr("divaug.training.engine.resumed_data", forbidden)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OSError, match=message):
        run(toy_recipe(), tmp_path / out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


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


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs limits on files")
def test_a_limit_on_the_size_of_files_is_no_traceback(tmp_path):
    """The record outgrows the limit too, and its error is the one line."""
    words = command(tmp_path / "run", "--set", "log_every=1", epochs=50)
    code = "import resource, os, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "
    code += "os.execv(sys.executable, sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stdout
