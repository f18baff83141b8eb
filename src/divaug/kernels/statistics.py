"""What AutoContrast, Contrast and Equalize need to know of an image, without asking the host."""

import triton
import triton.language as tl

from divaug.kernels.pixels import AUTOCONTRAST, CONTRAST, EQUALIZE, luma, plan, value_before

__all__ = ["RECORD", "count_kernel", "gather", "recall", "slot_of"]

#: int32 numbers of one record: 255 − lowest and highest value per channel, the sum of grey values
#: as int64, and three histograms. All start at zero and grow by atomic additions and maxima.
RECORD = 8 + 3 * 256
_RECORD = tl.constexpr(RECORD)


@triton.jit
def slot_of(
    operation, applied, argument, center, partner, n, k, pool,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """One slot of candidate n: operation (−1 where its coin failed), argument, place, map."""
    at = n * K + k
    op = tl.where(tl.load(applied + at) != 0, tl.load(operation + at), -1)
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
def _flat(v):
    return tl.reshape(v, [v.numel])


@triton.jit
def _accumulate(
    source, slot, slot1, stats1, first_tile, tile_step,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, SLOT: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """Extremes, grey sum and histograms of every `tile_step`-th tile of what a slot finds."""
    op = slot[0]
    zero = op * 0
    low0, low1, low2 = zero + 255, zero + 255, zero + 255
    high0, high1, high2 = zero, zero, zero
    grey = zero.to(tl.int64)
    count0 = tl.zeros([256], tl.int32)
    count1 = tl.zeros([256], tl.int32)
    count2 = tl.zeros([256], tl.int32)
    across: tl.constexpr = (W + COLS - 1) // COLS
    tiles: tl.constexpr = across * ((H + ROWS - 1) // ROWS)
    if _wants(op):
        for tile in range(first_tile, tiles, tile_step):
            y = (
                (tile // across) * ROWS
                + tl.arange(0, ROWS)[:, None]
                + tl.zeros([1, COLS], tl.int32)
            )
            x = (tile % across) * COLS + tl.arange(0, COLS)[None, :] + tl.zeros([ROWS, 1], tl.int32)
            inside = (y < H) & (x < W)
            v0, v1, v2 = value_before(source, y, x, inside, slot1, stats1, H, W, C, SLOT)
            if op == AUTOCONTRAST:
                low0 = tl.minimum(low0, tl.min(_flat(tl.where(inside, v0, 255)), 0))
                high0 = tl.maximum(high0, tl.max(_flat(tl.where(inside, v0, 0)), 0))
                if C == 3:
                    low1 = tl.minimum(low1, tl.min(_flat(tl.where(inside, v1, 255)), 0))
                    low2 = tl.minimum(low2, tl.min(_flat(tl.where(inside, v2, 255)), 0))
                    high1 = tl.maximum(high1, tl.max(_flat(tl.where(inside, v1, 0)), 0))
                    high2 = tl.maximum(high2, tl.max(_flat(tl.where(inside, v2, 0)), 0))
            elif op == CONTRAST:
                grey += tl.sum(_flat(tl.where(inside, luma(v0, v1, v2, C), 0)), 0).to(tl.int64)
            else:
                seen = _flat(inside)
                count0 += tl.histogram(_flat(v0), 256, mask=seen)
                if C == 3:
                    count1 += tl.histogram(_flat(v1), 256, mask=seen)
                    count2 += tl.histogram(_flat(v2), 256, mask=seen)
    return low0, low1, low2, high0, high1, high2, grey, count0, count1, count2


@triton.jit
def _settle(op, raw, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr):
    """From totals to what the operation uses: extremes, or the mean grey level, or tables."""
    low0 = raw[0]
    lut0 = tl.arange(0, 256)
    lut1 = lut0
    lut2 = lut0
    if op == CONTRAST:
        low0 = ((2 * raw[6] + H * W) // (2 * H * W)).to(tl.int32)
    if op == EQUALIZE:
        lut0 = _equalized(raw[7], H * W)
        if C == 3:
            lut1 = _equalized(raw[8], H * W)
            lut2 = _equalized(raw[9], H * W)
    return low0, raw[1], raw[2], raw[3], raw[4], raw[5], lut0, lut1, lut2


@triton.jit
def gather(
    source, slot, slot1, stats1,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, SLOT: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """The statistics that a slot's operation needs, taken by this program alone."""
    raw = _accumulate(source, slot, slot1, stats1, 0, 1, H, W, C, SLOT, ROWS, COLS)
    return _settle(slot[0], raw, H, W, C)


@triton.jit
def recall(records, at, op, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr):
    """The statistics that `count_kernel` left in a record."""
    base = records + at * _RECORD
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
    return _settle(op, raw, H, W, C)


@triton.jit(do_not_specialize=["first"])
def count_kernel(
    originals, pool, operation, applied, argument, center, partner, records, E, first, parts,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr,
    SLOT: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """Add one part of a large image's statistics to its record."""
    n = tl.program_id(0).to(tl.int64)
    slot = slot_of(operation, applied, argument, center, partner, n, first + SLOT, pool, H, W, C, K)
    if _wants(slot[0]):
        source = originals + (n // E) * (H * W * C)
        slot1 = slot
        stats1 = slot
        if SLOT == 1:
            slot1 = slot_of(
                operation, applied, argument, center, partner, n, first, pool, H, W, C, K
            )
            stats1 = recall(records, n * SLOTS, slot1[0], H, W, C)
        raw = _accumulate(
            source, slot, slot1, stats1, tl.program_id(1), parts, H, W, C, SLOT, ROWS, COLS
        )
        base = records + (n * SLOTS + SLOT) * _RECORD
        if slot[0] == AUTOCONTRAST:
            for c in tl.static_range(3):
                tl.atomic_max(base + c, 255 - raw[c])
                tl.atomic_max(base + 3 + c, raw[3 + c])
        elif slot[0] == CONTRAST:
            tl.atomic_add((base + 6).to(tl.pointer_type(tl.int64)), raw[6])
        else:
            v = tl.arange(0, 256)
            for c in tl.static_range(C):
                tl.atomic_add(base + 8 + c * 256 + v, raw[7 + c])
