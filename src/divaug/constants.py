"""Numbers that wait on a device."""

from functools import lru_cache

import torch
from torch import Tensor

__all__ = ["constant"]


@lru_cache(maxsize=64)
def constant(
    values: tuple[float, ...] | tuple[tuple[float, ...], ...],
    device: torch.device,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Numbers on a device, copied there once: a copy makes the host wait.

    Args:
        values: the numbers.
        device: where.
        dtype: of the tensor; never torch's default, which a program may change at any time.
    """
    return torch.tensor(values, dtype=dtype, device=device)
