"""`Recipe`: every hyper-parameter of a training run, checked when it is made."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from divaug.lab.recipes._checks import check_recipe, check_type
from divaug.names import unknown_name
from divaug.objectives import OBJECTIVES

__all__ = ["Recipe"]

_FORMAT = "divaug.recipe/1"
# Fields that came later: a recipe written without them has their defaults, and the same hash.
_LATER = (
    "test_fraction", "objective", "labels", "unlabelled_batch_size", "unlabelled_weight",
    "temperature", "confidence", "annealing", "joint_forward", "ema_decay", "schedule", "warmup",
    "warmup_rate", "epoch_steps",
)  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """Every hyper-parameter of a run; nothing that decides a result is anywhere else.

    Args:
        name: what the run is called.
        dataset: a name of `divaug.lab.datasets`, or the path of an `.npz` file or of a folder of
            images.
        model: a name of `divaug.lab.models`.
        augmenter: a name of `divaug.lab.methods`.
        epochs: passes over the training images, or parts of `epoch_steps` steps.
        batch_size: original images a step, over all processes; S times as many are trained on. With
            unlabelled images: labelled ones a step.
        learning_rate: the highest, from which `schedule` brings it down, a little at every step.
        weight_decay: on all parameters.
        num_candidates: E, how many candidates are made of each image.
        num_selected: S, how many of them are kept; also the views of the methods with S views.
        space: ranges of the universal set of sub-policies.
        randaugment_n: operations of RandAugment.
        randaugment_m: magnitude of RandAugment.
        momentum: of SGD.
        nesterov: whether the momentum is Nesterov's.
        grad_clip: largest norm of the gradient; 0 for no limit.
        seed: decides weights, order and every augmentation.
        evaluate_every: epochs between evaluations; the last epoch is always evaluated.
        checkpoint_every: epochs between checkpoints; the end is always kept.
        log_every: steps between lines of the log.
        precision: of the network's arithmetic, see `PRECISIONS`.
        sync_batchnorm: whether several processes share their BatchNorm statistics, so that a run
            does not depend on their number; otherwise each normalises with those of its own part.
        train_images: size of a balanced part of the training images to train on; 0 for all.
        num_workers: processes that decode, for folders of images; at most one a core is started.
        test_fraction: share of each class held out for testing, where a folder of images has no
            test part of its own.
        objective: a name of `divaug.objectives`; what is minimised.
        labels: labelled images, a balanced choice; 0 for all. This, `epoch_steps` and all from
            `unlabelled_batch_size` to `ema_decay` are for objectives with unlabelled images.
        unlabelled_batch_size: unlabelled originals a step, over all processes.
        unlabelled_weight: of the loss on unlabelled images.
        temperature: of the sharpened prediction.
        confidence: probability that a prediction must exceed to be believed.
        annealing: of the training signal, a name of `divaug.objectives.ANNEALING`.
        joint_forward: whether labelled, original and augmented images go through the network as
            one batch, with BatchNorm statistics in common.
        ema_decay: of the moving average of weights that is evaluated; 0 for none.
        schedule: how the learning rate falls, a name of `CURVES`.
        warmup: share of the steps in which it rises.
        warmup_rate: the learning rate it rises from.
        epoch_steps: steps of an epoch; 0 for one pass over the (unlabelled) training images.

    Example:
        >>> Recipe("mine", "cifar10", "tiny-resnet-8", "divaug", 3, 128, 0.1, 5e-4).num_candidates
        8
    """

    name: str
    dataset: str
    model: str
    augmenter: str
    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    num_candidates: int = 8
    num_selected: int = 4
    space: str = "paper"
    randaugment_n: int = 3
    randaugment_m: float = 4.0
    momentum: float = 0.9
    nesterov: bool = True
    grad_clip: float = 5.0
    seed: int = 0
    evaluate_every: int = 5
    checkpoint_every: int = 5
    log_every: int = 50
    precision: str = "auto"
    sync_batchnorm: bool = True
    train_images: int = 0
    num_workers: int = 8
    test_fraction: float = 0.2
    objective: str = "supervised"
    labels: int = 0
    unlabelled_batch_size: int = 448
    unlabelled_weight: float = 1.0
    temperature: float = 0.4
    confidence: float = 0.8
    annealing: str = "none"
    joint_forward: bool = False
    ema_decay: float = 0.0
    schedule: str = "cosine"
    warmup: float = 0.0
    warmup_rate: float = 0.0
    epoch_steps: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            check_type(field.name, field.type, getattr(self, field.name))
            if field.type is float:  # 4 and 4.0 are one recipe and must have one hash
                object.__setattr__(self, field.name, float(getattr(self, field.name)))
        check_recipe(self)

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON can hold them."""
        return asdict(self)

    def to_json(self) -> str:
        """Text that `from_json` turns back into an equal recipe."""
        return json.dumps({"format": _FORMAT, **self.to_dict()}, indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> "Recipe":
        """Read what `to_json` wrote.

        Raises:
            ValueError: text that is no recipe, an unknown or a missing field.
        """
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"a recipe must be JSON text: {error}") from error
        if not isinstance(content, dict) or content.pop("format", None) != _FORMAT:
            raise ValueError(f"a recipe must be a JSON object with `format` {_FORMAT!r}.")
        return _from_dict(content)

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits that follow from every field but the name."""
        content = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "name" and not _is_later_default(self, field.name, field.default)
        }
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def originals_per_step(self) -> int:
        """Originals that a step augments, over all processes: the unlabelled ones, if any."""
        with_unlabelled = OBJECTIVES[self.objective].unlabelled is not None
        return self.unlabelled_batch_size if with_unlabelled else self.batch_size

    def differences(self, other: "Recipe") -> dict[str, tuple[Any, Any]]:
        """Field → this value and the other's, where they differ."""
        mine, theirs = self.to_dict(), other.to_dict()
        return {n: (mine[n], theirs[n]) for n in mine if n != "name" and mine[n] != theirs[n]}


def _is_later_default(recipe: Recipe, name: str, default: object) -> bool:
    return name in _LATER and getattr(recipe, name) == default


def _from_dict(content: Mapping[str, Any]) -> Recipe:
    known = tuple(field.name for field in fields(Recipe))
    for name in content:
        if name not in known:
            raise ValueError(unknown_name("field of a recipe:", name, known))
    missing = [n for n in known if n not in content and n not in _LATER]
    if missing:
        raise ValueError(f"the recipe lacks `{missing[0]}`; a recipe is complete.")
    return Recipe(**content)
