"""Lists of jobs: nothing twice, nothing lost, an end in time."""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import divaug
from divaug.lab.reproduce import running
from divaug.lab.reproduce.estimates import Estimator, list_jobs
from divaug.lab.reproduce.examination import ExamineJob
from divaug.lab.reproduce.jobs import TrainJob, begun
from divaug.lab.reproduce.measurement import MeasureJob
from divaug.lab.reproduce.networks import NetworkJob, with_networks
from divaug.lab.reproduce.options import DEMO_ROW, recipe_of
from divaug.lab.reproduce.reproduction import list_target, reproduce
from divaug.lab.reproduce.running import Tally, go_through
from divaug.lab.reproduce.store import Store, read_store
from divaug.lab.reproduce.targets import TARGETS
from divaug.lab.reproduce.watching import Watch
from divaug.lab.reproduce.work import End, Shelf, Work
from divaug.lab.train import checkpoint, train
from divaug.lab.train.loop import Interruption
from tests.reproduction_helpers import OPTIONS, write_data


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("data") / "small.npz")


@pytest.fixture
def work(data, tmp_path):
    return Work(tmp_path / "runs", tmp_path / "results", data, "cpu")


def job_of(augmenter="divaug", seed=0, **changes):
    return TrainJob(replace(recipe_of(DEMO_ROW, augmenter, seed, OPTIONS), **changes))


@dataclass(frozen=True)
class Pretended:
    """A job that does nothing but say so."""

    label: str
    log: list
    before: bool = False
    error: Exception | None = None
    end: End = End.FINISHED

    hash = "0" * 16
    alone = False
    needs = None

    def done(self, _store):
        return self.before

    def execute(self, _work, _shelf):
        self.log.append(self.label)
        if self.error:
            raise self.error
        return self.end


def test_jobs_are_done_in_order_but_for_those_that_are_there(work):
    log, tally = [], Tally()
    go_through([Pretended("a", log), Pretended("b", log, before=True), Pretended("c", log)], work,
               tally)  # fmt: skip
    assert log == ["a", "c"]
    assert (tally.done, tally.skipped, tally.end) == (["a", "c"], 1, End.FINISHED)


def test_a_job_that_fails_is_noted_and_the_others_go_on(work):
    log, tally = [], Tally()
    go_through([Pretended("a", log, error=ValueError("bad\nloss")), Pretended("b", log)], work,
               tally)  # fmt: skip
    assert log == ["a", "b"]
    assert tally.failed == {"a": "bad loss"}
    assert tally.done == ["b"]


def test_nothing_begins_after_a_stop_or_when_the_time_is_up(work):
    log, tally = [], Tally()
    go_through([Pretended("a", log, end=End.TIME_UP), Pretended("b", log)], work, tally)
    assert (log, tally.end) == (["a"], End.TIME_UP)
    log, tally = [], Tally()
    go_through([Pretended("a", log)], replace(work, until=time.time() - 1), tally)
    assert (log, tally.end) == ([], End.TIME_UP)


def test_steps_are_timed_alone_whatever_runs_side_by_side(work):
    @dataclass(frozen=True)
    class Timed(Pretended):
        alone = True

    log, tally = [], Tally()
    go_through([Timed("a", log), Timed("b", log)], replace(work, side_by_side=4), tally)
    assert log == ["a", "b"]  # in this process; a process of its own would have its own list


def test_other_data_than_the_records_are_refused_before_any_work(work, tmp_path):
    first, second = job_of("none", epochs=1), job_of("none", seed=1, epochs=1)
    go_through([first], work, Tally())
    other = replace(work, data=write_data(tmp_path / "other.npz", num_test=40))
    tally = Tally()
    go_through([first, second], other, tally)
    assert tally.skipped == 1
    assert "records are of other data under the name" in tally.failed[second.label]
    assert not second.folder(work).exists()


def test_other_data_than_a_measurement_is_refused_before_any_work(work, tmp_path):
    """Also where the record of the run that measured is not there."""
    measuring = MeasureJob(job_of("none", epochs=1).recipe, "default")
    go_through([measuring], work, Tally())
    shutil.rmtree(work.results / "runs")
    other, tally = replace(work, data=write_data(tmp_path / "other.npz", num_test=40)), Tally()
    training = job_of("none", seed=1, epochs=1)
    go_through([training], other, tally)
    assert "records are of other data under the name" in tally.failed[training.label]
    assert not training.folder(work).exists()


def lines_of(work):
    """What records say, but for times and starts."""
    found = {}
    for path in (work.results / "runs").iterdir():
        head, *epochs = (json.loads(line) for line in path.read_text().splitlines())
        for epoch in epochs:
            del epoch["seconds"]
        found[head["hash"]] = epochs
    return found


def test_a_run_that_is_stopped_in_time_goes_on_to_the_same_end(work, tmp_path):
    job, whole = job_of(), replace(work, runs=tmp_path / "a", results=tmp_path / "b")
    shelf = Shelf(work.data)
    assert job.execute(whole, shelf) is End.FINISHED
    late = replace(work, until=time.time() - 1)  # stops after every step
    ends = [job.execute(late, shelf) for _ in range(5)]
    assert ends == [End.TIME_UP] * 5
    assert not job.done(read_store(work.results))
    assert len(checkpoint.find(job.folder(work) / "checkpoints")) == checkpoint.KEPT
    moved = replace(work, runs=tmp_path / "moved")
    work.runs.rename(moved.runs)
    assert job.execute(moved, shelf) is End.FINISHED
    assert lines_of(work)[job.hash] == lines_of(whole)[job.hash]  # but for times, to the bit
    record = read_store(work.results).runs[job.hash]
    assert len(record.starts) == 6
    assert len(checkpoint.find(job.folder(moved) / "checkpoints")) == 1  # small enough to move


def listed_at_a_second_a_step(job, work):
    """State and time of a job in the list, where a step was timed to take a second."""
    case = {"recipe": job.recipe.to_dict(), "step_ms": {"median": 1000.0}, "parts_ms": {}}
    path = work.runs.parent / "step.json"
    path.write_text(json.dumps({"cases": [case | {"environment": {"gpu": "Some GPU"}}]}))
    estimator = Estimator(Store(), "cpu", "Some GPU", path)
    return list_jobs([job], Store(), estimator, begun=begun([job], work)).rows[0][2:4]


def test_the_list_counts_the_epochs_that_a_begun_run_has_behind_it(work):
    job, shelf = job_of("none", epochs=3), Shelf(work.data)

    def listed():
        return listed_at_a_second_a_step(job, work)

    assert listed() == ("to do", "about 9.0 s")  # three epochs of three steps
    for _ in range(4):
        assert job.execute(replace(work, until=1.0), shelf) is End.TIME_UP
    assert listed() == ("to do from epoch 2 on", "about 6.0 s")
    # A run that was killed has written more epochs than its last checkpoint knows of.
    metrics = job.folder(work) / "metrics.jsonl"
    text = metrics.read_text()
    metrics.write_text(text + '{"kind": "epoch", "epoch": 1, "step": 6}\n')
    assert listed() == ("to do from epoch 2 on", "about 6.0 s")
    metrics.write_text(text)
    shutil.rmtree(job.folder(work) / "checkpoints")  # then it cannot go on from there
    assert listed() == ("to do", "about 9.0 s")


def test_a_run_that_only_lacks_its_record_is_listed_so(work):
    job = job_of("none")
    assert job.train(work, Shelf(work.data)) is End.FINISHED
    assert listed_at_a_second_a_step(job, work) == ("to do, its record", "about 0.0 s")


def test_a_run_whose_last_checkpoint_was_damaged_goes_on_from_the_one_before(work, capsys):
    job, shelf = job_of("none"), Shelf(work.data)
    for _ in range(3):
        assert job.execute(replace(work, until=1.0), shelf) is End.TIME_UP
    last = checkpoint.find(job.folder(work) / "checkpoints")[-1]
    for path in last.iterdir():
        path.write_bytes(b"damaged")
    capsys.readouterr()
    assert job.execute(work, shelf) is End.FINISHED
    assert "goes on at step 2:" in capsys.readouterr().out


def test_a_start_beside_others_is_remembered_though_it_was_killed(work, monkeypatch):
    job, shelf = job_of("none"), Shelf(work.data)

    def killed(*args, **kwargs):
        train(*args, **kwargs)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("divaug.lab.reproduce.jobs.train", killed)
        with pytest.raises(KeyboardInterrupt):
            job.execute(replace(work, side_by_side=3, until=1.0), shelf)
    assert job.execute(work, shelf) is End.FINISHED
    assert read_store(work.results).runs[job.hash].side_by_side == 3


def test_a_run_that_ended_without_a_record_is_not_trained_again(work):
    job = job_of("none")
    data, _ = Shelf(work.data).get(job.recipe)
    train(job.recipe, job.folder(work), data=data, device="cpu", reporter=Watch())
    before = (job.folder(work) / "metrics.jsonl").read_bytes()
    assert job.execute(work, Shelf(work.data)) is End.FINISHED
    assert (job.folder(work) / "metrics.jsonl").read_bytes() == before
    assert job.done(read_store(work.results))


@pytest.mark.parametrize("ended", [False, True])
def test_a_run_that_lost_epochs_gets_no_record_and_keeps_its_network(work, ended):
    """Its record could not be read, and would keep all others from being read."""
    job, other = job_of("randaugment", epochs=3), job_of("none", epochs=1)
    lean = replace(work, keep_networks=False)
    go_through([other], lean, Tally())
    for _ in range(0 if ended else 4):  # three steps an epoch
        assert job.execute(replace(lean, until=1.0), Shelf(work.data)) is End.TIME_UP
    if ended:
        assert job.train(lean, Shelf(work.data)) is End.FINISHED
    metrics = job.folder(work) / "metrics.jsonl"
    text = metrics.read_text()
    epochs = [line for line in text.splitlines(keepends=True) if '"epoch", ' in line]
    metrics.write_text(epochs[-1] if ended else "")
    tally = Tally()
    go_through([job], lean, tally)
    assert ("is not written" if ended else "lacks an epoch") in tally.failed[job.label]
    assert set(read_store(work.results).runs) == {other.hash}
    assert checkpoint.find(job.folder(work) / "checkpoints")
    metrics.write_text(text)
    go_through([job], lean, Tally())
    assert len(read_store(work.results).runs[job.hash].epochs) == 3


def test_a_folder_that_lost_its_recipe_is_not_removed_with_its_checkpoints(work):
    job, tally = job_of("none"), Tally()
    assert job.execute(replace(work, until=1.0), Shelf(work.data)) is End.TIME_UP
    path = job.folder(work) / "recipe.json"
    text = path.read_text()
    path.unlink()
    go_through([job], work, tally)
    assert "has checkpoints and no recipe.json" in tally.failed[job.label]
    path.write_text(text)
    assert job.execute(work, Shelf(work.data)) is End.FINISHED
    assert len(read_store(work.results).runs[job.hash].starts) == 2  # it went on


def test_another_interval_of_logging_is_no_other_run(work):
    stopped = job_of()
    assert stopped.execute(replace(work, until=1.0), Shelf(work.data)) is End.TIME_UP
    again = job_of(log_every=7)
    assert again.hash == stopped.hash
    assert again.execute(work, Shelf(work.data)) is End.FINISHED


def test_networks_that_measure_are_kept_when_others_are_dropped(work):
    lean, shelf = replace(work, keep_networks=False), Shelf(work.data)
    kept = {}
    for name in ("none", "default", "randaugment"):
        job = job_of(name, epochs=1)
        job.execute(lean, shelf)
        kept[name] = len(checkpoint.find(job.folder(lean) / "checkpoints"))
    assert kept == {"none": 1, "default": 1, "randaugment": 0}


def test_a_network_that_is_asked_later_is_kept_whatever_the_work_says(work):
    lean, shelf, recipe = replace(work, keep_networks=False), Shelf(work.data), job_of().recipe
    for keep in (False, True):
        job = TrainJob(replace(recipe, epochs=1, seed=int(keep)), keep)
        assert job.execute(lean, shelf) is End.FINISHED
        assert len(checkpoint.find(job.folder(lean) / "checkpoints")) == int(keep)
    chosen = TARGETS["choice"]
    trained = chosen.stages[0](chosen.plan(OPTIONS, Store()))
    assert [job.keep for job in trained] == [True, True]
    assert not any(
        job.keep for job in TARGETS["supervised"].stages[0](chosen.plan(OPTIONS, Store()))
    )


def test_networks_that_are_examined_are_kept_and_then_asked(work):
    lean, options = replace(work, keep_networks=False), replace(OPTIONS, epochs=1)
    done = reproduce("choice", options, lean).tally.done
    assert [label.split()[0] for label in done] == ["train"] * 2 + ["examine"] * 2
    for name in ("random", "divaug"):
        job = job_of(name, epochs=1)
        assert len(checkpoint.find(job.folder(lean) / "checkpoints")) == 1
    # A record without its network is trained again only where it is still to be asked.
    shutil.rmtree(work.runs)
    states = [row[2] for row in list_target("choice", options, lean).rows]
    assert states == ["done"] * 4
    for path in (work.results / "examinations").glob("*-random-*"):
        path.unlink()
    states = [row[2] for row in list_target("choice", options, lean).rows]
    assert states == ["to do, its network is needed", "done", "to do", "done"]
    again = reproduce("choice", options, lean).tally
    assert [label.split()[0] for label in again.done] == ["train", "examine"]
    assert again.done[0].endswith("seed 0, again for its network")
    assert len(read_store(work.results).examinations) == 2


def test_a_measurement_trains_its_network_where_it_is_not_at_hand(work):
    scorer = job_of("none", epochs=1)
    job = MeasureJob(scorer.recipe, "randaugment")
    assert job.execute(work, Shelf(work.data)) is End.FINISHED
    store = read_store(work.results)
    assert scorer.done(store)
    assert job.done(store)
    # Both say which data they saw.
    (run,), (measured,) = store.runs.values(), store.measurements.values()
    assert measured.fingerprint == run.data["fingerprint"]
    before = (scorer.folder(work) / "environment.json").read_bytes()
    MeasureJob(scorer.recipe, "default").execute(work, Shelf(work.data))
    assert (scorer.folder(work) / "environment.json").read_bytes() == before


@pytest.mark.parametrize("lost", ["checkpoints", "."])
def test_a_measurement_trains_a_lost_network_again_and_leaves_its_record(work, lost):
    """Without checkpoints, or with records alone and no folder of runs."""
    scorer = job_of("none", epochs=1)
    shelf = Shelf(work.data)
    assert scorer.execute(work, shelf) is End.FINISHED
    (path,) = (work.results / "runs").iterdir()
    before = path.read_bytes(), path.stat().st_mtime_ns
    shutil.rmtree(scorer.folder(work) / lost)
    job = MeasureJob(scorer.recipe, "randaugment")
    assert job.execute(work, shelf) is End.FINISHED
    assert job.done(read_store(work.results))
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert checkpoint.find(scorer.folder(work) / "checkpoints")


def other_data(work, tmp_path):
    """The same images under the same name, with labels that say something else."""
    with np.load(work.data) as content:
        arrays = dict(content)
    arrays["y_train"] = arrays["y_train"][::-1]
    path = tmp_path / "other.npz"
    np.savez(path, **arrays)
    return replace(work, data=path, results=tmp_path / "others")


@pytest.mark.parametrize("lost", [None, "checkpoints"])
def test_a_run_that_was_trained_on_other_data_is_not_taken_for_one_of_these(work, tmp_path, lost):
    """A finished run in a shared folder of runs, found again by its hash, which has no data."""
    scorer = job_of("none", epochs=1)
    assert scorer.execute(work, Shelf(work.data)) is End.FINISHED
    if lost:
        shutil.rmtree(scorer.folder(work) / lost)
    files = {path: path.read_bytes() for path in work.runs.rglob("*") if path.is_file()}
    other, tally = other_data(work, tmp_path), Tally()
    go_through([scorer, MeasureJob(scorer.recipe, "default")], other, tally)
    assert len(tally.failed) == 2
    for message in tally.failed.values():
        assert "the run was trained on" in message
        assert f"another folder of runs (--runs) than {work.runs}" in message
    assert not other.results.exists()
    assert {path: path.read_bytes() for path in work.runs.rglob("*") if path.is_file()} == files
    elsewhere = replace(other, runs=tmp_path / "elsewhere")
    assert scorer.execute(elsewhere, Shelf(other.data)) is End.FINISHED


def test_an_older_checkpoint_is_not_taken_for_the_network_a_run_ended_with(work, monkeypatch):
    """Killed between its last epoch and the tidying, then the last checkpoint is cut short."""
    job, shelf = job_of("none", checkpoint_every=1), Shelf(work.data)
    with monkeypatch.context() as patch:
        patch.setattr("divaug.lab.reproduce.jobs._trim", lambda *_: None)
        assert job.execute(work, shelf) is End.FINISHED
    older, last = checkpoint.find(job.folder(work) / "checkpoints")
    assert job.has_network(work)
    measurement = MeasureJob(job.recipe, "default")
    assert measurement.execute(work, shelf) is End.FINISHED
    (path,) = (work.results / "measurements").iterdir()
    expected = json.loads(path.read_text())["values"]
    path.unlink()
    network = last / "model.safetensors"
    network.write_bytes(network.read_bytes()[:-100])
    assert checkpoint.load(older)
    assert not job.has_network(work)
    assert measurement.execute(work, shelf) is End.FINISHED
    assert json.loads(path.read_text())["values"] == expected
    assert len(checkpoint.find(job.folder(work) / "checkpoints")) == 1


def test_a_run_that_was_killed_after_its_last_epoch_is_tidied_up(work, monkeypatch):
    job, shelf = job_of("none", checkpoint_every=1), Shelf(work.data)
    with monkeypatch.context() as patch:
        patch.setattr("divaug.lab.reproduce.jobs._trim", lambda *_: None)
        job.train(work, shelf)
    assert len(checkpoint.find(job.folder(work) / "checkpoints")) == 2
    assert job.execute(work, shelf) is End.FINISHED
    assert len(checkpoint.find(job.folder(work) / "checkpoints")) == 1
    assert job.has_network(work)


def test_a_damaged_number_of_neighbours_is_named(work):
    job, shelf = job_of("none", epochs=1), Shelf(work.data)
    job.train(work, shelf)
    path = job.folder(work) / "side_by_side.json"
    path.write_text("")
    with pytest.raises(ValueError, match=r"side_by_side\.json is damaged: it must hold how many"):
        job.execute(work, shelf)
    path.write_text("2")
    assert job.execute(work, shelf) is End.FINISHED
    assert read_store(work.results).runs[job.hash].side_by_side == 2


def test_a_network_that_must_be_trained_again_is_no_job_that_is_done(work):
    options = replace(OPTIONS, epochs=1, methods=("randaugment",))
    jobs = [job_of(name, epochs=1) for name in ("none", "randaugment")]
    go_through(jobs, work, Tally())

    def states():
        table = list_target("diversity", options, work)
        return [row[2] for row in table.rows], table.notes[0]

    assert states() == (["done", "done", "to do"], "Still to do: 1 of 3.")
    shutil.rmtree(work.runs)
    again = ["to do, its network is needed", "done", "to do"]
    assert states() == (again, "Still to do: 2 of 3.")
    go_through([MeasureJob(jobs[0].recipe, "randaugment")], work, Tally())
    shutil.rmtree(work.runs)  # nothing is left to measure with it
    assert states() == (["done"] * 3, "Still to do: 0 of 3.")


def test_lost_networks_are_trained_again_side_by_side_and_records_stay(work):
    """Where records alone came along: both networks that measure at once, not one after another."""
    options = replace(OPTIONS, epochs=1, methods=("randaugment",))
    scorers = [job_of(name, epochs=1) for name in ("none", "default")]
    others = job_of("randaugment", epochs=1)
    go_through([*scorers, others], work, Tally())
    records = {path: path.read_bytes() for path in (work.results / "runs").iterdir()}
    shutil.rmtree(work.runs)
    lines = []
    tally = reproduce("affinity", options, replace(work, side_by_side=2), say=lines.append).tally
    again = [f"{job.label}, again for its network" for job in scorers]
    assert sorted(tally.done[:2]) == sorted(again)
    assert all(label.startswith("measure ") for label in tally.done[2:])
    assert len(tally.done) > 2
    assert not tally.failed
    for job in scorers:
        assert job.has_network(work)
        assert json.loads((job.folder(work) / "side_by_side.json").read_text()) == 2
    # What is not asked is not trained again, and what was recorded stays to the byte.
    assert f"there already: {others.label}" in lines
    assert not others.folder(work).exists()
    assert {path: path.read_bytes() for path in (work.results / "runs").iterdir()} == records
    # With all networks at hand and all measured, nothing is left to do.
    assert reproduce("affinity", options, work).tally.done == []


def test_a_lost_network_that_was_half_trained_again_goes_on(work):
    scorer = job_of("none")
    go_through([scorer], work, Tally())
    before = lines_of(work)
    shutil.rmtree(work.runs)
    job = NetworkJob(scorer.recipe)
    late = replace(work, until=time.time())
    assert job.execute(late, Shelf(work.data)) is End.TIME_UP
    assert not scorer.has_network(work)
    assert with_networks([scorer], {scorer.hash}) == [job]
    assert job.execute(work, Shelf(work.data)) is End.FINISHED
    assert scorer.has_network(work)
    first, second = json.loads((scorer.folder(work) / "environment.json").read_text())
    assert first["step"] == 0
    assert second["step"] > 0
    assert lines_of(work) == before


def test_a_measurement_records_a_finished_run_before_it_trains_it_again(work):
    scorer = job_of("none", epochs=1)
    shelf = Shelf(work.data)
    assert scorer.train(work, shelf) is End.FINISHED
    shutil.rmtree(scorer.folder(work) / "checkpoints")
    path = scorer.folder(work) / "environment.json"
    path.write_text(json.dumps([one | {"commit": "first"} for one in json.loads(path.read_text())]))
    MeasureJob(scorer.recipe, "randaugment").execute(work, shelf)
    (start,) = read_store(work.results).runs[scorer.hash].starts
    assert start["commit"] == "first"
    assert json.loads(path.read_text())[0]["commit"] != "first"


def test_jobs_side_by_side_leave_the_same_records_and_one_may_fail(work, tmp_path, capfd):
    jobs = [job_of(name, epochs=1) for name in ("default", "divaug")]
    bad = job_of("default", epochs=1, train_images=100_000)
    tally = Tally()
    go_through([*jobs, bad], replace(work, side_by_side=3), tally)
    assert sorted(tally.done) == sorted(job.label for job in jobs)
    assert list(tally.failed) == [bad.label]
    assert "balanced subset" in capfd.readouterr().err
    alone = replace(work, runs=tmp_path / "a", results=tmp_path / "b")
    go_through(jobs, alone, Tally())
    assert lines_of(work) == lines_of(alone)
    assert {run.side_by_side for run in read_store(work.results).runs.values()} == {3}
    assert {run.side_by_side for run in read_store(alone.results).runs.values()} == {1}


def test_a_run_that_a_measurement_trains_has_the_device_to_itself(work):
    scorer = job_of("none", epochs=1)
    measurement = MeasureJob(scorer.recipe, "default")
    go_through([measurement], replace(work, side_by_side=2), Tally())
    assert read_store(work.results).runs[scorer.hash].side_by_side == 1


def test_a_run_without_neighbours_has_none_whatever_number_was_allowed(work):
    jobs = [job_of("none", seed, epochs=1) for seed in (0, 1)]
    for job in jobs:  # one of two is there when the second is asked for
        go_through(jobs[: jobs.index(job) + 1], replace(work, side_by_side=3), Tally())
    assert [run.side_by_side for run in read_store(work.results).runs.values()] == [1, 1]


def test_the_watch_asks_once_and_only_when_it_is_time():
    with Interruption() as stop:
        stop.listen()
        early = Watch(time.time() + 1000)
        early.advance()
        Watch().advance()
        assert (stop.signal, early.asked) == (None, False)
        late = Watch(time.time() - 1)
        late.advance()
        late.advance()  # a second signal would interrupt at once
        assert (stop.signal, late.asked) == ("SIGTERM", True)


def _command(work, *more):
    """A reproduction without an end, as a shell starts it."""
    words = ["reproduce", "supervised", "--row", DEMO_ROW, "--method", "default",
             "--epochs", "9999", "--scale", OPTIONS.scale, "--set", OPTIONS.changes[0],
             "--data", work.data, "--runs", work.runs, "--results", work.results,
             "--device", "cpu", *more]  # fmt: skip
    source = str(Path(divaug.__file__).parent.parent)
    environment = os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "divaug", *map(str, words)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _wait_until_saved(work, count):
    limit = time.time() + 120
    while len(_saved(work)) < count and time.time() < limit:
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("more", "count", "sent", "code"),
    [((), 1, signal.SIGTERM, 143), (("--jobs", 2, "--seeds", 2), 2, signal.SIGINT, 130)],
    ids=["one by one", "side by side"],
)
def test_a_signal_saves_what_is_under_way(work, more, count, sent, code):
    """The whole command, as a shell starts it; as a terminal's Ctrl-C the signal goes to all."""
    process = _command(work, *more)
    try:
        _wait_until_saved(work, count)
        os.killpg(process.pid, sent)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code
    assert "give the same command again to go on" in output
    assert len(_saved(work)) == count
    for folder in work.runs.iterdir():
        last = checkpoint.find(folder / "checkpoints")[-1]
        assert checkpoint.load(last).step >= 12


@dataclass
class Ending:
    """A process that Ctrl-C in a terminal ends: the signal goes to all of them."""

    reached: list
    late: bool
    exitcode: int = -signal.SIGINT

    def is_alive(self):
        self._reach(late=False)
        return False

    def join(self):
        self._reach(late=True)

    def terminate(self):
        """It has ended."""

    def _reach(self, *, late):
        if late == self.late and not self.reached:
            self.reached.append(self)
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_a_signal_that_comes_as_the_last_runs_end_is_not_forgotten(work, monkeypatch, late):
    """Before or after the list looks for signals, for the last time."""
    reached, code = [], End.FINISHED.code if late else -signal.SIGINT
    monkeypatch.setattr(
        "divaug.lab.reproduce.running._begin", lambda *_: Ending(reached, late, code)
    )
    lines, tally = [], Tally()
    jobs = [job_of("none", seed) for seed in range(2 if late else 3)]
    go_through(jobs, replace(work, side_by_side=2), tally, lines.append)
    assert tally.end is End.SIGINT
    assert not tally.failed, "a run that was interrupted has not failed"
    assert len(lines) == 2, "nothing further begins"


@dataclass
class Saving:
    """A process that Ctrl-C has reached, and that takes a while to save."""

    asked: list
    left: int = 3
    exitcode: int = End.SIGINT.code

    def is_alive(self):
        if self.left == 3:
            signal.raise_signal(signal.SIGINT)
        self.left -= 1
        return self.left > 0

    def join(self):
        """It has ended."""

    def terminate(self):
        self.asked.append(self)


@pytest.mark.parametrize("own_group", [True, False])
def test_runs_that_ctrl_c_reaches_by_itself_are_left_to_save(work, monkeypatch, own_group):
    """On Windows to terminate a process is to kill it."""
    asked, tally = [], Tally()
    monkeypatch.setattr("divaug.lab.reproduce.running._OWN_GROUP", own_group)
    monkeypatch.setattr("divaug.lab.reproduce.running._begin", lambda *_: Saving(asked))
    go_through([job_of("none")], replace(work, side_by_side=2), tally)
    assert tally.end is End.SIGINT
    assert len(asked) == own_group


def test_a_run_without_a_parent_asks_itself_to_stop_as_every_system_can(monkeypatch):
    """On Windows `os.kill` ends a process before it can save."""
    parent = SimpleNamespace(join=lambda: None)
    monkeypatch.setattr("multiprocessing.parent_process", lambda: parent)
    monkeypatch.delattr(os, "kill")
    with Interruption() as stop:
        stop.listen()
        running._follow_parent()
    assert stop.signal == "SIGTERM"


def test_runs_save_and_leave_when_their_parent_is_gone(work):
    """Nobody would know of them: neither the next command nor the times of runs beside them."""
    process = _command(work, "--jobs", 2, "--seeds", 2)
    try:
        _wait_until_saved(work, 2)
        seen = {folder: _last_step(folder) for folder in work.runs.iterdir()}
        process.kill()
        process.communicate(timeout=60)  # the pipe is closed once the last of them has left
    finally:
        process.kill()
    assert len(seen) == 2
    for folder, step in seen.items():
        assert _last_step(folder) >= step


def _last_step(folder):
    return checkpoint.load(checkpoint.find(folder / "checkpoints")[-1]).step


def _saved(work):
    return {path.parent for path in work.runs.glob("*/checkpoints/step-*")}


def test_a_folder_of_images_is_refused(tmp_path):
    for part in ("train", "test"):
        for name, color in (("cat", (0, 50, 90)), ("dog", (200, 70, 10))):
            (tmp_path / part / name).mkdir(parents=True)
            Image.new("RGB", (32, 32), color).save(tmp_path / part / name / "a.png")
    recipe = replace(job_of().recipe, dataset=str(tmp_path))
    with pytest.raises(ValueError, match="is a folder of images"):
        Shelf(None).get(recipe)


@pytest.mark.parametrize(
    ("module", "work_of"), [("measurement", "measure_run"), ("examination", "examine_run")]
)
def test_a_record_names_the_sources_that_its_work_began_with(work, monkeypatch, module, work_of):
    """Measurements take minutes; a commit made meanwhile is not theirs."""
    home = importlib.import_module(f"divaug.lab.reproduce.{module}")
    real_work, real_place, commit = getattr(home, work_of), home.environment, ["first"]

    def worked(*args, **kwargs):
        commit.append("made meanwhile")
        return real_work(*args, **kwargs)

    monkeypatch.setattr(home, work_of, worked)
    monkeypatch.setattr(home, "environment", lambda *a: real_place(*a) | {"commit": commit[-1]})
    scorer = job_of("divaug", epochs=1)
    job = {
        "measurement": MeasureJob(scorer.recipe, "default"),
        "examination": ExamineJob(scorer.recipe),
    }[module]
    assert job.execute(work, Shelf(work.data)) is End.FINISHED
    store = read_store(work.results)
    (record,) = [*store.measurements.values(), *store.examinations.values()]
    assert commit == ["first", "made meanwhile"]
    assert record.environment["commit"] == "first"


def test_a_folder_of_datasets_is_meant_for_those_that_do_not_come_along(tmp_path):
    recipe = replace(job_of("default").recipe, train_images=0)
    data, _ = Shelf(tmp_path).get(recipe)
    assert len(data.train_images) == 3000
    for name in ("a/x", "a/y", "b/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.effect_noise((8, 8), 50).convert("RGB").save(tmp_path / f"{name}.png")
    with pytest.raises(ValueError, match="is a folder of images"):
        Shelf(tmp_path).get(recipe)
