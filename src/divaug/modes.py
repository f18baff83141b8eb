"""Evaluation mode for a while, and a model that is afterwards as it was."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

__all__ = ["evaluating"]

# Where `train` and `eval` only pass the mode on, and where they leave weights alone: a copy of all
# weights in every step would cost each model of Hugging Face more than its memory is worth.
_TORCHS = ("torch.",)
_HARMLESS = (*_TORCHS, "transformers.modeling_utils")


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode for the block; afterwards every module is in the mode it was in.

    Some modules do work when they are told of a mode: they merge low-rank weights, make or drop a
    table. They are told of both changes. What is left of that in their parameters and buffers, such
    as the rounding of weights that were added and taken away again, is put back, from a copy.

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
    workers = [(module, mode) for module, mode in modes if _has_own(module, _TORCHS)]
    kept = _copies(module for module, _ in workers if _has_own(module, _HARMLESS))
    try:
        _evaluate(model)
        for module, _ in modes:
            module.training = False  # also of one that does not pass it on
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


def _evaluate(model: nn.Module) -> None:
    try:
        model.eval()
    except NotImplementedError as error:  # what torch.export made
        raise TypeError(
            f"`model` must have an evaluation mode, and {type(model).__name__} has none: {error} "
            "Of a module that was exported, give the one that it was made from."
        ) from error


def _has_own(module: nn.Module, others: tuple[str, ...]) -> bool:
    """Whether `train` or `eval` is somebody's own, and not of the places named."""
    told = (module.train, module.eval)
    return not all(str(getattr(each, "__module__", "")).startswith(others) for each in told)


def _copies(modules: Iterable[nn.Module]) -> list[tuple[Tensor, Tensor]]:
    """Parameters and buffers, each once, with a copy; those without a shape yet hold nothing."""
    tensors = {id(t): t for module in modules for t in (*module.parameters(), *module.buffers())}
    return [(t, t.detach().clone()) for t in tensors.values() if not is_lazy(t)]
