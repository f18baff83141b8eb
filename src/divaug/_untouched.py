"""`untouched`: a model evaluates for a while and is afterwards as it was."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _global_forward_hooks, _global_forward_pre_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

__all__ = ["untouched"]

# Modules whose `train` and `eval` only pass the mode on, and modules that leave weights alone: a
# copy of all weights in every step would cost each model of Hugging Face more than its memory is
# worth.
_TORCHS = ("torch.",)
_HARMLESS = (*_TORCHS, "transformers.modeling_utils")
# Modules that change no buffer while they evaluate.
_KNOWN = ("torch.nn.", "divaug.lab.models.")


@contextmanager
def untouched(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Evaluate a model without gradients for the block, and leave it as it was, also on an error.

    Restored are the mode of each module, what modules do to their tensors when the mode changes,
    all buffers, torch's generators, and what torch caches of weights. What the forward writes to
    other parameters, or keeps outside of tensors, stays.

    Args:
        model: the network; DDP within it is bypassed.
        device: where it runs.

    Example:
        >>> model = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(3).eval())
        >>> with untouched(model, torch.device("cpu")):
        ...     [module.training for module in model]
        [False, False]
        >>> [module.training for module in model]
        [True, False]
    """
    with (
        _evaluating(model),
        _keeping_buffers(model),
        _past_ddp(model),
        _keeping_generators(device),
        _nothing_cached(),
        torch.no_grad(),
    ):
        yield


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode for the block; afterwards every module is in the mode it was in.

    Some modules do work when they are told of a mode: they merge low-rank weights, make or drop a
    table. They are told of both changes. What is left of that in their parameters and buffers, such
    as the rounding of weights that were added and taken away again, is put back, from a copy.
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


@contextmanager
def _keeping_buffers(model: nn.Module) -> Iterator[None]:
    """Put back the buffers that a model changes although it evaluates.

    Torch's own layers and ours change none then, so a model that is made of them alone is left
    alone. Others may do what they like, also with the layers within: the observers of
    quantisation-aware training, whatever counts images, a BatchNorm that never evaluates.
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


@contextmanager
def _past_ddp(model: nn.Module) -> Iterator[None]:
    """Bypass DDP inside of the model, as in Lightning Fabric's wrapper.

    Its forward copies rank 0's buffers to the other ranks, also in evaluation mode.
    """
    inside = [part for part in model.modules() if isinstance(part, DistributedDataParallel)]
    try:
        for part in inside:
            vars(part)["forward"] = part.module.__call__
        yield
    finally:
        for part in inside:
            vars(part).pop("forward", None)


@contextmanager
def _keeping_generators(device: torch.device) -> Iterator[None]:
    """Restore the state of torch's generators."""
    on_cpu = torch.get_rng_state()
    # Inside a capture a generator's state is the graph's own business.
    gpu = device.type == "cuda" and not torch.cuda.is_current_stream_capturing()
    on_gpu = torch.cuda.get_rng_state(device) if gpu else None
    try:
        yield
    finally:
        torch.set_rng_state(on_cpu)
        if on_gpu is not None:
            torch.cuda.set_rng_state(on_gpu, device)


@contextmanager
def _nothing_cached() -> Iterator[None]:
    """Share no weights that `parametrize.cached` or autocast keeps with the passes around.

    Weights made here have no gradient, and modules that merge others into theirs to evaluate have
    other weights here than where they train.
    """
    enabled, cache = parametrize._cache_enabled, parametrize._cache
    parametrize._cache_enabled, parametrize._cache = 0, {}
    torch.clear_autocast_cache()
    try:
        yield
    finally:
        parametrize._cache_enabled, parametrize._cache = enabled, cache
        torch.clear_autocast_cache()
