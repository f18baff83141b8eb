"""Finished candidates, tile by tile: both operations, crop, flip, Cutout, normalisation, cast."""

import triton
import triton.language as tl

from divaug.kernels.geometry import place
from divaug.kernels.lookup_tables import slot_of, tables_of
from divaug.kernels.pixels import after_first, after_second, channel, original
from divaug.kernels.quads import split

__all__ = ["render_kernel"]


@triton.jit
def _store_four(target, at, first, second, third, fourth, mask, BLOCK: tl.constexpr):
    """Store four numbers of each thread in consecutive places."""
    four = tl.reshape(tl.join(tl.join(first, third), tl.join(second, fourth)), [BLOCK // 4, 4])
    tl.store(target + (at[:, None] + tl.arange(0, 4)[None, :]), four, mask=mask)


@triton.jit
def _store_last(
    candidate, tile, red, green, blue, H: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr
):
    """Store a tile with its channels last: twelve numbers a thread, in three wide stores."""
    r0, r1, r2, r3 = split(red, BLOCK)
    g0, g1, g2, g3 = split(green, BLOCK)
    b0, b1, b2, b3 = split(blue, BLOCK)
    at = (tile * (BLOCK // 4) + tl.arange(0, BLOCK // 4)) * 12
    k = tl.arange(0, 4)[None, :]
    room = (H * W * 3 - at)[:, None]
    if H * W % BLOCK == 0:
        mask0, mask1, mask2 = None, None, None
    else:
        mask0, mask1, mask2 = k < room, k + 4 < room, k + 8 < room
    _store_four(candidate, at, r0, g0, b0, r1, mask0, BLOCK)
    _store_four(candidate, at + 4, g1, b1, r2, g2, mask1, BLOCK)
    _store_four(candidate, at + 8, b2, r3, g3, b3, mask2, BLOCK)


@triton.jit
def _tile(
    out, source, tile, n, slot1, tables1, slot2, tables2, offset_y, offset_x, turn, cut_y,
    cut_x, scale0, scale1, scale2, bias0, bias1, bias2,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, SLOTS: tl.constexpr,
    DEFAULT: tl.constexpr, PADDING: tl.constexpr, CUTOUT: tl.constexpr,
    CHANNELS_LAST: tl.constexpr, FUSED: tl.constexpr, SHARP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Finish one tile of candidate n."""
    p, out_y, out_x = place(source, tile, W, BLOCK)
    even: tl.constexpr = H * W % BLOCK == 0  # every tile is full
    valid = tl.full([BLOCK], True, tl.int1) if even else p < H * W
    y = out_y
    x = out_x
    inside = valid
    if DEFAULT:
        x = out_x * turn + (offset_x - PADDING + tl.where(turn < 0, W - 1, 0))
        y = out_y + (offset_y - PADDING)
        if PADDING > 0:
            within = (y.to(tl.uint32) < H) & (x.to(tl.uint32) < W)
            inside = within if even else valid & within
    straight: tl.constexpr = 0 if FUSED or W % 4 else BLOCK
    if SLOTS == 0:
        pixel = original(source, y, x, inside, H, W, C)
    elif SLOTS == 1:
        pixel = after_first(source, y, x, inside, slot1, tables1, H, W, C, FUSED, straight)
    else:
        pixel = after_second(
            source, y, x, inside, slot1, tables1, slot2, tables2, H, W, C, FUSED, SHARP, straight
        )
    if PADDING > 0:
        pixel = tl.where(inside, pixel, 0)
    w0 = channel(pixel, 0)
    w1 = channel(pixel, 1)
    w2 = channel(pixel, 2)
    if DEFAULT:
        w0 = w0.to(tl.float32) * scale0 + bias0
        w1 = w1.to(tl.float32) * scale1 + bias1
        w2 = w2.to(tl.float32) * scale2 + bias2
        if CUTOUT > 0:
            top, left = cut_y - CUTOUT // 2, cut_x - CUTOUT // 2
            first_row = (tile * BLOCK) // W
            last_row = (tile * BLOCK + BLOCK - 1) // W
            if (last_row >= top) & (first_row < top + CUTOUT):
                inner_y = (out_y - top).to(tl.uint32) < CUTOUT
                cut = inner_y & ((out_x - left).to(tl.uint32) < CUTOUT)
                w0 = tl.where(cut, 0.0, w0)
                w1 = tl.where(cut, 0.0, w1)
                w2 = tl.where(cut, 0.0, w2)
    kind = out.dtype.element_ty
    candidate = out + n * (H * W * C)
    if CHANNELS_LAST and C == 3:
        _store_last(candidate, tile, w0.to(kind), w1.to(kind), w2.to(kind), H, W, BLOCK)
    else:
        if even:
            valid = None
        tl.store(candidate + p, w0.to(kind), mask=valid)
        if C == 3:
            tl.store(candidate + p + H * W, w1.to(kind), mask=valid)
            tl.store(candidate + p + 2 * H * W, w2.to(kind), mask=valid)


@triton.jit
def _candidate(
    out, originals, pool, operation, applied, argument, center, partner, offset, flip, cut,
    tables, number, first_tile, end_tile, first, scale0, scale1, scale2, bias0, bias1, bias2,
    E: tl.constexpr, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr,
    SLOTS: tl.constexpr, ALL_SLOTS: tl.constexpr, FUSED: tl.constexpr, SHARP: tl.constexpr,
    DEFAULT: tl.constexpr, PADDING: tl.constexpr, CUTOUT: tl.constexpr,
    CHANNELS_LAST: tl.constexpr, ATOMICS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Finish some tiles of a candidate, of which SLOTS of ALL_SLOTS operations are applied."""
    n = number.to(tl.int64)
    source = originals + (number // E).to(tl.int64) * (H * W * C)
    slot1, tables1, slot2, tables2 = 0, 0, 0, 0
    start = 0
    if SLOTS == 1 and ALL_SLOTS == 2:
        at = n * K + first
        start = tl.where((tl.load(applied + at) != 0) & (tl.load(operation + at) >= 0), 0, 1)
    if SLOTS >= 1:
        slot1 = slot_of(
            operation, applied, argument, center, partner, n, first + start, pool, H, W, C, K
        )
        if FUSED:
            tables1 = tables_of(source, slot1, slot1, slot1, H, W, C, 0, ATOMICS, BLOCK)
        else:
            tables1 = tables + (n * ALL_SLOTS + start) * 768
    if SLOTS == 2:
        slot2 = slot_of(
            operation, applied, argument, center, partner, n, first + 1, pool, H, W, C, K
        )
        if FUSED:
            tables2 = tables_of(source, slot2, slot1, tables1, H, W, C, 1, ATOMICS, BLOCK)
        else:
            tables2 = tables + (n * ALL_SLOTS + 1) * 768
    offset_y, offset_x, turn, cut_y, cut_x = 0, 0, 1, 0, 0
    if DEFAULT:
        offset_y, offset_x = tl.load(offset + 2 * n), tl.load(offset + 2 * n + 1)
        turn = tl.where(tl.load(flip + n) != 0, -1, 1)
        cut_y, cut_x = tl.load(cut + 2 * n), tl.load(cut + 2 * n + 1)
    for tile in range(first_tile, end_tile):
        _tile(
            out, source, tile, n, slot1, tables1, slot2, tables2, offset_y, offset_x, turn, cut_y,
            cut_x, scale0, scale1, scale2, bias0, bias1, bias2, H, W, C, SLOTS, DEFAULT, PADDING,
            CUTOUT, CHANNELS_LAST, FUSED, SHARP, BLOCK,
        )  # fmt: skip


@triton.jit(do_not_specialize=["first", "which", "room"])
def render_kernel(
    out, originals, pool, operation, applied, argument, center, partner, offset, flip, cut,
    tables, lists, counts, which, room, first, scale0, scale1, scale2, bias0, bias1, bias2,
    E: tl.constexpr, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr,
    SLOTS: tl.constexpr, ALL_SLOTS: tl.constexpr, FUSED: tl.constexpr, SHARP: tl.constexpr,
    DEFAULT: tl.constexpr, PADDING: tl.constexpr, CUTOUT: tl.constexpr,
    CHANNELS_LAST: tl.constexpr, ATOMICS: tl.constexpr, PART: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Finish the candidates of a list, or each of its own program where `FUSED`."""
    tiles: tl.constexpr = (H * W + BLOCK - 1) // BLOCK
    if FUSED:
        _candidate(
            out, originals, pool, operation, applied, argument, center, partner, offset, flip, cut,
            tables, tl.program_id(0), 0, tiles, first, scale0, scale1, scale2, bias0, bias1, bias2,
            E, H, W, C, K, SLOTS, ALL_SLOTS, FUSED, SHARP, DEFAULT, PADDING, CUTOUT, CHANNELS_LAST,
            ATOMICS, BLOCK,
        )  # fmt: skip
    else:
        parts: tl.constexpr = (tiles + PART - 1) // PART
        for item in range(tl.program_id(0), tl.load(counts + which) * parts, tl.num_programs(0)):
            part = item % parts
            _candidate(
                out, originals, pool, operation, applied, argument, center, partner, offset, flip,
                cut, tables, tl.load(lists + which * room + item // parts), part * PART,
                tl.minimum(part * PART + PART, tiles), first, scale0, scale1, scale2, bias0, bias1,
                bias2, E, H, W, C, K, SLOTS, ALL_SLOTS, FUSED, SHARP, DEFAULT, PADDING, CUTOUT,
                CHANNELS_LAST, ATOMICS, BLOCK,
            )  # fmt: skip
