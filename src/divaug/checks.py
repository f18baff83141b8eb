"""Numbers that settings may be, refused with the rule that they break."""

import math
import sys
from numbers import Integral, Real

import torch
from torch import Tensor

__all__ = ["check_number", "check_range", "check_whole", "holds_integers", "real", "whole"]


def holds_integers(tensor: Tensor) -> bool:
    """Whether the elements are whole numbers by their dtype; truth values are not.

    Example:
        >>> holds_integers(torch.tensor([3])), holds_integers(torch.tensor([3j]))
        (True, False)
    """
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def whole(value: object) -> int | None:
    """A whole number of Python or NumPy as Python's; None for anything else.

    Truth values are none, nor are tensors: reading one may wait for a device.

    Example:
        >>> import numpy as np
        >>> whole(np.int64(8)), whole(8.0), whole(True)
        (8, None, None)
    """
    # What is kept must be Python's own: others wrap around, and JSON cannot hold them.
    return None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def real(value: object) -> float | None:
    """A number of Python or NumPy as Python's, whole ones as an int; None for anything else.

    Example:
        >>> import numpy as np
        >>> real(np.float32(0.5)), real(9), real("9")
        (0.5, 9, None)
    """
    if isinstance(value, Integral):
        return whole(value)
    return float(value) if isinstance(value, Real) else None


def check_whole(setting: str, value: object, low: int, high: int | None = None) -> int:
    """The value as an int, refused if it is no whole number from `low` to `high`, None: no end."""
    top = math.inf if high is None else high
    number = whole(value)
    if number is not None and low <= number <= top:
        return number
    rule = f"of at least {low}" if high is None else f"in [{low}, {high}]"
    raise ValueError(f"`{setting}` must be a whole number {rule}, got {value!r}.")


def check_number(what: str, value: object, low: float, high: float) -> float:
    """The value as Python's, refused if it is no number from `low` to `high`; NaN is none."""
    number = real(value)
    if number is not None and low <= number <= high:
        return number
    raise ValueError(f"{what} must be a number in [{low:g}, {high:g}], got {value!r}.")


def check_range(setting: str, value: object, high: float | None = None) -> tuple[float, float]:
    """Two numbers, the smaller first, above 0 and up to `high`, as floats; None for no end."""
    top = sys.float_info.max if high is None else high
    ends = value if isinstance(value, tuple | list) else ()
    numbers = [float(n) for n in map(real, ends) if n is not None]
    if len(numbers) == len(ends) == 2 and 0 < numbers[0] <= numbers[1] <= top:
        return numbers[0], numbers[1]
    rule = "" if high is None else f" and at most {high:g}"
    raise ValueError(
        f"`{setting}` must be two finite numbers (smallest, largest), above 0{rule}, got {value!r}."
    )
