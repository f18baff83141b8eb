"""The named recipes: the rows of the paper's tables times the augmenters, and two for the demo."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from divaug.lab.methods import AUGMENTERS
from divaug.lab.recipes._recipe import Recipe
from divaug.lab.recipes._semi_supervised import FAMILIES, semi_supervised_recipes
from divaug.names import unknown_name

__all__ = ["RECIPES", "ROWS", "Row", "recipe"]


@dataclass(frozen=True)
class Row:
    """What a dataset and a network are trained with, whatever the augmenter.

    Args:
        dataset: its name in `divaug.lab.datasets`.
        model: its name in `divaug.lab.models`.
        epochs: as in the paper's table.
        batch_size: original images a step.
        learning_rate: at the first step.
        weight_decay: on all parameters.
        randaugment: N and M of RandAugment.
        candidates: E and S.
    """

    dataset: str
    model: str
    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    randaugment: tuple[int, float]
    candidates: tuple[int, int] = (8, 4)


# Epochs, batch, learning rate, weight decay, E and S: the table of hyper-parameters in DivAug's
# appendix. It has no row for SVHN: there, what the authors' code has, which is RandAugment's
# setting for the core images. N and M: RandAugment's appendix; it covers neither Wide-ResNet-40-2
# (its values for Wide-ResNet-28-2 on the same dataset are taken) nor Shake-Shake on CIFAR-100
# (those for Wide-ResNet-28-10).
ROWS = (
    Row("cifar10", "wide-resnet-40-2", 200, 128, 0.1, 5e-4, (3, 4)),
    Row("cifar10", "wide-resnet-28-10", 200, 128, 0.1, 5e-4, (3, 5)),
    Row("cifar10", "shake-shake-26-2x96d", 600, 128, 0.2, 1e-4, (3, 9)),
    Row("cifar10", "pyramidnet-272", 600, 128, 0.1, 1e-4, (3, 7)),
    Row("cifar100", "wide-resnet-40-2", 200, 128, 0.1, 5e-4, (1, 2)),
    Row("cifar100", "wide-resnet-28-10", 200, 128, 0.1, 5e-4, (2, 14)),
    Row("cifar100", "shake-shake-26-2x96d", 1200, 128, 0.1, 5e-4, (2, 14)),
    Row("svhn", "wide-resnet-28-10", 200, 128, 0.005, 0.005, (3, 9)),
    Row("imagenet", "resnet-50", 120, 512, 0.2, 1e-4, (2, 9), (4, 2)),
)

# What has been published for these datasets only: PBA searched no schedule for ImageNet.
_MISSING = {("imagenet", "pba")}


def _of_row(row: Row, augmenter: str) -> Recipe:
    n, m = row.randaugment
    E, S = row.candidates
    return Recipe(
        name=f"{row.dataset}-{row.model}-{augmenter}",
        dataset=row.dataset,
        model=row.model,
        augmenter=augmenter,
        epochs=row.epochs,
        batch_size=row.batch_size,
        learning_rate=row.learning_rate,
        weight_decay=row.weight_decay,
        num_candidates=E,
        num_selected=S,
        randaugment_n=n,
        randaugment_m=float(m),
    )


# Small enough for a processor: the shipped part of Fashion-MNIST. Both take as many steps.
_DEMO = Recipe(
    name="demo-default",
    dataset="fashion_mnist_small",
    model="tiny-resnet-8",
    augmenter="default",
    epochs=8,
    batch_size=64,
    learning_rate=0.1,
    weight_decay=5e-4,
    evaluate_every=1,
    checkpoint_every=4,
    log_every=10,
    precision="float32",
)


def _recipes() -> dict[str, Recipe]:
    paper = [
        _of_row(row, augmenter)
        for row in ROWS
        for augmenter in AUGMENTERS
        if (row.dataset, augmenter) not in _MISSING
    ]
    demo = [_DEMO, replace(_DEMO, name="demo-divaug", augmenter="divaug")]
    return {one.name: one for one in [*paper, *demo]} | semi_supervised_recipes()


RECIPES: Mapping[str, Recipe] = MappingProxyType(_recipes())
"""Name → recipe: `dataset-model-augmenter`, "demo-default" and "demo-divaug", and for the
semi-supervised ones `family-labels-augmenter`."""


def recipe(name: str) -> Recipe:
    """Look a recipe up by name; capitals do not matter.

    The name of a semi-supervised family stands for its recipe with 1,000 labels and DivAug.

    Raises:
        ValueError: an unknown name, with the nearest ones.

    Example:
        >>> recipe("cifar10-wide-resnet-40-2-divaug").epochs
        200
        >>> recipe("cifar10-wide-resnet-40-2-divagu")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: unknown recipe ... Did you mean 'cifar10-wide-resnet-40-2-divaug'? ...
    """
    short = {family: RECIPES[f"{family}-1000-divaug"] for family in FAMILIES}
    folded = {known.lower(): one for known, one in (short | dict(RECIPES)).items()}
    if isinstance(name, str) and name.lower() in folded:
        return folded[name.lower()]
    text = unknown_name("recipe", name, tuple(RECIPES))
    raise ValueError(f"{text.split(' Known:')[0]} `divaug train --list` lists all.")
