"""The recipes with unlabelled images: UDA as in the paper, UDA and FixMatch as they are done since.

CIFAR-10 with a Wide-ResNet-28-2, E = 4 and S = 2, an epoch of 1,000 steps. What the paper leaves
open (the weight of the unlabelled loss, annealing, the schedule) is as in its authors' code.
"""

from dataclasses import replace

from divaug.lab.recipes._recipe import Recipe

__all__ = ["FAMILIES", "LABELS", "family_of", "relabel", "semi_supervised_recipes", "warmup_with"]

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
    """The family that an objective's name alone stands for: the paper's, where it has one.

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


def relabel(recipe: Recipe, labels: int) -> Recipe:
    """The recipe with another number of labels.

    A warm-up keeps its number of passes over the labelled images, as in the authors' code: with
    more labels a pass is longer, and so is the warm-up.

    Raises:
        ValueError: a warm-up, and 0 for all labels in the recipe or asked for: how many these are
            depends on the dataset.

    Example:
        >>> relabel(FAMILIES["uda-paper"], 4000).warmup
        0.075
    """
    return replace(recipe, labels=labels, warmup=warmup_with(recipe, labels))


def warmup_with(recipe: Recipe, labels: int) -> float:
    """The share of steps in which that recipe warms up with another number of labels."""
    if not recipe.warmup or labels == recipe.labels:
        return recipe.warmup
    if not (labels and recipe.labels):
        raise ValueError(
            f"`labels` must be a number above 0 where a warm-up of {recipe.warmup:g} counts passes "
            f"over the labelled images, got {labels} after {recipe.labels} (0 is all); write how "
            "many there are, such as 50000 for CIFAR-10, or set `warmup` as well."
        )
    return min(recipe.warmup * labels / recipe.labels, 0.5)


def semi_supervised_recipes() -> dict[str, Recipe]:
    """Name → recipe: `family-labels-augmenter`."""
    found = {}
    for family in FAMILIES.values():
        for labels in LABELS:
            for augmenter in AUGMENTATIONS:
                name = f"{family.name}-{labels}-{augmenter}"
                found[name] = replace(relabel(family, labels), name=name, augmenter=augmenter)
    return found
