"""Numbers that settings may be, refused with the rule that they break."""

import math
import sys

import torch
from torch import Tensor

__all__ = ["check_number", "check_range", "check_whole", "holds_integers"]


def holds_integers(tensor: Tensor) -> bool:
    """Whether the elements are whole numbers by their dtype; truth values are not.

    Example:
        >>> holds_integers(torch.tensor([3])), holds_integers(torch.tensor([3j]))
        (True, False)
    """
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def check_whole(setting: str, value: object, low: int, high: int | None = None) -> None:
    """Refuse what is not a whole number from `low` to `high`; None for no upper end."""
    top = math.inf if high is None else high
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= top:
        return
    rule = f"of at least {low}" if high is None else f"in [{low}, {high}]"
    raise ValueError(f"`{setting}` must be a whole number {rule}, got {value!r}.")


def check_number(what: str, value: object, low: float, high: float) -> None:
    """Refuse what is not a number from `low` to `high`; NaN is none."""
    if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
        return
    raise ValueError(f"{what} must be a number in [{low:g}, {high:g}], got {value!r}.")


def check_range(setting: str, value: object, high: float | None = None) -> tuple[float, float]:
    """Two numbers, the smaller first, above 0 and up to `high`, as floats; None for no end."""
    top = sys.float_info.max if high is None else high
    ends = value if isinstance(value, tuple | list) else ()
    numbers = [float(n) for n in ends if isinstance(n, int | float) and not isinstance(n, bool)]
    if len(numbers) == len(ends) == 2 and 0 < numbers[0] <= numbers[1] <= top:
        return numbers[0], numbers[1]
    rule = "" if high is None else f" and at most {high:g}"
    raise ValueError(
        f"`{setting}` must be two finite numbers (smallest, largest), above 0{rule}, got {value!r}."
    )
