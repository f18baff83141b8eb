"""Semi-supervised training learns: 64 images by heart, and more from 50 labels than they hold."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from divaug import recipes
from divaug.datasets import load
from divaug.training import train
from divaug.training.progress import Silent
from divaug.training.splits import draw_split
from tests.training_helpers import toy_data

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def clothes():
    """The shipped images at half their size, so that a few hundred steps take seconds."""
    data = load("fashion_mnist_small")

    def halved(images):
        return F.avg_pool2d(images.float(), 2).round().to(torch.uint8)

    return replace(
        data, train_images=halved(data.train_images), test_images=halved(data.test_images)
    )


def recipe_of(**changes):
    small = replace(
        recipes.recipe("demo-default"),
        objective="uda",
        augmenter="divaug",
        space="uda",
        num_candidates=3,
        num_selected=2,
        epochs=1,
        learning_rate=0.05,
        batch_size=25,
        unlabelled_batch_size=32,
        confidence=0.6,
    )
    return replace(small, **changes)


def accuracy(recipe, data, out, unlabelled=None):
    result = train(recipe, out, data=data, device="cpu", reporter=Silent(), unlabelled=unlabelled)
    return result.test.accuracy


@pytest.mark.parametrize("objective", ["uda", "fixmatch"])
def test_64_images_are_learnt_by_heart(tmp_path, objective):
    data = toy_data(64)
    same = replace(data, test_images=data.train_images, test_labels=data.train_labels)
    recipe = recipe_of(objective=objective, batch_size=32, unlabelled_batch_size=16, epoch_steps=40)
    assert accuracy(recipe, same, tmp_path / "run") == 1.0


def test_unlabelled_images_add_to_50_labels(clothes, tmp_path):
    """Alike but for the unlabelled images.

    Measured: 51 per cent alone and 64 with them; over the seeds 0 to 3, all of which gain, 56 and
    60 on average.
    """
    recipe = recipe_of(labels=50, epoch_steps=200, seed=2)
    labelled = clothes.train_images[draw_split(clothes, 50, recipe.seed).indices(CPU)]
    # Nothing but the 50 images goes through the network, not even for BatchNorm's statistics.
    alone = replace(recipe, augmenter="default", unlabelled_weight=0.0, unlabelled_batch_size=1)
    without = accuracy(alone, clothes, tmp_path / "alone", unlabelled=labelled)
    assert accuracy(recipe, clothes, tmp_path / "with") > without + 0.04
