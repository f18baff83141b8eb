"""Every target on a small part of the shipped data; lists of jobs: nothing twice, nothing lost."""

import csv
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import divaug
from divaug.lab.cli import app
from divaug.lab.reproduce import End, Work, list_target, reproduce, timing
from divaug.lab.reproduce import jobs as making
from divaug.lab.reproduce.jobs import (
    Job,
    examining,
    measuring,
    read_store,
    run_folder,
    training,
)
from divaug.lab.reproduce.options import DEMO_ROW, Options, recipe_of
from divaug.lab.reproduce.plans import STAGES, plan_of
from divaug.lab.reproduce.queue import Tally, go_through
from divaug.lab.reproduce.work import Shelf, Watch
from divaug.lab.results import TARGETS, redraw, save
from divaug.lab.results.methods import METHODS, RULES
from divaug.lab.train import checkpoint, train
from divaug.lab.train.device import Hardware
from divaug.lab.train.loop import Interruption
from tests.results_helpers import FEW_LABELS, OPTIONS, PAPER_ROW, made_cost, made_run, write_data

# Target → the methods run here; all others are shown as not run.
METHODS_RUN = {
    "supervised": (),
    "random-baseline": (),
    "evolution": (),
    "choice": (),
    "diversity": ("default", "pba", "randaugment", "random", "divaug"),
    "affinity": ("default", "randaugment", "divaug"),
    "rotate": ("divaug-rotate-0.1", "divaug-rotate-0.5", "divaug-rotate-0.9"),
    "cost": ("randaugment", "divaug"),
    "equal-cost": ("randaugment", "divaug"),
    "semi-supervised": ("randaugment", "divaug"),
}


def options_of(name):
    base = FEW_LABELS if name == "semi-supervised" else OPTIONS
    return replace(base, methods=METHODS_RUN[name], seeds=2 if name == "random-baseline" else 1)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("data") / "small.npz")


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    root = tmp_path_factory.mktemp("reproduction")
    return Work(root / "runs", root / "results", data, "cpu")


@pytest.fixture(scope="module")
def done(whole):
    """Every target, one after the other, in one folder of records."""
    return {name: reproduce(name, options_of(name), whole) for name in METHODS_RUN}


@pytest.fixture
def work(data, tmp_path):
    return Work(tmp_path / "runs", tmp_path / "results", data, "cpu")


def records_of(work, kind="runs"):
    return [one for one in read_store(work.results).values() if one.kind == kind]


def read_csv(work, target, name):
    with (work.results / target / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def last_accuracies(work, name, epochs=2):
    """Seed → test accuracy of the last epoch."""
    return {
        run.recipe["seed"]: run.epochs[-1].test_accuracy
        for run in records_of(work)
        if (run.recipe["augmenter"], run.recipe["epochs"], run.row) == (name, epochs, DEMO_ROW)
    }


def test_every_target_has_jobs_and_is_run_here():
    assert set(METHODS_RUN) == set(STAGES) == set(TARGETS)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS_RUN)
def test_a_target_ends_in_tables_and_figures(name, whole, done):
    result, folder = done[name], whole.results / name
    assert not result.tally.failed
    assert not result.outcome.empty
    assert {path.name for path in result.files} == {path.name for path in folder.iterdir()}
    assert result.outcome.drawings
    for drawing in result.outcome.drawings:
        assert ET.parse(folder / f"{drawing.name}.svg").getroot().tag.endswith("svg")
    assert "Not the paper's setting" in (folder / "table.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS_RUN)
def test_nothing_is_repeated(name, whole, done):
    before = {path: path.stat().st_mtime_ns for path in whole.results.glob("*/*.jsonl")}
    blind = replace(whole, data=whole.results / "no-such-file.npz")  # nobody needs the data
    again = reproduce(name, options_of(name), blind, whole.results.parent / "out")
    assert (again.tally.done, again.tally.failed) == ([], {})
    assert {path: path.stat().st_mtime_ns for path in whole.results.glob("*/*.jsonl")} == before


@pytest.mark.slow
def test_targets_share_runs(done):
    assert done["evolution"].tally.done == []
    assert not [label for label in done["diversity"].tally.done if label.startswith("train")]
    assert [label for label in done["random-baseline"].tally.done if "seed 0" in label] == []


@pytest.mark.slow
def test_the_table_of_accuracies_holds_the_last_epochs(whole, done):
    redraw("supervised", OPTIONS, whole.results)
    rows = [row for row in read_csv(whole, "supervised", DEMO_ROW) if row["epochs"] == "2"]
    base = last_accuracies(whole, "default")
    for name, row in zip(METHODS, rows, strict=True):
        found = last_accuracies(whole, name)
        assert int(row["n"]) == len(found) == (2 if name in RULES else 1)
        assert float(row["accuracy_mean"]) == pytest.approx(statistics.fmean(found.values()))
        if name != "default":
            assert float(row["over_default_mean"]) == pytest.approx(found[0] - base[0])


@pytest.mark.slow
def test_the_exact_choice_keeps_most(whole, done):
    rows = read_csv(whole, "random-baseline", "rules")
    choice = {name: float(row["choice_mean"] or 1) for name, row in zip(RULES, rows, strict=True)}
    assert choice["random"] < choice["divaug"] < choice["divaug-exact"]
    assert choice["divaug-greedy"] < choice["divaug-exact"]


@pytest.mark.slow
def test_diversity_is_what_was_measured(whole, done):
    measured = {
        one.augmenter: one.values
        for one in records_of(whole, "measurements")
        if one.recipe["augmenter"] == "none"
    }
    rows = [row for row in read_csv(whole, "diversity", "diversity") if row["networks"] == "1"]
    found = [float(row["variance_mean"]) for row in rows]
    names = [name for name in METHODS if name in METHODS_RUN["diversity"]]
    assert found == [measured[name]["variance_diversity"] for name in names]
    assert {name: measured[name]["epochs"] for name in names}["pba"] == 2  # the whole schedule


@pytest.mark.slow
def test_equal_cost_gives_the_epochs_that_divaugs_time_is_worth(whole, done):
    costs = {one.recipe["augmenter"]: one for one in records_of(whole, "costs")}
    own, base = (
        costs[name].step_ms["median"] / costs[name].base_ms["median"]
        for name in ("divaug", "randaugment")
    )
    rows = {row["method"]: row for row in read_csv(whole, "equal-cost", "equal-cost")}
    epochs = max(1, round(2 * own / base))
    assert int(rows["RandAugment"]["epochs"]) == epochs
    found = last_accuracies(whole, "randaugment", epochs)
    assert float(rows["RandAugment"]["accuracy_mean"]) == found[0]


@pytest.mark.slow
def test_methods_share_the_split_of_their_seed(whole, done):
    few = [run.few_labels for run in records_of(whole) if run.few_labels]
    assert len({(one.seed, one.split) for one in few}) == 1
    assert {(one.labels, one.steps) for one in few} == {(50, 6)}


@pytest.mark.slow
def test_records_hold_what_was_kept_of_methods_that_choose(whole, done):
    for run in records_of(whole):
        name = run.recipe["augmenter"]
        assert (run.epochs[0].kept is not None) == (name in RULES or "rotate" in name)


def job_of(name="divaug", seed=0, **changes):
    return training(replace(recipe_of(DEMO_ROW, name, seed, OPTIONS), **changes))


def pretended(label, log, *, before=False, error=None, end=End.FINISHED):
    """A job that does nothing but say so."""

    def execute(_work, _shelf):
        log.append(label)
        if error:
            raise error
        return end

    return Job("0" * 16, label, execute, lambda _: before)


def test_jobs_are_done_in_order_but_for_those_that_are_there(work):
    log, tally = [], Tally()
    jobs = [pretended("a", log), pretended("b", log, before=True), pretended("c", log)]
    go_through(jobs, work, tally)
    assert log == ["a", "c"]
    assert (tally.done, tally.skipped, tally.end) == (["a", "c"], 1, End.FINISHED)


def test_a_job_that_fails_is_noted_and_the_others_go_on(work):
    log, tally = [], Tally()
    jobs = [pretended("a", log, error=ValueError("bad\nloss")), pretended("b", log)]
    go_through(jobs, work, tally)
    assert (tally.failed, tally.done) == ({"a": "bad loss"}, ["b"])


def test_nothing_begins_after_a_stop_or_when_the_time_is_up(work):
    log, tally = [], Tally()
    go_through([pretended("a", log, end=End.TIME_UP), pretended("b", log)], work, tally)
    assert (log, tally.end) == (["a"], End.TIME_UP)
    log, tally = [], Tally()
    go_through([pretended("a", log)], replace(work, until=time.time() - 1), tally)
    assert (log, tally.end) == ([], End.TIME_UP)


def test_measurements_and_timings_run_in_this_process_whatever_runs_beside(work):
    log, tally = [], Tally()
    go_through([pretended("a", log), pretended("b", log)], replace(work, jobs=4), tally)
    assert log == ["a", "b"]  # a process of its own would have its own list


def epochs_of(work):
    """What runs recorded, but for times and starts."""
    return {
        run.hash: [one.model_dump_json(exclude={"seconds"}) for one in run.epochs]
        for run in records_of(work)
    }


def test_a_run_that_is_stopped_in_time_goes_on_to_the_same_end(work, tmp_path):
    job, other = job_of(), replace(work, runs=tmp_path / "a", results=tmp_path / "b")
    shelf = Shelf(work.data)
    assert job.execute(other, shelf) is End.FINISHED
    late = replace(work, until=time.time() - 1)  # stops after every step
    assert [job.execute(late, shelf) for _ in range(5)] == [End.TIME_UP] * 5
    assert not job.is_done(read_store(work.results))
    moved = replace(work, runs=tmp_path / "moved")
    work.runs.rename(moved.runs)
    assert job.execute(moved, shelf) is End.FINISHED
    assert epochs_of(work) == epochs_of(other)  # to the bit
    (record,) = records_of(work)
    assert len(record.starts) == 6
    folder = run_folder(job.recipe, moved)
    assert len(checkpoint.find(folder / "checkpoints")) == 1  # small enough to move


def test_a_start_beside_others_is_remembered_though_it_was_killed(work, monkeypatch):
    job, shelf = job_of("none"), Shelf(work.data)

    def killed(*args, **kwargs):
        train(*args, **kwargs)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(making, "train", killed)
        with pytest.raises(KeyboardInterrupt):
            job.execute(replace(work, jobs=3, until=1.0), shelf)
    assert job.execute(work, shelf) is End.FINISHED
    assert [run.side_by_side for run in records_of(work)] == [3]


def test_other_data_than_the_records_are_refused_before_any_work(work, tmp_path):
    first, second = job_of("none", epochs=1), job_of("none", seed=1, epochs=1)
    go_through([first], work, Tally())
    other = replace(work, data=write_data(tmp_path / "other.npz", num_test=40))
    tally = Tally()
    go_through([first, second], other, tally)
    assert tally.skipped == 1
    assert "records are of other data under the name" in tally.failed[second.label]
    assert not run_folder(second.recipe, work).exists()


def test_a_run_that_was_trained_on_other_data_gets_no_record(work, tmp_path):
    job = job_of("none", epochs=1)
    go_through([job], work, Tally())
    shutil.rmtree(work.results)
    other = replace(work, data=write_data(tmp_path / "other.npz", num_test=40))
    tally = Tally()
    go_through([job], other, tally)
    assert "another folder of runs" in tally.failed[job.label]
    assert records_of(work) == []


def test_another_interval_of_logging_is_no_other_run(work):
    go_through([job_of("none", epochs=1)], work, Tally())
    tally = Tally()
    go_through([job_of("none", epochs=1, log_every=7, checkpoint_every=3)], work, tally)
    assert (tally.skipped, tally.done) == (1, [])


def test_networks_that_measure_or_are_examined_are_kept_when_others_are_dropped(work):
    lean, shelf, kept = replace(work, keep_networks=False), Shelf(work.data), {}
    for name, keep in (("none", False), ("randaugment", False), ("divaug", True)):
        job = training(job_of(name, epochs=1).recipe, keep=keep)
        job.execute(lean, shelf)
        kept[name] = len(checkpoint.find(run_folder(job.recipe, lean) / "checkpoints"))
    assert kept == {"none": 1, "randaugment": 0, "divaug": 1}


@pytest.mark.parametrize("lost", [None, "checkpoints", "."])
def test_a_measurement_trains_a_missing_network_again_and_leaves_its_record(work, lost):
    scorer, shelf = job_of("none", epochs=1), Shelf(work.data)
    folder = run_folder(scorer.recipe, work)
    if lost:
        scorer.execute(work, shelf)
        shutil.rmtree(folder / lost)
    before = epochs_of(work)
    job = measuring(scorer.recipe, "randaugment")
    assert job.execute(work, shelf) is End.FINISHED
    (run,), (found,) = records_of(work), records_of(work, "measurements")
    assert found.fingerprint == run.fingerprint
    assert found.network.accuracy == run.epochs[-1].test_accuracy
    assert not lost or epochs_of(work) == before
    assert len(checkpoint.find(folder / "checkpoints")) == 1
    assert job.is_done(read_store(work.results))


def test_an_examination_of_fewer_images_is_done_again(work, monkeypatch):
    job, shelf = examining(job_of("divaug", epochs=1).recipe), Shelf(work.data)
    assert job.execute(work, shelf) is End.FINISHED
    assert job.is_done(read_store(work.results))
    (found,) = records_of(work, "examinations")
    less = found.model_copy(update={"values": found.values | {"images": 10}})
    save(work.results, less)
    assert not job.is_done(read_store(work.results))


def test_jobs_at_once_leave_the_same_records_and_one_may_fail(work, tmp_path):
    jobs = [job_of(name, epochs=1) for name in ("default", "divaug")]
    bad, tally = job_of("default", epochs=1, train_images=100_000), Tally()
    go_through([*jobs, bad], replace(work, jobs=3), tally)
    assert sorted(tally.done) == sorted(job.label for job in jobs)
    assert "balanced subset" in tally.failed[bad.label]
    alone = replace(work, runs=tmp_path / "a", results=tmp_path / "b")
    go_through(jobs, alone, Tally())
    assert epochs_of(work) == epochs_of(alone)
    assert {run.side_by_side for run in records_of(work)} == {3}
    assert {run.side_by_side for run in records_of(alone)} == {1}


def test_the_watch_stops_a_run_once_and_only_when_it_is_time():
    with Interruption() as stop:
        stop.listen()
        early = Watch(time.time() + 1000, lambda: None)
        early.advance()
        Watch(None, lambda: None).advance()
        assert (stop.signal, early.stopped) == (None, False)
        late = Watch(time.time() - 1, lambda: None)
        late.advance()
        late.advance()  # a second signal would interrupt at once
        assert (stop.signal, late.stopped) == ("SIGTERM", True)


def saved(work):
    return {path.parent for path in work.runs.glob("*/checkpoints/step-*")}


@pytest.mark.parametrize(
    ("more", "count", "sent", "code"),
    [
        ((), 1, signal.SIGTERM, 143),
        (("--jobs", 2, "--seeds", 2), 2, signal.SIGINT, 130),
        (("--jobs", 2, "--seeds", 2), 2, signal.SIGTERM, 143),
    ],
)
def test_a_signal_saves_what_is_under_way(work, more, count, sent, code):
    """The whole command, as a shell starts it."""
    words = ["reproduce", "supervised", "--row", DEMO_ROW, "--method", "default",
             "--epochs", "9999", "--scale", OPTIONS.scale, "--set", OPTIONS.changes[0],
             "--data", work.data, "--runs", work.runs, "--results", work.results,
             "--device", "cpu", *more]  # fmt: skip
    source = str(Path(divaug.__file__).parent.parent)
    process = subprocess.Popen(
        [sys.executable, "-m", "divaug", *map(str, words)],
        env=os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        limit = time.time() + 120
        while len(saved(work)) < count and time.time() < limit:
            time.sleep(0.05)
        before = {folder: checkpoint.find(folder)[-1].name for folder in saved(work)}
        os.killpg(process.pid, sent)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code
    assert "Traceback" not in output
    assert len(before) == count
    for folder, last in before.items():
        newest = checkpoint.find(folder)[-1]
        assert newest.name >= last
        checkpoint.load(newest)


def test_the_first_seed_of_all_comes_before_the_second_of_any():
    plan = plan_of("random-baseline", replace(OPTIONS, seeds=2), {})
    seeds = [job.recipe.seed for stage in STAGES["random-baseline"] for job in stage(plan)]
    assert seeds == [0] * len(RULES) + [1] * len(RULES)


@pytest.mark.parametrize(("name", "networks"), [("diversity", 1), ("affinity", 2), ("rotate", 1)])
def test_each_seed_has_networks_that_measure(name, networks):
    plan = plan_of(name, replace(OPTIONS, seeds=3), {})
    first, second = (stage(plan) for stage in STAGES[name])
    assert len(second) == 3 * networks * len(plan.methods)
    trained = {(job.recipe.augmenter, job.recipe.seed) for job in first}
    assert {("none", seed) for seed in range(3)} <= trained


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("supervised", {"methods": ("divagu",)}, "Did you mean 'divaug'"),
        ("rotate", {"methods": ("divaug",)}, "method of rotate"),
        ("supervised", {"rows": ("uda-paper-1000",)}, "row of supervised"),
        ("semi-supervised", {"rows": (PAPER_ROW,)}, "row of semi-supervised"),
        ("supervized", {}, "Did you mean 'supervised'"),
    ],
)
def test_what_a_target_does_not_have_is_named(name, given, told):
    with pytest.raises(ValueError, match=told):
        plan_of(name, replace(OPTIONS, **({"rows": ()} | given)), {})


def test_a_list_of_steps_is_timed_in_a_batch_and_goes_on_with_its_base(tmp_path, monkeypatch):
    base, *others = (
        recipe_of(DEMO_ROW, n, 0, Options()) for n in ("randaugment", "none", "default")
    )
    place = dict(timing._place(Hardware.choose("cpu"), torch.get_num_threads()))
    job = making.timing(base, tuple(others), timing.this_setting(base, "cpu"))
    log, limit, batches = [], [2], iter("12")

    def pretended_step(recipe, device, *, eager, batch, base):
        log.append((recipe.augmenter, batch, base))
        limit[0] -= 1
        return made_cost(recipe.augmenter, 1.0, batch, row=DEMO_ROW, **place)

    class Hurried(Work):
        may_begin = property(lambda _: limit[0] > 0)

    monkeypatch.setattr(making, "time_step", pretended_step)
    monkeypatch.setattr(making, "new_batch", lambda: next(batches))
    monkeypatch.setattr(making, "ready", lambda one, *_, **__: f"ready {one.augmenter}")
    work = Hurried(tmp_path / "runs", tmp_path / "results", None, "cpu")
    assert job.execute(work, Shelf(None)) is End.TIME_UP
    assert not job.is_done(read_store(work.results))
    limit[0] = 9
    assert job.execute(work, Shelf(None)) is End.FINISHED
    beside = "ready randaugment"
    assert log == [
        ("randaugment", "1", None),
        ("none", "1", beside),
        ("randaugment", "2", None),
        ("default", "2", beside),
    ]
    assert job.is_done(read_store(work.results))


def test_nothing_is_timed_on_a_gpu_before_the_kernels_were_compared(monkeypatch):
    def differ(*_):
        raise ValueError("the kernels differ")

    monkeypatch.setattr(Hardware, "choose", lambda *_, **__: Hardware(torch.device("cuda")))
    monkeypatch.setattr(timing, "verify", differ)
    monkeypatch.setattr(timing, "_peak_bytes", lambda *_: pytest.fail("timed all the same"))
    timing._check_kernels.cache_clear()
    with pytest.raises(ValueError, match="the kernels differ"):
        timing.time_step(recipe_of(PAPER_ROW, "divaug", 0, OPTIONS), batch="1")


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


SMALL = ("--row", DEMO_ROW, "--epochs", 1, "--scale", 0.02, "--set", "batch_size=20",
         "--method", "default")  # fmt: skip


def test_the_command_runs_lists_and_draws_again(work, tmp_path):
    where = ("--results", work.results, "--runs", work.runs, "--data", work.data)
    listed = call("reproduce", "supervised", *SMALL, *where, "--dry-run")
    assert "Still to do: 1 of 1." in listed.output
    assert not work.results.exists()
    late = call("reproduce", "supervised", *SMALL, *where, "--minutes", 0)
    assert late.exit_code == 75
    assert "nothing to show yet" in late.output
    assert "the time is up; give the same command again" in late.output
    first = call("reproduce", "supervised", *SMALL, *where, "--out", tmp_path / "a")
    again = call("reproduce", "supervised", *SMALL, "--from", work.results, "--out", tmp_path / "b")
    assert (first.exit_code, again.exit_code) == (0, 0)
    assert again.output.replace(str(tmp_path / "b"), str(tmp_path / "a")) in first.output
    assert (tmp_path / "a" / "table.md").read_bytes() == (tmp_path / "b" / "table.md").read_bytes()
    assert (
        "Still to do: 0 of 1."
        in call("reproduce", "supervised", *SMALL, *where, "--dry-run").output
    )


def test_the_list_gives_times_of_steps_that_were_timed_here(work, monkeypatch):
    place = json.loads(json.dumps(timing._place(Hardware.choose("cpu"), torch.get_num_threads())))
    save(work.results, made_cost("default", 1000.0, row=DEMO_ROW, **place))
    options = replace(OPTIONS, methods=("default", "random"))
    rows = list_target("supervised", options, work).rows
    assert [row[2:4] for row in rows] == [("to do", "about 6.0 s"), ("to do", "")]
    for _ in range(4):
        job_of("default").execute(replace(work, until=1.0), Shelf(work.data))
    rows = list_target("supervised", options, work).rows
    assert rows[0][2:4] == ("to do from epoch 2 on", "about 3.0 s")


def test_a_report_from_records_redraws_what_has_records(tmp_path):
    save(tmp_path, made_run())
    assert call("report", "--from", tmp_path).exit_code == 0
    found = {path.name for path in tmp_path.iterdir() if (path / "table.md").exists()}
    assert found == {"supervised", "random-baseline"}
    with (tmp_path / "runs.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["method"], row["accuracy"], row["seconds"]) == (
        "DivAug (k-means++)",
        "0.9",
        "325.0",
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("reproduce", "supervised", "--epochs", "3"), "of supervised in this setting; there are"),
        (("reproduce", "rotate"), "of rotate in this setting; there are: cifar10.*200 epochs"),
        (("reproduce", "supervised", "--runs", "runs"), "^--runs does nothing with --from"),
        (("reproduce", "supervised", "--jobs", 5), "^--jobs does nothing with --from"),
        (("reproduce", "supervised", "--eager"), "^--eager does nothing with --from"),
        (("reproduce", "supervised", "--dry-run", "--results", "x"), "^--results does nothing"),
        (("report", "--csv", "x.csv"), "^--csv does nothing with --from"),
        (("report", "run"), "does nothing with --from"),
    ],
)
def test_options_at_odds_and_settings_without_records_are_named(tmp_path, words, told):
    save(tmp_path, made_run())
    result = call(*words, "--from", tmp_path)
    with pytest.raises(ValueError, match=told):
        raise result.exception


@pytest.mark.parametrize("words", [("reproduce", "supervised"), ("report",)])
def test_a_folder_without_records_is_refused_and_left_as_it_is(tmp_path, words):
    with pytest.raises(ValueError, match=r"must be a folder of records, and .* has none"):
        raise call(*words, "--from", tmp_path).exception
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError, match="must be a folder of records"):
        raise call(*words, "--from", tmp_path / "nowhere").exception
