"""Philox 4×32-10 for the kernels: the words of `divaug._random`, to the bit."""

import triton
import triton.language as tl

from divaug import _random

__all__ = ["below", "philox", "uniform"]


MULTIPLIERS = tl.constexpr(_random.MULTIPLIERS)
INCREMENTS = tl.constexpr(_random.INCREMENTS)
ROUNDS = tl.constexpr(_random.ROUNDS)


@triton.jit
def _mul_high_low(a, b: tl.constexpr):
    product = a.to(tl.uint64) * b
    return (product >> 32).to(tl.uint32), product.to(tl.uint32)


@triton.jit
def philox(seed_low, seed_high, index, step, place, purpose: tl.constexpr):
    """Four random words of (seed, index, step, candidate and slot, purpose), all uint32."""
    c0 = index.to(tl.uint32)
    c1 = step.to(tl.uint32) + c0 * 0
    c2 = place.to(tl.uint32) + c0 * 0
    c3 = c0 * 0 + purpose
    k0 = seed_low.to(tl.uint32)
    k1 = seed_high.to(tl.uint32)
    for _ in tl.static_range(ROUNDS):
        high0, low0 = _mul_high_low(c0, MULTIPLIERS[0])
        high1, low1 = _mul_high_low(c2, MULTIPLIERS[1])
        c0 = high1 ^ c1 ^ k0
        c1 = low1
        c2 = high0 ^ c3 ^ k1
        c3 = low0
        k0 = k0 + INCREMENTS[0]
        k1 = k1 + INCREMENTS[1]
    return c0, c1, c2, c3


@triton.jit
def uniform(word):
    """A word as float32 in [0, 1)."""
    return (word >> 8).to(tl.float32) * (1.0 / 16777216.0)


@triton.jit
def below(word, bound):
    """Return a word as an integer in [0, bound), int64."""
    return ((word.to(tl.uint64) * bound) >> 32).to(tl.int64)
