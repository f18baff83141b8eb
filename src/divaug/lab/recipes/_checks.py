"""What a recipe's fields may hold."""

import math
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

from divaug.lab.methods import AUGMENTERS
from divaug.lab.models import MODELS
from divaug.lab.recipes._curves import CURVES
from divaug.names import unknown_name
from divaug.objectives import ANNEALING, OBJECTIVES
from divaug.operations.magnitude import space_of
from divaug.selection import MAX_CANDIDATES

if TYPE_CHECKING:
    from divaug.lab.recipes._recipe import Recipe

__all__ = ["PRECISIONS", "check_recipe", "check_type"]

#: "auto" is bfloat16 on a GPU and float32 on a CPU.
PRECISIONS = ("auto", "float32", "bfloat16")

# Numbers of steps, images and the like, and their products, must fit into 64 bits.
_MANY = 1_000_000_000
# Field → lowest and highest allowed value, for whole numbers.
_WHOLE = {
    "num_candidates": (1, MAX_CANDIDATES),
    "num_selected": (1, _MANY),
    "randaugment_n": (1, _MANY),
    "epochs": (1, _MANY),
    "batch_size": (1, _MANY),
    "seed": (0, 2**63 - 1),
    "evaluate_every": (1, _MANY),
    "checkpoint_every": (1, _MANY),
    "log_every": (1, _MANY),
    "train_images": (0, _MANY),
    "num_workers": (0, _MANY),
    "labels": (0, _MANY),
    "unlabelled_batch_size": (1, _MANY),
    "epoch_steps": (0, _MANY),
}
# Field → lowest and highest allowed value, for real numbers.
_BETWEEN = {
    "randaugment_m": (0.0, 30.0),
    "learning_rate": (0.0, math.inf),
    "weight_decay": (0.0, math.inf),
    "momentum": (0.0, 1.0),
    "grad_clip": (0.0, math.inf),
    "test_fraction": (0.01, 0.9),
    "unlabelled_weight": (0.0, math.inf),
    "confidence": (0.0, 1.0),
    "temperature": (0.0, math.inf),
    "warmup": (0.0, 1.0),
    "warmup_rate": (0.0, math.inf),
    "ema_decay": (0.0, 1.0),
}
# Field → the table that its name must be in.
_NAMED: Mapping[str, Collection[str]] = {
    "model": MODELS,
    "augmenter": AUGMENTERS,
    "precision": PRECISIONS,
    "objective": OBJECTIVES,
    "annealing": ANNEALING,
    "schedule": CURVES,
}

# Fields that say nothing without unlabelled images.
_UNLABELLED = (
    "labels", "unlabelled_batch_size", "unlabelled_weight", "temperature", "confidence",
    "annealing", "joint_forward", "ema_decay", "epoch_steps",
)  # fmt: skip


def check_type(name: str, kind: object, value: object) -> None:
    """Refuse a value that is not of its field's type; a whole number is a real one too."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    numbers: dict[object, bool] = {float: whole or isinstance(value, float), int: whole}
    if not numbers.get(kind, isinstance(kind, type) and isinstance(value, kind)):
        raise TypeError(
            f"`{name}` must be of type {getattr(kind, '__name__', kind)}, "
            f"got {type(value).__name__} {value!r}."
        )


def check_recipe(recipe: "Recipe") -> None:
    """Refuse names that are in no table, numbers out of their range and fields at odds."""
    _check_names(recipe)
    for name, (low, high) in _WHOLE.items():
        count = getattr(recipe, name)
        if count < low:
            raise ValueError(f"`{name}` must be at least {low}, got {count}.")
        if count > high:
            raise ValueError(f"`{name}` must be at most {high}, got {count}.")
    for name, (lowest, highest) in _BETWEEN.items():
        value = getattr(recipe, name)
        if not (lowest <= value <= highest and math.isfinite(value)):
            bounded = f"lie in [{lowest}, {highest}]"
            rule = bounded if math.isfinite(highest) else f"be finite and at least {lowest}"
            raise ValueError(f"`{name}` must {rule}, got {value}.")
    if recipe.num_selected > recipe.num_candidates:
        raise ValueError(
            f"`num_selected` must not exceed num_candidates={recipe.num_candidates}, "
            f"got {recipe.num_selected}."
        )
    _check_unlabelled(recipe)


def _check_names(recipe: "Recipe") -> None:
    for field, known in _NAMED.items():
        value = getattr(recipe, field)
        if value not in known:
            raise ValueError(unknown_name(field, value, tuple(known)))
    space_of(recipe.space)
    if not recipe.dataset:
        raise ValueError("`dataset` must be a name or a path, got an empty text.")


def _check_unlabelled(recipe: "Recipe") -> None:
    for name in ("warmup", "ema_decay"):
        if getattr(recipe, name) == 1.0:
            raise ValueError(f"`{name}` must be below 1, got 1.0.")
    if OBJECTIVES[recipe.objective].unlabelled is not None:
        if not recipe.temperature:
            raise ValueError("`temperature` must be above 0, got 0.0.")
        return
    defaults = {field.name: field.default for field in fields(recipe)}
    changed = [name for name in _UNLABELLED if getattr(recipe, name) != defaults[name]]
    if changed:
        first, back = changed[0], ", ".join(f"{name}={defaults[name]}" for name in changed)
        fewer = "; to train on fewer images set `train_images`" if first == "labels" else ""
        raise ValueError(
            f"`{first}` goes with an objective that has unlabelled images, such as uda, got "
            f"{getattr(recipe, first)} with {recipe.objective!r}; choose such an objective, or set "
            f"{back}{fewer}."
        )
