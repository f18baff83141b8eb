"""`score`: what the model predicts for every candidate (Algorithm 1, line 7)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parametrize

from divaug.buffers import keeping_buffers
from divaug.checks import check_whole
from divaug.compilation import outside_graphs
from divaug.modes import evaluating

__all__ = ["check_model", "dtype_of", "logits_of", "score"]


def dtype_of(model: nn.Module) -> torch.dtype:
    """The dtype of the model's parameters; float32 where it has none that images can have."""
    floats = (p.dtype for p in model.parameters() if p.is_floating_point())
    # Eight bits hold weights, not images.
    return next((dtype for dtype in floats if dtype.itemsize > 1), torch.float32)


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


@contextmanager
def _generators_untouched(device: torch.device) -> Iterator[None]:
    """Leave torch's generators as they were, whatever the model draws while it is scored."""
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


def logits_of(output: object) -> Tensor:
    """The logits in what a model returned: a tensor, a tuple's first, or what is named so."""
    found = getattr(output, "logits", None)
    if found is None and isinstance(output, Mapping):
        found = output.get("logits")
    elif found is None:
        found = output[0] if isinstance(output, tuple | list) and output else output
    if not isinstance(found, Tensor):
        raise TypeError(
            "the model must return a tensor of logits [N,D], a tuple that begins with it, an "
            f'object with `.logits` or a mapping with "logits"; got {type(output).__name__}. Give '
            "a module around yours whose forward picks them out."
        )
    return found


@outside_graphs
def score(model: nn.Module, candidates: Tensor, *, chunk_size: int | None = None) -> Tensor:
    """Probability vectors of all candidates, leaving the model as it was.

    The model runs in evaluation mode without gradients; each module's mode, the BatchNorm
    statistics and all other buffers, the gradients, torch's generators and the candidates are
    untouched, also when the model raises or works on its input in place. Forward hooks are called.
    Modules with a `train` of their own are told of the mode and back, which takes a copy of their
    weights. An autocast context around the call is respected; the softmax is taken in float32.
    What a model keeps outside of its parameters and buffers (a counter in Python, say) stays as its
    forward leaves it. So do other parameters that the forward itself writes to in evaluation mode.

    No other thread may use the model meanwhile: it would find it in evaluation mode, so a thread
    that prefetches batches must not augment them. One that draws from torch's generators meanwhile
    may draw the same numbers twice: give it a generator of its own.

    Args:
        model: any module that returns logits; also compiled, or wrapped in DDP. Scoring goes past
            DDP and past what is compiled around it: of torch.compile(DDP(model)) give
            torch.compile(model), which has the same weights.
        candidates: `[B,E,C,H,W]`; uint8 candidates are scaled to [0, 1], in the model's dtype.
        chunk_size: most candidates in one forward pass; None for all at once.

    Returns:
        float32 `[B,E,D]`.

    Example:
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(12, 5))
        >>> probs = score(model, torch.rand(2, 8, 3, 2, 2))
        >>> probs.shape
        torch.Size([2, 8, 5])
    """
    check_model(model)
    _check_candidates(candidates)
    if chunk_size is not None:
        chunk_size = check_whole("chunk_size", chunk_size, 1)
    B, E = candidates.shape[:2]
    flat = candidates.flatten(0, 1)
    bare = _without_ddp(model)
    with (
        evaluating(bare),
        keeping_buffers(bare),
        _past_ddp(bare),
        _generators_untouched(flat.device),
        _nothing_cached(),
        torch.no_grad(),
    ):
        parts = [_forward(bare, part) for part in torch.split(flat, chunk_size or len(flat))]
    logits = torch.cat(parts)
    return torch.softmax(logits, dim=-1).view(B, E, -1)


def check_model(model: object) -> None:
    """Refuse what is not a module: a mere function has no mode to put back."""
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"`model` must be a torch.nn.Module that returns logits, got {type(model).__name__}; "
            "put a function into the forward of a module."
        )


def _check_candidates(candidates: object) -> None:
    if not isinstance(candidates, Tensor) or candidates.ndim != 5:
        shape = tuple(candidates.shape) if isinstance(candidates, Tensor) else type(candidates)
        raise ValueError(f"`candidates` must have five axes [B,E,C,H,W], got {shape}.")
    if candidates.dtype != torch.uint8 and not candidates.is_floating_point():
        raise TypeError(f"`candidates` must be uint8 or floats, got {candidates.dtype}.")
    if not len(candidates):
        raise ValueError("`candidates` is empty: there is nothing to score.")
    if not candidates.shape[1]:
        raise ValueError(
            "`candidates` [B,E,C,H,W] must hold at least one candidate of each image, got E=0 in "
            f"shape {tuple(candidates.shape)}; make them with expand(images, num_candidates=8)."
        )


def _without_ddp(model: nn.Module) -> nn.Module:
    # DDP's forward copies rank 0's buffers to the other ranks, also in evaluation mode; scoring
    # must not write to the model.
    inner = getattr(model, "_orig_mod", model)
    return inner.module if isinstance(inner, DistributedDataParallel) else model


@contextmanager
def _past_ddp(model: nn.Module) -> Iterator[None]:
    """The same where DDP stands inside of somebody else's wrapper, such as Lightning Fabric's."""
    inside = [part for part in model.modules() if isinstance(part, DistributedDataParallel)]
    try:
        for part in inside:
            vars(part)["forward"] = part.module.__call__
        yield
    finally:
        for part in inside:
            vars(part).pop("forward", None)


def _forward(model: nn.Module, images: Tensor) -> Tensor:
    if images.dtype == torch.uint8:
        images = images.to(torch.float32).div_(255).to(dtype_of(model))
    else:
        images = images.clone()  # a model may work on its input in place
    logits = logits_of(model(images))
    if logits.ndim != 2 or len(logits) != len(images) or logits.shape[1] < 2:
        raise ValueError(
            f"the model must return logits [N,D] with N={len(images)} and at least two classes, "
            f"got shape {tuple(logits.shape)}; give a module around yours whose forward makes such "
            "logits, of a single one z torch.cat([F.logsigmoid(z), F.logsigmoid(-z)], 1)."
        )
    # Half-precision probabilities would round small distances to zero.
    return logits.to(torch.float32, copy=True)
