"""What torch.compile is to leave alone, and what cannot be transformed."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

__all__ = ["check_eager", "outside_graphs"]

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
            # Asked for only here: it brings the compiler, which takes a second to import.
            plain: Callable[_P, _R] = torch.compiler.disable(function)
            return plain(*args, **kwargs)
        return function(*args, **kwargs)

    return call


def check_eager() -> None:
    """Refuse to work where tensors have no memory: what would be kept there serves nobody later.

    Raises:
        RuntimeError: the call came from within a transform of torch.func or a FakeTensorMode.
    """
    probe = torch.zeros(1, dtype=torch.uint8, device="cpu")
    try:  # what one kind of them lets pass, the other refuses
        probe.numpy()
        probe.tolist()
    except RuntimeError:
        raise RuntimeError(
            "images cannot be augmented within a transform of torch.func (such as grad) or a "
            "FakeTensorMode, where tensors have no memory; augment the batch before, and give the "
            "function its views."
        ) from None
