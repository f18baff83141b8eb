"""From a magnitude m in [0, 1] to the argument an operation takes; every range from a data file.

m = 0 is the identity or nearly so, m = 1 the strongest the space allows. Signed operations draw a
sign; the four enhance operations are signed about the factor 1.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import lru_cache
from importlib import resources
from numbers import Real
from types import MappingProxyType
from typing import Any

from divaug._names import unknown_name

__all__ = [
    "NO_MAGNITUDE",
    "Range",
    "Rounding",
    "Side",
    "argument",
    "read_data",
    "read_ranges",
    "space_of",
    "spaces",
]


class Side(Enum):
    """The length that a relative argument is a fraction of."""

    NONE = "absolute"
    WIDTH = "width"
    HEIGHT = "height"
    SHORTER = "shorter side"

    def pixels(self, height: int, width: int) -> float:
        """Return the length in pixels; 1 for absolute arguments."""
        lengths = {
            Side.NONE: 1,
            Side.WIDTH: width,
            Side.HEIGHT: height,
            Side.SHORTER: min(height, width),
        }
        return float(lengths[self])


class Rounding(IntEnum):
    """The ways to turn an argument into an integer."""

    NONE = 0
    DOWN = 1  # towards minus infinity
    HALF_DOWN = 2  # to the nearest, halves down
    TOWARDS_ZERO = 3

    def apply(self, value: float) -> float:
        """Round one number."""
        rules = {
            Rounding.NONE: lambda v: v,
            Rounding.DOWN: math.floor,
            Rounding.HALF_DOWN: lambda v: math.ceil(v - 0.5),
            Rounding.TOWARDS_ZERO: math.trunc,
        }
        return float(rules[self](value))


@dataclass(frozen=True)
class Range:
    """argument = base + sign·(offset + slope·m)·side, rounded, and at least `minimum`.

    Args:
        base: the argument at no strength.
        slope: change of the argument from m = 0 to m = 1.
        source: source of the numbers.
        offset: part of the strength that does not depend on m.
        signed: whether a sign is drawn.
        side: side of the image that a relative argument is a fraction of.
        rounding: rule that turns the argument into an integer.
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

    def __post_init__(self) -> None:
        for name in ("base", "slope", "offset"):
            _check_number(name, getattr(self, name))
        if self.minimum != -math.inf:  # which is none
            _check_number("minimum", self.minimum)
        for name, kind in (("source", str), ("side", Side), ("rounding", Rounding)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"`{name}` of a range must be a {kind.__name__}, got {value!r}.")

    def value(self, magnitude: float, sign: int, height: int, width: int) -> float:
        """Return the argument of one magnitude on an image of that size."""
        turn = sign if self.signed else 1
        strength = (self.offset + self.slope * magnitude) * self.side.pixels(height, width)
        return max(self.minimum, self.rounding.apply(self.base + turn * strength))


def _check_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(
            f"`{name}` of a range must be a finite number, in the unit of the argument, "
            f"got {value!r}."
        )


@lru_cache(maxsize=16)
def read_data(name: str) -> Any:
    """Return the content of a data file of this package."""
    folder = resources.files("divaug") / "policies" / "data"
    return json.loads((folder / name).read_text(encoding="utf-8"))


#: Of operations that take no argument.
NO_MAGNITUDE = Range(0.0, 0.0, "no magnitude")


def read_ranges(content: Mapping[str, Any]) -> Mapping[str, Range]:
    """Read ranges by operation: null, or the fields of a `Range` that are not usual."""
    return MappingProxyType({name: _read_range(fields) for name, fields in content.items()})


def _read_range(fields: Mapping[str, Any] | None) -> Range:
    if fields is None:
        return NO_MAGNITUDE
    return Range(
        base=float(fields["base"]),
        slope=float(fields["slope"]),
        source=fields["source"],
        offset=float(fields.get("offset", 0)),
        signed=fields.get("signed", False),
        side=Side[fields.get("side", "none").upper()],
        rounding=Rounding[fields.get("rounding", "none").upper()],
        minimum=float(fields.get("minimum", -math.inf)),
    )


@lru_cache(maxsize=1)
def spaces() -> Mapping[str, Mapping[str, Range]]:
    """Return space → operation → range."""
    content = read_data("spaces.json")["spaces"]
    return MappingProxyType({name: read_ranges(some) for name, some in content.items()})


def space_of(name: str) -> Mapping[str, Range]:
    """Return the space of that name, or raise an error that lists them."""
    known = spaces()
    if not isinstance(name, str) or name not in known:
        raise ValueError(unknown_name("space", name, tuple(known)))
    return known[name]


def argument(
    operation: str,
    magnitude: float,
    *,
    space: str = "paper",
    sign: int = 1,
    height: int = 32,
    width: int = 32,
) -> float | None:
    """Return the argument of an operation at a magnitude; None where it takes none.

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
    return None if entry is NO_MAGNITUDE else entry.value(magnitude, sign, height, width)
