"""From a magnitude m in [0, 1] to the argument an operation takes; every range with its source.

m = 0 is the identity or nearly so, m = 1 the strongest the space allows. Signed operations draw a
sign; the four enhance operations are signed about the factor 1.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from types import MappingProxyType

from divaug.operations.checks import unknown_name
from divaug.operations.table import OPERATIONS

__all__ = ["SPACES", "Range", "Rounding", "Side", "argument", "space_of"]


class Side(Enum):
    """The length that a relative argument is a fraction of."""

    NONE = "absolute"
    WIDTH = "width"
    HEIGHT = "height"
    SHORTER = "shorter side"

    def pixels(self, height: int, width: int) -> float:
        """The length in pixels; 1 for absolute arguments."""
        lengths = {
            Side.NONE: 1,
            Side.WIDTH: width,
            Side.HEIGHT: height,
            Side.SHORTER: min(height, width),
        }
        return float(lengths[self])


class Rounding(IntEnum):
    """How an argument becomes a whole number."""

    NONE = 0
    DOWN = 1  # towards minus infinity
    HALF_DOWN = 2  # to the nearest, halves down

    def apply(self, value: float) -> float:
        """Round one number."""
        rules = {
            Rounding.NONE: lambda v: v,
            Rounding.DOWN: math.floor,
            Rounding.HALF_DOWN: lambda v: math.ceil(v - 0.5),
        }
        return float(rules[self](value))


@dataclass(frozen=True)
class Range:
    """argument = base + sign·(offset + slope·m)·side, rounded, and at least `minimum`.

    Args:
        base: the argument at no strength.
        slope: change of the argument from m = 0 to m = 1.
        source: where the numbers come from.
        offset: part of the strength that does not depend on m.
        signed: whether a sign is drawn.
        side: what a relative argument is a fraction of.
        rounding: how the argument becomes a whole number.
        minimum: smallest argument after rounding.
    """

    base: float
    slope: float
    source: str
    offset: float = 0.0
    signed: bool = False
    side: Side = Side.NONE
    rounding: Rounding = Rounding.NONE
    minimum: float = -math.inf

    def value(self, magnitude: float, sign: int, height: int, width: int) -> float:
        """The argument of one magnitude on an image of that size."""
        turn = sign if self.signed else 1
        strength = (self.offset + self.slope * magnitude) * self.side.pixels(height, width)
        return max(self.minimum, self.rounding.apply(self.base + turn * strength))


_AA = "AutoAugment, table of ranges"
_FAA = "Fast AutoAugment and the DivAug authors' code"
_CODE = "the DivAug authors' code, supervised list"
_NONE = Range(0.0, 0.0, "no magnitude")
_ENHANCE = Range(1.0, 0.9, f"{_AA}: factor 0.1 to 1.9", signed=True)

_PAPER: dict[str, Range] = {
    "ShearX": Range(0.0, 0.3, _AA, signed=True),
    "ShearY": Range(0.0, 0.3, _AA, signed=True),
    "TranslateX": Range(0.0, 0.45, f"{_AA}: 150 of 331 px", signed=True, side=Side.WIDTH),
    "TranslateY": Range(0.0, 0.45, f"{_AA}: 150 of 331 px", signed=True, side=Side.HEIGHT),
    "Rotate": Range(0.0, 30.0, _AA, signed=True),
    "AutoContrast": _NONE,
    "Invert": _NONE,
    "Equalize": _NONE,
    "Solarize": Range(256.0, -256.0, _AA),
    "Posterize": Range(8.0, -4.0, f"{_AA}: 8 to 4 bits", rounding=Rounding.HALF_DOWN),
    "Contrast": _ENHANCE,
    "Color": _ENHANCE,
    "Brightness": _ENHANCE,
    "Sharpness": _ENHANCE,
    "Cutout": Range(0.0, 0.2, f"{_FAA}; AutoAugment: 60 of 331 px", side=Side.SHORTER),
    "SamplePairing": Range(0.0, 0.4, _AA),
}

_RELEASED: dict[str, Range] = {
    **_PAPER,
    "ShearY": Range(0.0, 0.0, f"{_CODE}: range (0.3, 0.3)", offset=0.3, signed=True),
    "TranslateY": replace(_PAPER["TranslateY"], side=Side.WIDTH, source=f"{_CODE}: uses the width"),
    "Posterize": Range(4.0, -4.0, f"{_CODE}: 4 to 0", rounding=Rounding.DOWN, minimum=1.0),
    "Cutout": Range(0.0, 0.2, _CODE, side=Side.WIDTH),
    "SamplePairing": Range(0.0, 1.0, f"{_CODE}: uniform mixing ratio"),
}

_SSL = "the DivAug authors' code, semi-supervised list"
_UDA: dict[str, Range] = {
    **{name: entry for name, entry in _PAPER.items() if name != "SamplePairing"},
    "Cutout": Range(0.0, 0.2, _SSL, side=Side.WIDTH),
    "FlipLR": _NONE,
    "FlipUD": _NONE,
    "Blur": _NONE,
    "Smooth": _NONE,
    "CropBilinear": Range(0.0, 0.1, _SSL, side=Side.WIDTH),
}

#: Space → operation → range.
SPACES: Mapping[str, Mapping[str, Range]] = MappingProxyType(
    {
        "paper": MappingProxyType(_PAPER),
        "released": MappingProxyType(_RELEASED),
        "uda": MappingProxyType(_UDA),
    }
)


def space_of(name: str) -> Mapping[str, Range]:
    """The space of that name, or an error that lists them."""
    if not isinstance(name, str) or name not in SPACES:
        raise ValueError(unknown_name("space", name, tuple(SPACES)))
    return SPACES[name]


def argument(
    operation: str,
    magnitude: float,
    *,
    space: str = "paper",
    sign: int = 1,
    height: int = 32,
    width: int = 32,
) -> float | None:
    """The argument of an operation at a magnitude; None where it takes none.

    Example:
        >>> argument("Rotate", 0.5, sign=-1)
        -15.0
        >>> argument("Posterize", 1.0)
        4.0
        >>> argument("Invert", 0.3) is None
        True
    """
    ranges = space_of(space)
    if operation not in ranges:
        raise ValueError(unknown_name(f"operation of space {space!r}:", operation, tuple(ranges)))
    if not 0.0 <= magnitude <= 1.0:
        raise ValueError(f"`magnitude` must lie in [0, 1], got {magnitude!r}.")
    if height < 1 or width < 1:
        raise ValueError(f"`height` and `width` must be at least 1, got {height}×{width}.")
    if sign not in (-1, 1):
        raise ValueError(f"`sign` must be 1 or -1, got {sign!r}.")
    entry = ranges[operation]
    return None if entry is _NONE else entry.value(magnitude, sign, height, width)


assert tuple(_PAPER) == OPERATIONS
