"""The look-up tables of a slot, with the statistics of the image that three of them need.

Invert, Solarize, Posterize, Brightness, Contrast, AutoContrast and Equalize are tables of 256
values, as in `divaug.operations.tone`; the last three depend on the image. The host is never asked.
"""

import triton
import triton.language as tl

from divaug.kernels.pixels import (
    AUTOCONTRAST,
    BRIGHTNESS,
    CONTRAST,
    EQUALIZE,
    INVERT,
    POSTERIZE,
    SOLARIZE,
    after_first,
    blend,
    channel,
    luma,
    original,
    plan,
)

__all__ = ["RECORD", "count_kernel", "recalled_tables", "slot_of", "tables_of"]

#: int32 numbers of one record: 255 − lowest and highest value per channel, the sum of grey values
#: as int64, and three histograms. All start at zero and grow by atomic additions and maxima.
RECORD = 8 + 3 * 256
_RECORD = tl.constexpr(RECORD)


@triton.jit
def slot_of(
    operation, applied, argument, center, partner, n, k, pool,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr, wanted=True,
):  # fmt: skip
    """One slot of candidate n: operation (−1 where its coin failed), argument, place, map."""
    at = n * K + k
    op = tl.where((tl.load(applied + at) != 0) & wanted, tl.load(operation + at), -1)
    strength = tl.load(argument + at)
    center_y = tl.load(center + 2 * at)
    center_x = tl.load(center + 2 * at + 1)
    other = pool + tl.load(partner + at) * (H * W * C)
    a0, a1, a2, a3, a4, a5 = plan(op, strength, H, W)
    return op, strength, center_y, center_x, other, a0, a1, a2, a3, a4, a5


@triton.jit
def _wants(op):
    return (op == AUTOCONTRAST) | (op == CONTRAST) | (op == EQUALIZE)


@triton.jit
def _equalized(count, pixels: tl.constexpr):
    """Pillow's look-up table for a histogram [256]."""
    v = tl.arange(0, 256)
    last = tl.max(tl.where(count > 0, v, 0), 0)
    in_last = tl.sum(tl.where(v == last, count, 0), 0)
    step = (pixels - in_last) // 255
    below = tl.cumsum(count, 0) - count
    table = tl.minimum((below + step // 2) // tl.maximum(step, 1), 255)
    return tl.where(step > 0, table, v)


@triton.jit
def _accumulate(
    source, op, slot1, tables1, first_tile, tile_step,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, SLOT: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Extremes, grey sum and histograms of every `tile_step`-th tile of what an operation finds."""
    zero = op * 0
    low0, low1, low2 = zero + 255, zero + 255, zero + 255
    high0, high1, high2 = zero, zero, zero
    grey = zero.to(tl.int64)
    count0 = tl.zeros([256], tl.int32)
    count1 = tl.zeros([256], tl.int32)
    count2 = tl.zeros([256], tl.int32)
    tiles: tl.constexpr = (H * W + BLOCK - 1) // BLOCK
    if _wants(op):
        for tile in range(first_tile, tiles, tile_step):
            p = tile * BLOCK + tl.arange(0, BLOCK)
            inside = p < H * W
            y = p // W
            x = p - y * W
            if SLOT == 0:
                pixel = original(source, y, x, inside, H, W, C)
            else:
                pixel = after_first(source, y, x, inside, slot1, tables1, H, W, C)
            if op == AUTOCONTRAST:
                lowest = tl.where(inside, pixel, 0xFFFFFF)
                highest = tl.where(inside, pixel, 0)
                low0 = tl.minimum(low0, tl.min(channel(lowest, 0), 0))
                high0 = tl.maximum(high0, tl.max(channel(highest, 0), 0))
                if C == 3:
                    low1 = tl.minimum(low1, tl.min(channel(lowest, 1), 0))
                    low2 = tl.minimum(low2, tl.min(channel(lowest, 2), 0))
                    high1 = tl.maximum(high1, tl.max(channel(highest, 1), 0))
                    high2 = tl.maximum(high2, tl.max(channel(highest, 2), 0))
            elif op == CONTRAST:
                grey += tl.sum(tl.where(inside, luma(pixel, C), 0), 0).to(tl.int64)
            else:
                count0 += tl.histogram(channel(pixel, 0), 256, mask=inside)
                if C == 3:
                    count1 += tl.histogram(channel(pixel, 1), 256, mask=inside)
                    count2 += tl.histogram(channel(pixel, 2), 256, mask=inside)
    return low0, low1, low2, high0, high1, high2, grey, count0, count1, count2


@triton.jit
def _stretched(v, low, high):
    """AutoContrast, in float64 as Pillow."""
    scale = 255.0 / tl.maximum(high - low, 1).to(tl.float64)
    offset = -low.to(tl.float64) * scale
    value = (v.to(tl.float64) * scale + offset).to(tl.int32)
    return tl.where(high > low, tl.minimum(tl.maximum(value, 0), 255), v)


@triton.jit
def _tables(slot, raw, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr):
    """The look-up tables [256] of a slot, one a channel; as they are where it needs none."""
    op, argument = slot[0], slot[1]
    v = tl.arange(0, 256)
    table0 = v
    table1 = v
    table2 = v
    if op == AUTOCONTRAST:
        table0 = _stretched(v, raw[0], raw[3])
        table1 = _stretched(v, raw[1], raw[4])
        table2 = _stretched(v, raw[2], raw[5])
    elif op == EQUALIZE:
        table0 = _equalized(raw[7], H * W)
        if C == 3:
            table1 = _equalized(raw[8], H * W)
            table2 = _equalized(raw[9], H * W)
    else:
        if op == INVERT:
            table0 = 255 - v
        elif op == SOLARIZE:
            table0 = tl.where(v.to(tl.float32) < argument, v, 255 - v)
        elif op == POSTERIZE:
            drop = 8 - argument.to(tl.int32)
            table0 = (v >> drop) << drop
        elif op == BRIGHTNESS:
            table0 = blend(v * 0, v, argument)
        elif op == CONTRAST:
            mean = ((2 * raw[6] + H * W) // (2 * H * W)).to(tl.int32)
            table0 = blend(v * 0 + mean, v, argument)
        table1 = table0
        table2 = table0
    return table0, table1, table2


@triton.jit
def tables_of(
    source, slot, slot1, tables1,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, SLOT: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The look-up tables of a slot, the statistics taken by this program alone."""
    raw = _accumulate(source, slot[0], slot1, tables1, 0, 1, H, W, C, SLOT, BLOCK)
    return _tables(slot, raw, H, W, C)


@triton.jit
def recalled_tables(records, at, slot, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr):
    """The look-up tables of a slot, the statistics left in a record by `count_kernel`."""
    base = records + at * _RECORD
    op = slot[0]
    zero = op * 0
    low0, low1, low2 = zero, zero, zero
    high0, high1, high2 = zero, zero, zero
    grey = zero.to(tl.int64)
    count0 = tl.zeros([256], tl.int32)
    count1 = tl.zeros([256], tl.int32)
    count2 = tl.zeros([256], tl.int32)
    if op == AUTOCONTRAST:
        low0, low1, low2 = 255 - tl.load(base), 255 - tl.load(base + 1), 255 - tl.load(base + 2)
        high0, high1, high2 = tl.load(base + 3), tl.load(base + 4), tl.load(base + 5)
    elif op == CONTRAST:
        grey = tl.load((base + 6).to(tl.pointer_type(tl.int64)))
    elif op == EQUALIZE:
        v = tl.arange(0, 256)
        count0 = tl.load(base + 8 + v)
        count1 = tl.load(base + 264 + v)
        count2 = tl.load(base + 520 + v)
    raw = low0, low1, low2, high0, high1, high2, grey, count0, count1, count2
    return _tables(slot, raw, H, W, C)


@triton.jit(do_not_specialize=["first"])
def count_kernel(
    originals, pool, operation, applied, argument, center, partner, records, E, first,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr,
    PHASE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Add one part of a large image's statistics to a slot's record.

    The first phase does all slots but a second one that follows an operation with statistics of its
    own; the second phase, which has no first slots to do, does those.
    """
    n = tl.program_id(0).to(tl.int64)
    k = tl.program_id(2) + PHASE
    at = n * K + first + k
    op = tl.where(tl.load(applied + at) != 0, tl.load(operation + at), -1)
    if _wants(op):
        slot1 = slot_of(
            operation, applied, argument, center, partner, n, first, pool, H, W, C, K, k == 1
        )
        if (k == 1) & _wants(slot1[0]) == PHASE:
            source = originals + (n // E) * (H * W * C)
            tables1 = recalled_tables(records, n * SLOTS, slot1, H, W, C)
            raw = _accumulate(
                source, op, slot1, tables1, tl.program_id(1), tl.num_programs(1), H, W, C, 1, BLOCK
            )
            base = records + (n * SLOTS + k) * _RECORD
            if op == AUTOCONTRAST:
                for c in tl.static_range(3):
                    tl.atomic_max(base + c, 255 - raw[c])
                    tl.atomic_max(base + 3 + c, raw[3 + c])
            elif op == CONTRAST:
                tl.atomic_add((base + 6).to(tl.pointer_type(tl.int64)), raw[6])
            else:
                v = tl.arange(0, 256)
                for c in tl.static_range(C):
                    tl.atomic_add(base + 8 + c * 256 + v, raw[7 + c])
