"""`Recipe`: every hyper-parameter of a training run, checked when it is made."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import MISSING, asdict, fields, replace
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from divaug._names import unknown_name
from divaug._select import MAX_CANDIDATES
from divaug.lab.methods import AUGMENTERS
from divaug.lab.models import MODELS
from divaug.objectives import ANNEALING, OBJECTIVES
from divaug.operations.magnitude import spaces

__all__ = ["Recipe", "explain", "override", "relabel", "warmup_with"]

_FORMAT = "divaug.recipe/1"


def _named(what: str, known: Collection[str]) -> AfterValidator:
    """Refuse a name that is not in a table, with the nearest one."""

    def check(name: str) -> str:
        if name not in known:
            raise ValueError(unknown_name(what, name, tuple(known)))
        return name

    return AfterValidator(check)


# Numbers of steps, images and the like, and their products, must fit into 64 bits.
_Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
_CountOrNone = Annotated[int, Field(ge=0, le=1_000_000_000)]
_Positive = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1)]
_BelowOne = Annotated[float, Field(ge=0, lt=1)]

# Fields that have no effect without unlabelled images.
_UNLABELLED = (
    "labels", "unlabelled_batch_size", "unlabelled_weight", "temperature", "confidence",
    "annealing", "joint_forward", "ema_decay", "epoch_steps",
)  # fmt: skip


@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class Recipe:
    """Every hyper-parameter of a run; nothing that decides a result is anywhere else.

    Args:
        name: name of the run.
        dataset: name of a dataset, or path of an `.npz` file or of a folder of images.
        model: name of a network in `divaug.lab.models`.
        augmenter: name of a method in `divaug.lab.methods`.
        epochs: passes over the training images, or parts of `epoch_steps` steps.
        batch_size: original images a step, over all processes; S times as many are trained on. With
            unlabelled images: labelled ones a step.
        learning_rate: highest learning rate, from which `schedule` falls at every step.
        weight_decay: weight decay of all parameters.
        num_candidates: E, number of candidates of each image.
        num_selected: S, number of them that are kept; also the views of the methods with S views.
        space: ranges of the universal set of sub-policies.
        randaugment_n: number of operations of RandAugment.
        randaugment_m: magnitude of RandAugment.
        momentum: momentum of SGD.
        nesterov: whether the momentum is Nesterov's.
        grad_clip: largest norm of the gradient; 0 for no limit.
        seed: seed of weights, order and every augmentation.
        evaluate_every: epochs between evaluations; the last epoch is always evaluated.
        checkpoint_every: epochs between checkpoints; the end is always kept.
        log_every: steps between lines of the log.
        precision: arithmetic of the network; "auto" is bfloat16 on a GPU and float32 on a CPU.
        sync_batchnorm: whether processes share their BatchNorm statistics, so that a run does not
            depend on their number; otherwise each normalises with those of its own part.
        train_images: size of a balanced part of the training images to train on; 0 for all.
        num_workers: processes that decode, for folders of images; at most one a core is started.
        test_fraction: share of each class held out for testing, where a folder of images has no
            test part of its own.
        objective: name of the loss in `divaug.objectives`.
        labels: number of labelled images, a balanced choice; 0 for all. This, `epoch_steps` and all
            from `unlabelled_batch_size` to `ema_decay` are for objectives with unlabelled images.
        unlabelled_batch_size: unlabelled originals a step, over all processes.
        unlabelled_weight: weight of the loss on unlabelled images.
        temperature: temperature of the sharpened prediction.
        confidence: smallest probability of a prediction that is trained on.
        annealing: annealing of the training signal, a name of `divaug.objectives.ANNEALING`.
        joint_forward: whether labelled, original and augmented images go through the network as
            one batch, with BatchNorm statistics in common.
        ema_decay: decay of the moving average of weights that is evaluated; 0 for none.
        schedule: curve of the learning rate; "cosine-7/16" ends at a fifth of the peak.
        warmup: share of the steps in which the learning rate rises.
        warmup_rate: learning rate that it rises from.
        epoch_steps: steps of an epoch; 0 for one pass over the (unlabelled) training images.

    Example:
        >>> Recipe("mine", "cifar10", "tiny-resnet-8", "divaug", 3, 128, 0.1, 5e-4).num_candidates
        8
    """

    name: str
    dataset: Annotated[str, Field(min_length=1)]
    model: Annotated[str, _named("model", MODELS)]
    augmenter: Annotated[str, _named("augmenter", AUGMENTERS)]
    epochs: _Count
    batch_size: _Count
    learning_rate: _Positive
    weight_decay: _Positive
    num_candidates: Annotated[int, Field(ge=1, le=MAX_CANDIDATES)] = 8
    num_selected: _Count = 4
    space: Annotated[str, _named("space", spaces())] = "paper"
    randaugment_n: _Count = 3
    randaugment_m: Annotated[float, Field(ge=0, le=30)] = 4.0
    momentum: _Share = 0.9
    nesterov: bool = True
    grad_clip: _Positive = 5.0
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    evaluate_every: _Count = 5
    checkpoint_every: _Count = 5
    log_every: _Count = 50
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    sync_batchnorm: bool = True
    train_images: _CountOrNone = 0
    num_workers: _CountOrNone = 8
    test_fraction: Annotated[float, Field(ge=0.01, le=0.9)] = 0.2
    objective: Annotated[str, _named("objective", OBJECTIVES)] = "supervised"
    labels: _CountOrNone = 0
    unlabelled_batch_size: _Count = 448
    unlabelled_weight: _Positive = 1.0
    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.4
    confidence: _Share = 0.8
    annealing: Annotated[str, _named("annealing", ANNEALING)] = "none"
    joint_forward: bool = False
    ema_decay: _BelowOne = 0.0
    schedule: Literal["cosine", "cosine-7/16"] = "cosine"
    warmup: _BelowOne = 0.0
    warmup_rate: _Positive = 0.0
    epoch_steps: _CountOrNone = 0

    def __post_init__(self) -> None:
        if self.num_selected > self.num_candidates:
            raise ValueError(
                f"`num_selected` must not exceed num_candidates={self.num_candidates}, got "
                f"{self.num_selected}."
            )
        if OBJECTIVES[self.objective].unlabelled is not None:
            return
        changed = [name for name in _UNLABELLED if getattr(self, name) != _DEFAULTS[name]]
        if changed:
            fewer = " (to train on fewer images set `train_images`)" if "labels" in changed else ""
            raise ValueError(
                f"`{changed[0]}` needs an objective with unlabelled images, such as uda, got "
                f"{self.objective!r}; set the objective, or set it to "
                f"{_DEFAULTS[changed[0]]}{fewer}."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        return asdict(self)

    def to_json(self) -> str:
        """Return text that `from_json` turns back into an equal recipe."""
        return json.dumps({"format": _FORMAT, **self.to_dict()}, indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> "Recipe":
        """Read what `to_json` wrote.

        Raises:
            ValueError: text that is no recipe, or an unknown or missing field.
        """
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"a recipe must be JSON text: {error}") from error
        if not isinstance(content, dict) or content.pop("format", None) != _FORMAT:
            raise ValueError(f"a recipe must be a JSON object with `format` {_FORMAT!r}.")
        try:
            return Recipe(**content)
        except ValidationError as error:
            raise ValueError(explain(error)) from None

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits that follow from every field but the name."""
        content = {name: value for name, value in self.to_dict().items() if name != "name"}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def originals_per_step(self) -> int:
        """Originals that a step augments, over all processes: the unlabelled ones, if any."""
        with_unlabelled = OBJECTIVES[self.objective].unlabelled is not None
        return self.unlabelled_batch_size if with_unlabelled else self.batch_size

    def differences(self, other: "Recipe") -> dict[str, tuple[Any, Any]]:
        """Return field → this value and the other's, where they differ."""
        mine, theirs = self.to_dict(), other.to_dict()
        return {n: (mine[n], theirs[n]) for n in mine if n != "name" and mine[n] != theirs[n]}


_DEFAULTS = {field.name: field.default for field in fields(Recipe) if field.default is not MISSING}


def explain(error: ValidationError) -> str:
    """Write in one sentence why a recipe is refused.

    Example:
        >>> try:
        ...     replace(Recipe("mine", "svhn", "resnet-18", "divaug", 1, 128, 0.1, 5e-4), epochs=0)
        ... except ValidationError as error:
        ...     explain(error)
        '`epochs`: input should be greater than or equal to 1, got 0.'
    """
    first = error.errors()[0]
    if cause := first.get("ctx", {}).get("error"):
        return str(cause)
    field = f"`{first['loc'][0]}`: " if first["loc"] else ""
    got = "" if first["type"] == "missing" else f", got {first['input']!r}"
    return f"{field}{first['msg'][0].lower()}{first['msg'][1:]}{got}."


def override(recipe: Recipe, changes: Iterable[str]) -> Recipe:
    """Return the recipe with fields replaced.

    Another number of labels changes the warm-up too, as `relabel` does, unless that is set.

    Args:
        recipe: recipe to start from.
        changes: texts like "epochs=3"; the value is read by the field's type.

    Raises:
        ValueError: an unknown field (all are listed), or a value that its field does not allow.

    Example:
        >>> from divaug.lab.recipes import recipe
        >>> override(recipe("demo-divaug"), ["epochs=1", "learning_rate=0.05"]).learning_rate
        0.05
    """
    values: dict[str, Any] = {}
    for change in changes:
        name, separator, text = (part.strip() for part in change.partition("="))
        if not separator:
            raise ValueError(f"a change must read field=value, got {change!r}.")
        if name not in _READERS:
            raise ValueError(unknown_name("field of a recipe:", name, tuple(_READERS)))
        try:
            values[name] = _READERS[name](text)
        except ValidationError as error:
            message = error.errors()[0]["msg"]
            raise ValueError(
                f"`{name}`: {message[0].lower()}{message[1:]}, got {text!r}."
            ) from None
    try:
        changed = replace(recipe, **values)
    except ValidationError as error:
        raise ValueError(explain(error)) from None
    if "warmup" in values or OBJECTIVES[changed.objective].unlabelled is None:
        return changed
    return replace(changed, warmup=warmup_with(recipe, changed.labels))


# Field → reader of its text: "3" and "true" are an int and a bool here.
_READERS: dict[str, Callable[[str], Any]] = {
    name: TypeAdapter(kind).validate_python
    for name, kind in get_type_hints(Recipe, include_extras=True).items()
}


def relabel(recipe: Recipe, labels: int) -> Recipe:
    """Return the recipe with another number of labels.

    A warm-up keeps its number of passes over the labelled images, as in the authors' code: with
    more labels a pass is longer, and so is the warm-up.

    Raises:
        ValueError: a warm-up, and 0 for all labels in the recipe or in `labels`.

    Example:
        >>> from divaug.lab.recipes import FAMILIES
        >>> relabel(FAMILIES["uda-paper"], 4000).warmup
        0.075
    """
    return replace(recipe, labels=labels, warmup=warmup_with(recipe, labels))


def warmup_with(recipe: Recipe, labels: int) -> float:
    """Return the share of steps in which that recipe warms up with another number of labels."""
    if not recipe.warmup or labels == recipe.labels:
        return recipe.warmup
    if not (labels and recipe.labels):
        raise ValueError(
            f"`labels` must be a number above 0 where a warm-up counts passes over the labelled "
            f"images, got {labels} after {recipe.labels}; set `warmup` as well."
        )
    return min(recipe.warmup * labels / recipe.labels, 0.5)
