"""Every target on a small part of the shipped data: runs, tables, figures, pages, and once more."""

import csv
import hashlib
import html
import json
import shutil
import statistics
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from divaug.lab.cli import app
from divaug.lab.examine import WAYS, Candidates, Choice, Examination
from divaug.lab.reproduce import TARGETS, Work, list_target, read_store, redraw, reproduce
from divaug.lab.reproduce.estimates import STEP_FILE, Estimator
from divaug.lab.reproduce.examination_record import ExaminationRecord
from divaug.lab.reproduce.jobs import TrainJob
from divaug.lab.reproduce.methods import METHODS, RULES
from divaug.lab.reproduce.options import DEMO_ROW, PAPER_ROW, Options, recipe_of
from divaug.lab.reproduce.sheets import NOT_RUN
from divaug.lab.reproduce.store import Store, save
from divaug.lab.reproduce.summaries import Summary
from divaug.lab.reproduce.timing import this_machine
from divaug.lab.reproduce.writing import markdown
from tests.reproduction_helpers import FEW_LABELS, OPTIONS, made_run, write_data

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
# Name → its figures.
FIGURES = {
    "supervised": {f"accuracy-{DEMO_ROW}", f"rules-{DEMO_ROW}"},
    "random-baseline": {f"rules-{DEMO_ROW}", f"choice-{DEMO_ROW}"},
    "evolution": {"evolution-operations", "evolution-probability"},
    "choice": {"kept-random", "kept-divaug"},
    "diversity": {"diversity"},
    "affinity": {"affinity", "loss-diversity"},
    "rotate": {"rotate", "rotate-accuracy", "rotate-diversity"},
    "cost": {"cost"},
    "equal-cost": {"equal-cost"},
    "semi-supervised": {"error-fashion_mnist_small-uda-50-6"},
}


def options_of(name):
    base = FEW_LABELS if name == "semi-supervised" else OPTIONS
    return replace(base, methods=METHODS_RUN[name], seeds=2 if name == "random-baseline" else 1)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    root = tmp_path_factory.mktemp("reproduction")
    return Work(root / "runs", root / "results", write_data(root / "small.npz"), "cpu")


@pytest.fixture(scope="module")
def done(work):
    """Every target, one after the other, in one folder of records."""
    return {name: reproduce(name, options_of(name), work) for name in METHODS_RUN}


def read_csv(work, target, name):
    with (work.results / target / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def epochs_of(work, objectives=("supervised",)):
    """Hash → head and epochs, straight from the files."""
    found = {}
    for path in (work.results / "runs").iterdir():
        head, *epochs = (json.loads(line) for line in path.read_text().splitlines())
        if head["recipe"]["objective"] in objectives:
            found[head["hash"]] = (head, epochs)
    return found


def last_accuracies(work, augmenter, epochs=2):
    """Seed → test accuracy of the last epoch, straight from the files."""
    return {
        head["recipe"]["seed"]: lines[-1]["test_accuracy"]
        for head, lines in epochs_of(work).values()
        if (head["recipe"]["augmenter"], head["recipe"]["epochs"]) == (augmenter, epochs)
    }


def header_of(sheet):
    return tuple(sheet.csv().splitlines()[0].split(","))


def test_every_target_is_run_here():
    assert set(METHODS_RUN) == set(FIGURES) == set(TARGETS)


@pytest.mark.parametrize("name", METHODS_RUN)
def test_a_target_ends_in_tables_figures_and_a_page(name, work, done):
    result = done[name]
    assert not result.tally.failed
    assert not result.outcome.empty
    folder = work.results / name
    written = {path.name for path in folder.iterdir()}
    assert {path.name for path in result.files} == written
    figures = {f"{figure}.{kind}" for figure in FIGURES[name] for kind in ("svg", "png")}
    assert {file for file in written if file.endswith(("svg", "png"))} == figures
    for figure in FIGURES[name]:
        assert ET.parse(folder / f"{figure}.svg").getroot().tag.endswith("svg")
        assert (folder / f"{figure}.png").stat().st_size > 5_000
    page = (folder / "index.html").read_text()
    assert TARGETS[name].about
    assert f"<p>{html.escape(TARGETS[name].about)}</p>".replace("&#x27;", "&#39;") in page
    assert page.count("data:image/png;base64,") == len(FIGURES[name])
    assert "http" not in page.replace('http-equiv="', "")
    assert "<script" not in page
    assert "Not the paper" in page
    text = (folder / "table.md").read_text()
    for sheet in result.outcome.sheets:
        assert f"{sheet.name}.csv" in written
        if sheet.name != "runs":
            assert f"**{sheet.title}**" in text
    for drawing in result.outcome.drawings:
        assert f"**{drawing.title}**\n\n![{drawing.alt}]({drawing.name}.svg)" in text


@pytest.mark.parametrize("name", METHODS_RUN)
def test_programs_find_the_same_columns_whatever_was_run(name, done):
    ran = {sheet.name: header_of(sheet) for sheet in done[name].outcome.sheets}
    empty = TARGETS[name].outcome(options_of(name), Store())
    for header in ran.values():
        assert len(set(header)) == len(header)
    assert {sheet.name: header_of(sheet) for sheet in empty.sheets}.items() <= ran.items()


@pytest.mark.parametrize("name", METHODS_RUN)
def test_the_same_table_comes_from_the_records_alone(name, work, done, tmp_path):
    """No data, no runs: only the folder of records, somewhere else."""
    for part in ("runs", "measurements", "examinations", "costs"):
        shutil.copytree(work.results / part, tmp_path / "results" / part)
    outcome, files = redraw(name, options_of(name), tmp_path / "results")
    assert outcome.sheets == redraw(name, options_of(name), work.results)[0].sheets
    assert {path.name for path in files} == {path.name for path in (work.results / name).iterdir()}
    for path in files:
        if path.suffix in (".csv", ".md", ".svg"):
            assert path.read_bytes() == (work.results / name / path.name).read_bytes(), path.name


@pytest.mark.parametrize("name", METHODS_RUN)
def test_nothing_is_repeated(name, work, done):
    before = {path: path.stat().st_mtime_ns for path in work.results.glob("*/*.json*")}
    blind = replace(work, data=work.results / "no-such-file.npz")  # nobody needs the data
    again = reproduce(name, options_of(name), blind)
    assert again.tally.done == []
    assert again.tally.failed == {}
    assert {path: path.stat().st_mtime_ns for path in work.results.glob("*/*.json*")} == before


def test_targets_share_runs(done):
    assert done["evolution"].tally.done == []
    assert not [label for label in done["diversity"].tally.done if label.startswith("train")]
    assert [label for label in done["random-baseline"].tally.done if "seed 0" in label] == []


def test_the_table_of_accuracies_holds_the_last_epochs(work, done):
    redraw("supervised", OPTIONS, work.results)
    rows = read_csv(work, "supervised", DEMO_ROW)
    titles = [METHODS[name].title(recipe_of(DEMO_ROW, name, 0, OPTIONS)) for name in METHODS]
    assert [row["method"] for row in rows] == titles
    base = last_accuracies(work, "default")
    for name, row in zip(METHODS, rows, strict=True):
        found = last_accuracies(work, name)
        assert int(row["n"]) == len(found) == (2 if name in RULES else 1)
        assert float(row["accuracy_mean"]) == pytest.approx(statistics.fmean(found.values()))
        if len(found) > 1:
            spread = statistics.stdev(found.values())
            assert float(row["accuracy_std"]) == pytest.approx(spread)
        else:
            assert row["accuracy_std"] == ""
        if name != "default":
            assert float(row["over_default_mean"]) == pytest.approx(found[0] - base[0])
            assert row["over_default_n"] == "1"


def test_the_rules_are_compared_seed_by_seed(work, done):
    rows = read_csv(work, "random-baseline", "rules")
    random = last_accuracies(work, "random")
    for name, row in zip(RULES, rows, strict=True):
        found = last_accuracies(work, name)
        assert set(found) == {0, 1}
        losses = [
            lines[-1]["loss"]
            for head, lines in epochs_of(work).values()
            if (head["recipe"]["augmenter"], head["recipe"]["epochs"]) == (name, 2)
        ]
        assert float(row["loss_mean"]) == pytest.approx(statistics.fmean(losses))
        if name == "random":
            assert row["choice_mean"] == row["over_random_mean"] == ""
            continue
        differences = [found[seed] - random[seed] for seed in (0, 1)]
        assert float(row["over_random_mean"]) == pytest.approx(statistics.fmean(differences))
        assert float(row["over_random_std"]) == pytest.approx(statistics.stdev(differences))
        ratios = [
            statistics.fmean(
                line["kept"]["diversity_kept"] / line["kept"]["diversity_all"] for line in lines
            )
            for head, lines in epochs_of(work).values()
            if head["recipe"]["augmenter"] == name and head["recipe"]["epochs"] == 2
        ]
        assert float(row["choice_mean"]) == pytest.approx(statistics.fmean(ratios))
    # The exact choice is the best there is, and any choice beats none.
    choice = {name: float(row["choice_mean"] or 1) for name, row in zip(RULES, rows, strict=True)}
    assert choice["random"] < choice["divaug"] < choice["divaug-exact"]
    assert choice["divaug-greedy"] < choice["divaug-exact"]


def test_diversity_is_what_was_measured(work, done):
    rows = {row["method"]: row for row in read_csv(work, "diversity", "diversity")}
    files = (work.results / "measurements").glob("*-by-*-none-*.json")
    measured = {one["augmenter"]: one["values"] for one in map(json.loads, map(_text, files))}
    run = METHODS_RUN["diversity"]
    for name in run:
        row = rows[title_of(name)]
        assert float(row["variance_mean"]) == measured[name]["variance_diversity"]
        assert measured[name]["views"] == 4
        assert measured[name]["train_images"] == 60
        assert measured[name]["epochs"] == (2 if name == "pba" else 1)  # the whole schedule
    correlation = read_csv(work, "diversity", "correlations")[1]
    assert (correlation["methods"], correlation["n"]) == ("all", "5")
    assert -1 <= float(correlation["pearson"]) <= 1
    by_views = read_csv(work, "diversity", "correlations")[-2]
    assert (by_views["what"], by_views["methods"]) == ("number of views and gain", "all")
    views, gains = [1, 1, 1, 4, 4], [float(rows[title_of(n)]["gain_mean"]) for n in run]
    assert float(by_views["pearson"]) == pytest.approx(np.corrcoef(views, gains)[0, 1])
    verdicts = {row["claim"]: row["holds"] for row in read_csv(work, "diversity", "claims")}
    assert verdicts["RandAugment has more than AutoAugment and Fast AutoAugment"] == NOT_RUN


def title_of(name):
    return METHODS[name].title(recipe_of(DEMO_ROW, name, 0, OPTIONS))


def _text(path):
    return path.read_text()


def test_a_measurement_says_which_network_it_asked(work, done):
    (folder,) = work.runs.glob(f"{DEMO_ROW}-none-seed0-*")
    weights = hashlib.sha256(next(folder.glob("checkpoints/*/model.safetensors")).read_bytes())
    started = [start["started"] for start in json.loads(_text(folder / "environment.json"))]
    for path in (work.results / "measurements").glob("*-by-*-none-*.json"):
        found = json.loads(path.read_text())["network"]
        assert found["weights"] == weights.hexdigest()[:16]
        assert found["accuracy"] == last_accuracies(work, "none")[0]
        assert [start["started"] for start in found["starts"]] == started
    # It is that of the run in the tables, so nothing more is said of it.
    told = _text(work.results / "diversity" / "table.md")
    assert "Accuracy of the asked networks" in told
    assert "Of another training" not in told


def test_the_choice_is_what_was_examined(work, done):
    assert [label[:7] for label in done["choice"].tally.done] == ["examine"] * 2
    files = (work.results / "examinations").glob("*-divaug-seed0-epoch2-*.json")
    (values,) = (json.loads(_text(path))["values"] for path in files)
    assert values["images"] == 60
    kept = {(c["space"], c["way"], c["rule"]): c for c in values["choices"]}
    chance, papers = (kept["paper", "float32", rule] for rule in ("uniform", "kmeans++"))
    lower = kept["paper", "bfloat16", "kmeans++"]

    def row_of(sheet, **wanted):
        wanted |= {"network": "DivAug (k-means++)"}
        rows = read_csv(work, "choice", sheet)
        (found,) = [r for r in rows if all(r[key] == value for key, value in wanted.items())]
        assert (found["epochs"], found["n"]) == ("2", "1")
        return found

    every = {one["space"]: one for one in values["candidates"]}
    row = row_of("rules", rule="DivAug (k-means++)")
    expected = {
        "diversity": papers["diversity"],
        "over_chance": papers["diversity"] / chance["diversity"],
        "reach": papers["diversity"] / every["paper"]["best"],
        "batch": papers["batch_diversity"],
        "batch_over_chance": papers["batch_diversity"] / chance["batch_diversity"],
        "right": papers["accuracy"],
    }
    assert {key: float(row[f"{key}_mean"]) for key in expected} == pytest.approx(expected)
    row = row_of("scoring", rule="DivAug (k-means++)", way="bfloat16")
    expected = {
        "agreement": lower["agreement"],
        "unrelated": lower["unrelated"],
        "diversity": lower["diversity"] / papers["diversity"] - 1,
        "batch": lower["batch_diversity"] / papers["batch_diversity"] - 1,
    }
    assert {key: float(row[f"{key}_mean"]) for key in expected} == pytest.approx(expected, abs=1e-9)
    row = row_of("spaces", space="released")
    released, by_chance = (kept["released", "float32", r] for r in ("kmeans++", "uniform"))
    expected = {
        "all": every["released"]["diversity"],
        "kept": released["diversity"],
        "over_chance": released["diversity"] / by_chance["diversity"],
        "right": every["released"]["accuracy"],
        "kept_right": released["accuracy"],
        "settled": every["released"]["settled"],
    }
    assert {key: float(row[f"{key}_mean"]) for key in expected} == pytest.approx(expected)
    assert len(read_csv(work, "choice", "rules")) == 2 * 4
    assert len(read_csv(work, "choice", "scoring")) == 2 * 2 * 3
    assert len(read_csv(work, "choice", "spaces")) == 2 * 2


def examined(epochs, seed=0, shift=0.0, images=1000):
    """A record that no run wrote; diversities rise with `shift`."""
    recipe = recipe_of(PAPER_ROW, "divaug", seed, Options())
    choices = [
        Choice("paper", way, rule, 0.1 + 0.01 * i + shift, 0.2, 0.8 - shift, 1.0, 0.5)
        for way in WAYS
        for i, rule in enumerate(("uniform", "kmeans++", "greedy", "exact"))
    ]
    every = Candidates("paper", 0.12, 0.11, 0.13, 0.85, 0.3)
    values = Examination(images, (every,), tuple(choices))
    return ExaminationRecord(recipe, epochs, values, 50_000, {"gpu": "Some GPU"}, "0" * 16)


def test_networks_of_one_age_are_summed_up_and_the_oldest_are_drawn():
    records = [
        examined(100, 1, 0.02), examined(100), examined(200, shift=0.04), examined(200, 1, 0.04, 50)
    ]  # fmt: skip
    store = Store(examinations={one.hash: one for one in records})
    outcome = TARGETS["choice"].outcome(Options(), store)
    rows = [row for row in outcome.sheets[0].rows if row["rule"] == "random 4 of 8"]
    # Networks that were shown other numbers of images are not averaged.
    assert [(row["epochs"], row["images"], row["seeds"], row["n"]) for row in rows] == [
        (100, 1000, "0, 1", 2), (200, 1000, "0", 1), (200, 50, "1", 1)
    ]  # fmt: skip
    assert rows[0]["diversity"].mean == pytest.approx(0.11)
    assert rows[0]["diversity"].std == pytest.approx(0.02 / 2**0.5)
    assert rows[0]["over_chance"] == Summary(1.0, 0.0, 2)
    (drawing,) = outcome.drawings
    assert "for 200 epochs (n = 2)" in drawing.title
    (axes,) = drawing.figure.axes
    places = [float(line.get_xdata()[0]) for line in axes.lines if len(line.get_xdata()) == 1]
    assert min(places) == pytest.approx(0.14)


def test_a_ratio_to_nothing_is_none_and_not_called_missing():
    one = examined(200, shift=-0.1)  # chance keeps no diversity at all
    outcome = TARGETS["choice"].outcome(Options(), Store(examinations={one.hash: one}))
    table = outcome.sheets[0].table()
    for row in table.rows:
        assert row[table.columns.index("÷ chance")] == "—"
        assert NOT_RUN not in row


def trained(augmenter, seed, space, accuracy):
    """A record that no run wrote, with the paper's recipe for CIFAR-10 but for its space."""
    recipe = replace(recipe_of(PAPER_ROW, augmenter, seed, Options()), space=space)
    run = made_run(recipe.epochs)
    last = replace(run.epochs[-1], test_accuracy=accuracy)
    return replace(run, recipe=recipe, epochs=(*run.epochs[:-1], last))


def test_training_with_other_ranges_stands_beside_training_with_the_papers():
    runs = [
        *(trained("random", seed, "paper", 0.97) for seed in (0, 1, 2)),
        *(trained("divaug", seed, "paper", 0.971 + 0.001 * seed) for seed in (0, 1)),
        *(trained("random", seed, "released", 0.96 + 0.001 * seed) for seed in (0, 1, 2)),
        *(trained("divaug", seed, "released", 0.95 + 0.001 * seed) for seed in (0, 1, 2)),
        trained("random", 0, "uda", 0.5),  # no space that examinations look at
    ]
    one = examined(200)
    store = Store(runs={run.hash: run for run in runs}, examinations={one.hash: one})
    outcome = TARGETS["choice"].outcome(Options(), store)
    (sheet,) = [sheet for sheet in outcome.sheets if sheet.name == "training"]
    papers, released = sheet.rows
    assert (papers["space"], papers["chance_runs"], papers["choice_runs"]) == ("paper", 3, 2)
    assert papers["chance"].mean == pytest.approx(0.97)
    assert papers["difference"].mean == pytest.approx(0.0015)  # of seeds 0 and 1, 2 has no partner
    assert (papers["pairs"], papers["holds"]) == (2, "undecided")
    assert (released["space"], released["pairs"], released["holds"]) == ("released", 3, "no")
    assert released["difference"].mean == pytest.approx(-0.01)
    (listed,) = [sheet for sheet in outcome.sheets if sheet.name == "runs"]
    assert {row["hash"] for row in listed.rows} == {run.hash for run in runs[:-1]}
    # Asked for by name, the other space is the first, and stands there once.
    asked = TARGETS["choice"].outcome(Options(changes=("space=released",)), store)
    (sheet,) = [sheet for sheet in asked.sheets if sheet.name == "training"]
    assert [row["space"] for row in sheet.rows] == ["released", "paper"]
    assert sheet.rows[0] == released


def test_spaces_that_nobody_trained_with_are_shown_as_not_run():
    one = examined(200)
    outcome = TARGETS["choice"].outcome(Options(), Store(examinations={one.hash: one}))
    (sheet,) = [sheet for sheet in outcome.sheets if sheet.name == "training"]
    assert [row[0] for row in sheet.table().rows] == ["paper", "released"]
    assert all(row[1] == row[3] == row[5] == row[8] == NOT_RUN for row in sheet.table().rows)
    assert "runs" not in [sheet.name for sheet in outcome.sheets]


def test_loss_diversity_is_the_methods_own_training_loss(work, done):
    rows = read_csv(work, "affinity", "affinity")
    assert [row["network"] for row in rows] == ["no augmentation"] * 3 + [
        "default augmentation"
    ] * 3
    lines = [
        lines
        for head, lines in epochs_of(work).values()
        if (head["recipe"]["augmenter"], head["recipe"]["seed"]) == ("randaugment", 0)
        and head["recipe"]["epochs"] == 2
    ]
    own = [row for row in rows if row["method"] == "RandAugment"]
    assert [float(row["own_loss_mean"]) for row in own] == [lines[0][-1]["loss"]] * 2
    assert own[0]["affinity_mean"] != own[1]["affinity_mean"]


def test_the_case_study_has_a_line_for_each_probability(work, done):
    rows = read_csv(work, "rotate", "rotate")
    assert [row["p"] for row in rows] == ["0.1", "0.5", "0.9"]
    for row, name in zip(rows, METHODS_RUN["rotate"], strict=True):
        assert float(row["accuracy_mean"]) == last_accuracies(work, name)[0]
    heads = [
        head for head, _ in epochs_of(work).values() if "rotate" in head["recipe"]["augmenter"]
    ]
    assert {tuple(head["operations"]) for head in heads} == {("Rotate",)}


def test_evolution_counts_what_was_kept(work, done):
    rows = {row["operation"]: row for row in read_csv(work, "evolution", "evolution")}
    assert len(rows) == 16
    found = [
        (head["operations"], lines)
        for head, lines in epochs_of(work).values()
        if head["recipe"]["augmenter"] == "divaug" and head["recipe"]["epochs"] == 2
    ]
    assert len(found) == 2
    for name in ("Invert", "TranslateY"):
        changes = []
        for names, lines in found:
            kept = [line["kept"]["drawn"] for line in lines]
            shares = [100 * drawn[names.index(name)] / sum(drawn) for drawn in kept]
            changes.append(shares[-1] - shares[0])
        assert float(rows[name]["change_mean"]) == pytest.approx(statistics.fmean(changes))
    assert sum(float(row["first_mean"]) for row in rows.values()) == pytest.approx(100)


def test_cost_is_relative_to_randaugment(work, done):
    rows = {row["method"]: row for row in read_csv(work, "cost", "cost")}
    assert float(rows["RandAugment"]["relative"]) == 1
    costs = {c.recipe.augmenter: c for c in read_store(work.results).costs.values()}
    ratio = costs["divaug"].relative_to(costs["randaugment"])
    row = rows["DivAug (k-means++)"]
    assert float(row["relative"]) == pytest.approx(ratio)
    assert row["paper"] == ""  # the paper has it for CIFAR-10
    assert costs["divaug"].peak_bytes > costs["randaugment"].peak_bytes > 0
    parts = {row["method"]: row for row in read_csv(work, "cost", "parts")}
    assert float(parts["DivAug (k-means++)"]["score"]) > 0
    assert parts["RandAugment"]["score"] == ""


def test_every_part_of_a_step_has_a_column(work, done):
    rows = {row["method"]: row for row in read_csv(work, "cost", "parts")}
    costs = {c.recipe.augmenter: c for c in read_store(work.results).costs.values()}
    timed = set()
    for name, cost in costs.items():
        row = rows[METHODS[name].title(cost.recipe)]
        timed |= set(cost.parts_ms)
        for part, milliseconds in cost.parts_ms.items():
            assert float(row[part]) == milliseconds
    assert timed == set(next(iter(rows.values()))) - {"method"}  # and no column is always empty


def test_equal_cost_gives_the_epochs_that_divaugs_time_is_worth(work, done):
    costs = {c.recipe.augmenter: c for c in read_store(work.results).costs.values()}
    ratio = costs["divaug"].relative_to(costs["randaugment"])
    rows = {row["method"]: row for row in read_csv(work, "equal-cost", "equal-cost")}
    epochs = max(1, round(2 * ratio))
    assert int(rows["RandAugment"]["epochs"]) == epochs
    assert int(rows["DivAug (k-means++)"]["epochs"]) == 2
    found = last_accuracies(work, "randaugment", epochs)
    assert float(rows["RandAugment"]["accuracy_mean"]) == found[0]


def test_every_run_carries_where_it_came_from(work, done):
    for row in read_csv(work, "supervised", "runs"):
        assert row["hash"] in epochs_of(work)
        for key in ("machine", "precision", "versions", "commit", "command"):
            assert row[key], key


def test_records_hold_no_more_than_epochs(work, done):
    everything = epochs_of(work, ("supervised", "uda"))
    assert len(everything) == len(list((work.results / "runs").iterdir()))
    for head, lines in everything.values():
        assert len(lines) == head["recipe"]["epochs"]
        # Methods that do not choose have nothing to say about what they kept.
        assert ("kept" in lines[0]) == chooses(head["recipe"]["augmenter"])


def chooses(name):
    return name in RULES or "rotate" in name


def test_without_records_nothing_is_claimed(tmp_path):
    for name in TARGETS:
        outcome, files = redraw(name, Options(), tmp_path)
        assert outcome.empty
        assert "Nothing was run yet." in markdown(outcome)
        assert (files, list(tmp_path.iterdir())) == ([], [])
        for sheet in outcome.sheets:
            values = [value for row in sheet.rows for value in row.values()]
            assert not any(isinstance(value, Summary) for value in values)


def test_what_is_missing_is_shown_as_missing(tmp_path):
    save(tmp_path, made_run(200))
    outcome, _ = redraw("supervised", Options(), tmp_path)
    rows = {row[0]: row for row in outcome.sheets[0].table().rows}
    assert rows["DivAug (k-means++)"][1:4] == ("96.9 ± 0.1", "90.00", "1")
    assert rows["RandAugment"][1:4] == ("96.1", NOT_RUN, "0")
    assert rows["random 4 of 8"][2] == NOT_RUN


def test_a_run_with_another_setting_is_no_cell_of_the_paper(tmp_path):
    save(tmp_path, made_run(200, learning_rate=0.2))
    assert redraw("supervised", Options(), tmp_path)[0].empty


def test_the_first_seed_of_all_comes_before_the_second_of_any():
    plan = TARGETS["supervised"].plan(Options(seeds=2), Store())
    recipes = [job.recipe for job in TARGETS["supervised"].stages[0](plan)]
    assert [one.seed for one in recipes] == [0] * len(METHODS) + [1] * len(METHODS)


@pytest.mark.parametrize(("name", "networks"), [("diversity", 1), ("affinity", 2), ("rotate", 1)])
def test_each_seed_has_networks_that_measure(name, networks):
    """The spread over networks is what an order of diversities is judged by."""
    plan = TARGETS[name].plan(Options(seeds=3), Store())
    trained, measured = (stage(plan) for stage in TARGETS[name].stages)
    seeds = [job.scorer.seed for job in measured]
    assert seeds == sorted(seeds)
    assert len(measured) == 3 * networks * len(plan.methods)
    assert {job.scorer for job in measured} <= {job.recipe for job in trained}
    assert len({job.scorer for job in measured}) == 3 * networks


def test_estimates_come_from_steps_timed_on_the_same_machine(work, done, tmp_path):
    """200 epochs of 390 steps; a random choice is a DivAug that scores nothing."""
    recipe = recipe_of(PAPER_ROW, "divaug", 0, Options())
    case = {
        "recipe": recipe.to_dict(),
        "step_ms": {"median": 12.5},
        "parts_ms": {"score": 4.25, "select": 0.25},
        "environment": {"gpu": "Some GPU"},
    }
    steps = tmp_path / "step.json"
    steps.write_text(json.dumps({"cases": [case]}))
    here = Estimator(Store(), "cpu", steps=steps)
    there = Estimator(Store(), "cpu", "Some GPU", steps)
    job, other = (TrainJob(recipe_of(PAPER_ROW, n, 0, Options())) for n in ("divaug", "random"))
    assert there.seconds(job) == pytest.approx(975)
    assert there.seconds(other) == pytest.approx(200 * 390 * 0.008)
    assert there.seconds(TrainJob(recipe_of(PAPER_ROW, "default", 0, Options()))) is None
    assert here.seconds(job) is None
    # What `cost` has timed here is known here.
    store = read_store(work.results)
    tiny = TrainJob(recipe_of(DEMO_ROW, "randaugment", 5, OPTIONS))
    cost = {c.recipe.augmenter: c for c in store.costs.values()}["randaugment"]
    known = Estimator(store, "cpu", steps=steps).seconds(tiny)
    assert known == pytest.approx(2 * 3 * cost.step_ms["median"] / 1000)


def test_the_list_names_machines_that_were_timed(tmp_path, monkeypatch):
    """Where nobody has timed a step, it says for which machines somebody has."""
    monkeypatch.chdir(tmp_path)
    work = Work(tmp_path / "runs", tmp_path / "results", device="cpu")
    options = Options(methods=("randaugment", "divaug"))
    assert "--machine" not in " ".join(list_target("supervised", options, work).notes)
    with pytest.raises(ValueError, match=r"timed on \(none so far\), got 'foo'"):
        list_target("supervised", options, work, "foo")
    recipe = recipe_of(PAPER_ROW, "divaug", 0, Options())
    case = {
        "recipe": recipe.to_dict(),
        "step_ms": {"median": 12.5},
        "parts_ms": {},
        "environment": {"gpu": "Some GPU"},
    }
    STEP_FILE.parent.mkdir(parents=True)
    STEP_FILE.write_text(json.dumps({"cases": [case]}))
    notes = " ".join(list_target("supervised", options, work).notes)
    assert this_machine(recipe, "cpu") in notes
    assert '--machine "Some GPU" estimates' in notes
    rows = list_target("supervised", options, work, "Some GPU").rows
    assert [row[3] for row in rows] == ["unknown", "about 16 min 15 s"]
    with pytest.raises(ValueError, match=r"timed on \('Some GPU'\), got 'foo'"):
        list_target("supervised", options, work, "foo")


def test_the_list_does_not_send_to_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    work = Work(tmp_path / "runs", tmp_path / "results", device="cpu")
    notes = list_target("cost", Options(), work).notes
    assert notes == ("Still to do: 1 of 1.", "1 without an estimate: only trainings have one.")


def test_the_list_tells_what_is_done(work, done):
    table = list_target("supervised", replace(OPTIONS, seeds=2), work)
    states = [row[2] for row in table.rows]
    assert states.count("done") == len(METHODS) + len(RULES)
    assert f"Still to do: {len(METHODS) - len(RULES)} of {2 * len(METHODS)}." in table.notes[0]


@pytest.mark.parametrize(
    ("name", "given", "named"),
    [
        ("supervised", {"methods": ("divagu",)}, "Did you mean 'divaug'"),
        ("rotate", {"methods": ("divaug",)}, "method of rotate"),
        ("diversity", {"rows": (PAPER_ROW, DEMO_ROW)}, "shows one row"),
        ("supervised", {"rows": ("uda-paper-1000",)}, "row of supervised"),
        ("semi-supervised", {"rows": (PAPER_ROW,)}, "row of semi-supervised"),
        ("semi-supervised", {"methods": ("divaug-exact",)}, "method of semi-supervised"),
    ],
)
def test_what_a_target_does_not_have_is_named(name, given, named, tmp_path):
    with pytest.raises(ValueError, match=named):
        redraw(name, Options(**given), tmp_path)


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


SMALL = ("--row", DEMO_ROW, "--epochs", 2, "--scale", 0.02, "--set", "batch_size=20")


def test_the_command_prints_the_table_and_draws_it_again(work, done, tmp_path):
    where = ("--results", work.results, "--runs", work.runs, "--data", work.data)
    first = call("reproduce", "supervised", *SMALL, *where, "--out", tmp_path / "a")
    second = call(
        "reproduce", "supervised", *SMALL, "--from", work.results, "--out", tmp_path / "b"
    )
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert second.output.replace(str(tmp_path / "b"), str(tmp_path / "a")) in first.output
    assert "DivAug (k-means++)" in second.output
    assert (tmp_path / "a" / "table.md").read_bytes() == (tmp_path / "b" / "table.md").read_bytes()


def test_the_command_lists_without_running(tmp_path):
    result = call("reproduce", "equal-cost", "--dry-run", "--results", tmp_path / "results")
    assert result.exit_code == 0
    assert "unknown" in result.output
    assert "Then every method is trained" in result.output
    assert not (tmp_path / "results").exists()


def test_the_command_says_when_the_time_is_up(work, tmp_path):
    where = ("--results", tmp_path / "results", "--runs", tmp_path / "runs", "--data", work.data)
    result = call("reproduce", "supervised", *SMALL, *where, "--minutes", 0)
    assert result.exit_code == 75
    assert "the time is up; give the same command again" in result.output
    # Not that nothing was run: an epoch may have been.
    assert "nothing to show yet: no job of this list has finished" in result.output
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("minutes", [-1, -0.5])
def test_a_time_before_now_is_refused(tmp_path, minutes):
    words = ("--minutes", minutes, "--results", tmp_path / "results", "--runs", tmp_path / "runs")
    result = call("reproduce", "supervised", *SMALL, *words)
    assert result.exit_code == 2
    assert "--minutes" in result.output
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_which_settings_the_records_have(work, done, tmp_path):
    result = call("reproduce", "supervised", "--from", work.results, "--out", tmp_path)
    with pytest.raises(ValueError, match="of supervised in this setting; there are: fashion_mnist"):
        raise result.exception
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("reproduce", "supervised"), ("report",)])
def test_a_folder_without_records_is_refused_and_left_as_it_is(tmp_path, words):
    result = call(*words, "--from", tmp_path)
    with pytest.raises(ValueError, match=r"has none: they are looked for as runs/\*\.jsonl"):
        raise result.exception
    assert list(tmp_path.iterdir()) == []


def test_a_report_from_records_of_other_settings_says_which_they_are(tmp_path):
    save(tmp_path, made_run(3))
    result = call("report", "--from", tmp_path)
    with pytest.raises(ValueError, match="of the paper's settings; there are: cifar10"):
        raise result.exception
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_report_from_records_redraws_what_has_records(tmp_path):
    save(tmp_path, made_run(200))
    result = call("report", "--from", tmp_path)
    assert result.exit_code == 0
    found = {path.name for path in tmp_path.iterdir() if (path / "table.md").exists()}
    assert found == {"supervised", "random-baseline", "evolution"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--runs", "runs"), "--runs does"),  # the default, but given
        (("--results", "results"), "--results does"),
        (("--data", "nowhere"), "--data does"),
        (("--jobs", 5), "--jobs does"),
        (("--seeds", 1), "--seeds does"),
        (("--minutes", 1), "--minutes does"),
        (("--drop-networks",), "--keep-networks/--drop-networks does"),
        (("--device", "cpu"), "--device does"),
        (("--eager",), "--eager does"),
        (("--dry-run", "--results", "other"), "--results does"),
    ],
)
def test_what_drawing_from_records_takes_no_notice_of_is_refused(tmp_path, words, told):
    save(tmp_path, made_run(200))
    result = call("reproduce", "supervised", "--from", tmp_path, *words)
    with pytest.raises(ValueError, match=f"^{told} nothing with --from; leave out one of the two"):
        raise result.exception
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_what_drawing_from_records_goes_by_is_allowed(tmp_path):
    save(tmp_path, made_run(200))
    cells = ("--row", PAPER_ROW, "--method", "divaug", "--method", "default")
    drawn = call("reproduce", "supervised", "--from", tmp_path, *cells, "--out", tmp_path / "out")
    assert drawn.exit_code == 0
    assert (tmp_path / "out" / "table.md").exists()
    work = ("--runs", tmp_path / "none", "--device", "cpu", "--eager", "--jobs", 2, "--seeds", 3)
    listed = call("reproduce", "supervised", "--from", tmp_path, *cells, "--dry-run", *work)
    assert listed.exit_code == 0


@pytest.mark.parametrize(
    ("option", "value"),
    [("--csv", "x.csv"), ("--markdown", "y.md"), ("--out", "z.html"), ("--data", "nowhere")],
)
def test_a_report_from_records_refuses_what_it_would_not_write_or_read(tmp_path, option, value):
    save(tmp_path, made_run(200))
    result = call("report", "--from", tmp_path, option, tmp_path / value)
    with pytest.raises(ValueError, match=f"^{option} does nothing with --from"):
        raise result.exception
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


@pytest.mark.parametrize(
    "words",
    [
        ("reproduce", "supervised", "--dry-run", "--from", "no-such-folder"),
        ("reproduce", "supervized"),
        ("reproduce", "supervised", "--from", "no-such-folder"),
        ("reproduce", "supervised", "--machine", "NVIDIA H200"),
        ("report", "--from", "no-such-folder"),
        ("report", "run", "--from", "."),
        ("report",),
    ],
)
def test_bad_words_are_refused(words):
    result = call(*words)
    assert result.exit_code != 0
    assert isinstance(result.exception, ValueError | FileNotFoundError)
