"""Bad data on the command line: one line, exit code 2, and nothing written."""

import io
import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from divaug.lab import datasets
from divaug.lab.cli import run
from divaug.lab.datasets import ImageStream, identify
from divaug.lab.recipes import recipe as read_recipe_of
from divaug.lab.train import checkpoints
from divaug.lab.train.data import describe, load_data
from divaug.lab.train.runs import read_recipe
from tests.dataset_files import write_images
from tests.training_helpers import toy_data

SMALL = ("--set", "epochs=1", "--set", "batch_size=8", "--device", "cpu")
STREAMED = ("--set", "epochs=2", "--set", "batch_size=4", "--set", "num_workers=0")


def save(path, **changes):
    toy = toy_data(num_train=24, num_test=12)
    arrays = {
        "x_train": toy.train_images.numpy(),
        "y_train": toy.train_labels.numpy(),
        "x_test": toy.test_images.numpy(),
        "y_test": toy.test_labels.numpy(),
    }
    np.savez(path, **(arrays | changes))
    return path


def call(capsys, *words):
    with pytest.raises(SystemExit) as end:
        run([str(word) for word in words])
    captured = capsys.readouterr()
    return end.value.code, captured.out, captured.err.splitlines()


def refused(capsys, *words):
    """The one line that a command ends with."""
    code, out, lines = call(capsys, *words)
    assert (code, out, len(lines)) == (2, "", 1), lines
    assert lines[0].startswith("divaug: ")
    return lines[0]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on four classes, by a recipe that names a dataset of ten."""
    folder = tmp_path_factory.mktemp("trained")
    save(folder / "toy.npz")
    words = ["train", "demo-default", "--set", f"dataset={folder / 'toy.npz'}", *SMALL]
    with pytest.raises(SystemExit) as end:
        run([*words, "--out", str(folder / "run")])
    assert end.value.code == 0
    return folder / "run"


BAD_ARRAYS = {
    "float images": ({"x_train": np.zeros((24, 16, 16), np.float32)}, "x_train must be uint8"),
    "float labels": ({"y_train": np.arange(24) % 4 / 1.0}, "y_train must be whole numbers"),
    "negative labels": ({"y_test": np.arange(12) % 4 - 1}, "test_labels must lie in 0 … 3"),
    "stray label": ({"y_train": np.arange(24) % 4 * 9}, "no image of 24 of its 28 classes"),
    "label too high": ({"y_test": np.arange(12) % 5}, "y_test has classes that y_train has not: 4"),
    "either layout": (
        {"x_train": np.zeros((24, 3, 3, 3), np.uint8)},
        'numpy.savez(..., layout="NHWC")',
    ),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_arrays_that_do_not_fit_are_one_line_and_write_nothing(capsys, tmp_path, trained, case):
    changes, message = BAD_ARRAYS[case]
    path, out = save(tmp_path / "bad.npz", **changes), tmp_path / "out"
    words = ("train", "cifar10-wide-resnet-40-2-default", "--out", out, *SMALL)
    uda = ("train", "demo-divaug", "--objective", "uda", "--labels", 8, "--out", out, *SMALL)
    good = save(tmp_path / "good.npz")
    for command in (
        (*words, "--data", path),
        (*words, "--set", f"dataset={path}"),
        (*uda, "--set", f"dataset={good}", "--unlabelled", path),
        ("evaluate", trained, "--data", path, "--device", "cpu"),
    ):
        line = refused(capsys, *command)
        assert message in line
        assert "bad" in line
    assert not out.exists()


def test_damaged_files_are_one_line_and_write_nothing(capsys, tmp_path):
    out = tmp_path / "out"
    raw = bytearray(save(tmp_path / "bad.npz").read_bytes())
    raw[raw.rindex(b"PK\x01\x02") + 6] = 131  # the version that is needed to read the last entry
    (tmp_path / "bad.npz").write_bytes(raw)
    line = refused(
        capsys, "train", "demo-default", "--out", out, *SMALL, "--data", tmp_path / "bad.npz"
    )
    assert "bad.npz is damaged or not a plain .npz file (zip file version 13.1); write" in line
    (tmp_path / "pk.npy").write_bytes(b"PK\x03\x04")
    words = ("--set", f"dataset={save(tmp_path / 'good.npz')}", "--objective", "uda", "--labels", 8)
    more = ("--unlabelled", tmp_path / "pk.npy")
    line = refused(capsys, "train", "demo-divaug", "--out", out, *SMALL, *words, *more)
    assert "pk.npy is damaged or not an .npy file" in line
    assert not out.exists()


@pytest.mark.parametrize(
    ("labelled", "message"),
    [
        ([0, "one", 2.5], "whole numbers from 0 on, positions of training images; got 'one'"),
        ([0, None], "got None"),
        ([1, 2, -1], "got -1"),
        ([0, [1]], "got [1]"),
        ([], "got none"),
        ([0, 1, 1], "twice"),
    ],
)
def test_a_split_of_mixed_things_is_one_line(capsys, tmp_path, labelled, message):
    split = tmp_path / "split.json"
    split.write_text(json.dumps({"format": "divaug.split/1", "labelled": labelled}))
    words = ("--set", f"dataset={save(tmp_path / 'toy.npz')}", "--objective", "uda")
    out = tmp_path / "out"
    line = refused(capsys, "train", "demo-divaug", "--out", out, *SMALL, *words, "--split", split)
    assert str(split) in line
    assert message in line
    assert not out.exists()


def damaged(kind):
    out = io.BytesIO()
    pixels = np.random.default_rng(1).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(out, kind)
    raw = out.getvalue()
    half = len(raw) // 2
    return raw[:half] + bytes(30) + raw[half + 30 :] if kind == "png" else raw[:half]


@pytest.mark.parametrize("kind", ["png", "bmp", "tiff", "jpeg"])
def test_an_unreadable_image_is_named_before_anything_is_written(capsys, tmp_path, kind):
    photos, out = tmp_path / "photos", tmp_path / "out"
    write_images(photos / "train", {"cat": 4, "dog": 4})
    write_images(photos / "val", {"cat": 2, "dog": 2})
    for part in ("val", "train"):
        bad = photos / part / "dog" / f"bad.{kind}"
        bad.write_bytes(damaged(kind))
        words = ("--data", photos, "--out", out, "--device", "cpu", *STREAMED)
        line = refused(capsys, "train", "demo-default", *words)
        assert f"{bad} is not a readable image but damaged" in line
        assert "repair it or take it out" in line
        assert not out.exists()


def test_a_folder_with_one_class_is_one_line(capsys, tmp_path):
    write_images(tmp_path / "photos", {"cat": 4})
    out = tmp_path / "out"
    words = ("--data", tmp_path / "photos", "--out", out, "--device", "cpu", *STREAMED)
    line = refused(capsys, "train", "demo-default", *words)
    assert "photos must have a sub-folder for each class, at least 2, got 1" in line
    assert not out.exists()


def test_an_image_damaged_during_a_run_is_named_and_a_repair_is_other_data(
    capsys, tmp_path, monkeypatch
):
    photos, out = tmp_path / "photos", tmp_path / "out"
    write_images(photos / "train", {"cat": 4, "dog": 4})
    write_images(photos / "val", {"cat": 2, "dog": 2})
    victim = photos / "train" / "dog" / "01.png"
    whole = victim.read_bytes()
    words = ("--data", photos, "--out", out, "--device", "cpu", *STREAMED)
    read = ImageStream.epoch

    def spoiled(self, epoch, **named):
        if epoch == 1:
            victim.write_bytes(damaged("png"))
        return read(self, epoch, **named)

    monkeypatch.setattr(ImageStream, "epoch", spoiled)
    code, _, lines = call(capsys, "train", "demo-default", *words)
    assert (code, len(lines)) == (2, 1)
    assert f"{victim} is not a readable image but damaged" in lines[0]
    assert "begin the run again in another folder" in lines[0]
    monkeypatch.setattr(ImageStream, "epoch", read)
    Image.new("RGB", (30, 20), (1, 2, 3)).save(victim)
    line = refused(capsys, "train", "demo-default", *words, "--resume")
    assert "its content has changed since (a repair changes it too)" in line
    victim.write_bytes(whole)
    code, _, lines = call(capsys, "train", "demo-default", *words, "--resume")
    assert (code, lines) == (0, [])


def test_other_classes_are_refused_with_advice_that_the_command_can_follow(
    capsys, tmp_path, trained
):
    path = save(tmp_path / "three classes.npz", y_train=np.arange(24) % 3, y_test=np.arange(12) % 3)
    line = refused(capsys, "evaluate", trained, "--data", path, "--device", "cpu")
    assert "the numbers of classes differ; give data with 4 classes (--data)" in line
    assert "--set" not in line
    line = refused(capsys, "train", "demo-default", "--data", path, "--out", tmp_path / "out")
    assert f"(divaug train demo-default --set 'dataset={path}')" in line


def test_a_run_is_used_on_a_file_with_its_own_number_of_classes(capsys, tmp_path):
    """The recipe names a dataset of ten classes; the run was trained on a folder of two."""
    write_images(tmp_path / "photos", {"cat": 6, "dog": 6}, size=(16, 16))
    out = tmp_path / "out"
    words = ("--data", tmp_path / "photos", "--out", out, "--device", "cpu", *STREAMED)
    assert call(capsys, "train", "demo-default", *words)[0] == 0
    rng = np.random.default_rng(0)
    path = tmp_path / "two.npz"
    x, y = rng.integers(0, 256, (6, 16, 16, 3), dtype=np.uint8), np.arange(6) % 2
    np.savez(path, x_train=x, x_test=x, y_train=y, y_test=y)
    code, log, lines = call(capsys, "evaluate", out, "--data", path, "--device", "cpu")
    assert code == 0
    assert "(6 images)" in log
    assert "not the data that the run was trained on" in lines[0]


def test_a_file_in_place_of_the_recipes_dataset_is_noted(capsys, tmp_path):
    labels = {"y_train": np.arange(24) % 10, "y_test": np.arange(12) % 10}
    note = "in place of the recipe's fashion_mnist_small, whose default augmentation it gets"
    for name, noted in (("cifar10", True), ("fashion-mnist-small", False)):
        path = save(tmp_path / f"{name}.npz", **labels)
        words = ("--data", path, "--out", tmp_path / name, *SMALL)
        code, log, _ = call(capsys, "train", "demo-default", *words)
        assert code == 0
        assert log.splitlines()[0].startswith(f"data '{name}' (24 training")
        assert log.splitlines()[0].endswith(note) == noted
        assert log.count("in place of") == noted


def test_a_file_in_place_of_a_recipes_own_file_is_noted(capsys, tmp_path):
    labels = {"y_train": np.arange(24) % 10, "y_test": np.arange(12) % 10}
    mine, other = (save(tmp_path / f"{name}.npz", **labels) for name in ("mine", "other"))
    for path, noted in ((mine, False), (other, True)):
        words = ("--set", f"dataset={mine}", "--data", path, "--out", tmp_path / path.stem, *SMALL)
        code, log, _ = call(capsys, "train", "demo-default", *words)
        assert code == 0
        assert log.splitlines()[0].endswith(f"in place of the recipe's {mine}") == noted


def test_a_command_is_recommended_only_where_it_works(tmp_path):
    path = save(tmp_path / "four.npz")
    known = read_recipe_of("demo-default")
    for name, words in (
        ("demo-default", "divaug train demo-default --set"),
        ("mine", r"\(dataset="),
    ):
        with pytest.raises(ValueError, match=words):
            load_data(replace(known, name=name), path)


def test_many_classes_are_not_all_named(tmp_path):
    write_images(tmp_path / "photos", dict.fromkeys("abcdefg", 2), size=(8, 8))
    recipe = replace(read_recipe_of("demo-default"), dataset=str(tmp_path / "photos"))
    found = load_data(recipe)
    line = describe(recipe, found, identify(found))
    assert line.endswith("; classes a, b, c, d, e and 2 more")


@pytest.mark.parametrize("name", ["SVHN.npz", "CIFAR-10.npz"])
def test_a_recipes_own_file_takes_nobodys_place(name, tmp_path):
    recipe = replace(read_recipe_of("demo-default"), dataset=str(save(tmp_path / name)))
    found = load_data(recipe)
    assert "in place of" not in describe(recipe, found, identify(found))


def test_a_dataset_that_is_there_is_read_whatever_lies_beside_it(tmp_path, monkeypatch):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "photo.heic").touch()
    there = toy_data()
    monkeypatch.setattr(datasets, "load", lambda *_, **__: there)
    recipe = read_recipe_of("cifar10-wide-resnet-40-2-default")
    assert load_data(recipe, tmp_path, any_classes=True) is there


def test_data_that_would_be_ignored_is_refused(capsys, tmp_path):
    """Nothing else is trained on instead, and nothing is downloaded into such a folder."""
    (tmp_path / "phone" / "cats").mkdir(parents=True)
    (tmp_path / "phone" / "cats" / "1.heic").write_bytes(b"ftypheic")
    (tmp_path / "empty").mkdir()
    out = tmp_path / "out"
    for recipe in ("demo-default", "cifar10-wide-resnet-40-2-default"):
        words = ("train", recipe, "--out", out, "--data", tmp_path / "phone", *SMALL)
        code, _, err = call(capsys, *words)
        assert code == 2
        assert ".heic" in err[0]
        assert "convert them" in err[0]
        code, _, err = call(capsys, "train", recipe, "--out", out, "--data", os.devnull, *SMALL)
        assert code == 2
        assert "neither a file nor a folder" in err[0]
    words = ("train", "demo-default", "--out", out, "--data", tmp_path / "empty", *SMALL)
    code, _, err = call(capsys, *words)
    assert code == 2
    assert "comes with the package" in err[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "phone"]


def test_a_checkpoint_of_another_network_is_one_line(capsys, tmp_path, trained):
    other = tmp_path / "run"
    shutil.copytree(trained, other)
    recipe = json.loads((other / "recipe.json").read_text())
    recipe["model"] = "wide-resnet-40-2"
    (other / "recipe.json").write_text(json.dumps(recipe))
    assert read_recipe(other).model != read_recipe(trained).model
    newest = checkpoints.find(other / "checkpoints")[-1]
    before = {path: path.stat().st_mtime_ns for path in other.rglob("*")}
    for command in (
        ("evaluate", other, "--device", "cpu"),
        ("evaluate", newest, "--device", "cpu"),
        ("measure", other, "--json", tmp_path / "found.json", "--device", "cpu"),
    ):
        assert "belongs to another network" in refused(capsys, *command)
    data = json.loads((other / "data.json").read_text())["path"]
    words = ("--set", f"dataset={data}", "--set", "model=wide-resnet-40-2", *SMALL, "--resume")
    code, _, lines = call(capsys, "train", "demo-default", "--out", other, *words)
    assert (code, len(lines)) == (2, 1)
    assert "belongs to another network" in lines[0]
    assert {path: path.stat().st_mtime_ns for path in other.rglob("*")} == before
    assert not (tmp_path / "found.json").exists()
