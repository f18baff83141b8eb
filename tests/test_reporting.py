"""Reports: the numbers are the runs' own, the page needs nothing else, bad folders are named."""

import base64
import csv
import io
import json
import math
import shutil
import statistics
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image

from divaug import datasets
from divaug.cli import run as command
from divaug.datasets import Dataset
from divaug.diversity import variance_diversity
from divaug.reporting import read_run, write_report
from divaug.reporting.choosing import choose_candidates
from divaug.reporting.labels import labels_of
from divaug.reporting.operations import shares
from divaug.reporting.plots import COLORS
from divaug.reporting.seeds import seeds_table
from divaug.reporting.table import MISSING, runs_table, to_csv
from divaug.tables import Table
from divaug.training import Hardware, train
from divaug.training.assembly import build_augmenter
from divaug.training.data import default_of
from divaug.training.opening import open_run
from divaug.training.progress import Silent
from divaug.training.splits import Split
from tests.browser import NAMES, Browser, find_browser
from tests.training_helpers import toy_data, toy_recipe

HOSTILE = '<script>alert("x")</script> | $\\frac{ </pre> **b** ${{ 1 }}'
HOSTILE_CLASS = '<img src="http://example.org/x" onerror="alert(1)">'
VOID = {"meta", "img", "br", "hr", "link", "input"}


class Reader(HTMLParser):
    """Checks that tags close, and collects tags, texts of tables and the whole text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.tables, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data

    @property
    def text(self):
        return " ".join("".join(self.words).split())

    def rows(self, table):
        names, *rows = self.tables[table]
        return [dict(zip(names, row, strict=True)) for row in rows]

    @property
    def images(self):
        return [attributes for tag, attributes in self.tags if tag == "img"]


def last_line(folder):
    return json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])


@pytest.fixture(scope="module")
def data():
    return replace(toy_data(num_train=32), class_names=(HOSTILE_CLASS, "b", "c", "d"))


@pytest.fixture(scope="module")
def runs(data, tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    cases = {
        "default": {"augmenter": "default"},
        "zero": {"augmenter": "divaug", "name": HOSTILE},
        "one": {"augmenter": "divaug", "seed": 1},
    }
    for name, changes in cases.items():
        train(toy_recipe(**changes), root / name, data=data, device="cpu", reporter=Silent())
    return [root / name for name in cases]


@pytest.fixture(scope="module")
def written(runs, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    paths = [folder / name for name in ("page.html", "table.md", "table.csv")]
    settings = dict(matplotlib.rcParams)
    assert write_report(runs, paths[0], markdown=paths[1], csv=paths[2], data=data) == paths
    assert dict(matplotlib.rcParams) == settings
    assert sorted(folder.iterdir()) == sorted(paths)  # nothing else is left behind
    return paths


@pytest.fixture(scope="module")
def page(written):
    return Reader(written[0].read_text(encoding="utf-8"))


@pytest.fixture
def copied(runs, tmp_path):
    return shutil.copytree(runs[1], tmp_path / "run")


def test_a_summary_comes_first_and_one_dataset_is_named_once(written, runs, data, tmp_path):
    summary = Table(("a <b>", "n"), (("x & y", "1"),), numeric=(1,), notes=("Little data.",))
    write_report(runs[:1], tmp_path / "page.html", data=data, summary=summary)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert Reader(text).tables[0] == [["a <b>", "n"], ["x & y", "1"]]
    assert text.index("In short") < text.index("Little data.") < text.index("<h2>Runs</h2>")
    assert "dataset" not in Reader(text).tables[1][0]
    # Its rows have the colours of the runs.
    assert text.index('class="mark run-1"') < text.index("Little data.")
    assert "In short" not in written[0].read_text(encoding="utf-8")
    with pytest.raises(
        ValueError, match="a row for each of the 2 runs, in their order, got 1 rows"
    ):
        write_report(runs[:2], tmp_path / "other.html", data=data, summary=summary)
    assert not (tmp_path / "other.html").exists()


def test_the_table_has_the_numbers_that_the_runs_wrote(page, runs):
    for row, folder in zip(page.rows(0), runs, strict=True):
        line = last_line(folder)
        assert row["test accuracy"] == f"{line['test_accuracy']:.2%}"
        assert row["time"] == f"{line['seconds']:.1f} s"
        assert row["epochs"] == "2"
        record = line["record"]
        for column, value in (
            ("VD kept", record["diversity_kept"]),
            ("VD all", record["diversity_all"]),
            ("VD trained", line["diversity"] or None),
        ):
            assert row[column] == ("–" if value is None else f"{value:.4f}")
    assert [row["augmenter"] for row in page.rows(0)] == ["default", "divaug", "divaug"]
    assert [row["seed"] for row in page.rows(0)] == ["0", "0", "1"]


def test_machine_versions_and_commit_are_those_of_the_run(page, runs):
    for row, folder in zip(page.rows(2), runs, strict=True):
        start = json.loads((folder / "environment.json").read_text())[-1]
        assert start["processor"] in row["hardware"]
        assert f"torch {start['packages']['torch']}" in row["versions"]
        assert f"python {start['python']}" in row["versions"]
        assert row["commit"].startswith((start["commit"] or "–")[:12])
        kept = json.loads((folder / "data.json").read_text())
        assert row["data"] == f"32 + 20 images, 4 classes, {kept['fingerprint'][:12]}"


def test_runs_on_other_data_are_named_and_not_summed_up(runs, data, tmp_path):
    other = shutil.copytree(runs[2], tmp_path / "other")
    kept = json.loads((other / "data.json").read_text())
    (other / "data.json").write_text(json.dumps(kept | {"name": "elsewhere"}))
    write_report([runs[1], other], tmp_path / "page.html", data=data)
    page = Reader((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert [row["dataset"] for row in page.rows(0)] == ["toy", "elsewhere"]
    assert "2 runs on elsewhere, toy" in page.text
    assert "Several seeds" not in page.text


def edited(folder, target, name, **changes):
    """A copy of a run with other words in one of its files."""
    copy = shutil.copytree(folder, target)
    content = json.loads((copy / name).read_text())
    (copy / name).write_text(json.dumps(content | changes))
    return copy


@pytest.mark.parametrize(
    ("path", "train_images", "held_out", "together"),
    [
        (None, 0, None, False),
        ("/data/toy.npz", 0, None, False),
        ("/data/toy.npz", 20, 0.0, True),  # the seed decides which
        ("/data/photos", 0, 0.2, True),  # it decides which are held out
        ("/data/photos", 0, 0.0, False),  # which have a test part
        ("/data/photos", 0, None, True),  # of an older release: it may decide
    ],
)
def test_images_are_the_same_unless_the_seed_decides_which(
    runs, tmp_path, path, train_images, held_out, together
):
    """A mean over other data, of the same name and sizes, would be one of nothing."""
    copies = []
    for i, folder in enumerate(runs[1:]):
        said = {"path": path, "fingerprint": f"{i}" * 64, "held_out": held_out}
        copy = edited(folder, tmp_path / str(i), "data.json", **said)
        recipe = json.loads((copy / "recipe.json").read_text()) | {"train_images": train_images}
        (copy / "recipe.json").write_text(json.dumps(recipe))
        copies.append(read_run(copy))
    table = seeds_table(copies)
    assert (table is not None) is together
    if together:
        assert "Which images runs 1, 2 have" in table.notes[-1]
        alike = [replace(run, data=copies[0].data) for run in copies]
        assert not any("Which images" in note for note in seeds_table(alike).notes)


def test_how_often_a_run_is_looked_at_makes_no_difference(runs, tmp_path):
    often = edited(runs[2], tmp_path / "often", "recipe.json", log_every=7, checkpoint_every=3)
    table = seeds_table([read_run(runs[1]), read_run(often)])
    assert table.rows[0][:5] == ("1, 2", table.rows[0][1], "divaug", "0, 1", "2")
    assert table.rows[0][-1] == MISSING  # but of the time, which it takes
    assert "±" in table.rows[0][5]
    assert "±" in seeds_table([read_run(runs[1]), read_run(runs[2])]).rows[0][-1]
    longer = edited(runs[2], tmp_path / "longer", "recipe.json", learning_rate=0.3)
    assert seeds_table([read_run(runs[1]), read_run(longer)]) is None


def test_unlabelled_images_and_labels_tell_runs_apart(runs):
    """Other unlabelled images are another setting, other labels with one seed no repetition."""
    run = read_run(runs[1])

    def split(*labelled, unlabelled=None):
        return replace(run, split=Split(labelled, 0, unlabelled))

    assert seeds_table([split(0, 1, unlabelled="a"), split(2, 3, unlabelled="b")]) is None
    assert seeds_table([split(0, 1, unlabelled="a"), split(2, 3)]) is None
    table = seeds_table([split(0, 1), split(2, 3)])
    assert (table.rows[0][4], len(table.notes)) == ("2", 1)
    repeated = seeds_table([split(0, 1), split(1, 0)])
    assert repeated.rows[0][4] == MISSING
    assert "Runs 1, 2 have one recipe and one seed" in repeated.notes[1]


def test_runs_that_differ_in_the_seed_are_summed_up(page, runs):
    (row,) = page.rows(1)
    lines = [last_line(folder) for folder in runs[1:]]
    accuracies = [100 * line["test_accuracy"] for line in lines]
    mean, std = np.mean(accuracies), np.std(accuracies, ddof=1)
    assert row["test accuracy"] == f"{mean:.2f} ± {std:.2f} %"
    kept = [line["record"]["diversity_kept"] for line in lines]
    assert row["VD kept"] == f"{statistics.mean(kept):.4f} ± {statistics.stdev(kept):.4f}"
    assert (row["runs"], row["seeds"], row["n"]) == ("2, 3", "0, 1", "2")


def test_a_run_that_is_repeated_is_no_sample(runs, data, tmp_path):
    """One recipe and one seed twice: no mean, no deviation of nothing, and the page says why."""
    again = shutil.copytree(runs[1], tmp_path / "again")
    write_report(
        [runs[1], runs[2], again], tmp_path / "page.html", markdown=tmp_path / "a.md", data=data
    )
    page = Reader((tmp_path / "page.html").read_text(encoding="utf-8"))
    (row,) = page.rows(1)
    assert (row["runs"], row["seeds"], row["n"]) == ("1, 2, 3", "0, 1, 0", MISSING)
    for name in ("test accuracy", "VD kept", "VD all", "time"):
        assert row[name] == MISSING
    said = "Runs 1, 3 have one recipe and one seed, 0: a repetition is no sample"
    assert said in page.text
    assert said in (tmp_path / "a.md").read_text(encoding="utf-8")
    assert len(page.rows(0)) == 3  # each is still shown


def test_a_run_under_way_is_shown_and_left_out_of_the_means(runs, data, tmp_path):
    stopped = shutil.copytree(runs[2], tmp_path / "stopped")
    lines = (stopped / "metrics.jsonl").read_text().splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if '"kind": "epoch"' in line)
    (stopped / "metrics.jsonl").write_text("".join(lines[: first + 1]) + '{"kind": "epo')
    write_report([runs[1], stopped], tmp_path / "page.html", data=data)
    page = Reader((tmp_path / "page.html").read_text(encoding="utf-8"))
    accuracy = json.loads(lines[first])["test_accuracy"]
    assert page.rows(0)[1]["epochs"] == "1 of 2"
    assert page.rows(0)[1]["test accuracy"] == f"{accuracy:.2%}"
    assert "Several seeds" not in page.text


def test_the_page_needs_nothing_else(page):
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "iframe", "object", "embed", "form", "svg"}
    for tag, attributes in page.tags:
        assert "href" not in attributes, tag
        assert not any(name.startswith("on") for name in attributes), tag
        assert attributes.get("src", "data:").startswith("data:image/png;base64,") or tag != "img"


def test_all_pictures_decode_and_show_something(page):
    assert len(page.images) == 5 + 2 * 2 + 3  # curves, operations of two runs, candidates of three
    for attributes in page.images:
        content = base64.b64decode(attributes["src"].partition(",")[2], validate=True)
        with Image.open(io.BytesIO(content)) as picture:
            picture.load()
            assert picture.size == (int(attributes["width"]), int(attributes["height"]))
            assert len(picture.convert("RGB").getcolors(1 << 24)) > 20
        assert attributes["alt"]


def test_words_from_recipes_and_datasets_stay_words(page):
    folded = " ".join(HOSTILE.split())
    assert page.rows(0)[1]["recipe"] == HOSTILE
    assert page.text.count(folded) >= 2  # the table and the summary of the recipe
    assert json.dumps(HOSTILE) in page.text  # the recipe itself
    assert page.text.count(f"Classes from the top: {HOSTILE_CLASS}, b, c.") == 3
    assert all(attributes["src"].startswith("data:") for attributes in page.images)


def test_each_recipe_is_on_the_page_whole(page, runs):
    folded = [tag for tag, _ in page.tags if tag == "details"]
    assert len(folded) == 3
    for folder in runs:
        recipe = read_run(folder).recipe
        assert " ".join(json.dumps(recipe.to_dict(), indent=1).split()) in page.text


def test_the_csv_has_the_numbers_unrounded(written, runs):
    with written[2].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, folder in zip(rows, runs, strict=True):
        line = last_line(folder)
        assert float(row["test_accuracy"]) == line["test_accuracy"]
        assert float(row["seconds"]) == line["seconds"]
        kept = line["record"]["diversity_kept"]
        assert row["variance_diversity_kept"] == ("" if kept is None else repr(kept))
    assert rows[1]["recipe"] == HOSTILE


def test_a_run_in_the_current_folder_has_a_name(runs, monkeypatch):
    monkeypatch.chdir(runs[1])
    (row,) = csv.DictReader(io.StringIO(to_csv([read_run(".")])))
    assert row["folder"] == runs[1].name


def test_no_cell_of_the_markdown_ends_its_row_or_becomes_markup(written):
    lines = written[1].read_text(encoding="utf-8").splitlines()
    table = lines[: lines.index("")]
    bare = [line.replace("\\|", "") for line in table]
    assert len({line.count("|") for line in bare}) == 1
    assert "<script" not in "".join(lines)
    assert "\\*\\*b" in table[3]
    assert any("± " in line for line in lines)


def test_the_same_runs_give_the_same_page(written, runs, data, tmp_path):
    write_report(runs, tmp_path / "again.html", data=data)
    assert (tmp_path / "again.html").read_bytes() == written[0].read_bytes()


def test_the_picture_shows_what_the_run_would_train_on_next(runs, data):
    run = read_run(runs[1])
    found = choose_candidates(run, data)
    opened = open_run(runs[1])
    hardware = Hardware.choose("cpu", "float32")
    network, default = opened.network(data, hardware), default_of("toy", data)
    augment = build_augmenter(run.recipe, network, default, hardware, data.train_images)
    augment.load_state_dict(dict(opened.checkpoint.info["augmenter"]))
    index = torch.arange(3)  # the toy data goes through its classes
    images, _ = augment(data.train_images[index], index=index)
    shown = found.choice.candidates.take_along_dim(found.choice.chosen[..., None, None, None], 1)
    mean, std = data.mean[0], data.std[0]
    expected = ((images * std + mean) * 255).round().clamp(0, 255).byte()
    assert (shown.flatten(0, 1) == expected).all()
    kept = found.choice.probs.take_along_dim(found.choice.chosen[..., None], 1)
    record = augment.record()
    assert float(variance_diversity(kept).mean()) == pytest.approx(record.diversity_kept, rel=1e-5)
    assert found.own
    assert not choose_candidates(read_run(runs[0]), data).own


def test_shares_are_those_of_the_record(runs):
    for epoch in read_run(runs[1]).epochs:
        counted = epoch.kept.applied
        names = list(counted)
        assert sum(shares(epoch.kept, names)) == pytest.approx(1.0)
        total = sum(counted.values())
        assert shares(epoch.kept, names[:3]) == [counted[name] / total for name in names[:3]]
        assert all(0 <= p <= 1 for p in epoch.kept.probability.values() if not math.isnan(p))


def test_a_run_without_checkpoint_and_record_lacks_those_parts(copied, data, tmp_path):
    shutil.rmtree(copied / "checkpoints")
    (copied / "environment.json").unlink()
    (copied / "data.json").unlink()
    lines = [json.loads(line) for line in (copied / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        line.pop("record", None)
    (copied / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    write_report([copied], tmp_path / "page.html", data=data)
    page = Reader((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "This run has no record of operations." in page.text
    assert "has no checkpoint to use: they are gone" in page.text
    assert "No run has numbers for: Variance Diversity of the candidates." in page.text
    assert page.rows(0)[0]["VD kept"] == "–"
    assert set(page.rows(1)[0].values()) == {"1", "–", "run"}
    assert len(page.images) == 4


def test_a_damaged_checkpoint_is_passed_over_and_the_page_says_so(copied, data, tmp_path):
    newest = sorted((copied / "checkpoints").iterdir())[-1]
    (newest / "model.safetensors").write_bytes(b"cut")
    write_report([copied], tmp_path / "page.html", data=data)
    page = Reader((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert f"{newest.name} cannot be used" in page.text


def test_a_report_downloads_nothing(copied, tmp_path, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("a report opened an address")

    monkeypatch.setattr("urllib.request.urlopen", forbidden)
    monkeypatch.setattr("urllib.request.OpenerDirector.open", forbidden)
    monkeypatch.setenv("DIVAUG_DATA", str(tmp_path / "empty"))
    for name in ("cifar10", "svhn", "fashion_mnist"):
        with pytest.raises(FileNotFoundError, match="missing"):
            datasets.load(name, download=False)
    assert isinstance(datasets.load("fashion_mnist_small", download=False), Dataset)
    recipe = replace(read_run(copied).recipe, dataset="cifar10")
    (copied / "recipe.json").write_text(recipe.to_json())
    write_report([copied], tmp_path / "page.html")
    page = Reader((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "No picture: " in page.text
    assert "cifar-10-python.tar.gz" in page.text


def swap(name, text):
    return lambda folder: (folder / name).write_text(text)


def change_line(**fields):
    def change(folder):
        path = folder / "metrics.jsonl"
        first, *rest = path.read_text().splitlines()
        path.write_text("\n".join([json.dumps(json.loads(first) | fields), *rest]) + "\n")

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "does not exist"),
        (lambda folder: (folder / "recipe.json").unlink(), "is no run"),
        (swap("recipe.json", "{"), "recipe.json"),
        (lambda folder: (folder / "metrics.jsonl").unlink(), "is an incomplete run"),
        (swap("metrics.jsonl", ""), "has finished no epoch yet"),
        (swap("metrics.jsonl", '{"kind": "ep\n{}\n'), "metrics.jsonl is damaged: line 1"),
        (swap("metrics.jsonl", "[]\n{}\n"), "metrics.jsonl is damaged: line 1: `kind`"),
        (swap("metrics.jsonl", '{"kind": "epoch", "epoch": 0, "step": 2}\n'), "lacks 'loss'"),
        (change_line(step="two"), "`step` must be a whole number"),
        (
            change_line(kind="epoch", epoch=0, loss=1, diversity=0, seconds=float("inf")),
            "`seconds` must be a number that float32 can hold",
        ),
        (change_line(kind="epoch", epoch=0, loss=1e308), "`loss` must be a number that float32"),
        (change_line(kind="epoch", epoch=0, loss=10**400), "`loss` must be a number that float32"),
        (change_line(kind="epoch", epoch=7, seconds=1), "its epochs are [8, 1, 2]"),
        (lambda folder: (folder / "metrics.jsonl").write_bytes(b"\xff\xfe"), "it is no text"),
        (swap("environment.json", "[1"), "environment.json is damaged"),
        (swap("environment.json", "{}"), "environment.json is damaged"),
    ],
)
def test_a_folder_that_is_no_whole_run_is_named(capsys, copied, tmp_path, runs, damage, message):
    damage(copied)
    out = tmp_path / "out" / "page.html"
    with pytest.raises(SystemExit) as error:
        command(["report", str(runs[0]), str(copied), "--out", str(out)])
    lines = capsys.readouterr().err.splitlines()
    assert error.value.code == 2
    assert len(lines) == 1
    assert message in lines[0]
    assert str(copied) in lines[0]
    assert not out.parent.exists()


def test_other_bad_input_is_one_line_too(capsys, runs, tmp_path):
    run, out = str(runs[0]), str(tmp_path / "page.html")
    for words, message in (
        ((run, run, "--out", out), "is given twice"),
        ((run, "--out", str(tmp_path)), "is a folder"),
        ((run, "--out", out, "--csv", out), "a name of its own"),
        ((run, "--out", out, "--data", str(tmp_path / "none.npz")), "none.npz"),
    ):
        with pytest.raises(SystemExit) as error:
            command(["report", *words])
        lines = capsys.readouterr().err.splitlines()
        assert (error.value.code, len(lines)) == (2, 1)
        assert message in lines[0]
    assert list(tmp_path.iterdir()) == []


# Every figure with its size as laid out, and whether its picture was decoded.
FIGURES = """
[...document.querySelectorAll("figure img")].map(image => {
  const box = image.getBoundingClientRect(), file = [image.naturalWidth, image.naturalHeight];
  return [box.width, box.height, image.complete, ...file, image.width, image.height];
})
"""
TABLES = """
[...document.querySelectorAll("table")].map(table => {
  const box = table.getBoundingClientRect(), around = table.parentElement;
  return [box.width, box.height, table.rows.length, around.clientWidth,
          getComputedStyle(around).overflowX];
})
"""
# Elements that stick out of the page and are not inside a box that scrolls.
OUTSIDE = """
[...document.body.querySelectorAll("*")].filter(element => {
  const box = element.getBoundingClientRect();
  const page = document.documentElement.clientWidth;  // a phone widens its window
  return (box.right > page + 1 || box.left < -1) && !element.closest(".wide, pre");
}).map(element => element.outerHTML.slice(0, 80))
"""
WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    path = find_browser()
    if path is None:
        pytest.skip(f"none of {', '.join(NAMES)} is on PATH")
    with Browser(path, tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.mark.parametrize("width", [1280, 400])
def test_a_browser_lays_the_page_out(browser, written, page, runs, width):
    browser.complaints.clear()
    browser.open(written[0].as_uri(), width)
    browser.ask("document.querySelectorAll('details').forEach(one => one.open = true)")
    whole, seen = browser.ask(WIDTHS)
    assert whole <= seen <= width  # nothing to scroll sideways for
    assert browser.ask(OUTSIDE) == []
    figures = browser.ask(FIGURES)
    assert len(figures) == len(page.images)
    for wide, high, complete, file_wide, file_high, *_ in figures:
        assert complete
        assert wide >= 250
        assert high >= 150
        assert wide / high == pytest.approx(file_wide / file_high, rel=0.02)  # not distorted
    tables = browser.ask(TABLES)
    assert [table[2] for table in tables] == [1 + len(runs), 2, 1 + len(runs)]
    for wide, high, rows, around, overflow in tables:
        assert high >= 20 * rows
        assert wide <= around or overflow == "auto"
    assert browser.complaints == []  # errors, warnings, blocked or missing resources


def test_a_browser_would_complain_of_a_broken_page(browser, tmp_path):
    """What the test above looks for can be found."""
    (tmp_path / "bad.html").write_text(
        '<meta name="viewport" content="width=device-width"><body><p style="width:900px">x</p>'
        '<figure><img src="none.png"></figure><script>console.log(1); throw Error("no")</script>'
    )
    browser.complaints.clear()
    browser.open((tmp_path / "bad.html").as_uri(), 400)
    assert len(browser.ask(OUTSIDE)) == 1
    whole, seen = browser.ask(WIDTHS)
    assert whole > seen
    assert browser.ask(FIGURES)[0][3] == 0
    assert any("ERR_FILE_NOT_FOUND" in text for text in browser.complaints)
    assert any("Uncaught" in text for text in browser.complaints)


def test_a_browser_paints_the_page(browser, written):
    browser.open(written[0].as_uri(), 1100, 2400)
    with Image.open(io.BytesIO(browser.screenshot())) as shot:
        colors = {color: n for n, color in shot.convert("RGB").getcolors(1 << 24)}
        area = shot.width * shot.height
    assert colors[(255, 255, 255)] < 0.97 * area  # not blank
    for color in COLORS[:2]:  # marks of the page, and lines in its pictures: one a recipe
        rgb = tuple(bytes.fromhex(color.removeprefix("#")))
        assert colors.get(rgb, 0) > 500
    assert len(colors) > 500


def test_runs_of_one_augmenter_and_different_lengths_are_told_apart(runs):
    first, second = (read_run(run) for run in runs[:2])
    longer = replace(first, recipe=replace(first.recipe, epochs=first.recipe.epochs + 7))
    names = [first.recipe.augmenter, second.recipe.augmenter]
    assert names[0] != names[1]
    assert labels_of([first, second, first]) == [f"1 {names[0]}", f"2 {names[1]}", f"3 {names[0]}"]
    assert labels_of([first, second, longer]) == [
        f"1 {names[0]}, {first.recipe.epochs} epochs",
        f"2 {names[1]}",
        f"3 {names[0]}, {longer.recipe.epochs} epochs",
    ]
    shortest = replace(first, recipe=replace(first.recipe, epochs=1))
    assert labels_of([shortest, first])[0] == f"1 {names[0]}, 1 epoch"


def test_runs_with_other_objectives_or_labels_are_told_apart(runs):
    first, second = (read_run(run) for run in runs[:2])
    few = [
        replace(second, recipe=replace(second.recipe, objective=objective, labels=labels))
        for objective, labels in (("uda", 0), ("uda", 50), ("fixmatch", 50))
    ]
    name = second.recipe.augmenter
    assert labels_of([first, second, *few])[1:] == [
        f"2 {name}, supervised, all labels",
        f"3 {name}, uda, all labels",
        f"4 {name}, uda, 50 labels",
        f"5 {name}, fixmatch, 50 labels",
    ]
    table = runs_table([second, *few])
    for column, expected in (
        ("objective", ["supervised", "uda", "uda", "fixmatch"]),
        ("labels", ["–", "–", "50", "50"]),
    ):
        place = table.columns.index(column)
        assert [row[place] for row in table.rows] == expected
    assert not {"objective", "labels"} & set(runs_table([first, second]).columns)
    rows = list(csv.DictReader(io.StringIO(to_csv([first, few[1]]))))
    assert [(row["objective"], row["labels"]) for row in rows] == [
        ("supervised", ""),
        ("uda", "50"),
    ]
