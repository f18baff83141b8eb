"""The look-up tables of a slot, with the statistics of the image that they need.

Contrast, AutoContrast and Equalize are tables of 256 values, as in `divaug.operations.color`, made
from the image, without the host.
"""

import triton
import triton.language as tl

from divaug.kernels.geometry import AUTOCONTRAST, CONTRAST, EQUALIZE, place, plan
from divaug.kernels.histogram import counted, finished, no_counts
from divaug.kernels.pixels import after_first, blend, channel, luma, pixels_at

__all__ = ["RECORD", "slot_of", "table_kernel", "tables_of"]

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
def _found(
    source, tile, slot1, tables1,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, AFTER: tl.constexpr, FUSED: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """A tile of what an operation finds, and which of its pixels there are."""
    p = tile * BLOCK + tl.arange(0, BLOCK)
    inside = p < H * W
    if AFTER:
        _, y, x = place(source, tile, W, BLOCK)
        # Not by fours: no faster here, and three copies of that take the compiler ten seconds.
        pixel = after_first(source, y, x, inside, slot1, tables1, H, W, C, FUSED, 0)
    else:
        pixel = pixels_at(source, p, inside, H, W, C)
    return pixel, inside


@triton.jit
def _extremes(
    source, first_tile, end_tile, slot1, tables1,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, AFTER: tl.constexpr, FUSED: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """255 less the lowest, and the highest value of each channel: both grow from zero."""
    low0, low1, low2 = (tl.zeros([BLOCK], tl.int32),) * 3
    high0, high1, high2 = (tl.zeros([BLOCK], tl.int32),) * 3
    for tile in range(first_tile, end_tile):
        pixel, inside = _found(source, tile, slot1, tables1, H, W, C, AFTER, FUSED, BLOCK)
        lowest = tl.where(inside, ~pixel, 0)
        highest = tl.where(inside, pixel, 0)
        low0 = tl.maximum(low0, channel(lowest, 0))
        high0 = tl.maximum(high0, channel(highest, 0))
        if C == 3:
            low1 = tl.maximum(low1, channel(lowest, 1))
            low2 = tl.maximum(low2, channel(lowest, 2))
            high1 = tl.maximum(high1, channel(highest, 1))
            high2 = tl.maximum(high2, channel(highest, 2))
    lows = tl.max(low0, 0), tl.max(low1, 0), tl.max(low2, 0)
    highs = tl.max(high0, 0), tl.max(high1, 0), tl.max(high2, 0)
    return lows, highs


@triton.jit
def _grey_sum(
    source, first_tile, end_tile, slot1, tables1,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, AFTER: tl.constexpr, FUSED: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    total = tl.zeros([BLOCK], tl.int32)
    for tile in range(first_tile, end_tile):
        pixel, inside = _found(source, tile, slot1, tables1, H, W, C, AFTER, FUSED, BLOCK)
        total += tl.where(inside, luma(pixel, C), 0)
    return tl.sum(total.to(tl.int64), 0)


@triton.jit
def _counts(
    source, first_tile, end_tile, slot1, tables1,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, AFTER: tl.constexpr, FUSED: tl.constexpr,
    ATOMICS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The histogram of each channel."""
    counts = no_counts(C, ATOMICS)
    for tile in range(first_tile, end_tile):
        pixel, inside = _found(source, tile, slot1, tables1, H, W, C, AFTER, FUSED, BLOCK)
        counts = counted(counts, pixel, inside, C, ATOMICS)
    return finished(counts, C, ATOMICS)


@triton.jit
def _accumulate(
    source, op, slot1, tables1, first_tile, end_tile,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, AFTER: tl.constexpr, FUSED: tl.constexpr,
    ATOMICS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Collect what an operation's table depends on: extremes, grey sum or histograms of tiles."""
    zero = op * 0
    lows = zero, zero, zero
    highs = zero, zero, zero
    total = zero.to(tl.int64)
    counts = (tl.zeros([256], tl.int32),) * 3
    if op == AUTOCONTRAST:
        lows, highs = _extremes(
            source, first_tile, end_tile, slot1, tables1, H, W, C, AFTER, FUSED, BLOCK
        )
    elif op == CONTRAST:
        total = _grey_sum(
            source, first_tile, end_tile, slot1, tables1, H, W, C, AFTER, FUSED, BLOCK
        )
    elif op == EQUALIZE:
        counts = _counts(
            source, first_tile, end_tile, slot1, tables1, H, W, C, AFTER, FUSED, ATOMICS, BLOCK
        )
    return lows, highs, total, counts


@triton.jit
def _stretched(v, low, high):
    """AutoContrast, in float64 as Pillow."""
    scale = 255.0 / tl.maximum(high - low, 1).to(tl.float64)
    offset = -low.to(tl.float64) * scale
    value = (v.to(tl.float64) * scale + offset).to(tl.int32)
    return tl.where(high > low, tl.minimum(tl.maximum(value, 0), 255), v)


@triton.jit
def _tables(slot, found, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr):
    """The look-up tables [256] of a slot, one a channel; as they are where it needs none."""
    op, argument = slot[0], slot[1]
    lows, highs, total, counts = found
    v = tl.arange(0, 256)
    table0 = v
    table1 = v
    table2 = v
    if op == AUTOCONTRAST:
        table0 = _stretched(v, 255 - lows[0], highs[0])
        if C == 3:
            table1 = _stretched(v, 255 - lows[1], highs[1])
            table2 = _stretched(v, 255 - lows[2], highs[2])
    elif op == EQUALIZE:
        table0 = _equalized(counts[0], H * W)
        if C == 3:
            table1 = _equalized(counts[1], H * W)
            table2 = _equalized(counts[2], H * W)
    elif op == CONTRAST:
        mean = ((2 * total + H * W) // (2 * H * W)).to(tl.int32)
        table0 = blend(v * 0 + mean, v, argument)
        table1 = table0
        table2 = table0
    return table0, table1, table2


@triton.jit
def tables_of(
    source, slot, slot1, tables1,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, AFTER: tl.constexpr,
    ATOMICS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The look-up tables of a slot, the statistics taken by this program alone."""
    tiles: tl.constexpr = (H * W + BLOCK - 1) // BLOCK
    found = _accumulate(
        source, slot[0], slot1, tables1, 0, tiles, H, W, C, AFTER, True, ATOMICS, BLOCK
    )
    return _tables(slot, found, H, W, C)


@triton.jit
def _gathered(record, found, op, C: tl.constexpr):
    """Add one part's statistics to a record, in any order of the parts.

    Relaxed: the barrier that follows and the count of arrivals put them before the reading.
    """
    lows, highs, total, counts = found
    if op == AUTOCONTRAST:
        for c in tl.static_range(C):
            tl.atomic_max(record + c, lows[c], sem="relaxed")
            tl.atomic_max(record + 3 + c, highs[c], sem="relaxed")
    elif op == CONTRAST:
        tl.atomic_add((record + 6).to(tl.pointer_type(tl.int64)), total, sem="relaxed")
    else:
        v = tl.arange(0, 256)
        for c in tl.static_range(C):
            tl.atomic_add(record + 8 + c * 256 + v, counts[c], mask=counts[c] > 0, sem="relaxed")


@triton.jit
def _recalled(record):
    """The statistics that all parts left in a record, read past this processor's cache."""
    v = tl.arange(0, 256)
    lows = (
        tl.load(record, cache_modifier=".cg"),
        tl.load(record + 1, cache_modifier=".cg"),
        tl.load(record + 2, cache_modifier=".cg"),
    )
    highs = (
        tl.load(record + 3, cache_modifier=".cg"),
        tl.load(record + 4, cache_modifier=".cg"),
        tl.load(record + 5, cache_modifier=".cg"),
    )
    total = tl.load((record + 6).to(tl.pointer_type(tl.int64)), cache_modifier=".cg")
    counts = (
        tl.load(record + 8 + v, cache_modifier=".cg"),
        tl.load(record + 264 + v, cache_modifier=".cg"),
        tl.load(record + 520 + v, cache_modifier=".cg"),
    )
    return lows, highs, total, counts


@triton.jit(do_not_specialize=["first", "which", "room"])
def table_kernel(
    tables, originals, pool, operation, applied, argument, center, partner, records, arrivals,
    lists, counts, which, room, first,
    E: tl.constexpr, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr,
    SLOTS: tl.constexpr, AFTER: tl.constexpr, ATOMICS: tl.constexpr, PART: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Make the look-up tables of the listed slots of large images.

    `AFTER` is whether an operation was applied before these slots, `ATOMICS` the way to count the
    values of an image; see `divaug.kernels.histogram`.

    A slot is shared out: each part adds what it counted to the slot's record, and the one that
    comes last turns the record into tables.
    """
    tiles: tl.constexpr = (H * W + BLOCK - 1) // BLOCK
    parts: tl.constexpr = (tiles + PART - 1) // PART
    work = tl.load(counts + which) * parts
    for item in range(tl.program_id(0), work, tl.num_programs(0)):
        at = tl.load(lists + which * room + item // parts)
        part = item % parts
        n = (at // SLOTS).to(tl.int64)
        k = at % SLOTS
        slot = slot_of(
            operation, applied, argument, center, partner, n, first + k, pool, H, W, C, K
        )
        slot1 = slot
        if AFTER:
            slot1 = slot_of(
                operation, applied, argument, center, partner, n, first, pool, H, W, C, K
            )
        source = originals + (at // SLOTS // E).to(tl.int64) * (H * W * C)
        tables1 = tables + n * (SLOTS * 768)
        found = _accumulate(
            source, slot[0], slot1, tables1, part * PART, tl.minimum(part * PART + PART, tiles),
            H, W, C, AFTER, False, ATOMICS, BLOCK,
        )  # fmt: skip
        record = records + at.to(tl.int64) * _RECORD
        _gathered(record, found, slot[0], C)
        tl.debug_barrier()  # every thread of this part has added before it is counted
        if tl.atomic_add(arrivals + at, 1) == parts - 1:
            made = _tables(slot, _recalled(record), H, W, C)
            v = tl.arange(0, 256)
            for c in tl.static_range(C):
                tl.store(tables + at.to(tl.int64) * 768 + c * 256 + v, made[c].to(tl.uint8))
