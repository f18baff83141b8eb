"""A word where a model writes to its weights although it evaluates."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.parameter import is_lazy

__all__ = ["watching_weights"]


@contextmanager
def watching_weights(model: nn.Module, restored: frozenset[int] = frozenset()) -> Iterator[None]:
    """Warn where a forward has written to parameters, such as a momentum encoder's.

    To put them back would take a copy of all weights in every step, of every model. To notice takes
    none: torch counts how often a tensor was written to. What is written through `.data`, and a
    parameter in place of another, it does not count; a write that changes no value it does.

    Args:
        model: whose parameters to watch.
        restored: ids of tensors that somebody else puts back: nothing is to be said of those.

    Example:
        >>> import torch
        >>> model = nn.Linear(2, 3)
        >>> with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        ...     warnings.simplefilter("always")
        ...     with watching_weights(model):
        ...         _ = model.weight.mul_(0.5)
        >>> str(caught[0].message)[:62]
        'the model writes to its weights while it is asked, to `weight`'
    """
    counted = [
        (name, parameter, parameter._version)
        for name, parameter in model.named_parameters()
        if id(parameter) not in restored and not is_lazy(parameter) and not parameter.is_inference()
    ]
    yield
    written = [name for name, parameter, before in counted if parameter._version != before]
    if written:
        others = f" and {len(written) - 1} more" if written[1:] else ""
        warnings.warn(
            f"the model writes to its weights while it is asked, to `{written[0]}`{others}, and "
            "scoring does not put weights back: each step writes once more than it would without "
            "DivAug. Let the forward write only `if self.training:`; where writing twice does "
            "what writing once does, as with the `max_norm` of an embedding, filter this warning.",
            RuntimeWarning,
            stacklevel=3,
        )
