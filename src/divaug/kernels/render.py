"""Candidates from drawn sub-policies, finished, in one kernel (two for large images).

A program makes one candidate (small images) or one tile of it (large ones). Operations that need
statistics of the image get them from a pass over its pixels: in the same program for small images,
in a kernel of its own, launched before, for large ones. The host never learns what was drawn.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from divaug.kernels.pixels import (
    AUTOCONTRAST,
    CONTRAST,
    EQUALIZE,
    after_first,
    after_second,
    luma,
    original,
    plan,
    value_before,
)

__all__ = ["FUSED_PIXELS", "MAX_SLOTS", "jitter_kernel", "render_kernel"]

#: Up to this many pixels an image's statistics are taken by the program that renders it.
FUSED_PIXELS = 4096
MAX_SLOTS = 2
BLOCK = 1024
PIXELS_PER_THREAD = 4


@triton.jit
def _slot(sub, n, k, K: tl.constexpr, pool, H, W, C: tl.constexpr):
    """One slot of candidate n: operation (−1 where its coin failed), argument, place, map."""
    at = n * K + k
    drawn = tl.load(sub[0] + at)
    op = tl.where(tl.load(sub[1] + at) != 0, drawn, -1)
    argument = tl.load(sub[2] + at)
    center_y = tl.load(sub[3] + 2 * at)
    center_x = tl.load(sub[3] + 2 * at + 1)
    partner = pool + tl.load(sub[4] + at) * (H * W * C)
    a0, a1, a2, a3, a4, a5 = plan(op, argument, H, W)
    return op, argument, center_y, center_x, partner, a0, a1, a2, a3, a4, a5


@triton.jit
def _equalized(count, total):
    """Pillow's look-up table for a histogram [256]."""
    v = tl.arange(0, 256)
    last = tl.max(tl.where(count > 0, v, 0), 0)
    in_last = tl.sum(tl.where(v == last, count, 0), 0)
    step = (total - in_last) // 255
    below = tl.cumsum(count, 0) - count
    table = tl.minimum((below + step // 2) // tl.maximum(step, 1), 255)
    return tl.where(step > 0, table, v)


@triton.jit
def _statistics(
    source, slot, slot1, stats1, H, W, C: tl.constexpr, SLOT: tl.constexpr, BLOCK: tl.constexpr
):
    """What a slot's operation needs to know of the image it finds.

    Lowest and highest value per channel for AutoContrast, the mean grey level in the first place
    for Contrast, three look-up tables for Equalize.
    """
    op = slot[0]
    zero = op * 0
    low0, low1, low2 = zero + 255, zero + 255, zero + 255
    high0, high1, high2 = zero, zero, zero
    count0 = tl.zeros([256], tl.int32)
    count1 = tl.zeros([256], tl.int32)
    count2 = tl.zeros([256], tl.int32)
    grey = zero.to(tl.int64)
    if (op == AUTOCONTRAST) | (op == CONTRAST) | (op == EQUALIZE):
        for start in range(0, H * W, BLOCK):
            p = start + tl.arange(0, BLOCK)
            inside = p < H * W
            v0, v1, v2 = value_before(source, p // W, p % W, inside, slot1, stats1, H, W, C, SLOT)
            if op == AUTOCONTRAST:
                low0 = tl.minimum(low0, tl.min(tl.where(inside, v0, 255), 0))
                high0 = tl.maximum(high0, tl.max(tl.where(inside, v0, 0), 0))
                if C == 3:
                    low1 = tl.minimum(low1, tl.min(tl.where(inside, v1, 255), 0))
                    low2 = tl.minimum(low2, tl.min(tl.where(inside, v2, 255), 0))
                    high1 = tl.maximum(high1, tl.max(tl.where(inside, v1, 0), 0))
                    high2 = tl.maximum(high2, tl.max(tl.where(inside, v2, 0), 0))
            elif op == CONTRAST:
                grey += tl.sum(tl.where(inside, luma(v0, v1, v2, C), 0), 0).to(tl.int64)
            else:
                count0 += tl.histogram(v0, 256, mask=inside)
                if C == 3:
                    count1 += tl.histogram(v1, 256, mask=inside)
                    count2 += tl.histogram(v2, 256, mask=inside)
    if op == CONTRAST:
        pixels = zero.to(tl.int64) + H * W
        low0 = ((2 * grey + pixels) // (2 * pixels)).to(tl.int32)
    lut0 = _equalized(count0, H * W)
    lut1 = lut0
    lut2 = lut0
    if C == 3:
        lut1 = _equalized(count1, H * W)
        lut2 = _equalized(count2, H * W)
    return low0, low1, low2, high0, high1, high2, lut0, lut1, lut2


@triton.jit
def _load_statistics(extremes, tables, at, C: tl.constexpr):
    """What the statistics kernel stored for a slot."""
    v = tl.arange(0, 256)
    lut0 = tl.load(tables + at * C * 256 + v).to(tl.int32)
    lut1 = lut0
    lut2 = lut0
    if C == 3:
        lut1 = tl.load(tables + at * C * 256 + 256 + v).to(tl.int32)
        lut2 = tl.load(tables + at * C * 256 + 512 + v).to(tl.int32)
    e = extremes + at * 6
    low0, low1, low2 = tl.load(e), tl.load(e + 1), tl.load(e + 2)
    high0, high1, high2 = tl.load(e + 3), tl.load(e + 4), tl.load(e + 5)
    return low0, low1, low2, high0, high1, high2, lut0, lut1, lut2


@triton.jit
def _store_statistics(extremes, tables, at, stats, C: tl.constexpr):
    v = tl.arange(0, 256)
    for i in tl.static_range(6):
        tl.store(extremes + at * 6 + i, stats[i])
    for c in tl.static_range(C):
        tl.store(tables + at * C * 256 + c * 256 + v, stats[6 + c].to(tl.uint8))


@triton.jit(do_not_specialize=["first"])
def _statistics_kernel(
    originals, pool, sub, extremes, tables, E, first, H,
    W: tl.constexpr, C: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(0).to(tl.int64)
    source = originals + (n // E) * (H * W * C)
    slot1 = _slot(sub, n, first, K, pool, H, W, C)
    stats1 = _statistics(source, slot1, slot1, slot1, H, W, C, 0, BLOCK)
    _store_statistics(extremes, tables, n * SLOTS, stats1, C)
    if SLOTS == 2:
        slot2 = _slot(sub, n, first + 1, K, pool, H, W, C)
        stats2 = _statistics(source, slot2, slot1, stats1, H, W, C, 1, BLOCK)
        _store_statistics(extremes, tables, n * SLOTS + 1, stats2, C)


@triton.jit
def _tile(
    out, source, p, n, slot1, stats1, slot2, stats2, placed, norm, H,
    W: tl.constexpr, C: tl.constexpr, SLOTS: tl.constexpr, DEFAULT: tl.constexpr,
    PADDING: tl.constexpr, CUTOUT_SIDE: tl.constexpr, CHANNELS_LAST: tl.constexpr,
):  # fmt: skip
    """Finish the pixels p of candidate n."""
    valid = p < H * W
    out_y = p // W
    out_x = p % W
    y = out_y
    x = out_x
    inside = valid
    if DEFAULT:
        mirrored = tl.load(placed[1] + n) != 0
        x = tl.where(mirrored, W - 1 - out_x, out_x) + (tl.load(placed[0] + 2 * n + 1) - PADDING)
        y = out_y + (tl.load(placed[0] + 2 * n) - PADDING)
        inside = valid & (x >= 0) & (x < W) & (y >= 0) & (y < H)
    if SLOTS == 0:
        v0, v1, v2 = original(source, y, x, inside, H, W, C)
    elif SLOTS == 1:
        v0, v1, v2 = after_first(source, y, x, inside, slot1, stats1, H, W, C)
    else:
        v0, v1, v2 = after_second(source, y, x, inside, slot1, stats1, slot2, stats2, H, W, C)
    target = out + n * (H * W * C) + (p * C if CHANNELS_LAST else p)
    far = 1 if CHANNELS_LAST else H * W
    if DEFAULT:
        w0 = v0.to(tl.float32) * norm[0] + norm[3]
        w1 = v1.to(tl.float32) * norm[1] + norm[4]
        w2 = v2.to(tl.float32) * norm[2] + norm[5]
        if CUTOUT_SIDE > 0:
            top = out_y - (tl.load(placed[2] + 2 * n) - CUTOUT_SIDE // 2)
            left = out_x - (tl.load(placed[2] + 2 * n + 1) - CUTOUT_SIDE // 2)
            cut = (top >= 0) & (top < CUTOUT_SIDE) & (left >= 0) & (left < CUTOUT_SIDE)
            w0 = tl.where(cut, 0.0, w0)
            w1 = tl.where(cut, 0.0, w1)
            w2 = tl.where(cut, 0.0, w2)
    else:
        w0 = v0
        w1 = v1
        w2 = v2
    kind = out.dtype.element_ty
    tl.store(target, w0.to(kind), mask=valid)
    if C == 3:
        tl.store(target + far, w1.to(kind), mask=valid)
        tl.store(target + 2 * far, w2.to(kind), mask=valid)


@triton.jit(do_not_specialize=["first"])
def _render_kernel(
    out, originals, pool, sub, placed, norm, extremes, tables, E, first, H,
    W: tl.constexpr, C: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr,
    FUSED: tl.constexpr, DEFAULT: tl.constexpr, PADDING: tl.constexpr,
    CUTOUT_SIDE: tl.constexpr, CHANNELS_LAST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(0).to(tl.int64)
    source = originals + (n // E) * (H * W * C)
    slot1 = 0
    stats1 = 0
    slot2 = 0
    stats2 = 0
    if SLOTS >= 1:
        slot1 = _slot(sub, n, first, K, pool, H, W, C)
        if FUSED:
            stats1 = _statistics(source, slot1, slot1, slot1, H, W, C, 0, BLOCK)
        else:
            stats1 = _load_statistics(extremes, tables, n * SLOTS, C)
    if SLOTS == 2:
        slot2 = _slot(sub, n, first + 1, K, pool, H, W, C)
        if FUSED:
            stats2 = _statistics(source, slot2, slot1, stats1, H, W, C, 1, BLOCK)
        else:
            stats2 = _load_statistics(extremes, tables, n * SLOTS + 1, C)
    if FUSED:
        for start in range(0, H * W, BLOCK):
            p = start + tl.arange(0, BLOCK)
            _tile(
                out, source, p, n, slot1, stats1, slot2, stats2, placed, norm, H, W, C, SLOTS,
                DEFAULT, PADDING, CUTOUT_SIDE, CHANNELS_LAST,
            )  # fmt: skip
    else:
        p = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        _tile(
            out, source, p, n, slot1, stats1, slot2, stats2, placed, norm, H, W, C, SLOTS,
            DEFAULT, PADDING, CUTOUT_SIDE, CHANNELS_LAST,
        )  # fmt: skip


def render_kernel(
    out: Tensor,
    originals: Tensor,
    num_candidates: int,
    subpolicies: tuple[Tensor, Tensor, Tensor, Tensor, Tensor],
    pool: Tensor,
    placed: tuple[Tensor, Tensor, Tensor] | None,
    settings: tuple[int, int, tuple[float, ...]] | None,
    channels_last: bool,
) -> None:
    """Fill `out` with candidates.

    Args:
        out: `[N,C,H,W]`, N = B·E, contiguous or with channels last.
        originals: uint8 `[B,C,H,W]`, contiguous.
        num_candidates: E.
        subpolicies: operation, applied, argument, center and partner, `[N,K]`.
        pool: uint8 `[M,C,H,W]`, where partners are.
        placed: offset `[N,2]`, flip `[N]` and Cutout's centre `[N,2]`; None to store bytes.
        settings: padding, Cutout's side, and three scales and three biases; with `placed`.
        channels_last: the layout of `out`.
    """
    K = subpolicies[0].shape[-1]
    source, E = originals, num_candidates
    first = 0
    while K - first > MAX_SLOTS:
        # More operations than a kernel holds: the first ones make bytes for the next to start from.
        between = torch.empty_like(out, dtype=torch.uint8, memory_format=torch.contiguous_format)
        _launch(between, source, E, subpolicies, pool, None, None, False, first, MAX_SLOTS)
        source, E, first = between, 1, first + MAX_SLOTS
    _launch(out, source, E, subpolicies, pool, placed, settings, channels_last, first, K - first)


def jitter_kernel(images: Tensor, operation: Tensor, factor: Tensor) -> Tensor:
    """Apply K operations `[n,K]` with factors to every image, as `jitter_in_groups` does."""
    out = torch.empty_like(images)
    n, K = operation.shape
    sub = (
        operation.to(torch.int32),
        torch.ones((n, K), dtype=torch.bool, device=images.device),
        factor,
        torch.zeros((n, K, 2), dtype=torch.int32, device=images.device),
        torch.zeros((n, K), dtype=torch.int64, device=images.device),
    )
    render_kernel(out, images, 1, sub, images, None, None, False)
    return out


def _launch(
    out: Tensor,
    source: Tensor,
    E: int,
    subpolicies: tuple[Tensor, ...],
    pool: Tensor,
    placed: tuple[Tensor, ...] | None,
    settings: tuple[int, int, tuple[float, ...]] | None,
    channels_last: bool,
    first: int,
    slots: int,
) -> None:
    n, channels, height, width = out.shape
    if not n:
        return
    padding, cutout, norm = settings or (0, 0, (1.0,) * 6)
    operation, applied, *others = subpolicies
    sub = (operation, applied.view(torch.uint8), *others)
    where = (placed[0], placed[1].view(torch.uint8), placed[2]) if placed else (source,) * 3
    fused = height * width <= FUSED_PIXELS or not slots
    block = min(BLOCK, max(32, triton.next_power_of_2(height * width)))
    sizes = {"W": width, "C": channels, "K": max(1, operation.shape[-1]), "SLOTS": slots}
    common = {"BLOCK": block, "num_warps": max(1, block // (32 * PIXELS_PER_THREAD)), "enable_fp_fusion": False}
    extremes = tables = source
    if not fused:
        extremes = torch.empty((n, slots, 6), dtype=torch.int32, device=out.device)
        tables = torch.empty((n, slots, channels, 256), dtype=torch.uint8, device=out.device)
        _statistics_kernel[(n,)](
            source, pool, sub, extremes, tables, E, first, height, **sizes, **common
        )
    tiles = 1 if fused else triton.cdiv(height * width, block)
    _render_kernel[(n, tiles)](
        out, source, pool, sub, where, norm, extremes, tables, E, first, height, **sizes,
        FUSED=fused, DEFAULT=placed is not None, PADDING=padding, CUTOUT_SIDE=cutout,
        CHANNELS_LAST=channels_last, **common,
    )  # fmt: skip
