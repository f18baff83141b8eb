"""The semi-supervised table on the shipped data: errors, steps, splits, and once more."""

import csv
import json
import math
import shutil
import statistics
import time
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from divaug.lab.cli import app
from divaug.lab.recipes import FAMILIES, recipe, relabel
from divaug.lab.reproduce import TARGETS, Work, list_target, read_store, redraw, reproduce
from divaug.lab.reproduce.estimates import Estimator
from divaug.lab.reproduce.formats import from_text, to_text
from divaug.lab.reproduce.identity import cell_hash, split_mark
from divaug.lab.reproduce.jobs import TrainJob
from divaug.lab.reproduce.options import FEW_LABELS_ROWS, Options, recipe_of
from divaug.lab.reproduce.paper import semi_supervised
from divaug.lab.reproduce.sheets import NOT_RUN
from divaug.lab.reproduce.store import Store, save
from divaug.lab.reproduce.work import End, Shelf
from divaug.lab.train.data import draw_split
from tests.reproduction_helpers import FEW_LABELS, made_run, made_semi_run, write_data

NAME = "semi-supervised"
BASE = "randaugment-uda"  # what the paper compares with
METHODS = (
    BASE,
    "randaugment",
    "randaugment-xS",
    "trivialaugment",
    "trivialaugment-xS",
    "random",
    "divaug",
)
TITLES = (
    "RandAugment, authors' draw",
    "RandAugment",
    "RandAugment, 2 views",
    "TrivialAugment",
    "TrivialAugment, 2 views",
    "random 2 of 4",
    "DivAug (k-means++)",
)
ROWS = ("fashion_mnist_small-uda-50", "fashion_mnist_small-uda-100")
WHOLE = replace(FEW_LABELS, rows=ROWS)
TWICE = replace(WHOLE, seeds=2, methods=(BASE, "divaug"))


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    root = tmp_path_factory.mktemp("few")
    return Work(root / "runs", root / "results", write_data(root / "small.npz"), "cpu")


@pytest.fixture(scope="module")
def done(work):
    """Some cells, then two seeds of them, then the whole table."""
    small = reproduce(NAME, replace(WHOLE, methods=("random",)), work)
    return small, reproduce(NAME, TWICE, work), reproduce(NAME, WHOLE, work)


def files(work):
    """Row, augmenter and seed → head and epochs of a record, straight from the files."""
    found = {}
    for path in (work.results / "runs").iterdir():
        head, *epochs = (json.loads(line) for line in path.read_text().splitlines())
        one = head["recipe"]
        row = one["name"].removesuffix(f"-{one['augmenter']}")
        found[row, one["augmenter"], one["seed"]] = (head, epochs)
    return found


def table_of(folder, family="fashion_mnist_small-uda"):
    with (folder / f"{family}.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_list_goes_on_without_repeating(done):
    small, twice, whole = done
    assert [len(one.tally.done) for one in done] == [2, 8, 8]
    assert [one.tally.skipped for one in done] == [0, 0, 6]
    assert not small.tally.failed | twice.tally.failed | whole.tally.failed
    assert {label.split(",")[1] for label in whole.tally.done} == {" 2 epochs of 3 steps"}


def test_the_table_holds_what_the_records_hold(work, done):
    rows, records = table_of(work.results / NAME), files(work)
    wanted = [(row, name) for row in ROWS for name in METHODS]
    assert [row["method"] for row in rows] == [*TITLES, *TITLES]
    for (row, name), line in zip(wanted, rows, strict=True):
        runs = {seed: records[row, name, seed] for seed in (0, 1) if (row, name, seed) in records}
        errors = {seed: 1 - epochs[-1]["test_accuracy"] for seed, (_, epochs) in runs.items()}
        assert int(line["labels"]) == int(row.rpartition("-")[2])
        assert int(line["n"]) == len(runs) == (2 if name in TWICE.methods else 1)
        assert float(line["error_mean"]) == pytest.approx(statistics.fmean(errors.values()))
        spread = statistics.stdev(errors.values()) if len(errors) > 1 else None
        assert line["error_std"] == ("" if spread is None else str(spread))
        assert {head["few_labels"]["steps"] for head, _ in runs.values()} == {6}
        assert line["steps"] == "6"
        for other in (BASE, "randaugment", "random"):
            theirs = {s: 1 - records[row, other, s][1][-1]["test_accuracy"] for s in runs
                      if (row, other, s) in records}  # fmt: skip
            differences = [errors[seed] - theirs[seed] for seed in theirs]
            key = f"over_{other.replace('-', '_')}"
            if other == name:
                assert line[f"{key}_mean"] == ""
            else:
                assert float(line[f"{key}_mean"]) == pytest.approx(statistics.fmean(differences))
                assert line[f"{key}_n"] == str(len(differences))
    assert len({line["error_mean"] for line in rows}) > 2  # or the table could mix its cells up


def test_what_is_printed_is_the_table(work, done):
    text = (work.results / NAME / "table.md").read_text()
    for line in table_of(work.results / NAME):
        mean = f"{100 * float(line['error_mean']):.2f}"
        error = f"{mean} ± {100 * float(line['error_std']):.2f}" if line["error_std"] else mean
        start = f"| {line['labels']} | {line['method']} | — | — | {error} | {line['n']} | 6 |"
        assert start in text


def test_methods_share_the_split_of_their_seed(work, done):
    """As a record says, as the run's file says, and as the seed alone says."""
    for (row, name, seed), (head, _) in files(work).items():
        job = TrainJob(recipe_of(row, name, seed, WHOLE))
        given = json.loads((job.folder(work) / "split.json").read_text())["labelled"]
        data, _ = Shelf(work.data).get(job.recipe)
        few = head["few_labels"]
        assert list(draw_split(data, job.recipe.labels, seed).labelled) == given
        assert few["split"] == split_mark(given)
        assert (few["labels"], few["unlabelled"], few["seed"]) == (len(given), 150, seed)
    marks = {
        (row, seed): h["few_labels"]["split"] for (row, _, seed), (h, _) in files(work).items()
    }
    assert len(set(marks.values())) == 4  # two rows, two seeds


def test_records_hold_both_losses(work, done):
    for head, epochs in files(work).values():
        weight = head["recipe"]["unlabelled_weight"]
        for epoch in epochs:
            both = epoch["labelled_loss"] + weight * epoch["unlabelled_loss"]
            assert epoch["loss"] == pytest.approx(both, rel=1e-4)
            assert epoch["confident"] == 1.0
    assert sum(path.stat().st_size for path in (work.results / "runs").iterdir()) < 16 * 6_000


def test_the_same_table_comes_from_the_records_alone(work, done, tmp_path):
    shutil.copytree(work.results / "runs", tmp_path / "runs")
    _, written = redraw(NAME, WHOLE, tmp_path)
    for path in written:
        if path.suffix in (".csv", ".md", ".svg"):
            assert path.read_bytes() == (work.results / NAME / path.name).read_bytes(), path.name


def test_nothing_is_repeated(work, done):
    blind = replace(work, data=work.results / "no-such-file.npz")
    again = reproduce(NAME, replace(TWICE, methods=()), replace(blind, until=time.time() - 1))
    assert again.tally.done == []
    assert again.tally.end is End.TIME_UP  # the second seed of five methods is missing
    assert reproduce(NAME, WHOLE, blind).tally.skipped == 14


def test_a_run_that_is_stopped_goes_on_to_the_same_record(work, done, tmp_path):
    job = TrainJob(recipe_of(ROWS[0], "divaug", 0, WHOLE))
    late = Work(tmp_path / "runs", tmp_path / "results", work.data, "cpu", until=time.time() - 1)
    shelf = Shelf(work.data)
    assert [job.execute(late, shelf) for _ in range(2)] == [End.TIME_UP] * 2
    assert job.execute(replace(late, until=None), shelf) is End.FINISHED
    found, whole = (read_store(one.results).runs[job.hash] for one in (late, work))
    assert found.few_labels == whole.few_labels
    timeless = [[replace(e, seconds=0.0) for e in run.epochs] for run in (found, whole)]
    assert timeless[0] == timeless[1]


def test_the_command_draws_runs_of_any_length_and_names_their_steps(tmp_path):
    """Nobody says for how many epochs: the records do."""
    for accuracy, name in (
        (0.92, BASE),
        (0.91, "randaugment"),
        (0.925, "random"),
        (0.93, "divaug"),
    ):
        save(tmp_path, made_semi_run(name, 20, accuracy))
    save(tmp_path, made_semi_run("divaug", 200, 0.94))
    words = ["reproduce", NAME, "--from", str(tmp_path), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0
    assert "Not the paper's schedule" in result.output
    text = (tmp_path / "out" / "table.md").read_text()
    for line in (
        "| 1,000 | RandAugment, authors' draw | 7.37 ± 0.15 | 200,000 | —, not run | 0 | 200,000 |",
        "| 1,000 | DivAug (k-means++) | 6.94 ± 0.12 | 200,000 | 6.00 | 1 | 200,000 | — |",
        "| against RandAugment, authors' draw | against RandAugment | against random |",
        "| 1,000 | RandAugment, authors' draw | 7.37 ± 0.15 | 200,000 | 8.00 | 1 | 20,000 | — |"
        " -1.00 (n = 1) | +0.50 (n = 1) |",
        "| 1,000 | RandAugment | — | — | 9.00 | 1 | 20,000 | +1.00 (n = 1) | — | +1.50 (n = 1) |",
        "| 1,000 | random 2 of 4 | — | — | 7.50 | 1 | 20,000 | -0.50 (n = 1) | -1.50 (n = 1) | — |",
        "| 1,000 | DivAug (k-means++) | 6.94 ± 0.12 | 200,000 | 7.00 | 1 | 20,000 | -1.00 (n = 1) |"
        " -2.00 (n = 1) | -0.50 (n = 1) |",
        "| 4,000 | DivAug (k-means++) | 5.40 ± 0.12 | 200,000 | —, not run | 0 | 200,000 |",
    ):
        assert line in text
    assert "Not the paper's schedule: runs of 20,000 steps stand beside its 200,000." in text
    # Controls stand beside runs, done or not; where nothing was run only the paper's numbers do.
    assert "| 1,000 | RandAugment | — | — | —, not run | 0 | 200,000 |" in text
    assert "| 4,000 | RandAugment |" not in text
    by_name = outcome_of(tmp_path, Options(epochs=200, methods=("randaugment", "divaug")))
    assert [row["n"] for row in by_name.sheets[0].rows][:2] == [0, 1]
    names = by_name.sheets[0].table().columns
    assert not any(name.startswith("against") for name in names)  # with nothing to compare
    # Whoever names a length gets that alone.
    asked = outcome_of(tmp_path, Options(epochs=200))
    assert {row["steps"] for row in asked.sheets[0].rows} == {200_000}
    assert not any("schedule" in sentence for sentence in asked.sentences)


def outcome_of(folder, options=None, name=NAME):
    """The tables without their files."""
    return TARGETS[name].outcome(options or Options(), read_store(folder))


def verdicts(folder):
    claims = next(sheet for sheet in outcome_of(folder).sheets if sheet.name == "claims")
    return [(row["holds"], row["numbers"]) for row in claims.rows]


def test_the_papers_claims_are_judged_seed_by_seed(tmp_path):
    assert [holds for holds, _ in verdicts(tmp_path)] == [NOT_RUN] * 4
    small = (-0.001, 0.0, 0.001)
    for seed, more in enumerate(small):
        save(tmp_path, made_semi_run(BASE, 20, 0.9, seed=seed))
        save(tmp_path, made_semi_run("divaug", 20, 0.92 + more, seed=seed))
    save(tmp_path, made_semi_run(BASE, 20, 0.95, "uda-paper-4000"))
    save(tmp_path, made_semi_run("divaug", 20, 0.94, "uda-paper-4000"))
    few, some, many, trend = verdicts(tmp_path)
    confined = "after 20,000 steps, not 200,000"
    assert few == (f"yes, {confined}", "2.00 ± 0.10 points less after 20,000 steps, n = 3")
    assert some == (NOT_RUN, "")
    assert many == (f"undecided, {confined}", "1.00 points more after 20,000 steps, n = 1")
    assert trend == (
        f"undecided, {confined}",
        "1,000 labels: +2.00 (n = 3), 4,000 labels: -1.00 (n = 1); after 20,000 steps",
    )
    for seed, more in enumerate(small):
        save(tmp_path, made_semi_run(BASE, 20, 0.95, "uda-paper-4000", seed=seed))
        save(tmp_path, made_semi_run("divaug", 20, 0.94 + more, "uda-paper-4000", seed=seed))
    words = [holds.removesuffix(f", {confined}") for holds, _ in verdicts(tmp_path)]
    assert words == ["yes", NOT_RUN, "no", "yes"]
    for seed, more in enumerate(small):
        save(tmp_path, made_semi_run("divaug", 20, 0.98 + more, "uda-paper-2000", seed=seed))
        save(tmp_path, made_semi_run(BASE, 20, 0.9, "uda-paper-2000", seed=seed))
    assert verdicts(tmp_path)[3][0] == f"no, {confined}"


def test_a_verdict_is_not_taken_for_one_at_the_papers_length(tmp_path):
    """Only the sign is tested; the paper's number and its length stand apart from the verdict."""
    for epochs in (20, 200):
        for seed, more in enumerate((-0.0001, 0.0, 0.0001)):
            save(tmp_path, made_semi_run(BASE, epochs, 0.9, seed=seed))
            save(tmp_path, made_semi_run("divaug", epochs, 0.9011 + more, seed=seed))
    claims = next(sheet for sheet in outcome_of(tmp_path).sheets if sheet.name == "claims")
    found = [row for row in claims.rows if row["claim"].startswith("with 1,000 labels")]
    assert {row["claim"] for row in found} == {
        "with 1,000 labels DivAug errs less than RandAugment (the paper: by 0.43 points after "
        "200,000 steps)"
    }
    assert [(row["holds"], row["numbers"]) for row in found] == [
        ("yes", "0.11 ± 0.01 points less after 200,000 steps, n = 3"),
        (
            "yes, after 20,000 steps, not 200,000",
            "0.11 ± 0.01 points less after 20,000 steps, n = 3",
        ),
    ]


def test_the_figure_shows_what_the_table_says(tmp_path):
    """Its lines end at the mean errors of the table, and say of how many runs."""
    for seed, accuracy in enumerate((0.90, 0.94)):
        save(tmp_path, made_semi_run("divaug", 20, accuracy, seed=seed))
    save(tmp_path, made_semi_run(BASE, 20, 0.91))
    (drawing,) = outcome_of(tmp_path).drawings
    assert "uda-paper with 1,000 labels, 20,000 steps, mean over n seeds" in drawing.title
    ends = {line.get_label(): line.get_xydata()[-1] for line in drawing.figure.axes[0].lines}
    assert {label.rpartition(" (")[2]: list(end) for label, end in ends.items()} == {
        "n = 1)": pytest.approx([20_000, 9.0]),
        "n = 2)": pytest.approx([20_000, 8.0]),
    }


def test_plain_randaugment_is_told_beside_a_claim_and_decides_none(tmp_path):
    for seed, more in enumerate((-0.001, 0.0, 0.001)):
        save(tmp_path, made_semi_run("randaugment", 20, 0.9, seed=seed))
        save(tmp_path, made_semi_run("divaug", 20, 0.92 + more, seed=seed))
    assert verdicts(tmp_path)[0] == (NOT_RUN, "")
    for seed in range(3):
        save(tmp_path, made_semi_run(BASE, 20, 0.93, seed=seed))
    assert verdicts(tmp_path)[0] == (
        "no, after 20,000 steps, not 200,000",
        "1.00 ± 0.10 points more after 20,000 steps, n = 3; "
        "than plain RandAugment 2.00 ± 0.10 points less, n = 3",
    )


def test_the_papers_numbers_for_randaugment_are_of_the_authors_draw():
    for row, error in (("1000", 7.37), ("2000", 6.50), ("4000", 5.44)):
        assert semi_supervised(f"uda-paper-{row}", BASE).error == error
        assert semi_supervised(f"uda-paper-{row}", "randaugment") is None


def test_the_authors_draw_is_a_method_of_this_table_alone():
    assert [name for name, target in TARGETS.items() if BASE in target.methods] == [NAME]


def test_other_families_have_tables_of_their_own_and_no_number_of_the_paper(tmp_path):
    save(tmp_path, made_semi_run("divaug", 20, 0.95, "fixmatch-1000"))
    outcome = outcome_of(tmp_path)
    assert [sheet.name for sheet in outcome.sheets] == ["uda-paper", "fixmatch", "claims", "runs"]
    rows = {row["method"]: row for row in outcome.sheets[1].rows}
    assert rows["DivAug (k-means++)"]["error"].mean == pytest.approx(0.05)
    assert {row["paper"] for row in rows.values()} == {None}
    assert not any(row["n"] for row in outcome.sheets[0].rows)


def test_another_number_of_labels_has_no_number_of_the_paper(tmp_path):
    warmup = relabel(recipe("uda-paper-1000-divaug"), 500).warmup
    save(tmp_path, made_semi_run("divaug", 20, 0.9, labels=500, warmup=warmup))
    given = Options(("uda-paper-1000",), ("divaug",), changes=("labels=500",))
    (row,) = outcome_of(tmp_path, given).sheets[0].rows
    assert (row["labels"], row["n"], row["paper"]) == (500, 1, None)


def test_supervised_tables_hold_no_run_with_few_labels(tmp_path):
    save(tmp_path, made_semi_run())
    assert [name for name in TARGETS if not outcome_of(tmp_path, name=name).empty] == [NAME]
    save(tmp_path, made_run(200))
    assert outcome_of(tmp_path, name="supervised").sheets[0].name.startswith("cifar10-")
    assert "uda with 1,000 labels, 20 epochs" in read_store(tmp_path).describe()


def test_every_row_has_all_methods_in_one_setting():
    """But for the augmenter all recipes of a row are alike, whatever the number of views."""
    for row in FEW_LABELS_ROWS:
        alike = {
            cell_hash(replace(recipe_of(row, name, 0, Options()), augmenter="none"))
            for name in METHODS
        }
        assert len(alike) == 1
    assert TARGETS[NAME].rows == ("uda-paper-1000", "uda-paper-2000", "uda-paper-4000")
    paper = recipe_of("uda-paper-2000", "divaug", 0, Options())
    assert paper == recipe("uda-paper-2000-divaug")
    assert paper.epochs * paper.epoch_steps == 200_000


def test_a_small_row_is_the_papers_setting_on_shipped_data():
    found = recipe_of(ROWS[0], "divaug", 0, Options()).differences(FAMILIES["uda-paper"])
    assert set(found) == {
        "dataset", "model", "epochs", "epoch_steps", "labels", "warmup", "unlabelled_batch_size",
        "evaluate_every", "checkpoint_every", "log_every", "precision",
    }  # fmt: skip


def test_a_record_with_few_labels_is_read_back_as_it_was_written():
    text = to_text(made_semi_run())
    found = from_text(text)
    assert to_text(found) == text
    assert found.few_labels == made_semi_run().few_labels
    assert (found.last.unlabelled_loss, found.last.confident) == (0.1, 0.75)
    assert "few_labels" not in to_text(made_run())
    assert math.isnan(from_text(to_text(made_run())).last.confident)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"labels": 4000}, "4000 labels"),
        ({"seed": 3}, "seed 3"),
        ({"steps": 200_000}, "must have 20000 steps"),
        (None, "a split goes with unlabelled images"),
    ],
)
def test_a_record_at_odds_with_itself_is_refused(change, named):
    """A shortened run cannot be made to look like a whole one by its line alone."""
    head, *rest = to_text(made_semi_run()).splitlines()
    content = json.loads(head)
    content["few_labels"] = None if change is None else content["few_labels"] | change
    with pytest.raises(ValueError, match=named):
        from_text("\n".join([json.dumps(content), *rest]))


def test_different_splits_under_one_seed_are_refused(tmp_path):
    save(tmp_path, made_semi_run())
    save(tmp_path, made_semi_run(seed=1))
    read_store(tmp_path)  # another seed may have another split
    other = made_semi_run("random")
    save(tmp_path, replace(other, few_labels=replace(other.few_labels, split="f" * 16)))
    with pytest.raises(ValueError, match=r"seed 0 and 1000 labels .* different splits"):
        read_store(tmp_path)


def test_a_split_that_no_seed_drew_is_refused(work, tmp_path):
    job = TrainJob(recipe_of(ROWS[0], "random", 0, replace(WHOLE, epochs=1)))
    here = Work(tmp_path / "runs", tmp_path / "results", work.data, "cpu", until=time.time() - 1)
    assert job.execute(here, Shelf(work.data)) is End.TIME_UP
    path = job.folder(here) / "split.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seed": None}))
    with pytest.raises(ValueError, match="not drawn from a seed"):
        job.execute(replace(here, until=None), Shelf(work.data))


def test_estimates_come_from_semi_supervised_steps(tmp_path):
    """20 epochs of 1,000 steps; S views without scores cost less by scores and choice."""
    paper = recipe("uda-paper")
    case = {
        "recipe": paper.to_dict(),
        "step_ms": {"median": 20.0},
        "parts_ms": {"score": 6.0, "select": 1.0},
        "environment": {"gpu": "Some GPU"},
    }
    steps = tmp_path / "semi-step.json"
    steps.write_text(json.dumps({"cases": [case]}))
    there = Estimator(Store(), "cpu", "Some GPU", tmp_path / "none.json", steps)

    def seconds(row, name):
        return there.seconds(TrainJob(recipe_of(row, name, 0, Options(epochs=20))))

    assert seconds("uda-paper-1000", "divaug") == pytest.approx(400)
    assert seconds("uda-paper-4000", "divaug") == pytest.approx(400)
    assert seconds("uda-paper-1000", "random") == pytest.approx(260)
    assert seconds("uda-paper-1000", "randaugment") is None
    assert seconds("fixmatch-1000", "divaug") is None  # another batch and one pass


def test_the_list_without_timings_says_unknown_and_who_knows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where nobody has timed anything
    work = Work(tmp_path / "runs", tmp_path / "results", device="cpu")
    table = list_target(NAME, Options(("uda-modern-1000",), ("divaug", "random"), epochs=20), work)
    assert [row[1:4] for row in table.rows] == [
        (f"train uda-modern-1000-{n}, 20 epochs of 1,000 steps, seed 0", "to do", "unknown")
        for n in ("random", "divaug")
    ]
    assert "bench step --objective uda" in table.notes[1]
