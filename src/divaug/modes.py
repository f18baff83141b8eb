"""Evaluation mode for a while, and a model that is afterwards as it was."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

__all__ = ["evaluating"]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode for the block; afterwards every module is in the mode it was in.

    Some modules do work when they are told of a mode: they merge low-rank weights, make or drop a
    table. They are told of both changes. What is left of that in their parameters and buffers, such
    as the rounding of weights that were added and taken away again, is put back.

    Example:
        >>> model = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(3).eval())
        >>> with evaluating(model):
        ...     [module.training for module in model]
        [False, False]
        >>> [module.training for module in model]
        [True, False]
    """
    modes = [(module, module.training) for module in model.modules()]
    if not any(mode for _, mode in modes):
        yield
        return
    workers = [(module, mode) for module, mode in modes if _works_when_told(module)]
    kept = _copies(module for module, _ in workers)
    try:
        model.eval()
        yield
    finally:
        try:
            # From outside inwards: to tell a module is to tell all that is inside of it.
            for module, mode in workers:
                if module.training != mode:
                    module.train(mode)
        finally:
            for module, mode in modes:
                module.training = mode
            for tensor, before in kept:
                tensor.data.copy_(before)  # past autograd: the values are those it knows


def _works_when_told(module: nn.Module) -> bool:
    """Whether `train` or `eval` is somebody's own; those of torch only pass the mode on."""
    told = (module.train, module.eval)
    return not all(str(getattr(each, "__module__", "")).startswith("torch.") for each in told)


def _copies(modules: Iterable[nn.Module]) -> list[tuple[Tensor, Tensor]]:
    """Parameters and buffers, each once, with a copy; those without a shape yet hold nothing."""
    tensors = {id(t): t for module in modules for t in (*module.parameters(), *module.buffers())}
    return [(t, t.detach().clone()) for t in tensors.values() if not is_lazy(t)]
