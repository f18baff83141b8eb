"""When two runs are one: every field that decides a result counts, no other does."""

import copy
from dataclasses import fields, replace

import pytest
import torch
from divaug.lab.reproduce.identity import (
    cell_hash,
    cost_hash,
    examination_hash,
    fingerprint,
    measurement_hash,
    run_hash,
    step_hash,
)

from divaug.lab.bench.step import random_data
from divaug.lab.recipes import Recipe, recipe
from divaug.lab.reproduce.options import (
    DEMO_ROW,
    PAPER_ROW,
    ROW_NAMES,
    TRAIN_IMAGES,
    Options,
    recipe_of,
)
from tests.training_helpers import toy_data

BASE = recipe("cifar10-wide-resnet-40-2-divaug")
NEUTRAL = {"name", "evaluate_every", "checkpoint_every", "log_every", "num_workers",
           "sync_batchnorm"}  # fmt: skip


def changed(field):
    """The recipe with another value there, whether or not a recipe may have it."""
    value = getattr(BASE, field.name)
    others = {str: lambda: value + "x", bool: lambda: not value}
    other = copy.copy(BASE)
    object.__setattr__(other, field.name, others.get(type(value), lambda: value + 1)())
    return other


@pytest.mark.parametrize("field", fields(Recipe), ids=lambda field: field.name)
def test_a_field_counts_unless_it_decides_nothing(field):
    other = changed(field)
    assert other != BASE
    assert (run_hash(other) == run_hash(BASE)) == (field.name in NEUTRAL)
    assert (cell_hash(other) == cell_hash(BASE)) == (field.name in NEUTRAL | {"seed"})


def test_hashes_of_different_kinds_never_meet():
    found = {
        run_hash(BASE),
        cell_hash(BASE),
        measurement_hash(BASE, "divaug", 4),
        measurement_hash(BASE, "divaug", 2),
        measurement_hash(BASE, "random", 4),
        measurement_hash(BASE, "pba", 4),
        measurement_hash(BASE, "pba", 4, 10),
        examination_hash(BASE, 4),
        examination_hash(BASE, 5),
        step_hash(BASE),
        cost_hash(BASE, "NVIDIA H200", "a"),
        cost_hash(BASE, "NVIDIA A100", "a"),
        cost_hash(BASE, "NVIDIA A100", "b"),
    }
    assert len(found) == 13


def test_the_time_of_a_step_hangs_on_the_network_and_not_on_the_schedule():
    other = replace(BASE, epochs=3, seed=2, learning_rate=0.3)
    assert step_hash(other) == step_hash(BASE)
    assert cost_hash(other, "m", "a") == cost_hash(BASE, "m", "a")
    assert step_hash(replace(BASE, batch_size=64)) != step_hash(BASE)
    assert cost_hash(replace(BASE, batch_size=64), "m", "a") != cost_hash(BASE, "m", "a")


def test_the_fingerprint_sees_every_part_of_the_data():
    data = toy_data()
    marks = {fingerprint(data), fingerprint(toy_data())}
    assert len(marks) == 1
    for part in ("train_images", "train_labels", "test_images", "test_labels"):
        tensor = getattr(data, part).clone()
        tensor.view(-1)[-1] = (tensor.view(-1)[-1] + 1) % 4
        marks.add(fingerprint(replace(data, **{part: tensor})))
    assert len(marks) == 5


def test_options_shrink_a_recipe_and_leave_the_rest():
    plain = recipe_of(PAPER_ROW, "divaug", 0, Options())
    assert plain == BASE
    small = recipe_of(PAPER_ROW, "divaug", 3, Options(epochs=2, scale=0.01, changes=("space=uda",)))
    assert small.differences(BASE).keys() == {"epochs", "train_images", "space", "seed"}
    assert small.train_images == 500
    assert recipe_of(PAPER_ROW, "divaug", 0, Options(epochs=2), epochs=7).epochs == 7


def test_every_row_has_a_recipe_and_a_known_size():
    for row in ROW_NAMES:
        found = recipe_of(row, "divaug", 0, Options())
        assert found.name == f"{row}-divaug"
        assert TRAIN_IMAGES[found.dataset] > 0
        random_data(found, 1)  # its images fit into memory: it can be timed, and so run


def test_the_demo_row_has_the_shipped_data():
    from divaug.lab.datasets import load

    assert len(load("fashion_mnist_small").train_images) == TRAIN_IMAGES["fashion_mnist_small"]
    found = recipe_of(DEMO_ROW, "divaug", 0, Options())
    assert run_hash(found) == run_hash(recipe("demo-divaug"))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"rows": ("cifar10-wide-resnet-40-3",)}, "cifar10-wide-resnet-40-2"),
        ({"rows": ("imagenet-resnet-50",)}, "divaug train imagenet-resnet-50-divaug"),
        ({"scale": 0.0}, "scale"),
        ({"scale": 1.5}, "scale"),
        ({"seeds": 0}, "seeds"),
        ({"epochs": 0}, "epochs"),
    ],
)
def test_bad_options_are_named(given, named):
    with pytest.raises(ValueError, match=named):
        Options(**given)


def test_images_on_any_device_have_one_fingerprint():
    data = toy_data()
    turned = replace(data, train_images=data.train_images.to(memory_format=torch.channels_last))
    assert fingerprint(turned) == fingerprint(data)
