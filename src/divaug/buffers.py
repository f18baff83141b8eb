"""Buffers that are afterwards as they were, of a model that changes them while it evaluates."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.parameter import is_lazy

__all__ = ["keeping_buffers"]


@contextmanager
def keeping_buffers(model: nn.Module) -> Iterator[None]:
    """Put back the buffers that a model changes although it evaluates.

    Torch's own layers and ours change none then, so theirs are not copied: a network has hundreds.
    Others do: the observers of quantisation-aware training, and whatever counts images.

    Example:
        >>> class Counting(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.register_buffer("seen", torch.tensor(0))
        ...
        ...     def forward(self, x):
        ...         self.seen += len(x)
        ...         return x
        >>> model = Counting()
        >>> with keeping_buffers(model):
        ...     _ = model(torch.zeros(3, 2))
        >>> model.seen
        tensor(0)
    """
    kept = [
        (module, name, buffer, buffer.detach().clone() if _can_be_written(buffer) else None)
        for module in model.modules()
        if not _keeps_buffers(module)
        for name, buffer in module.named_buffers(recurse=False)
        if not is_lazy(buffer)
    ]
    try:
        yield
    finally:
        for module, name, buffer, before in kept:
            if getattr(module, name, None) is not buffer:
                setattr(module, name, buffer)
            if before is None:
                continue
            if buffer.shape != before.shape:
                buffer.resize_(before.shape)
            # Past autograd, which knows these values, and inference mode, which lets nobody write.
            buffer.data.copy_(before)


def _can_be_written(tensor: Tensor) -> bool:
    """Whether a model can have written to it.

    Where entries share memory, as `expand` makes them, torch lets nobody write. Sparse ones are
    replaced.
    """
    if tensor.layout is not torch.strided:
        return False
    return all(
        stride or size < 2 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )


def _keeps_buffers(module: nn.Module) -> bool:
    """Whether a module is known to change no buffer while it evaluates."""
    known = ("torch.nn.", "divaug.models.")
    return type(module).__module__.startswith(known) or isinstance(module, _NormBase)
