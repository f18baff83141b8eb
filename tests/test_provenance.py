"""A run knows its data: found again by itself, other data told or refused; folders throughout."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from divaug.lab import methods as augmenters
from divaug.lab.cli import run as command
from divaug.lab.datasets import (
    MAX_PARTNERS,
    Dataset,
    decode,
    identify,
    image_files,
    partners,
)
from divaug.lab.measure import measure, measure_run
from divaug.lab.methods import Settings
from divaug.lab.models import build
from divaug.lab.train import Hardware, train
from divaug.lab.train.batches import STREAMED_SIZE
from divaug.lab.train.console import Silent
from divaug.lab.train.data import default_of, load_data, read_data_record
from divaug.lab.train.folder import read_metrics
from divaug.lab.train.run import open_run
from tests.image_files import write_images
from tests.training_helpers import StopAfter, toy_data, toy_recipe

CPU = Hardware(torch.device("cpu"))


def save(path, data):
    np.savez(
        path,
        x_train=data.train_images.numpy(),
        y_train=data.train_labels.numpy(),
        x_test=data.test_images.numpy(),
        y_test=data.test_labels.numpy(),
    )
    return path


def call(capsys, *words):
    """Exit code, standard output and standard error of a command."""
    with pytest.raises(SystemExit) as ended:
        command([str(word) for word in words])
    captured = capsys.readouterr()
    return ended.value.code, captured.out, captured.err


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run on a file, half of it; the file and two others, of as many and of other classes."""
    root = tmp_path_factory.mktemp("provenance")
    files = [
        save(root / "own.npz", toy_data(num_train=24)),
        save(root / "other.npz", toy_data(num_train=24, seed=1)),
        save(root / "fewer.npz", toy_data(num_train=24, num_classes=3)),
    ]
    train(toy_recipe(epochs=1), root / "run", data=files[0], device="cpu", reporter=Silent())
    return root / "run", *files


def test_a_run_keeps_name_path_sizes_classes_and_fingerprint(made):
    folder, own, *_ = made
    kept = json.loads((folder / "data.json").read_text())
    assert kept["path"] == str(own)
    found = identify(load_data(toy_recipe(), own))
    assert read_data_record(folder).identity == found
    assert (kept["name"], kept["num_train"], kept["num_test"]) == ("own", 24, 20)
    assert (kept["num_classes"], len(kept["fingerprint"])) == (4, 64)
    whole = load_data(toy_recipe(), own)
    assert (tuple(kept["mean"]), tuple(kept["std"])) == (whole.mean, whole.std)


def test_commands_find_the_data_of_a_run_by_themselves(made, capsys, tmp_path, monkeypatch):
    folder, *_ = made
    monkeypatch.chdir(tmp_path)
    accuracy = read_metrics(folder)[-1]["test_accuracy"]
    code, out, err = call(capsys, "evaluate", folder, "--device", "cpu")
    assert (code, err) == (0, "")
    assert f"test accuracy {accuracy:.2%}" in out
    assert "(20 images)" in out
    code, out, err = call(capsys, "measure", folder, "--device", "cpu")
    assert code == 0
    assert err == "measuring default on 24 images\n"
    code, _, err = call(capsys, "report", folder, "--out", tmp_path / "page.html")
    assert (code, err) == (0, "")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Classes from the top: 0, 1, 2." in page
    assert "No picture" not in page


def test_a_run_goes_on_with_its_own_data_alone(made, tmp_path):
    folder, own, other, fewer = made
    copied = shutil.copytree(folder, tmp_path / "run")
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    for wrong in (other, fewer):
        with pytest.raises(ValueError, match="cannot be resumed with") as refused:
            train(toy_recipe(epochs=1), copied, data=wrong, resume=True, device="cpu")
        for path in (own, wrong):
            assert str(path) in str(refused.value)
            assert identify(load_data(toy_recipe(), path)).fingerprint[:12] in str(refused.value)
    assert {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()} == before
    moved = shutil.copy(own, tmp_path / "moved.npz")
    recipe, quiet, half = toy_recipe(epochs=1), Silent(), tmp_path / "half"
    begun = train(recipe, half, data=own, device="cpu", reporter=StopAfter(2))
    assert not begun.finished
    assert read_data_record(half).path == str(own)
    again = train(recipe, half, data=moved, resume=True, device="cpu", reporter=quiet)
    assert again.finished
    assert read_data_record(half).path == str(moved)
    assert train(recipe, half, resume=True, device="cpu", reporter=quiet).finished


def test_other_data_is_said_and_other_classes_are_refused(made, capsys, tmp_path):
    folder, own, other, fewer = made
    code, out, err = call(capsys, "evaluate", folder, "--data", other, "--device", "cpu")
    assert code == 0
    assert "(20 images)" in out
    assert err.startswith("this is not the data that the run was trained on: 'other' ")
    assert str(own) in err
    assert str(other) in err
    code, out, err = call(capsys, "measure", folder, "--data", other, "--device", "cpu")
    assert code == 0
    assert err.startswith("this is not the data that the run was trained on: 'other' ")
    for name in ("evaluate", "measure"):
        code, out, err = call(capsys, name, folder, "--data", fewer, "--device", "cpu")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "the numbers of classes differ" in err
    page = tmp_path / "page.html"
    assert call(capsys, "report", folder, "--out", page, "--data", other)[0] == 0
    assert "This is not the data that the run was trained on" in page.read_text(encoding="utf-8")


def named(folder, path, *names):
    """The run as one whose classes have those names, and its data with others."""
    record = json.loads((folder / "data.json").read_text())
    (folder / "data.json").write_text(json.dumps(record | {"class_names": names}))
    with np.load(path) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("use", ["evaluate", "measure", "examine"])
@pytest.mark.parametrize(
    ("there", "said"),
    [
        (("cat", "dog", "elk", "fox"), None),
        (("cat", "Dog", "elk", "fox"), "other names: cat, Dog, elk, fox instead of cat, dog"),
        (("ape", "bee", "cow", "dodo"), "other names: ape, bee, cow, dodo instead of cat, dog"),
        (("dog", "cat", "elk", "fox"), "order of the classes must be the same, got dog, cat"),
    ],
)
def test_the_same_classes_in_another_order_are_refused(made, capsys, tmp_path, use, there, said):
    """Its labels would be taken for another's: accuracy 0 instead of 100 %."""
    copied = shutil.copytree(made[0], tmp_path / "run")
    arrays = named(copied, made[2], "cat", "dog", "elk", "fox")
    np.savez(tmp_path / "there.npz", **arrays, class_names=np.array(there))
    words = (use, copied, "--data", tmp_path / "there.npz", "--device", "cpu")
    code, out, err = call(capsys, *words)
    refused = said is not None and said.startswith("order")
    assert code == (2 if refused else 0)
    assert bool(out) is not refused
    assert said is None or said in err
    assert said is not None or "names" not in err


@pytest.fixture(scope="module")
def darker(made):
    """A file with the very test images of the run's own, and darker training images."""
    own = toy_data(num_train=24)
    return save(made[1].parent / "darker.npz", replace(own, train_images=own.train_images // 3))


def scores(out):
    """Accuracy and loss, as `evaluate` prints them."""
    return out.split(": ", 1)[1]


def test_other_data_is_normalised_as_the_networks_own_was(made, darker, capsys):
    folder, *_ = made
    _, own, _ = call(capsys, "evaluate", folder, "--device", "cpu")
    _, other, said = call(capsys, "evaluate", folder, "--data", darker, "--device", "cpu")
    assert scores(own) == scores(other)
    assert "this is not the data that the run was trained on" in said
    opened = open_run(folder)
    data = opened.data(darker)
    kept = read_data_record(folder)
    assert opened.default(data).mean == kept.mean != data.mean
    assert opened.default(data).std == kept.std != data.std
    # What Affinity compares with, too: the same images must be seen the same way.
    clean = [measure_run(folder, data=where, device="cpu")["default"] for where in (None, darker)]
    assert clean[0].clean_accuracy == clean[1].clean_accuracy


def test_a_run_on_a_part_takes_other_data_whole(made, capsys, tmp_path):
    """Of its own data it takes its part; other data may have fewer images than that."""
    _, own, other, fewer = made
    recipe = toy_recipe(epochs=1, train_images=16, seed=3)  # which part depends on the seed
    train(recipe, tmp_path / "run", data=own, device="cpu", reporter=Silent())
    opened = open_run(tmp_path / "run")
    assert len(opened.data(own).train_images) == 16
    assert len(opened.data().train_images) == 16
    few = save(tmp_path / "few.npz", toy_data(num_train=8, seed=3))
    for where, count in ((few, 8), (other, 24)):
        assert len(opened.data(where).train_images) == count
        code, out, _ = call(capsys, "evaluate", opened.path, "--data", where, "--device", "cpu")
        assert code == 0
        assert "(20 images)" in out
    code, _, said = call(capsys, "evaluate", opened.path, "--data", fewer, "--device", "cpu")
    assert code == 2
    assert "the numbers of classes differ" in said


def test_data_with_other_channels_is_refused_for_that(made, capsys, tmp_path):
    own = toy_data(num_train=24)
    colour = replace(
        own,
        train_images=own.train_images.repeat(1, 3, 1, 1),
        test_images=own.test_images.repeat(1, 3, 1, 1),
        mean=own.mean * 3,
        std=own.std * 3,
    )
    where = save(tmp_path / "colour.npz", colour)
    for name in ("evaluate", "measure"):
        code, _, said = call(capsys, name, made[0], "--data", where, "--device", "cpu")
        assert (code, said.count("\n")) == (2, 1)
        assert "its images have 1 channel and these 3" in said


def test_data_that_is_gone_and_a_damaged_record_are_named(made, capsys, tmp_path):
    folder, *_ = made
    copied = shutil.copytree(folder, tmp_path / "run")
    record = json.loads((copied / "data.json").read_text())
    for content, message in (
        (json.dumps(record | {"path": str(tmp_path / "gone.npz")}), "gone.npz does not exist any"),
        (json.dumps(record | {"path": 3}), "data.json is damaged: `path`"),
        (json.dumps(record | {"mean": ["grey"]}), "data.json is damaged: `mean`"),
        ("{", "data.json is damaged"),
    ):
        (copied / "data.json").write_text(content)
        code, out, err = call(capsys, "evaluate", copied, "--device", "cpu")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Two classes, nothing held out by the folder itself."""
    folder = tmp_path_factory.mktemp("folder") / "photos"
    write_images(folder, {"cat": 10, "dog": 5}, size=(20, 30))
    return folder


def test_any_folder_of_images_is_trained_evaluated_measured_and_shown(photos, tmp_path, capsys):
    out = tmp_path / "run"
    few = ("--set", "epochs=1", "--set", "batch_size=4", "--set", "num_workers=0")
    words = (*few, "--set", "test_fraction=0.4", "--device", "cpu", "--seed", 2)
    code, log, err = call(capsys, "train", "demo-divaug", "--data", photos, "--out", out, *words)
    assert (code, err) == (0, "")
    first = log.splitlines()[0]
    assert first.startswith("data 'photos' (9 training and 6 test images, 2 classes, ")
    assert "40% of each class are held out for testing (test_fraction), drawn by seed 2" in first
    assert "; classes cat, dog" in first
    assert first.endswith("in place of the recipe's fashion_mnist_small")
    assert read_data_record(out).held_out == 0.4
    assert read_data_record(out).class_names == ("cat", "dog")
    held_out = image_files(photos, test_fraction=0.4, seed=2).test
    assert torch.bincount(held_out.labels).tolist() == [4, 2]
    accuracy = read_metrics(out)[-1]["test_accuracy"]
    code, log, err = call(capsys, "evaluate", out, "--device", "cpu")
    assert (code, err) == (0, "")
    assert f"test accuracy {accuracy:.2%}" in log
    assert "(6 images)" in log
    code, log, err = call(capsys, "measure", out, "--device", "cpu", "--images", 4)
    assert (code, err) == (0, "measuring divaug on 4 images\n")
    assert "4 views of 4 training images (diversities) and 6 test images" in log
    code, _, _ = call(capsys, "report", out, "--out", tmp_path / "page.html")
    assert code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Classes from the top: cat, dog." in page
    assert "No picture" not in page


def test_streamed_images_measure_as_the_same_images_in_memory(photos):
    """The oracle is the path for datasets in memory, which has tests of its own."""
    files = image_files(photos)
    train, test = (
        torch.stack([decode(path, size=STREAMED_SIZE) for path in part.paths])
        for part in (files.train, files.test)
    )
    loaded = Dataset(
        "photos", train, files.train.labels, test, files.test.labels, files.num_classes,
        files.class_names, files.mean, files.std,
    )  # fmt: skip
    network = build("tiny-resnet-8", 2, 3, seed=1).eval()
    default = default_of("photos", files)

    def make(pool):
        given = {"num_candidates": 3, "num_selected": 2, "seed": 3}
        return augmenters.build("random", Settings(network, default, pool=pool, **given))

    on_disk, in_memory = (
        measure(network, data, make, default, CPU, views=2, batch_size=5)
        for data in (files, loaded)
    )
    assert on_disk == in_memory
    assert on_disk.variance_diversity > 0


def test_partners_are_the_images_themselves_or_a_part_drawn_by_the_seed(photos, monkeypatch):
    files = image_files(photos, test_fraction=0).train
    every = torch.stack([decode(path, size=16) for path in files.paths])
    assert len(files) < MAX_PARTNERS
    assert torch.equal(partners(files, size=16, seed=5), every)
    monkeypatch.setattr("divaug.lab.datasets.stream.MAX_PARTNERS", 6)
    few = partners(files, size=16, seed=5)
    assert torch.equal(few, partners(files, size=16, seed=5, num_workers=2))
    places = [(every == one).flatten(1).all(1).nonzero().item() for one in few]
    assert len(set(places)) == 6
    assert not torch.equal(few, partners(files, size=16, seed=6))
