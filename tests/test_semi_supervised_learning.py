"""Semi-supervised training learns: views like originals, and more from 50 labels than they hold."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from divaug.lab import recipes
from divaug.lab.datasets import load
from divaug.lab.train import train
from divaug.lab.train.console import Silent
from divaug.lab.train.data import draw_split
from divaug.lab.train.folder import read_metrics
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
def test_the_unlabelled_loss_brings_views_to_their_original(tmp_path, objective):
    """Eight labels teach 64 easy images; that strong views are answered alike takes the other loss.

    Measured with seeds 0 and 1: 1.23 to 1.26 without it and 0.74 to 0.80 with it, where 87 to 96
    per cent of the images are believed either way.
    """
    data = toy_data(64)
    same = replace(data, test_images=data.train_images, test_labels=data.train_labels)
    recipe = recipe_of(
        objective=objective, labels=8, batch_size=8, unlabelled_batch_size=16, epochs=3,
        epoch_steps=10,
    )  # fmt: skip
    last = {}
    for weight in (0.0, 1.0):
        out = tmp_path / str(weight)
        assert accuracy(replace(recipe, unlabelled_weight=weight), same, out) == 1.0
        last[weight] = read_metrics(out)[-1]
        assert last[weight]["confident"] > 0.8
    assert last[1.0]["unlabelled_loss"] < 0.8 * last[0.0]["unlabelled_loss"]


def test_unlabelled_images_add_to_50_labels(clothes, tmp_path):
    """Alike but for the unlabelled images, over three seeds, which also draw the split.

    Measured with seeds 0, 1 and 2: 60.6, 57.1 and 58.8 per cent alone, 64.1, 59.1 and 64.1 with
    them. Seeds 3 and 4 gain 4.9 and 3.3.
    """
    gains = []
    for seed in range(3):
        recipe = recipe_of(labels=50, epoch_steps=150, seed=seed)
        labelled = clothes.train_images[draw_split(clothes, 50, seed).indices(CPU)]
        # Nothing but the 50 images goes through the network, in batches of one size, so that
        # BatchNorm has statistics as good as with the others.
        alone = replace(
            recipe, augmenter="default", unlabelled_weight=0.0,
            unlabelled_batch_size=recipe.batch_size,
        )  # fmt: skip
        without = accuracy(alone, clothes, tmp_path / f"alone-{seed}", unlabelled=labelled)
        gains.append(accuracy(recipe, clothes, tmp_path / f"with-{seed}") - without)
    # Five seeds deviate by 1.3 from their mean gain of 3.8: two of that of three seeds fit between.
    assert sum(gains) / len(gains) > 0.02
