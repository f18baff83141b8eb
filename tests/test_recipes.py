"""Recipes: complete, checked, named; each of them can be built."""

import dataclasses
import json
import math
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError

from divaug.lab import models
from divaug.lab.datasets import Dataset, Files, ImageFiles, image_files
from divaug.lab.methods import AUGMENTERS
from divaug.lab.recipes import RECIPES, ROWS, Recipe, override, recipe
from divaug.lab.train import Hardware, batches, evaluate
from divaug.lab.train.build import assemble
from divaug.lab.train.processes import Processes

BASE = recipe("cifar10-wide-resnet-40-2-divaug")
CLASSES = {"cifar10": 10, "cifar100": 100, "svhn": 10, "imagenet": 1000}
ROTATING = tuple(f"divaug-rotate-0.{tenths}" for tenths in range(1, 10))
CHOOSING = ("random", "divaug", "divaug-greedy", "divaug-exact", *ROTATING)
SEVERAL = (*CHOOSING, "randaugment-xS", "trivialaugment-xS")
META = Hardware(torch.device("meta"))


def data_for(dataset, num_images):
    """As many empty images as a batch has, of a dataset's shape; for ImageNet names of files."""
    classes = CLASSES.get(dataset, 10)
    names = tuple(f"class {i}" for i in range(classes))
    labels = torch.arange(num_images) % classes
    if dataset == "imagenet":
        files = Files(tuple(f"{i}.jpg" for i in range(num_images)), labels)
        return ImageFiles(dataset, files, files, classes, names, (0.5,) * 3, (0.25,) * 3)
    channels, side = (1, 28) if dataset.startswith("fashion") else (3, 32)
    images = torch.zeros(num_images, channels, side, side, dtype=torch.uint8)
    part = (images, labels)
    mean, std = (0.5,) * channels, (0.25,) * channels
    return Dataset(dataset, *part, *part, classes, names, mean, std)


def assembled(one):
    """What `divaug train` builds for a recipe, its network without memory."""
    data = data_for(one.dataset, one.batch_size)
    empty = torch.zeros(4, 3, 256, 256, dtype=torch.uint8)
    # The names of ImageNet's files are made up, so there is nothing to decode partners from.
    with torch.device("meta"), mock.patch.object(batches, "partners", return_value=empty):
        return assemble(one, data, META, Processes()), data


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.dataset}-{row.model}")
def test_every_row_has_every_augmenter_and_a_run_can_be_assembled(row):
    for name in AUGMENTERS:
        if (row.dataset, name) == ("imagenet", "pba"):
            assert f"{row.dataset}-{row.model}-{name}" not in RECIPES
            continue
        one = recipe(f"{row.dataset}-{row.model}-{name}")
        parts, data = assembled(one)
        built = models.MODELS[row.model]
        with torch.device("meta"):
            expected = sum(p.numel() for p in built(data.num_classes).parameters())
        assert sum(p.numel() for p in parts.step.optimizer.parameters) == expected
        assert parts.step.optimizer.total_steps == one.epochs  # one batch of images
        assert parts.augment.views == (one.num_selected if name in SEVERAL else 1)
        source = parts.augment.expansion
        assert source.num_candidates == (8, 4)[row.dataset == "imagenet"] or name not in CHOOSING


@pytest.mark.parametrize("name", [name for name in RECIPES if name.startswith("demo-")])
def test_the_demos_can_be_assembled(name):
    parts, _ = assembled(recipe(name))
    assert parts.feed.steps == 1


@pytest.mark.parametrize("augmenter", [name for name in AUGMENTERS if name != "pba"])
def test_a_network_is_trained_and_tested_on_images_of_one_size(tmp_path, augmenter):
    """ImageNet: squares of 256 pixels are cut to 224, with any augmenter and in the evaluation."""
    noise = torch.randint(0, 256, (4, 40, 30, 3), generator=torch.Generator().manual_seed(0))
    for i, image in enumerate(noise.to(torch.uint8)):
        folder = tmp_path / ("train", "val")[i // 2] / "ab"[i % 2]
        folder.mkdir(parents=True)
        Image.fromarray(image.numpy()).save(folder / f"{i}.png")
    one = dataclasses.replace(
        recipe(f"imagenet-resnet-50-{augmenter}"), model="tiny-resnet-8", batch_size=2,
        num_workers=0, epochs=1,
    )  # fmt: skip
    cpu = Hardware(torch.device("cpu"))
    parts = assemble(one, image_files(tmp_path), cpu, Processes())
    seen = []
    parts.network.register_forward_pre_hook(
        lambda module, given: seen.append((module.training, tuple(given[0].shape[2:])))
    )
    parts.step(next(parts.feed.epoch(0, 0)))
    evaluate(parts.called, parts.test, parts.default, cpu)
    assert {size for _, size in seen} == {(224, 224)}
    assert {mode for mode, _ in seen} == {True, False}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("cifar10-wide-resnet-28-10-divaug", (200, 128, 0.1, 5e-4, 8, 4, 3, 5)),
        ("cifar10-shake-shake-26-2x96d-divaug", (600, 128, 0.2, 1e-4, 8, 4, 3, 9)),
        ("cifar100-shake-shake-26-2x96d-divaug", (1200, 128, 0.1, 5e-4, 8, 4, 2, 14)),
        ("svhn-wide-resnet-28-10-randaugment", (200, 128, 0.005, 0.005, 8, 4, 3, 9)),
        ("imagenet-resnet-50-divaug", (120, 512, 0.2, 1e-4, 4, 2, 2, 9)),
        ("cifar10-pyramidnet-272-divaug", (600, 128, 0.1, 1e-4, 8, 4, 3, 7)),
    ],
)
def test_the_papers_values(name, values):
    one = recipe(name)
    found = (
        one.epochs, one.batch_size, one.learning_rate, one.weight_decay,
        one.num_candidates, one.num_selected, one.randaugment_n, one.randaugment_m,
    )  # fmt: skip
    assert found == values
    assert (one.momentum, one.nesterov, one.grad_clip, one.seed) == (0.9, True, 5.0, 0)


def test_names_ignore_capitals_and_a_typo_gets_the_nearest():
    assert recipe("CIFAR10-Wide-ResNet-40-2-randaugment-xs").augmenter == "randaugment-xS"
    with pytest.raises(ValueError, match="Did you mean 'cifar10-wide-resnet-28-10-pba'"):
        recipe("cifar10-wide-resnet-2810-pba")


@pytest.mark.parametrize("one", RECIPES.values(), ids=RECIPES)
def test_json_round_trip(one):
    assert Recipe.from_json(one.to_json()) == one


def test_the_hash_follows_every_field_but_the_name():
    assert len({one.hash for one in RECIPES.values()}) == len(RECIPES)
    assert dataclasses.replace(BASE, name="other").hash == BASE.hash
    assert dataclasses.replace(BASE, seed=1).hash != BASE.hash
    assert dataclasses.replace(BASE, test_fraction=0.3).hash != BASE.hash


def test_overrides_are_read_by_the_type_of_their_field():
    changed = override(
        BASE, ["epochs=3", "learning_rate = 1e-2", "nesterov=no", "augmenter=default"]
    )
    assert (changed.epochs, changed.learning_rate) == (3, 0.01)
    assert (changed.nesterov, changed.augmenter) == (False, "default")
    assert override(BASE, []) == BASE


@given(st.integers(1, 10**6), st.floats(0, 1e6))
def test_an_override_is_what_it_says(epochs, rate):
    changed = override(BASE, [f"epochs={epochs}", f"learning_rate={rate!r}"])
    assert changed == dataclasses.replace(BASE, epochs=epochs, learning_rate=rate)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("epoch=3", "Did you mean 'epochs'.*Known:.*batch_size"),
        ("epochs", "field=value"),
        ("epochs=3.5", "`epochs`: .* integer, .*, got '3.5'"),
        ("nesterov=maybe", "`nesterov`: .* boolean"),
        ("learning_rate=fast", "`learning_rate`: .* number"),
        ("learning_rate=nan", "`learning_rate`: .* finite number, got 'nan'"),
        ("weight_decay=-1", "`weight_decay`: .* greater than or equal to 0, got '-1'"),
        ("epochs=0", "`epochs`: .* greater than or equal to 1, got '0'"),
        (f"epochs={10**23}", "`epochs`: .* less than or equal to 1000000000"),
        (f"seed={2**63}", "`seed`: .* less than"),
        ("num_selected=9", "`num_selected` must not exceed num_candidates=8"),
        ("num_candidates=65", "`num_candidates`: .* less than or equal to 64, got '65'"),
        ("model=resnet-19", "Did you mean 'resnet-18'"),
        ("augmenter=divag", "Did you mean 'divaug'"),
        ("precision=float8", "`precision`: .* 'float32'"),
        ("space=papr", "Did you mean 'paper'"),
        ("dataset=", "`dataset`: .* at least 1 character"),
        ("momentum=1.5", "`momentum`: .* less than or equal to 1"),
    ],
)
def test_bad_overrides_teach(change, message):
    with pytest.raises(ValueError, match=message):
        override(BASE, [change])


def test_types_are_checked():
    for field, value in (("epochs", 3.0), ("nesterov", 1), ("learning_rate", math.inf)):
        with pytest.raises(ValidationError, match=field):
            dataclasses.replace(BASE, **{field: value})
    assert isinstance(dataclasses.replace(BASE, learning_rate=1).learning_rate, float)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda c: c.pop("epochs"), "`epochs`: "),
        (lambda c: c.update(speed=1), "`speed`: "),
        (lambda c: c.pop("format"), "`format`"),
    ],
)
def test_foreign_json_is_refused(edit, message):
    content = json.loads(BASE.to_json())
    edit(content)
    with pytest.raises(ValueError, match=message):
        Recipe.from_json(json.dumps(content))
    with pytest.raises(ValueError, match="JSON text"):
        Recipe.from_json("{")


def test_the_documented_table_is_the_table():
    from pathlib import Path

    text = (Path(__file__).parents[1] / "docs" / "training.md").read_text(encoding="utf-8")
    names = {row.dataset for row in ROWS}
    cells = [line.strip("| ").split(" | ") for line in text.splitlines()]
    documented = [row for row in cells if len(row) == 8 and row[0] in names]
    assert len(documented) == len(ROWS)
    for row, found in zip(ROWS, documented, strict=True):
        numbers = [float(cell) for cell in found[2:6]]
        assert found[:2] == [row.dataset, row.model]
        assert numbers == [row.epochs, row.batch_size, row.learning_rate, row.weight_decay]
        assert found[6] == "{}, {}".format(*row.candidates)
        assert found[7].removesuffix(" (ours)") == "{}, {}".format(*row.randaugment)
