"""The table of operations: what each takes, what it accepts, and the function that does it."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import TypeAlias

from torch import Tensor

from divaug.operations import blending, geometry, occlusion, tone

__all__ = ["OPERATIONS", "TABLE", "ImagesAlone", "Operation", "Transformation", "WithArgument"]

#: `(images [n,C,H,W] uint8, argument [n] float64, center [n,2], partner [n,C,H,W]) -> images`.
#: `center` and `partner` are empty tensors unless the operation asks for them.
Transformation: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Operation:
    """One operation of the search space.

    Args:
        name: how policies and people call it.
        transform: the pixels: a batch in, a batch out; it may work in place.
        unit: what the argument measures; None where there is none.
        low: smallest argument accepted.
        high: largest argument accepted.
        whole: whether the argument must be a whole number; its range must round then.
        needs_center: whether a place `[n,2]` (y, x) is drawn with it.
        needs_partner: whether a second image is drawn with it.
        moving: how it moves pixels, for masks to follow: as `transform`, of images with three
            channels, but every pixel of the result is one of the image or, where none belongs,
            black or the partner's; None where pixels stay in their places.
    """

    name: str
    transform: Transformation
    unit: str | None = None
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    needs_center: bool = False
    needs_partner: bool = False
    moving: Transformation | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"`name` must be a text that is not empty, got {self.name!r}.")
        _check_transform(self.name, "transform", self.transform)
        if self.moving is not None:
            _check_transform(self.name, "moving", self.moving)
        for end in ("low", "high"):
            value = getattr(self, end)
            if isinstance(value, bool) or not isinstance(value, Real):
                raise TypeError(f"`{end}` of {self.name} must be a number, got {value!r}.")
        if not self.low <= self.high:
            raise ValueError(
                f"`low` of {self.name} must not be above `high`, got {self.low} and {self.high}; "
                "they are the smallest and the largest argument."
            )

    @property
    def needs_argument(self) -> bool:
        """Whether the operation has a strength at all."""
        return self.unit is not None


def _check_transform(name: str, field: str, transform: object) -> None:
    """Refuse what cannot be called with the four arguments of a `Transformation`."""
    wanted = "a function (images, argument, center, partner) -> images"
    try:
        hash(transform)
    except TypeError:
        raise TypeError(
            f"`{field}` of {name} must be hashable, for tables of operations are looked up, got a "
            f"{type(transform).__name__}; make its class a dataclass(frozen=True)."
        ) from None
    if not callable(transform):
        raise TypeError(f"`{field}` of {name} must be {wanted}, got {transform!r}.")
    try:
        signature = inspect.signature(transform)
    except ValueError:  # written in C, it does not tell
        return
    try:
        signature.bind(*range(4))
    except TypeError:
        raise TypeError(
            f"`{field}` of {name} must be {wanted}, got one that takes {signature}; it has to "
            "take all four, also those that it does not use: lambda images, *_: ..."
        ) from None


# Classes, not functions within functions: what holds operations goes to other processes.
@dataclass(frozen=True)
class ImagesAlone:
    """A transformation by a function of the images alone."""

    function: Callable[[Tensor], Tensor]

    def __call__(
        self, images: Tensor, _argument: Tensor, _center: Tensor, _partner: Tensor
    ) -> Tensor:
        """Transform the images."""
        return self.function(images)


@dataclass(frozen=True)
class WithArgument:
    """A transformation by a function of the images and the argument."""

    function: Callable[[Tensor, Tensor], Tensor]

    def __call__(
        self, images: Tensor, argument: Tensor, _center: Tensor, _partner: Tensor
    ) -> Tensor:
        """Transform the images by the argument."""
        return self.function(images, argument)


def _cutout(images: Tensor, side: Tensor, center: Tensor, _partner: Tensor) -> Tensor:
    return occlusion.cutout(images, side, center)


def _sample_pairing(images: Tensor, weight: Tensor, _center: Tensor, partner: Tensor) -> Tensor:
    return blending.sample_pairing(images, weight, partner)


def _move(
    name: str, function: Callable[[Tensor, Tensor], Tensor], unit: str, most: float
) -> Operation:
    # Nearest sampling: what moves the pixels of an image moves those of a mask.
    transform = WithArgument(function)
    return Operation(name, transform, unit, -most, most, moving=transform)


def _enhance(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> Operation:
    return Operation(name, WithArgument(function), "factor", 0.0, 10.0)


# Limits: coordinates must stay inside Pillow's fixed-point range (see MAX_SIDE in checks.py), a
# factor of 10 saturates every image, and Pillow 13 refuses to posterize to 0 bits.
_ALL = (
    _move("ShearX", geometry.shear_x, "shear factor", 2.0),
    _move("ShearY", geometry.shear_y, "shear factor", 2.0),
    _move("TranslateX", geometry.translate_x, "pixels", 16384.0),
    _move("TranslateY", geometry.translate_y, "pixels", 16384.0),
    _move("Rotate", geometry.rotate, "degrees", 360.0),
    Operation("AutoContrast", ImagesAlone(tone.autocontrast)),
    Operation("Invert", ImagesAlone(tone.invert)),
    Operation("Equalize", ImagesAlone(tone.equalize)),
    Operation("Solarize", WithArgument(tone.solarize), "threshold", 0.0, 256.0),
    Operation("Posterize", WithArgument(tone.posterize), "bits", 1.0, 8.0, whole=True),
    _enhance("Contrast", tone.contrast),
    _enhance("Color", blending.color),
    _enhance("Brightness", tone.brightness),
    _enhance("Sharpness", blending.sharpness),
    Operation("Cutout", _cutout, "pixels", 0.0, 16384.0, needs_center=True),
    Operation("SamplePairing", _sample_pairing, "weight", 0.0, 1.0, needs_partner=True),
)

#: The sixteen operations by name, in the order of their ids.
TABLE: dict[str, Operation] = {operation.name: operation for operation in _ALL}

#: The sixteen names; an operation's id is its position here.
OPERATIONS: tuple[str, ...] = tuple(TABLE)
