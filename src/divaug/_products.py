"""Exact scalar products of probability vectors, rounded to fixed point first.

All products and sums fit float64 without rounding, so any order, library and device give the same.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["BITS", "CHUNK_NUMBERS", "LARGEST_SUM", "products_and_sums"]


#: Bits of a probability after the point. The scalar product of two probability vectors is then
#: below 2**53, so float64 holds it and all its partial sums exactly; a squared distance is below
#: 2**54, and a sum over 64 candidates fits the 62 bits that the draw needs.
BITS = 26

#: A sum of probabilities above this is no probability vector; half precision stays well below it.
LARGEST_SUM = (1 << BITS) + (1 << (BITS - 4))


#: Probabilities worked on at a time: as many as a core's cache holds.
CHUNK_NUMBERS = 1 << 18
CHUNKS_PER_THREAD = 4

_Floats = NDArray[np.floating[Any]]


def products_and_sums(probs: Tensor) -> Tensor:
    """Compute the products of all candidates of an image, and the sum of each one's probabilities.

    Args:
        probs: `[B,E,D]`, of any float dtype, on any device.

    Returns:
        float64 `[E,E+1,B]`, images on the last axis since the others are short: the products in
        units of 2**-52 and, last, the sums in units of 2**-26. Entries of a vector that is not
        finite are NaN.
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
    # Waking a thread takes a while: it is worth it from a few chunks on.
    threads = max(1, min(torch.get_num_threads(), len(starts) // CHUNKS_PER_THREAD))

    def share(thread: int) -> None:
        with np.errstate(invalid="ignore", over="ignore"):
            work = _worker(values[:chunk])
            for start in starts[thread::threads]:
                work(values[start : start + chunk], found[start : start + chunk])

    # The caller takes a share too: one thread fewer to wake, and no core waits for it.
    others = [_helpers(os.getpid()).submit(share, thread) for thread in range(1, threads)]
    try:
        share(0)
    finally:
        wait(others)
    for other in others:
        other.result()
    half = E // 2
    found[:, half:, :half] = found[:, :half, half:E].transpose(0, 2, 1)
    return torch.from_numpy(np.ascontiguousarray(found.transpose(1, 2, 0)))


@lru_cache(maxsize=1)
def _helpers(_process: int) -> ThreadPoolExecutor:
    """Threads that are kept, since starting one takes as long as a chunk.

    They belong to a process: one that was forked has none of its parent's and starts its own.
    """
    return ThreadPoolExecutor(thread_name_prefix="divaug-products")


def _worker(shape_of: _Floats) -> Callable[[_Floats, _Floats], None]:
    """Return a function with memory of its own that fills the products of one chunk.

    Few and large calls: each gives Python's lock away and has to wait for it again. What the upper
    half of the rows has multiplied with the lower is not multiplied again, but left to the caller.
    """
    n, E, D = shape_of.shape
    scaled = np.empty((n, E, D), np.float32)
    rows = np.empty((n, E + 1, D))
    rows[:, E] = 1  # a product with ones is a sum, as exact as the others
    half = E // 2

    def work(part: _Floats, out: _Floats) -> None:
        whole, mine = scaled[: len(part)], rows[: len(part)]
        _to_fixed_point(part, whole)
        mine[:, :E] = whole
        across = mine.transpose(0, 2, 1)
        np.matmul(mine[:, :half], across, out=out[:, :half])
        np.matmul(mine[:, half:E], across[:, :, half:], out=out[:, half:, half:])

    return work


def _to_fixed_point(part: _Floats, whole: _Floats) -> None:
    scale = np.float32(1 << BITS)
    np.multiply(part, scale, out=whole)
    if _all_in_unit_interval(part):
        np.floor(whole, out=whole)
    else:
        np.clip(whole, 0, scale, out=whole)
        np.floor(whole, out=whole)
        whole += part * 0


def _all_in_unit_interval(part: _Floats) -> bool:
    """Return whether all lie in [0, 1], in one pass over their bits.

    The bits of floats from 0 to 1, read as integers, are those from 0 to the bits of 1; what
    is negative (also −0), above 1, infinite or not a number lies above them.
    """
    return bool(part.view(np.uint32).max() <= np.float32(1).view(np.uint32))
