"""Numbers that wait on a device."""

from functools import lru_cache

import torch
from torch import Tensor

__all__ = ["constant"]


@lru_cache(maxsize=64)
def constant(
    values: tuple[float, ...] | tuple[tuple[float, ...], ...], device: torch.device
) -> Tensor:
    """Numbers on a device, copied there once: a copy makes the host wait."""
    return torch.tensor(values, device=device)
