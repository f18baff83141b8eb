"""The named recipes: the paper's rows times the methods, those with few labels, and the demo's."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from divaug._names import unknown_name
from divaug.lab.methods import AUGMENTERS
from divaug.lab.recipe import Recipe, explain, override, relabel, warmup_with

__all__ = [
    "FAMILIES",
    "LABELS",
    "RECIPES",
    "ROWS",
    "Recipe",
    "Row",
    "explain",
    "family_of",
    "override",
    "recipe",
    "relabel",
    "warmup_with",
]


@dataclass(frozen=True)
class Row:
    """The hyper-parameters of a dataset and a network, for all augmenters.

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


# UDA as in the paper, UDA and FixMatch as they are done since: CIFAR-10 with a Wide-ResNet-28-2,
# E = 4 and S = 2, an epoch of 1,000 steps. What the paper leaves open (the weight of the unlabelled
# loss, annealing, the schedule) is as in its authors' code.

#: Numbers of labels that the paper's table has.
LABELS = (1000, 2000, 4000)

#: The strong augmentations that are compared: the paper's, others of one view or S, chance, DivAug.
AUGMENTATIONS = (
    "randaugment-uda", "randaugment", "randaugment-xS", "trivialaugment", "trivialaugment-xS",
    "random", "divaug",
)  # fmt: skip

_PAPER = Recipe(
    name="uda-paper",
    dataset="cifar10",
    model="wide-resnet-28-2",
    augmenter="divaug",
    epochs=200,
    batch_size=32,
    learning_rate=0.03,
    weight_decay=5e-4,
    num_candidates=4,
    num_selected=2,
    space="uda",
    randaugment_n=2,
    randaugment_m=9.0,
    objective="uda",
    labels=1000,
    unlabelled_batch_size=448,
    unlabelled_weight=5.0,
    temperature=0.4,
    confidence=0.8,
    annealing="linear",
    # 120 of 6,400 short epochs, from 1e-4.
    warmup=120 / 6400,
    warmup_rate=1e-4,
    epoch_steps=1000,
)

_MODERN = replace(
    _PAPER,
    name="uda-modern",
    batch_size=64,
    unlabelled_weight=1.0,
    annealing="none",
    joint_forward=True,
    ema_decay=0.999,
    schedule="cosine-7/16",
    warmup=0.0,
    warmup_rate=0.0,
)

_FIXMATCH = replace(_MODERN, name="fixmatch", objective="fixmatch", confidence=0.95)

#: Name → recipe with 1,000 labels and DivAug.
FAMILIES = {one.name: one for one in (_PAPER, _MODERN, _FIXMATCH)}


def family_of(objective: str) -> str:
    """Return the family that an objective's name alone stands for: the paper's, where it has one.

    Example:
        >>> family_of("uda"), family_of("fixmatch")
        ('uda-paper', 'fixmatch')
    """
    found = [name for name, one in FAMILIES.items() if one.objective == objective]
    if not found:
        known = sorted({one.objective for one in FAMILIES.values()})
        raise ValueError(
            f"a recipe is missing: only the objectives {', '.join(known)} stand for one, got "
            f"{objective!r}."
        )
    return found[0]


def _with_few_labels() -> dict[str, Recipe]:
    found = {}
    for family in FAMILIES.values():
        for labels in LABELS:
            for augmenter in AUGMENTATIONS:
                name = f"{family.name}-{labels}-{augmenter}"
                found[name] = replace(relabel(family, labels), name=name, augmenter=augmenter)
    return found


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
    return {one.name: one for one in [*paper, *demo]} | _with_few_labels()


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
