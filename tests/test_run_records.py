"""What a run leaves: its record, its times, and what it says when it cannot write."""

import errno
import os
import signal

import pytest

from divaug.lab.train import checkpoint, folder, train
from divaug.lab.train.batches import InMemory
from divaug.lab.train.console import Silent
from divaug.lab.train.folder import HARMLESS, read_metrics, read_recipe, read_result
from divaug.lab.train.meter import KINDS, Clock
from tests.training_helpers import StopAfter, same_story, toy_data, toy_recipe

DATA = toy_data()


def run(recipe, out, **keywords):
    return train(recipe, out, **({"data": DATA, "device": "cpu", "reporter": Silent()} | keywords))


def epochs_of(folder):
    return [line for line in read_metrics(folder) if line["kind"] == "epoch"]


class SignalInEvaluation:
    """Sends this process a signal when the n-th evaluation asks for its second batch."""

    def __init__(self, monkeypatch, number):
        self.left, self.given = number, 0
        batches = InMemory.batches

        def watched(test, *given):
            self.left -= 1
            for i, batch in enumerate(batches(test, *given)):
                if not self.left and i == 1:
                    os.kill(os.getpid(), signal.SIGTERM)
                self.given += not self.left
                yield batch

        monkeypatch.setattr(InMemory, "batches", watched)


@pytest.mark.parametrize("checkpoint_every", [1, 2])
@pytest.mark.parametrize("number", [1, 2])
def test_a_signal_during_evaluation_stops_it_and_resuming_does_it_again(
    tmp_path, monkeypatch, number, checkpoint_every
):
    """In the first and in the last epoch, saved before the evaluation or because of the signal."""
    monkeypatch.setattr("divaug.lab.train.build._chunk_size", lambda *_: 5)
    recipe = toy_recipe(augmenter="divaug", checkpoint_every=checkpoint_every)
    whole = run(recipe, tmp_path / "whole")
    with monkeypatch.context() as patch:
        watch = SignalInEvaluation(patch, number)
        stopped = run(recipe, tmp_path / "parts")
    assert not stopped.finished
    assert (stopped.signal, stopped.step) == ("SIGTERM", 6 * number)
    assert watch.given == 2  # of four batches: the second was under way when the signal came
    assert stopped.checkpoint.name == f"step-{6 * number:08d}"
    assert len(epochs_of(tmp_path / "parts")) == number - 1
    last = run(recipe, tmp_path / "parts", resume=True)
    assert last.finished
    assert last.test == whole.test
    assert same_story(tmp_path / "whole", tmp_path / "parts")


def test_the_checkpoint_is_there_before_the_evaluation_begins(tmp_path, monkeypatch):
    there = []
    batches = InMemory.batches

    def watched(test, *given):
        there.append([p.name for p in checkpoint.find(tmp_path / "run" / "checkpoints")])
        return batches(test, *given)

    monkeypatch.setattr(InMemory, "batches", watched)
    run(toy_recipe(), tmp_path / "run")
    assert there == [["step-00000006"], ["step-00000006", "step-00000012"]]


@pytest.mark.parametrize("augmenter", ["divaug", "randaugment"])
def test_the_record_of_an_epoch_does_not_know_of_the_interruption(tmp_path, augmenter):
    """Kept operations, diversities, loss and accuracy are those of the whole epoch."""
    recipe = toy_recipe(augmenter=augmenter, epochs=1, log_every=4)
    run(recipe, tmp_path / "whole")
    stopped = run(recipe, tmp_path / "parts", reporter=StopAfter(3))
    half = stopped.time["training"]
    run(recipe, tmp_path / "parts", resume=True)
    (one,), (two,) = (epochs_of(tmp_path / name) for name in ("whole", "parts"))
    assert one["record"]["images"] == 48
    assert two["record"] == one["record"]
    assert [two[n] for n in ("loss", "accuracy", "diversity")] == [
        one[n] for n in ("loss", "accuracy", "diversity")
    ]
    # The time is that of both parts, and the speed follows from it.
    assert two["epoch_seconds"] > half * 0.99
    assert two["images_per_second"] == pytest.approx(48 / two["epoch_seconds"])


def test_the_result_states_where_the_time_went_over_all_starts(tmp_path):
    recipe = toy_recipe()
    first = run(recipe, tmp_path / "run", reporter=StopAfter(8))
    said = read_result(tmp_path / "run")
    assert (said["finished"], said["signal"], said["step"]) == (False, "SIGTERM", 8)
    assert said["seconds"] == pytest.approx(first.seconds)
    last = run(recipe, tmp_path / "run", resume=True)
    said = read_result(tmp_path / "run")
    assert (said["finished"], said["starts"], said["step"]) == (True, 2, 12)
    assert said["test"]["accuracy"] == last.test.accuracy
    assert tuple(said["time"]) == KINDS
    assert said["seconds"] == pytest.approx(sum(said["time"].values()))
    for kind in KINDS:  # every kind of work was done in both starts
        assert said["time"][kind] > first.time[kind] > 0
    line = epochs_of(tmp_path / "run")[-1]
    assert sum(line["time"].values()) == pytest.approx(line["seconds"])
    assert line["seconds"] <= said["seconds"]


def test_a_finished_run_is_left_alone(tmp_path):
    recipe = toy_recipe(epochs=1)
    run(recipe, tmp_path / "run")
    before = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
    assert run(recipe, tmp_path / "run", resume=True).finished
    assert {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()} == before


def test_the_clock_counts_each_moment_once(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("divaug.lab.train.meter.time.perf_counter", lambda: now[0])
    clock = Clock()
    now[0] = 2.0
    clock.enter("training")
    now[0] = 5.0
    with clock.during("evaluation"):
        now[0] = 6.0
    now[0] = 7.0
    clock.resume({"training": 100.0, "checkpoints": 10.0})
    assert clock.spent() == {
        "start_up": 2.0, "training": 104.0, "evaluation": 1.0, "checkpoints": 10.0
    }  # fmt: skip


def test_fields_that_change_no_result_may_change_on_resuming(tmp_path):
    whole = run(toy_recipe(), tmp_path / "whole")
    run(toy_recipe(), tmp_path / "parts", reporter=StopAfter(3))
    changed = toy_recipe(log_every=1, evaluate_every=2, checkpoint_every=2, num_workers=1)
    assert set(HARMLESS) == set(toy_recipe().differences(changed))
    last = run(changed, tmp_path / "parts", resume=True)
    assert last.test == whole.test
    assert read_recipe(tmp_path / "parts") == changed


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"learning_rate": 0.1}, "learning_rate was 0.05 and is 0.1"),
        ({"seed": 1, "log_every": 1}, "seed was 0 and is 1"),
    ],
)
def test_fields_that_change_the_result_may_not(tmp_path, changes, named):
    run(toy_recipe(epochs=1), tmp_path / "run")
    with pytest.raises(ValueError, match=f"another recipe: {named};.*only evaluate_every"):
        run(toy_recipe(epochs=1, **changes), tmp_path / "run", resume=True)


def broken_disk(monkeypatch, owner, name, after):
    """From the given call on, writing fails as on a full disk: without the name of a file."""
    calls = []
    function = getattr(owner, name)

    def fail(*arguments, **keywords):
        calls.append(arguments)
        if len(calls) > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return function(*arguments, **keywords)

    monkeypatch.setattr(owner, name, fail)


def test_a_full_disk_names_the_file_and_the_last_whole_checkpoint(tmp_path, monkeypatch):
    broken_disk(monkeypatch, checkpoint.os, "fsync", after=10)
    message = r"cannot write .*: No space left on device; .*Last whole checkpoint: .*step-00000006"
    with pytest.raises(OSError, match=message) as error:
        run(toy_recipe(), tmp_path / "run")
    assert str(tmp_path / "run" / "checkpoints") in str(error.value).split(":")[0]
    monkeypatch.undo()
    whole = run(toy_recipe(), tmp_path / "whole")
    assert run(toy_recipe(), tmp_path / "run", resume=True).test == whole.test
    assert same_story(tmp_path / "whole", tmp_path / "run")


def test_a_record_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    broken_disk(monkeypatch, folder.json, "dumps", after=3)
    with pytest.raises(OSError, match=r"metrics\.jsonl: No space left.*there is none yet"):
        run(toy_recipe(), tmp_path / "run")


@pytest.mark.parametrize("rest", [b'{"kind": "epo', b"\x00\x00\x00\x00"])
def test_a_last_line_that_was_cut_short_is_dropped_with_a_note(tmp_path, rest):
    whole = run(toy_recipe(), tmp_path / "whole")
    run(toy_recipe(), tmp_path / "run", reporter=StopAfter(8))
    path = tmp_path / "run" / "metrics.jsonl"
    path.write_bytes(path.read_bytes() + rest)
    count, notes = len(path.read_bytes().splitlines()), []

    class Listening(Silent):
        def note(self, text):
            notes.append(text)

    last = run(toy_recipe(), tmp_path / "run", resume=True, reporter=Listening())
    # The first note names the data.
    assert notes[1:] == [f"{path}: line {count}, the last one, was cut short and is dropped."]
    assert last.test == whole.test
    assert same_story(tmp_path / "whole", tmp_path / "run")


@pytest.mark.parametrize("garbage", [b"garbage", b"[1, 2]"])
def test_a_damaged_line_elsewhere_is_named_and_the_run_left_alone(tmp_path, garbage):
    run(toy_recipe(), tmp_path / "run", reporter=StopAfter(8))
    path = tmp_path / "run" / "metrics.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([first, garbage, b"\n", *others]))
    before = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
    with pytest.raises(ValueError, match=r"metrics\.jsonl is damaged: line 2 is no JSON"):
        run(toy_recipe(), tmp_path / "run", resume=True)
    assert {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()} == before
