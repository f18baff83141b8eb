"""Bad data on the command line: one line, exit code 2, and nothing written."""

import json
import shutil

import numpy as np
import pytest

from divaug.lab.cli import run
from divaug.lab.train import checkpoint
from divaug.lab.train.folder import read_recipe
from tests.image_files import write_images
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


def test_a_file_that_does_not_fit_is_one_line_and_writes_nothing(capsys, tmp_path, trained):
    path = save(tmp_path / "bad.npz", x_train=np.zeros((24, 16, 16), np.float32))
    good, out = save(tmp_path / "good.npz"), tmp_path / "out"
    words = ("train", "cifar10-wide-resnet-40-2-default", "--out", out, *SMALL)
    uda = ("train", "demo-divaug", "--objective", "uda", "--labels", 8, "--out", out, *SMALL)
    for command in (
        (*words, "--data", path),
        (*words, "--set", f"dataset={path}"),
        (*uda, "--set", f"dataset={good}", "--unlabelled", path),
        ("evaluate", trained, "--data", path, "--device", "cpu"),
    ):
        assert "bad.npz: `x_train` must be uint8" in refused(capsys, *command)
    assert not out.exists()


@pytest.mark.parametrize(
    ("labelled", "message"),
    [([0, "one", 2.5], "got 'one'"), ([1, 2, -1], "got -1"), ([], "got []"), ([0, 1, 1], "twice")],
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


def test_a_folder_with_one_class_is_one_line(capsys, tmp_path):
    write_images(tmp_path / "photos", {"cat": 4})
    out = tmp_path / "out"
    words = ("--data", tmp_path / "photos", "--out", out, "--device", "cpu", *STREAMED)
    line = refused(capsys, "train", "demo-default", *words)
    assert "photos must have a sub-folder for each class, at least 2, got 1" in line
    assert not out.exists()


def test_an_unreadable_image_is_one_line_and_its_repair_is_other_data(capsys, tmp_path):
    photos, out = tmp_path / "photos", tmp_path / "out"
    write_images(photos / "train", {"cat": 4, "dog": 4})
    write_images(photos / "val", {"cat": 2, "dog": 2})
    words = ("--data", photos, "--out", out, "--device", "cpu", *STREAMED)
    assert call(capsys, "train", "demo-default", *words)[0] == 0
    (photos / "val" / "dog" / "01.png").write_bytes(b"no image")
    line = refused(capsys, "train", "demo-default", *words, "--resume")
    assert "cannot be resumed with" in line
    words = ("--data", photos, "--out", tmp_path / "again", "--device", "cpu", *STREAMED)
    code, _, lines = call(capsys, "train", "demo-default", *words)
    assert (code, len(lines)) == (2, 1)
    assert "01.png must be a readable image" in lines[0]


def test_other_classes_are_refused_with_advice_that_the_command_can_follow(
    capsys, tmp_path, trained
):
    path = save(tmp_path / "three classes.npz", y_train=np.arange(24) % 3, y_test=np.arange(12) % 3)
    line = refused(capsys, "evaluate", trained, "--data", path, "--device", "cpu")
    assert "the numbers of classes differ; give data with 4 classes (--data)" in line
    assert "--set" not in line
    line = refused(capsys, "train", "demo-default", "--data", path, "--out", tmp_path / "out")
    assert f"set dataset={path}" in line


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
    note = "in place of the recipe's fashion_mnist_small"
    for name, noted in (("cifar10", True), ("fashion-mnist-small", False)):
        path = save(tmp_path / f"{name}.npz", **labels)
        words = ("--data", path, "--out", tmp_path / name, *SMALL)
        code, log, _ = call(capsys, "train", "demo-default", *words)
        assert code == 0
        assert log.splitlines()[0].startswith(f"data '{name}' (24 training")
        assert log.splitlines()[0].endswith(note) == noted
        assert log.count("in place of") == noted


def test_data_that_would_be_ignored_is_refused(capsys, tmp_path):
    """Nothing else is trained on instead."""
    (tmp_path / "empty").mkdir()
    for place, words in (("empty", "comes with the package"), ("nowhere", "does not exist")):
        line = refused(
            capsys, "train", "demo-default", "--out", tmp_path / "out", "--data", tmp_path / place
        )
        assert words in line


def test_a_checkpoint_of_another_network_is_one_line(capsys, tmp_path, trained):
    other = tmp_path / "run"
    shutil.copytree(trained, other)
    recipe = json.loads((other / "recipe.json").read_text())
    recipe["model"] = "wide-resnet-40-2"
    (other / "recipe.json").write_text(json.dumps(recipe))
    assert read_recipe(other).model != read_recipe(trained).model
    newest = checkpoint.find(other / "checkpoints")[-1]
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
