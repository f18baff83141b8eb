"""Buffers that are afterwards as they were, of a model that changes them while it evaluates."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _global_forward_hooks, _global_forward_pre_hooks
from torch.nn.parameter import is_lazy

__all__ = ["keeping_buffers"]

_KNOWN = ("torch.nn.", "divaug.lab.models.")


@contextmanager
def keeping_buffers(model: nn.Module) -> Iterator[None]:
    """Put back the buffers that a model changes although it evaluates.

    Torch's own layers and ours change none then, so a model that is made of them alone is left
    alone. Others may do what they like, also with the layers within: the observers of
    quantisation-aware training, whatever counts images, a BatchNorm that never evaluates.

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
    modules = list(getattr(model, "_orig_mod", model).modules())  # compiled: the same buffers
    hooked = _global_forward_hooks or _global_forward_pre_hooks
    if not hooked and all(map(_keeps_buffers, modules)):
        yield
        return
    tables = [(module, dict(module._buffers.items())) for module in modules]
    passing = [module._non_persistent_buffers_set.copy() for module in modules]
    found = {id(each): each for _, table in tables for each in table.values() if each is not None}
    buffers = [each for each in found.values() if _can_be_written(each)]
    copies = [torch.empty_like(each) for each in buffers]
    _copy(copies, buffers)
    try:
        yield
    finally:
        for (module, table), names in zip(tables, passing, strict=True):
            _put_back(module, table, names)
        for buffer, before in zip(buffers, copies, strict=True):
            if buffer.shape != before.shape:
                buffer.resize_(before.shape)
        _copy(buffers, copies)


def _put_back(module: nn.Module, table: dict[str, Tensor | None], passing: set[str]) -> None:
    """Give a module the same buffers again and no others, by name; some may be none so far."""
    now = dict(module._buffers.items())
    if len(now) == len(table) and all(now.get(name, now) is each for name, each in table.items()):
        return
    if isinstance(module, torch.jit.ScriptModule):  # it cannot gain or lose one
        for name, each in table.items():
            setattr(module, name, each)
        return
    for name in table:
        module.__dict__.pop(name, None)
    module._buffers.clear()
    module._buffers.update(table)
    module._non_persistent_buffers_set = passing


def _copy(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    """Write all of them at once, of each kind: a network has hundreds.

    Past autograd, which knows these values, and inference mode, which lets nobody write.
    """
    kinds: dict[object, tuple[list[Tensor], list[Tensor]]] = {}
    for target, source in zip(targets, sources, strict=True):
        kind = (type(source), source.device, source.dtype)
        mine, theirs = kinds.setdefault(kind, ([], []))
        mine.append(target.data)
        theirs.append(source.data)
    for mine, theirs in kinds.values():
        torch._foreach_copy_(mine, theirs)


def _can_be_written(tensor: Tensor) -> bool:
    """Whether a model can have written to it.

    Where entries share memory, as `expand` makes them, torch lets nobody write. Sparse ones are
    replaced, and lazy ones are not there yet.
    """
    if is_lazy(tensor) or tensor.layout is not torch.strided:
        return False
    return all(
        stride or size < 2 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )


def _keeps_buffers(module: nn.Module) -> bool:
    """Whether a module is known to change no buffer while it evaluates."""
    hooked = module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module)
    return type(module).__module__.startswith(_KNOWN) and not hooked
