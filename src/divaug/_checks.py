"""Checks of settings, and what several modules do with tensors, graphs and data files."""

import math
import sys
from collections.abc import Callable
from functools import lru_cache, wraps
from numbers import Integral, Real
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

__all__ = [
    "check_number",
    "check_range",
    "check_whole",
    "constant",
    "holds_integers",
    "outside_graphs",
    "real",
    "whole",
]


def holds_integers(tensor: Tensor) -> bool:
    """Return whether a tensor has an integer dtype; bool is none.

    Example:
        >>> holds_integers(torch.tensor([3])), holds_integers(torch.tensor([3j]))
        (True, False)
    """
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def whole(value: object) -> int | None:
    """Convert an int of Python or NumPy to Python's; None for anything else.

    Neither bool nor a tensor counts: reading a tensor may synchronise.

    Example:
        >>> import numpy as np
        >>> whole(np.int64(8)), whole(8.0), whole(True)
        (8, None, None)
    """
    # What is kept must be Python's own: others wrap around, and JSON cannot hold them.
    return None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def real(value: object) -> float | None:
    """Convert a number of Python or NumPy to Python's int or float; None for anything else.

    Example:
        >>> import numpy as np
        >>> real(np.float32(0.5)), real(9), real("9")
        (0.5, 9, None)
    """
    if isinstance(value, Integral):
        return whole(value)
    return float(value) if isinstance(value, Real) else None


def check_whole(setting: str, value: object, low: int, high: int | None = None) -> int:
    """Return an int after checking that it lies in [low, high]; `high` None has no limit."""
    top = math.inf if high is None else high
    number = whole(value)
    if number is not None and low <= number <= top:
        return number
    rule = f"of at least {low}" if high is None else f"in [{low}, {high}]"
    raise ValueError(f"`{setting}` must be an int {rule}, got {value!r}.")


def check_number(what: str, value: object, low: float, high: float) -> float:
    """Return a number after checking that it lies in [low, high]; NaN does not."""
    number = real(value)
    if number is not None and low <= number <= high:
        return number
    raise ValueError(f"{what} must be a number in [{low:g}, {high:g}], got {value!r}.")


def check_range(setting: str, value: object, high: float | None = None) -> tuple[float, float]:
    """Return two floats after checking that 0 < first ≤ second ≤ `high`; None has no limit."""
    top = sys.float_info.max if high is None else high
    ends = value if isinstance(value, tuple | list) else ()
    numbers = [float(n) for n in map(real, ends) if n is not None]
    if len(numbers) == len(ends) == 2 and 0 < numbers[0] <= numbers[1] <= top:
        return numbers[0], numbers[1]
    rule = "" if high is None else f" and at most {high:g}"
    raise ValueError(
        f"`{setting}` must be two finite numbers (smallest, largest), above 0{rule}, got {value!r}."
    )


_P = ParamSpec("_P")
_R = TypeVar("_R")


def outside_graphs(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Run a function as it is inside of a compiled one, too.

    Its arithmetic is in integers of a fixed width, tables and kernels of our own: compiled once
    more it would gain nothing, and some backends cannot.

    Example:
        >>> @outside_graphs
        ... def double(x):
        ...     return 2 * x
        >>> double(torch.tensor(3))
        tensor(6)
    """

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if torch.compiler.is_compiling():
            # Accessed only here: it imports the compiler, which takes a second.
            plain: Callable[_P, _R] = torch.compiler.disable(function)
            return plain(*args, **kwargs)
        return function(*args, **kwargs)

    return call


@lru_cache(maxsize=64)
def constant(
    values: tuple[float, ...] | tuple[tuple[float, ...], ...],
    device: torch.device,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Return numbers on a device, copied there once: each copy synchronises.

    Args:
        values: the numbers.
        device: device of the tensor.
        dtype: dtype of the tensor; never torch's default, which a program may change at any time.
    """
    return torch.tensor(values, dtype=dtype, device=device)
