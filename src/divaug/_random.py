"""Stateless randomness: Philox 4×32-10, a function from a counter to random words.

A draw is a function of (seed, step, sample index, candidate, slot, purpose) and of nothing else:
not of what ran before, the position in the batch, the device or the number of processes. There is
no state to save, and no generator of torch, NumPy or Python is read or advanced.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from divaug._checks import holds_integers, whole

__all__ = [
    "Purpose",
    "Stream",
    "Words",
    "below",
    "check_index",
    "check_seed",
    "check_step",
    "philox",
    "uniform",
]

Words: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor]
_Whole = TypeVar("_Whole", Tensor, NDArray[np.int64])

MASK = 0xFFFFFFFF
# Multipliers and key increments of Philox 4×32 (Salmon et al., SC 2011).
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
INCREMENTS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10


class Purpose(IntEnum):
    """The purposes of draws; two purposes never share a random word."""

    OPERATION = 0  # row of the policy's table, probability, coin, magnitude
    PLACE = 1  # sign, centre y, centre x, partner
    CROP = 2  # crop y, crop x, flip, and one to spare
    CUTOUT = 3  # centre y, centre x, and two to spare
    SELECTION = 4  # one word for each kept candidate
    SHUFFLE = 5  # order of a schedule's entries
    COIN = 6  # coins of a schedule's entries
    COUNT = 7  # how many entries of a schedule are used
    RESIZED_CROP = 8  # area, aspect, top, left of one try
    JITTER = 9  # three factors and their order
    LIGHTING = 10  # three normal draws
    ORDER = 11  # order of a dataset's images


def check_seed(seed: object) -> int:
    """Return `seed` as a Python int after checking that it has 64 bits."""
    number = whole(seed)
    if number is None:
        raise TypeError(f"`seed` must be an int, got {type(seed).__name__}.")
    if not 0 <= number < 1 << 64:
        raise ValueError(f"`seed` must lie in [0, 2**64), got {number}.")
    return number


def check_index(index: Tensor | None, batch: int, device: torch.device) -> Tensor:
    """Return the samples' numbers `[B]` as int64 on `device`; 0 to B − 1 without any.

    Only the low 32 bits of a number count: numbers that differ by 2**32 share their draws.
    """
    if index is None:
        return torch.arange(batch, device=device)
    if not isinstance(index, Tensor) or not holds_integers(index):
        kind = index.dtype if isinstance(index, Tensor) else type(index).__name__
        raise TypeError(
            f"`index` must be an integer tensor [B], got {kind}; convert with "
            "torch.as_tensor(index).long()."
        )
    if index.shape != (batch,):
        raise ValueError(
            f"`index` must have shape ({batch},), one number per image, got {tuple(index.shape)}."
        )
    # Kernels read it as it lies in memory.
    return index.to(device=device, dtype=torch.int64).contiguous()


def check_step(step: int | Tensor, device: torch.device) -> int | Tensor:
    """Return `step` as a Python int, or as an int64 tensor without axes on `device`."""
    if isinstance(step, Tensor):
        if step.ndim or not holds_integers(step):
            raise ValueError(
                f"`step` as a tensor must be one integer without axes, got {tuple(step.shape)} "
                f"{step.dtype}; use torch.zeros((), dtype=torch.int64) and add to it."
            )
        return step.to(device=device, dtype=torch.int64)
    number = whole(step)
    if number is None:
        raise TypeError(f"`step` must be an int or an integer tensor, got {type(step).__name__}.")
    return number


def philox(
    counter: tuple[_Whole, _Whole, _Whole, _Whole], key: tuple[int, int]
) -> tuple[_Whole, _Whole, _Whole, _Whole]:
    """Four random 32-bit words for each counter.

    Args:
        counter: four int64 tensors, or NumPy arrays with axes, of one shape, each holding 32-bit
            words.
        key: two 32-bit words.

    Returns:
        Four int64 tensors or arrays of 32-bit words.

    Example:
        >>> zero = torch.zeros((), dtype=torch.int64)
        >>> [f"{int(w):08x}" for w in philox((zero, zero, zero, zero), (0, 0))]
        ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        # int64 products wrap modulo 2**64, so both halves of the unsigned product are right. Their
        # upper halves are cut off only where the next product would feel them.
        p0, p1 = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        c0, c1, c2, c3 = _mixed(p1, c1, k0), p1, _mixed(p0, c3, k1), p0
        k0, k1 = (k0 + INCREMENTS[0]) & MASK, (k1 + INCREMENTS[1]) & MASK
    return c0, c1 & MASK, c2, c3 & MASK


def _mixed(product: _Whole, word: _Whole, key: int) -> _Whole:
    high = product >> 32
    high ^= word
    high ^= key
    high &= MASK
    return high


def uniform(word: Tensor) -> Tensor:
    """Convert a word to float32 in [0, 1): its upper 24 bits, so that every value is exact."""
    return (word >> 8).to(torch.float32) * 2.0**-24


def below(word: Tensor, bound: int | Tensor) -> Tensor:
    """Convert a word to an integer in [0, bound), int64."""
    return (word * bound) >> 32


@dataclass(frozen=True)
class Stream:
    """The draws of one batch: which seed, which step, which samples.

    Args:
        seed: 64 bits.
        step: the step (or epoch) as a number or an integer tensor of no axes on the device of
            `index`; only its low 32 bits count.
        index: int64 `[B]`, the samples' numbers in their dataset, below 2**32.
    """

    seed: int
    step: int | Tensor
    index: Tensor

    def _step(self, device: torch.device) -> Tensor:
        if isinstance(self.step, Tensor):
            return self.step.to(device=device, dtype=torch.int64) & MASK
        return torch.full((), self.step & MASK, dtype=torch.int64, device=device)

    def words(self, purpose: Purpose, candidates: int, slots: int) -> Words:
        """Four words for every sample, candidate and slot: int64 `[B, candidates, slots]`."""
        device = self.index.device
        candidate = torch.arange(candidates, device=device)[:, None]
        slot = torch.arange(slots, device=device)
        place = (candidate | (slot << 16)).expand(len(self.index), candidates, slots)
        sample = (self.index & MASK)[:, None, None].expand_as(place)
        counter = (
            sample,
            self._step(device).expand_as(place),
            place,
            torch.full_like(place, int(purpose)),
        )
        key = (self.seed & MASK, self.seed >> 32)
        if device.type != "cpu":
            return philox(counter, key)
        # A hundred small steps: they cost NumPy less than half of torch's time.
        a, b, c, d = (part.numpy() for part in counter)
        w0, w1, w2, w3 = (torch.from_numpy(word) for word in philox((a, b, c, d), key))
        return w0, w1, w2, w3
