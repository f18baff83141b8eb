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
    """Evaluate for the block; afterwards every module is in the mode it was in.

    Modules with a `train` of their own (which merges low-rank weights, or makes a table) get both
    calls. Their parameters and buffers are restored from a copy: weights that were added and
    subtracted again are rounded.
    """
    modes = [(module, module.training) for module in model.modules()]
    if not any(mode for _, mode in modes):
        yield
        return
    workers = [(module, mode) for module, mode in modes if _has_own(module, _TORCHS)]
    kept = _copies(module for module, _ in workers if _has_own(module, _HARMLESS))
    try:
        model.eval()
        for module, _ in modes:
            module.training = False  # also of one that does not pass it on
        yield
    finally:
        try:
            # From outside inwards: a module passes its mode on to all within.
            for module, mode in workers:
                if module.training != mode:
                    module.train(mode)
        finally:
            for module, mode in modes:
                module.training = mode
            for tensor, before in kept:
                tensor.data.copy_(before)  # without autograd's notice: its values are these


def _has_own(module: nn.Module, others: tuple[str, ...]) -> bool:
    """Return whether `train` or `eval` is defined elsewhere than in the named packages."""
    both = (module.train, module.eval)
    return not all(str(getattr(each, "__module__", "")).startswith(others) for each in both)


def _copies(modules: Iterable[nn.Module]) -> list[tuple[Tensor, Tensor]]:
    """Copy parameters and buffers, each once; those without a shape yet hold nothing."""
    tensors = {id(t): t for module in modules for t in (*module.parameters(), *module.buffers())}
    return [(t, t.detach().clone()) for t in tensors.values() if not is_lazy(t)]


@contextmanager
def _keeping_buffers(model: nn.Module) -> Iterator[None]:
    """Restore the buffers that a model changes while it evaluates.

    A model of torch's own layers and ours changes none and is not copied. Others may: observers of
    quantisation-aware training, counters of images, a BatchNorm that never evaluates.
    """
    modules = list(getattr(model, "_orig_mod", model).modules())  # compiled: the same buffers
    hooked = _global_forward_hooks or _global_forward_pre_hooks
    if not hooked and all(map(_keeps_buffers, modules)):
        yield
        return
    tables = [(module, dict(module._buffers.items())) for module in modules]
    found = {id(each): each for _, table in tables for each in table.values() if each is not None}
    buffers = [each for each in found.values() if _can_be_written(each)]
    copies = [torch.empty_like(each) for each in buffers]
    _copy(copies, buffers)
    try:
        yield
    finally:
        for module, table in tables:
            now = dict(module._buffers.items())
            same = now.keys() == table.keys() and all(now[n] is each for n, each in table.items())
            if not same and not isinstance(module, torch.jit.ScriptModule):
                module._buffers.clear()
                module._buffers.update(table)
        for buffer, before in zip(buffers, copies, strict=True):
            if buffer.shape != before.shape:
                buffer.resize_(before.shape)
        _copy(buffers, copies)


def _copy(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    """Write all tensors of a kind at once, a network has hundreds, without autograd's notice."""
    kinds: dict[object, tuple[list[Tensor], list[Tensor]]] = {}
    for target, source in zip(targets, sources, strict=True):
        kind = (type(source), source.device, source.dtype)
        mine, theirs = kinds.setdefault(kind, ([], []))
        mine.append(target.data)
        theirs.append(source.data)
    for mine, theirs in kinds.values():
        torch._foreach_copy_(mine, theirs)


def _can_be_written(tensor: Tensor) -> bool:
    """Return whether a model can have written to a tensor: not lazy, sparse or expanded."""
    if is_lazy(tensor) or tensor.layout is not torch.strided:
        return False
    sides = zip(tensor.shape, tensor.stride(), strict=True)
    return all(stride or size < 2 for size, stride in sides)


def _keeps_buffers(module: nn.Module) -> bool:
    """Return whether a module certainly changes no buffer while it evaluates."""
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
