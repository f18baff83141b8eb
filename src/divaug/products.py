"""Exact scalar products of probability vectors, rounded to fixed point first.

All products and sums fit float64 without rounding, so any order, library and device give the same.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from divaug.fixed_point import BITS

__all__ = ["CHUNK_NUMBERS", "products_and_sums"]

#: Probabilities worked on at a time: as many as a core's cache holds.
CHUNK_NUMBERS = 1 << 18
CHUNKS_PER_THREAD = 4

_Floats = NDArray[np.floating[Any]]


def products_and_sums(probs: Tensor) -> Tensor:
    """Products of all candidates of an image, and the sum of each one's probabilities.

    Args:
        probs: `[B,E,D]`, of any float dtype, on any device.

    Returns:
        float64 `[E,E+1,B]`, images on the last axis since the others are short: the products in
        units of 2**-52 and, last, the sums in units of 2**-26. What belongs to a vector that is not
        finite is not a number.
    """
    # Cast first: a double beyond float32 is as infinite here as in the kernel.
    single = probs.detach().to(torch.float32)
    run = _on_cpu if single.device.type == "cpu" else _on_device
    return run(single)


def _chunk(shape: torch.Size | tuple[int, ...]) -> int:
    B, E, D = shape
    return max(1, min(B, CHUNK_NUMBERS // (E * D)))


def _on_device(probs: Tensor) -> Tensor:
    E, D = probs.shape[1:]
    chunk = _chunk(probs.shape)
    scaled = torch.empty((chunk, E, D), dtype=torch.float32, device=probs.device)
    # The last row is all ones: a product with it is a sum, as exact as the others.
    rows = torch.ones((chunk, E + 1, D), dtype=torch.float64, device=probs.device)
    found = []
    for part in torch.split(probs, chunk):
        whole = torch.mul(part, 1 << BITS, out=scaled[: len(part)])
        # Zero times what is not finite is not a number, and neither is any sum with it.
        whole.clamp_(0, 1 << BITS).floor_().add_(part, alpha=0)
        mine = rows[: len(part)]
        mine[:, :E] = whole
        found.append(torch.bmm(mine[:, :E], mine.transpose(1, 2)))
    return torch.cat(found).permute(1, 2, 0).contiguous()


def _on_cpu(probs: Tensor) -> Tensor:
    """In NumPy, which takes less than half of torch's time for so few rows; chunks in threads."""
    B, E, _ = probs.shape
    chunk = _chunk(probs.shape)
    values = probs.numpy()
    found = np.empty((B, E, E + 1))
    starts = range(0, B, chunk)
    # A thread takes a while to start: it is worth it from a few chunks on.
    threads = max(1, min(torch.get_num_threads(), len(starts) // CHUNKS_PER_THREAD))

    def share(thread: int) -> None:
        work = _worker(values[:chunk])
        for start in starts[thread::threads]:
            work(values[start : start + chunk], found[start : start + chunk])

    if threads == 1:
        share(0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(share, range(threads)))
    return torch.from_numpy(np.ascontiguousarray(found.transpose(1, 2, 0)))


def _worker(shape_of: _Floats) -> Callable[[_Floats, _Floats], None]:
    """A function with memory of its own that fills the products of one chunk."""
    n, E, D = shape_of.shape
    scaled = np.empty((n, E, D), np.float32)
    rows = np.ones((n, E + 1, D))
    half = E // 2

    def work(part: _Floats, out: _Floats) -> None:
        whole, mine = scaled[: len(part)], rows[: len(part)]
        _to_fixed_point(part, whole)
        mine[:, :E] = whole
        across = mine.transpose(0, 2, 1)
        with np.errstate(invalid="ignore"):
            # What the upper half has multiplied with the lower is not multiplied again.
            np.matmul(mine[:, :half], across, out=out[:, :half])
            np.matmul(mine[:, half:E], across[:, :, half:], out=out[:, half:, half:])
        out[:, half:, :half] = out[:, :half, half:E].transpose(0, 2, 1)

    return work


def _to_fixed_point(part: _Floats, whole: _Floats) -> None:
    scale = np.float32(1 << BITS)
    with np.errstate(invalid="ignore", over="ignore"):
        np.multiply(part, scale, out=whole)
        # False also where one is not a number.
        if part.min() >= 0 and part.max() <= 1:
            np.floor(whole, out=whole)
        else:
            np.clip(whole, 0, scale, out=whole)
            np.floor(whole, out=whole)
            whole += part * 0
