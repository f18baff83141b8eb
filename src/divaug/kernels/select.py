"""Selection as one kernel, one program an image: the twin of `divaug._select`."""

from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from divaug._products import BITS, LARGEST_SUM
from divaug._random import MASK, Purpose, Stream
from divaug.kernels.launch import Launcher
from divaug.kernels.philox import philox

__all__ = ["select_kernel"]

SCALE = tl.constexpr(float(1 << BITS))
MOST = tl.constexpr(LARGEST_SUM)
_SELECTION = tl.constexpr(int(Purpose.SELECTION))
_FAR = tl.constexpr(0x7FFFFFFFFFFFFFFF)


@triton.jit
def _fixed(p):
    """A probability as a multiple of 2**-26; zero where it is not finite."""
    bits = p.to(tl.int32, bitcast=True)
    finite = (bits & 0x7F800000) != 0x7F800000
    safe = tl.minimum(tl.maximum(tl.where(finite, p, 0.0), 0.0), 1.0)
    return (safe * SCALE).to(tl.int64), finite


@triton.jit
def _usable(base, e, in_set, D, stride_e, stride_d, BLOCK_D: tl.constexpr):
    """Return which candidates have finite probability vectors."""
    total = e.to(tl.int64) * 0
    broken = e * 0
    for start in range(0, D, BLOCK_D):
        d = start + tl.arange(0, BLOCK_D)
        mask = in_set[:, None] & (d < D)[None, :]
        p = tl.load(base + e[:, None] * stride_e + d[None, :] * stride_d, mask=mask, other=0.0)
        value, finite = _fixed(p.to(tl.float32))
        total += tl.sum(value, 1)
        broken += tl.sum((~finite).to(tl.int32), 1)
    return in_set & (broken == 0) & (total <= MOST)


@triton.jit
def _distance(base, e, in_set, c, D, stride_e, stride_d, BLOCK_D: tl.constexpr):
    """Squared distances of all candidates from candidate c."""
    total = e.to(tl.int64) * 0
    for start in range(0, D, BLOCK_D):
        d = start + tl.arange(0, BLOCK_D)
        mask = in_set[:, None] & (d < D)[None, :]
        p = tl.load(base + e[:, None] * stride_e + d[None, :] * stride_d, mask=mask, other=0.0)
        at = tl.load(base + c * stride_e + d * stride_d, mask=d < D, other=0.0)
        value, _ = _fixed(p.to(tl.float32))
        center, _ = _fixed(at.to(tl.float32))
        delta = value - center[None, :]
        total += tl.sum(tl.where(mask, delta * delta, 0), 1)
    return total


@triton.jit
def _pick(weight, word, e, E):
    """Draw a position with probability proportional to whole-number weights."""
    cumulated = tl.cumsum(weight, 0)
    total = tl.sum(weight, 0)
    wide = word.to(tl.int64)
    low = ((word.to(tl.uint64) * (total & 0xFFFFFFFF).to(tl.uint64)) >> 32).to(tl.int64)
    point = wide * (total >> 32) + low
    return tl.minimum(tl.sum(((cumulated <= point) & (e < E)).to(tl.int32), 0), E - 1)


@triton.jit(do_not_specialize=["step", "seed_low", "seed_high", "stride_b", "stride_e"])
def _kernel(
    probs, index, step_tensor, out, step, seed_low, seed_high, stride_b, stride_e,
    E: tl.constexpr, D: tl.constexpr, stride_d: tl.constexpr, S: tl.constexpr, RULE: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
    POINTER_STEP: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    base = probs + b * stride_b
    e = tl.arange(0, BLOCK_E)
    in_set = e < E
    sample = tl.load(index + b)
    now = tl.load(step_tensor) if POINTER_STEP else step
    free = in_set.to(tl.int64)
    nearest = free * 0 + _FAR
    if RULE != 1:
        usable = _usable(base, e, in_set, D, stride_e, stride_d, BLOCK_D)
    for t in tl.static_range(S):
        word, _, _, _ = philox(seed_low, seed_high, sample, now, sample * 0 + (t << 16), _SELECTION)
        weight = free
        if RULE != 1:
            known = tl.where(nearest == _FAR, 0, nearest) * free
            if RULE == 2:
                best = tl.max(known, 0)
                first = tl.min(tl.where((known == best) & in_set, e, BLOCK_E), 0)
                known = tl.where(e == first, known, 0)
            weight = tl.where(tl.sum(known, 0) == 0, free, known)
        c = _pick(weight, word, e, E)
        tl.store(out + b * S + t, c.to(tl.int64))
        free = tl.where(e == c, 0, free)
        if RULE != 1 and t + 1 < S:
            distance = _distance(base, e, in_set, c, D, stride_e, stride_d, BLOCK_D)
            at_usable = tl.sum(((e == c) & usable).to(tl.int32), 0) > 0
            nearest = tl.minimum(nearest, tl.where(usable & at_usable, distance, _FAR))


@lru_cache(maxsize=256)
def _selector(E: int, D: int, stride_d: int, S: int, rule: int, on_device: bool) -> Launcher:
    block_e = max(2, triton.next_power_of_2(E))
    constants = {
        "E": E, "D": D, "stride_d": stride_d, "S": S, "RULE": rule, "BLOCK_E": block_e,
        "BLOCK_D": max(2, min(triton.next_power_of_2(D), 2048 // block_e)),
        "POINTER_STEP": on_device,
    }  # fmt: skip
    options = {"num_warps": 2 if D <= 64 else 4, "enable_fp_fusion": False}
    return Launcher(_kernel, constants, options)


def select_kernel(probs: Tensor, num_selected: int, rule: int, stream: Stream) -> Tensor:
    """Run the kernel; `rule` is 0 for k-means++, 1 for uniform, 2 for greedy."""
    B, E, D = probs.shape
    out = torch.empty((B, num_selected), dtype=torch.int64, device=probs.device)
    if not B:
        return out
    on_device = isinstance(stream.step, Tensor)
    step = stream.step if isinstance(stream.step, Tensor) else stream.index
    now = 0 if isinstance(stream.step, Tensor) else stream.step & MASK
    stride_b, stride_e, stride_d = probs.stride()
    _selector(E, D, stride_d, num_selected, rule, on_device)(
        B,
        (probs, stream.index, step, out),
        (now, stream.seed & MASK, stream.seed >> 32, stride_b, stride_e),
    )
    return out
