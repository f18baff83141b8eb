"""Timings: related within a batch alone, after a check of the kernels, with real sizes."""

import csv
import io
from dataclasses import replace

import pytest
import torch

from divaug.lab.reproduce import list_target, timing
from divaug.lab.reproduce.batches import TimeJob
from divaug.lab.reproduce.durations import durations_sheet
from divaug.lab.reproduce.options import DEMO_ROW, PAPER_ROW, TRAIN_IMAGES, Options, recipe_of
from divaug.lab.reproduce.records import CostRecord
from divaug.lab.reproduce.store import Store, read_store, save
from divaug.lab.reproduce.targets import TARGETS
from divaug.lab.reproduce.targets.equal_epochs import COMPARED, epochs_at_equal_cost
from divaug.lab.reproduce.work import End, Shelf, Work
from divaug.lab.train.device import Hardware
from tests.reproduction_helpers import OPTIONS, PLACE, made_run

WHERE = PLACE | {"python": "3.13", "packages": {"torch": "2.11", "divaug": "1"}}


def timed(name, milliseconds, batch, base=1.0, **place):
    step = dict.fromkeys(("median", "low", "high"), milliseconds)
    recipe = recipe_of(PAPER_ROW, name, 0, Options())
    beside = dict.fromkeys(step, base)
    return CostRecord(recipe, step, beside, {"expand": 1.0}, 1000, WHERE | place, batch)


def store_of(*costs):
    return Store(costs={cost.hash: cost for cost in costs})


def cost_table(store):
    sheet = TARGETS["cost"].outcome(Options(), store).sheets[0]
    names = [column.key for column in sheet.columns]
    rows = {row[0]: dict(zip(names, row, strict=True)) for row in sheet.table().rows}
    return rows, " ".join(sheet.table().sentences)


def test_steps_are_related_to_the_base_of_their_own_batch():
    store = store_of(
        timed("randaugment", 2.0, "1"),
        timed("default", 1.0, "1"),
        timed("randaugment", 4.0, "2", commit="def"),
        timed("divaug", 12.0, "2", commit="def"),
        timed("pba", 5.0, "3"),
    )
    rows, notes = cost_table(store)
    assert rows["default"]["relative"] == "0.50"
    assert rows["DivAug (k-means++)"]["relative"] == "3.00"
    assert [row["paper"] for row in rows.values() if row["paper"] != "—"] == ["1.0", "4.5"]
    assert rows["PBA"]["relative"] == rows["PBA"]["memory_relative"] == "—, timed apart"
    assert rows["PBA"]["step_ms"] == "5.00"
    assert rows["AutoAugment"]["relative"] == "—, not run"
    assert "5 timings on Some CPU, 2 threads; Python 3.13, torch 2.11, divaug 1; " in notes
    assert "commits abc, def; `divaug`." in notes  # every environment is named


def test_a_clock_that_drifts_does_not_count():
    """The machine is half as fast while DivAug is timed, and so is the base beside it."""
    store = store_of(
        timed("randaugment", 2.0, "1", base=2.0),
        timed("default", 1.0, "1", base=2.0),
        timed("divaug", 12.0, "1", base=4.0),
    )
    rows, _ = cost_table(store)
    assert rows["RandAugment"]["relative"] == "1.00"
    assert rows["default"]["relative"] == "0.50"
    assert rows["DivAug (k-means++)"]["relative"] == "3.00"
    assert rows["DivAug (k-means++)"]["beside_ms"] == "4.00"  # so a reader can divide
    assert rows["PBA"]["beside_ms"] == "—, not run"
    findings = TARGETS["equal-cost"].findings(Options(), store)
    setting = findings.settings(PAPER_ROW, "divaug")[0]
    assert epochs_at_equal_cost(findings, PAPER_ROW, "default", setting) == 1200


def test_runs_whose_time_cannot_be_compared_are_not_called_not_run():
    costs = (timed("randaugment", 2.0, "1"), timed("divaug", 8.0, "1"))
    runs = [
        made_run(epochs=200, augmenter=name)
        for name in ("divaug", "randaugment", "default", "autoaugment")
    ]
    alone, shared, elsewhere, moved = (replace(run, starts=(WHERE,)) for run in runs)
    other = WHERE | {"processor": "Other"}
    shared, elsewhere = replace(shared, side_by_side=2), replace(elsewhere, starts=(other,))
    moved = replace(moved, starts=(other, WHERE))  # its time is of both machines
    found = {run.hash: run for run in (alone, shared, elsewhere, moved)}
    store = replace(store_of(*costs), runs=found)
    rows, _ = cost_table(store)
    assert (rows["DivAug (k-means++)"]["total"], rows["DivAug (k-means++)"]["n"]) == (
        "5 min 25 s",
        "1",
    )
    assert (rows["RandAugment"]["total"], rows["RandAugment"]["n"]) == ("—, device shared", "0")
    assert rows["default"]["total"] == rows["AutoAugment"]["total"] == "—, run elsewhere"
    assert rows["PBA"]["total"] == "—, not run"
    table = TARGETS["cost"].outcome(Options(), store).sheets[0].csv()
    by_method = {row["method"]: row for row in csv.DictReader(io.StringIO(table))}
    assert by_method["DivAug (k-means++)"]["total_mean"] == "325.0"
    assert by_method["RandAugment"]["total_mean"] == ""


def test_at_equal_cost_a_shared_device_is_told():
    costs = (timed("randaugment", 2.0, "1"), timed("divaug", 8.0, "1"))
    run = replace(made_run(epochs=800, augmenter="randaugment"), starts=(WHERE,), side_by_side=2)
    store = replace(store_of(*costs), runs={run.hash: run})
    (sheet, _) = TARGETS["equal-cost"].outcome(Options(), store).sheets
    rows = {row[0]: row for row in sheet.table().rows}
    assert rows["RandAugment"][-1] == "—, device shared"
    assert rows["PBA"][-1] == "—"


def listed(outcome):
    """Method and epochs of the runs in the list."""
    runs = next((sheet for sheet in outcome.sheets if sheet.name == "runs"), None)
    return [(row["method"], row["epochs"]) for row in runs.rows] if runs else []


def test_every_run_behind_a_column_is_listed_and_counted_below():
    """The runs at the usual epochs too, and DivAug's, which are in both columns, once."""
    costs = (timed("randaugment", 2.0, "1"), timed("divaug", 8.0, "1"))
    runs = [made_run(800, augmenter="randaugment"), made_run(200, augmenter="randaugment"),
            made_run(200), made_run(7)]  # fmt: skip
    store = replace(store_of(*costs), runs={run.hash: run for run in runs})
    outcome = TARGETS["equal-cost"].outcome(Options(), store)
    assert "3 runs on Some CPU" in " ".join(outcome.sheets[0].table().sentences)
    assert sorted(listed(outcome)) == [
        ("DivAug (k-means++)", 200), ("RandAugment", 200), ("RandAugment", 800)
    ]  # fmt: skip


def test_each_setting_that_was_timed_has_a_table_at_equal_cost():
    """A second GPU or version makes other epochs of the same method, and nothing vanishes."""
    other = WHERE | {"gpu": "Some GPU"}
    costs = (
        timed("randaugment", 2.0, "1"),
        timed("divaug", 8.0, "1"),
        timed("randaugment", 2.0, "1", gpu="Some GPU"),
        timed("divaug", 4.0, "1", gpu="Some GPU"),
        timed("default", 1.0, "1", gpu="Third GPU"),
    )
    ran = [(800, 0, WHERE), (800, 1, WHERE), (400, 0, other)]
    runs = [replace(made_run(epochs, augmenter="randaugment", seed=seed), starts=(place,))
            for epochs, seed, place in ran]  # fmt: skip
    everywhere = replace(made_run(200), starts=(other,))
    found = {run.hash: run for run in (*runs, everywhere)}
    outcome = TARGETS["equal-cost"].outcome(Options(), replace(store_of(*costs), runs=found))
    sheets = {sheet.name: sheet for sheet in outcome.sheets}
    names = ["equal-cost", "equal-cost-2", "equal-cost-3"]
    assert list(sheets) == [names[0], "lead", names[1], "lead-2", names[2], "runs"]
    of_cpu, of_gpu, of_third = (
        {row[0]: row for row in sheets[name].table().rows} for name in names
    )
    for name, machine in zip(names, ("CPU", "Some GPU", "Third GPU"), strict=True):
        assert machine in sheets[name].title
    assert [row["epochs"] for name in ("lead", "lead-2") for row in sheets[name].rows] == [800, 400]
    assert of_cpu["RandAugment"][1:5] == ("0.25", "800", "90.00 ± 0.00", "2")
    assert of_gpu["RandAugment"][1:5] == ("0.50", "400", "90.00", "1")
    assert of_third["default"][1:4] == ("—, timed apart", "—, not run", "—, not run")
    # Accuracies may come from anywhere, times only from where the steps were timed.
    assert of_cpu["DivAug (k-means++)"][3] == of_gpu["DivAug (k-means++)"][3] == "90.00"
    assert of_cpu["DivAug (k-means++)"][-1] == "—, run elsewhere"
    assert of_gpu["DivAug (k-means++)"][-1] == "5 min 25 s"
    assert len(listed(outcome)) == 4
    assert [drawing.name for drawing in outcome.drawings] == ["equal-cost", "equal-cost-2"]


def test_whole_runs_in_the_table_of_costs_are_listed_and_named_below():
    costs = (timed("randaugment", 2.0, "1"), timed("divaug", 8.0, "1"))
    counted = replace(made_run(200), starts=(WHERE | {"commit": "fed"},))
    shared = replace(made_run(200, seed=1), starts=(WHERE,), side_by_side=2)
    store = replace(store_of(*costs), runs={run.hash: run for run in (counted, shared)})
    outcome = TARGETS["cost"].outcome(Options(), store)
    assert "1 run on Some CPU, 2 threads; Python 3.13, torch 2.11, divaug 1; commit fed" in (
        " ".join(outcome.sheets[0].table().sentences)
    )
    assert listed(outcome) == [("DivAug (k-means++)", 200)]
    assert listed(TARGETS["cost"].outcome(Options(), store_of(*costs))) == []


def test_a_run_that_was_resumed_has_no_time_of_a_whole_run_in_any_table():
    """Work since its last checkpoint was done twice, and its record does not say how much."""
    costs = (timed("randaugment", 2.0, "1"), timed("divaug", 8.0, "1"))
    resumed = replace(made_run(200), starts=(WHERE, WHERE))
    store = replace(store_of(*costs), runs={resumed.hash: resumed})
    rows, _ = cost_table(store)
    assert (rows["DivAug (k-means++)"]["total"], rows["DivAug (k-means++)"]["n"]) == (
        "—, resumed",
        "0",
    )
    sheet = TARGETS["equal-cost"].outcome(Options(), store).sheets[0]
    assert {row[0]: row[-1] for row in sheet.table().rows}["DivAug (k-means++)"] == "—, resumed"
    assert durations_sheet([resumed]).rows == ()
    # One that was not resumed counts alone.
    whole = replace(made_run(200, seed=1), starts=(WHERE,), time={"training": 100.0})
    rows, _ = cost_table(replace(store, runs=store.runs | {whole.hash: whole}))
    assert rows["DivAug (k-means++)"]["total"] == "1 min 40 s"


def test_other_modes_and_versions_have_tables_of_their_own():
    store = store_of(
        timed("randaugment", 2.0, "1"),
        timed("divaug", 8.0, "1", compiled=True),
        timed("divaug", 9.0, "1", packages={"torch": "2.12"}),
    )
    found = [s for s in TARGETS["cost"].outcome(Options(), store).sheets if "cost" in s.name]
    assert len(found) == 3
    assert "3.00" not in {text for sheet in found for row in sheet.table().rows for text in row}


def test_epochs_follow_from_one_batch_and_stay_when_another_comes():
    old = (timed("divaug", 8.0, "1"), timed("randaugment", 2.0, "1"))
    new = (timed("divaug", 8.0, "2"), timed("randaugment", 4.0, "2"))
    for costs in (old, (*old, *new)):
        findings = TARGETS["equal-cost"].findings(Options(), store_of(*costs))
        setting = old[0].setting
        assert epochs_at_equal_cost(findings, PAPER_ROW, "randaugment", setting) == 800
    apart = TARGETS["equal-cost"].findings(Options(), store_of(old[0], new[1]))
    assert epochs_at_equal_cost(apart, PAPER_ROW, "randaugment", old[0].setting) is None


def ran(name, epochs, accuracy, seed=0, **place):
    one = made_run(epochs, augmenter=name, seed=seed, name=f"{PAPER_ROW}-{name}")
    last = replace(one.last, test_accuracy=accuracy)
    return replace(one, epochs=(*one.epochs[:-1], last), starts=(WHERE | place,))


def in_as_much_time(*runs):
    """RandAugment's step takes a quarter of DivAug's, that of the default an eighth."""
    steps = {"divaug": 8.0, "randaugment": 2.0, "default": 1.0}
    costs = [timed(name, step, "1") for name, step in steps.items()]
    store = replace(store_of(*costs), runs={run.hash: run for run in runs})
    return TARGETS["equal-cost"].outcome(Options(), store)


def test_the_lead_in_as_much_time_is_over_pairs_of_one_seed_with_those_epochs():
    ours = [ran("divaug", 200, 0.95 + 0.01 * seed, seed) for seed in range(4)]
    long = [ran("randaugment", 800, 0.93 + 0.011 * seed, seed) for seed in range(3)]
    usual = [ran("randaugment", 200, 0.5, seed) for seed in range(4)]
    apart = ran("default", 1600, 0.9, 7)  # no seed of DivAug's
    outcome = in_as_much_time(*ours, *long, *usual, apart)
    (sheet,) = (sheet for sheet in outcome.sheets if sheet.name == "lead")
    (row,) = sheet.rows
    assert (row["method"], row["epochs"], row["pairs"]) == ("RandAugment", 800, 3)
    assert row["difference"].mean == pytest.approx(0.019)
    assert row["difference"].std == pytest.approx(0.001)
    assert row["holds"] == "yes"


def test_the_runs_that_a_lead_is_taken_from_are_listed_whatever_methods_are_asked_for():
    runs = [ran("divaug", 200, 0.95), ran("randaugment", 800, 0.93), ran("default", 1600, 0.9)]
    runs += [ran("divaug", 200, 0.95, seed=3), ran("randaugment", 800, 0.93, seed=4)]  # no pair
    costs = [timed(name, step, "1") for name, step in (("divaug", 8.0), ("randaugment", 2.0))]
    store = replace(store_of(*costs), runs={run.hash: run for run in runs})
    outcome = TARGETS["equal-cost"].outcome(Options(methods=("randaugment",)), store)
    sheets = {sheet.name: sheet for sheet in outcome.sheets}
    listed = {(row["method"], row["epochs"]) for row in sheets["runs"].rows}
    assert listed == {("DivAug (k-means++)", 200), ("RandAugment", 800)}
    assert sheets["lead"].behind.startswith("2 runs on ")
    assert sheets["equal-cost"].behind.startswith("2 runs on ")  # RandAugment's, no others


def test_without_a_pair_in_as_much_time_no_lead_is_shown():
    """Neither for methods at their usual epochs, timed or not, nor for DivAug against itself."""
    names = ("divaug", "randaugment", "pba")
    outcome = in_as_much_time(*(ran(name, 200, 0.9) for name in names))
    assert [sheet.name for sheet in outcome.sheets] == ["equal-cost", "runs"]


LONGER = (
    ran("divaug", 200, 0.96),
    ran("randaugment", 800, 0.95),
    ran("randaugment", 800, 0.94, seed=1),
    ran("randaugment", 800, 0.90, seed=5),  # not run for the usual epochs
    ran("randaugment", 200, 0.93),
    ran("randaugment", 200, 0.91, seed=1),
    ran("randaugment", 200, 0.50, seed=2),  # not run for DivAug's time
    ran("default", 1600, 0.94),
)


def test_what_more_epochs_bring_is_over_pairs_of_one_seed():
    rows = {row["method"]: row for row in in_as_much_time(*LONGER).sheets[0].rows}
    gain = rows["RandAugment"]["gain"]
    assert (gain.mean, gain.n) == (pytest.approx((0.02 + 0.03) / 2), 2)
    assert rows["RandAugment"]["pairs"] == 2
    assert rows["RandAugment"]["usual"].n == 3
    for name in ("default", "DivAug (k-means++)"):  # no pair, and no other number of epochs
        assert (rows[name]["gain"], rows[name]["pairs"]) == (None, None)


def test_the_figure_joins_each_seed_to_itself_at_the_usual_epochs():
    (drawing,) = in_as_much_time(*LONGER).drawings
    assert drawing.title.endswith(f"; {len(COMPARED) - 3} of {len(COMPARED)} methods not run")
    (axes,) = drawing.figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [
        "default, 1600 epochs (n = 1)",
        "RandAugment, 800 epochs (n = 3)",
        "DivAug (k-means++), 200 epochs (n = 1)",
    ]
    strokes = [line.get_xdata() for line in axes.lines if line.get_linestyle() == "-"]
    assert {tuple(map(round, x)) for x in strokes if len(x) == 2} == {(93, 95), (91, 94)}


def accuracies(*runs, costs=()):
    store = replace(store_of(*costs), runs={run.hash: run for run in runs})
    sheet = TARGETS["supervised"].outcome(Options(), store).sheets[0]
    lines = list(csv.DictReader(io.StringIO(sheet.csv())))
    names = sheet.table().columns
    rows = {row[0]: dict(zip(names, row, strict=True)) for row in sheet.table().rows}
    return {line["method"]: line for line in lines}, rows, " ".join(sheet.table().sentences)


STEPS = (timed("divaug", 8.0, "1"), timed("randaugment", 2.0, "1"), timed("default", 1.0, "1"))


def test_the_table_of_accuracies_has_every_method_in_divaugs_time():
    runs = [ran("randaugment", 200, 0.90), ran("divaug", 200, 0.92)]
    runs += [ran("randaugment", 800, accuracy, seed) for seed, accuracy in enumerate((0.93, 0.95))]
    lines, rows, notes = accuracies(*runs, costs=STEPS)
    quick = rows["RandAugment"]
    assert (quick["ours, %"], quick["n"], quick["epochs"]) == ("90.00", "1", "200")
    assert quick["in DivAug's time, %"] == "94.00 ± 1.41"
    assert (quick["n in that time"], quick["epochs in that time"]) == ("2", "800")
    own = rows["DivAug (k-means++)"]
    assert own["in DivAug's time, %"] == own["ours, %"] == "92.00"
    # What was timed and not run, what was not timed, and what the comparison does not have.
    assert rows["default"]["in DivAug's time, %"] == "—, not run"
    assert (rows["default"]["n in that time"], rows["default"]["epochs in that time"]) == (
        "0",
        "1600",
    )
    assert lines["default"]["equal_mean"] == ""
    for name in ("PBA", "no augmentation", "DivAug, exact"):
        assert (rows[name]["in DivAug's time, %"], rows[name]["epochs in that time"]) == ("—", "—")
    assert "In DivAug's time: " in notes
    assert "4 runs on Some CPU" in notes  # each once


def test_without_timings_the_table_says_nothing_of_divaugs_time():
    lines, rows, notes = accuracies(ran("randaugment", 200, 0.9), ran("randaugment", 800, 0.95))
    assert "in DivAug's time, %" not in rows["RandAugment"]
    assert lines["RandAugment"]["equal_n"] == "0"
    assert "In DivAug's time" not in notes
    assert "1 run on" in notes


@pytest.mark.parametrize(
    ("lengths", "epochs", "machine"),
    [
        ([], ("800", "1600"), "Some CPU"),  # the first that was timed
        ([("randaugment", 400)], ("400", "800"), "A GPU"),
        ([("randaugment", 800)], ("800", "1600"), "Some CPU"),
        ([("randaugment", 800), ("randaugment", 400), ("default", 800)], ("400", "800"), "A GPU"),
    ],
)
def test_one_machine_counts_for_a_whole_table(lengths, epochs, machine):
    there = [timed(name, ms, "2", gpu="A GPU") for name, ms in (("divaug", 8), ("randaugment", 4))]
    there.append(timed("default", 2.0, "2", gpu="A GPU"))
    runs = [ran(name, length, 0.97) for name, length in lengths]
    lines, _, notes = accuracies(ran("divaug", 200, 0.9), *runs, costs=(*there, *STEPS))
    assert tuple(lines[name]["equal_epochs"] for name in ("RandAugment", "default")) == epochs
    assert f"by steps timed on {machine}" in notes
    assert f"3 timings on {machine}" in notes


def test_a_list_without_compilation_goes_by_steps_without_it(tmp_path):
    modes = [({"compiled": True}, 2), ({}, 4)]
    for mode, quick in modes:
        for name, ms in (("divaug", 8), ("randaugment", quick)):
            save(tmp_path / "results", timed(name, ms, str(quick), gpu="A GPU", **mode))
    work = Work(tmp_path / "runs", tmp_path / "results", device="cpu")
    options = Options(methods=("randaugment",))
    for eager, epochs in ((True, 400), (False, 400)):  # else the last timed counts
        rows = list_target("equal-cost", options, replace(work, eager=eager), "A GPU").rows
        assert f"{epochs} epochs" in rows[1][1]
    compiled = timed("divaug", 8, "9", gpu="B GPU", compiled=True)
    save(tmp_path / "results", compiled)
    save(tmp_path / "results", timed("randaugment", 2, "9", gpu="B GPU", compiled=True))
    lists = [
        list_target("equal-cost", options, replace(work, eager=eager), "B GPU").rows
        for eager in (True, False)
    ]
    assert [len(rows) for rows in lists] == [1, 2]  # nothing follows where nothing was timed so


def jobs_of(target, machine, *costs, tmp_path):
    for cost in costs:
        save(tmp_path / "results", cost)
    work = Work(tmp_path / "runs", tmp_path / "results", device="cpu")
    options = Options(methods=("randaugment", "divaug"))
    table = list_target(target, options, work, machine)
    return [(row[1], row[2], row[3]) for row in table.rows], " ".join(table.sentences)


def test_a_list_for_another_machine_goes_by_its_timings(tmp_path):
    there = [
        timed(name, ms, "1", gpu="Some GPU") for name, ms in (("divaug", 8), ("randaugment", 2))
    ]
    later = [timed(name, 8, "2", gpu="Other GPU") for name in ("divaug", "randaugment")]
    rows, notes = jobs_of("equal-cost", "Some GPU", *there, *later, tmp_path=tmp_path)
    assert [row[1] for row in rows] == ["done", "to do", "to do"]
    assert "randaugment, 800 epochs" in rows[1][0]
    assert "divaug, 200 epochs" in rows[2][0]
    # 390 steps an epoch: as long as DivAug's 200 epochs, which is what the target is about.
    assert rows[1][2] == rows[2][2] == "about 10 min 24 s"
    assert "Then every method is trained" not in notes
    assert jobs_of("cost", "Some GPU", tmp_path=tmp_path)[0][0][1] == "done"
    # Here nothing was timed, and nothing follows.
    rows, notes = jobs_of("equal-cost", None, tmp_path=tmp_path)
    assert [row[1] for row in rows] == ["to do"]
    assert "Then every method is trained" in notes


def test_of_several_settings_of_a_machine_the_last_timed_counts(tmp_path):
    times = {"1": 2, "2": 4}
    costs = [
        timed(name, ms, batch, gpu="Some GPU", packages={"torch": batch})
        for batch, quick in times.items()
        for name, ms in (("divaug", 8), ("randaugment", quick))
    ]
    rows, _ = jobs_of("equal-cost", "Some GPU", *costs, tmp_path=tmp_path)
    assert "randaugment, 400 epochs" in rows[1][0]


def test_a_machine_whose_steps_of_this_network_nobody_timed_has_them_to_time(tmp_path):
    one = timed("none", 1.0, "1", gpu="Some GPU")
    rows, _ = jobs_of("equal-cost", "Some GPU", one, tmp_path=tmp_path)
    assert [row[1] for row in rows] == ["to do"]


@pytest.fixture
def job():
    base, *others = (recipe_of(DEMO_ROW, n, 0, OPTIONS) for n in ("randaugment", "none", "default"))
    return TimeJob(base, tuple(others), timing.this_setting(base, "cpu"))


def test_a_list_of_steps_is_timed_in_a_batch_and_goes_on_with_its_base(job, tmp_path, monkeypatch):
    place = dict(timing._place(Hardware.choose("cpu"), torch.get_num_threads()))
    log, limit = [], [2]

    def pretended(recipe, device, *, eager, batch, base):
        assert base == (None if recipe == job.base else f"ready {job.base.name}")
        log.append((recipe.augmenter, batch))
        limit[0] -= 1
        step = dict.fromkeys(("median", "low", "high"), 1.0)
        return CostRecord(recipe, step, step, {}, 1, place, batch)

    class Hurried(Work):
        may_begin = property(lambda _: limit[0] > 0)

    batches = iter("12")
    monkeypatch.setattr("divaug.lab.reproduce.batches.time_step", pretended)
    monkeypatch.setattr("divaug.lab.reproduce.batches.new_batch", lambda: next(batches))
    monkeypatch.setattr(
        "divaug.lab.reproduce.batches.ready", lambda one, *_, **__: f"ready {one.name}"
    )
    work = Hurried(tmp_path / "runs", tmp_path / "results", None, "cpu")
    assert job.execute(work, Shelf(None)) is End.TIME_UP
    assert not job.done(read_store(work.results))
    limit[0] = 9
    assert job.execute(work, Shelf(None)) is End.FINISHED
    assert log == [("randaugment", "1"), ("none", "1"), ("randaugment", "2"), ("default", "2")]
    assert job.done(read_store(work.results))
    assert not replace(job, base=job.recipes[0]).done(read_store(work.results))  # never beside it


def test_nothing_is_timed_on_a_gpu_before_the_kernels_were_compared(monkeypatch):
    def differ(*_):
        raise ValueError("the kernels differ")

    monkeypatch.setattr(Hardware, "choose", lambda *_, **__: Hardware(torch.device("cuda")))
    monkeypatch.setattr(timing, "verify", differ)
    monkeypatch.setattr(timing, "_peak_bytes", lambda *_: pytest.fail("timed all the same"))
    timing._check_kernels.cache_clear()
    with pytest.raises(ValueError, match="the kernels differ"):
        timing.time_step(recipe_of(PAPER_ROW, "divaug", 0, Options()), batch="1")


@pytest.mark.parametrize(
    ("options", "images"), [(Options(), TRAIN_IMAGES["cifar10"]), (Options(scale=0.1), 5_000)]
)
def test_memory_is_that_of_as_many_images_as_are_trained_on(options, images, monkeypatch):
    class AskedError(Exception):
        pass

    def stop(_recipe, count=0):
        raise AskedError(count)

    monkeypatch.setattr(timing, "random_data", stop)
    with pytest.raises(AskedError, match=f"^{images}$"):
        timing.time_step(recipe_of(PAPER_ROW, "divaug", 0, options), "cpu", batch="1")


def test_a_whole_run_takes_the_sum_of_its_kinds_of_work():
    alone = replace(made_run(), time={"start_up": 67.4, "training": 978.6, "checkpoints": 6.8})
    shared = replace(made_run(seed=1), side_by_side=2)
    resumed = replace(made_run(seed=2), starts=(PLACE, PLACE))
    table = durations_sheet([alone, shared, resumed]).table()
    assert [row[2] for row in table.rows] == ["0"]  # times of the others are not those of one run
    shown = dict(zip(table.columns, table.rows[0], strict=True))
    assert shown["start-up"] == "1 min 07 s"
    assert shown["evaluation"] == "—"
    assert shown["whole run"] == "17 min 33 s"
    assert "1 run on Some CPU" in " ".join(table.sentences)
