"""The table of operations: what each takes, what it accepts, and the function that does it."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import TypeAlias

from torch import Tensor

from divaug.operations import color, cutout, filters, geometry, resample

__all__ = ["EVERY", "FURTHER", "OPERATIONS", "TABLE", "Operation", "Transformation"]

#: `(images [n,C,H,W] uint8, argument [n] float64, center [n,2], partner [n,C,H,W]) -> images`.
#: `center` and `partner` are empty tensors unless the operation needs them.
Transformation: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Operation:
    """One operation of the search space.

    Args:
        name: name in policies, tables and saved sub-policies.
        transform: function from a batch to a batch; it may work in place.
        unit: unit of the argument; None for an operation without one.
        low: smallest argument accepted.
        high: largest argument accepted.
        whole: whether the argument must be an integer; its range must round then.
        needs_center: whether a place `[n,2]` (y, x) is drawn with it.
        needs_partner: whether a second image is drawn with it.
        moving: the movement of pixels, for masks: a function like `transform`, of images with three
            channels, whose every pixel is one of the image, black, or the partner's. None where
            pixels stay in their places.
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
        for field, function in (("transform", self.transform), ("moving", self.moving)):
            if not callable(function) and (field == "transform" or function is not None):
                raise TypeError(
                    f"`{field}` of {self.name} must be a function (images, argument, center, "
                    f"partner) -> images, got {function!r}."
                )
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
        """True if the operation has an argument."""
        return self.unit is not None


def _move(name: str, transform: Transformation, unit: str, most: float) -> Operation:
    # Nearest sampling: the function that moves the pixels of an image moves those of a mask.
    return Operation(name, transform, unit, -most, most, moving=transform)


def _enhance(name: str, transform: Transformation) -> Operation:
    return Operation(name, transform, "factor", 0.0, 10.0)


def _by_name(*operations: Operation) -> dict[str, Operation]:
    return {operation.name: operation for operation in operations}


#: The sixteen operations by name, in the order of their ids.
# Limits: coordinates must stay inside Pillow's fixed-point range (see MAX_SIDE in checks.py), a
# factor of 10 saturates every image, and Pillow 13 refuses to posterize to 0 bits.
TABLE: dict[str, Operation] = _by_name(
    _move("ShearX", geometry.shear_x, "shear factor", 2.0),
    _move("ShearY", geometry.shear_y, "shear factor", 2.0),
    _move("TranslateX", geometry.translate_x, "pixels", 16384.0),
    _move("TranslateY", geometry.translate_y, "pixels", 16384.0),
    _move("Rotate", geometry.rotate, "degrees", 360.0),
    Operation("AutoContrast", color.autocontrast),
    Operation("Invert", color.invert),
    Operation("Equalize", color.equalize),
    Operation("Solarize", color.solarize, "threshold", 0.0, 256.0),
    Operation("Posterize", color.posterize, "bits", 1.0, 8.0, whole=True),
    _enhance("Contrast", color.contrast),
    _enhance("Color", color.color),
    _enhance("Brightness", color.brightness),
    _enhance("Sharpness", filters.sharpness),
    Operation("Cutout", cutout.cutout, "pixels", 0.0, 16384.0, needs_center=True),
    Operation("SamplePairing", color.sample_pairing, "weight", 0.0, 1.0, needs_partner=True),
)

#: The sixteen names; an operation's id is its position here.
OPERATIONS: tuple[str, ...] = tuple(TABLE)

#: Operations without a kernel, by name: five of the space `uda`, and SolarizeAdd of timm.
FURTHER: dict[str, Operation] = _by_name(
    Operation("FlipLR", geometry.flip_lr, moving=geometry.flip_lr),
    Operation("FlipUD", geometry.flip_ud, moving=geometry.flip_ud),
    Operation("Blur", filters.blur),
    Operation("Smooth", filters.smooth),
    Operation(
        "CropBilinear",
        resample.crop_bilinear,
        "pixels",
        0.0,
        4096.0,
        moving=resample.crop_nearest,
    ),
    Operation("SolarizeAdd", color.solarize_add, "value", 0.0, 255.0, whole=True),
)

#: The sixteen and the further ones.
EVERY: dict[str, Operation] = TABLE | FURTHER
