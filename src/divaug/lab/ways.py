"""Ways to score candidates: precisions of the network, and the statistics of its BatchNorm."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from divaug._score import score

__all__ = ["BATCH", "JUDGE", "WAYS", "Way", "scored"]


@dataclass(frozen=True)
class Way:
    """A way to score candidates; all are in evaluation mode otherwise.

    Args:
        dtype: of the network's arithmetic.
        batch_statistics: whether BatchNorm takes the statistics of the candidates at hand, as it
            does in training, instead of its running ones.
    """

    dtype: torch.dtype = torch.float32
    batch_statistics: bool = False


#: The way that others are compared with, and the one that is nearest to training.
JUDGE, BATCH = "float32", "batch statistics"
#: Name → way, the judge first.
WAYS: Mapping[str, Way] = MappingProxyType(
    {JUDGE: Way(), "bfloat16": Way(torch.bfloat16), BATCH: Way(batch_statistics=True)}
)


def scored(network: nn.Module, candidates: Tensor, way: Way) -> Tensor:
    """Probability vectors `[B,E,D]` of float32 candidates, one way; the network stays as it was.

    Example:
        >>> network = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(12), nn.Linear(12, 5))
        >>> scored(network, torch.rand(2, 8, 3, 2, 2), WAYS["batch statistics"]).shape
        torch.Size([2, 8, 5])
    """
    lower, device = way.dtype != torch.float32, candidates.device
    with (
        _whole_float32(device),
        _statistics(network, of_batch=way.batch_statistics),
        torch.autocast(device.type, way.dtype, enabled=lower, cache_enabled=False),
    ):
        return score(network, candidates.to(way.dtype))


@contextmanager
def _statistics(network: nn.Module, *, of_batch: bool) -> Iterator[None]:
    """BatchNorm without running statistics for the block: it takes those of its batch."""
    found = [
        (module, module.running_mean, module.running_var)
        for module in network.modules()
        if of_batch and isinstance(module, _BatchNorm)
    ]
    try:
        for module, _, _ in found:
            module.running_mean = module.running_var = None
        yield
    finally:
        for module, mean, var in found:
            module.running_mean, module.running_var = mean, var


@contextmanager
def _whole_float32(device: torch.device) -> Iterator[None]:
    """On a GPU: convolutions and products of float32 in float32, not TF32, for the block."""
    if device.type != "cuda":
        yield
        return
    precision, allowed = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    try:
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = False
        yield
    finally:
        torch.set_float32_matmul_precision(precision)
        torch.backends.cudnn.allow_tf32 = allowed
