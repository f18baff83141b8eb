"""Candidates from drawn sub-policies, finished: one kernel, and two small ones for large images.

A program makes one candidate of a small image or one tile of a large one. Statistics that an
operation needs are taken in the same program for small images, and in kernels launched before for
large ones. The host never learns what was drawn.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from divaug.kernels.pixels import after_first, after_second, channel, original
from divaug.kernels.statistics import RECORD, count_kernel, recalled_tables, slot_of, tables_of

__all__ = ["FUSED_PIXELS", "MAX_SLOTS", "jitter_kernel", "render_kernel"]

#: Up to this many pixels a candidate is the work of one program.
FUSED_PIXELS = 128 * 128
MAX_SLOTS = 2
BLOCK = 512  # pixels of a tile
PIXELS_PER_THREAD = 4
PARTS = (16, 8)  # programs that share the statistics of one large candidate, in each phase
PROGRAMS = 32  # programs that share the pixels of one large candidate
REGISTERS = {0: None, 1: 64, 2: 80}  # most registers of a thread, by the number of slots


@triton.jit
def _tile(
    out, source, tile, n, slot1, tables1, slot2, tables2, offset_y, offset_x, turn, cut_y,
    cut_x, scale0, scale1, scale2, bias0, bias1, bias2,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, SLOTS: tl.constexpr,
    DEFAULT: tl.constexpr, PADDING: tl.constexpr, CUTOUT: tl.constexpr,
    CHANNELS_LAST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Finish one tile of candidate n."""
    p = tile * BLOCK + tl.arange(0, BLOCK)
    even: tl.constexpr = (H * W) % BLOCK == 0  # every tile is full
    valid = tl.full([BLOCK], True, tl.int1) if even else p < H * W
    out_y = p // W
    out_x = p - out_y * W
    y = out_y
    x = out_x
    inside = valid
    if DEFAULT:
        x = out_x * turn + (offset_x - PADDING + tl.where(turn < 0, W - 1, 0))
        y = out_y + (offset_y - PADDING)
        if PADDING > 0:
            within = (y.to(tl.uint32) < H) & (x.to(tl.uint32) < W)
            inside = within if even else valid & within
    if SLOTS == 0:
        pixel = original(source, y, x, inside, H, W, C)
    elif SLOTS == 1:
        pixel = after_first(source, y, x, inside, slot1, tables1, H, W, C)
    else:
        pixel = after_second(source, y, x, inside, slot1, tables1, slot2, tables2, H, W, C)
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
            first_row = (tile * BLOCK) // W
            last_row = (tile * BLOCK + BLOCK - 1) // W
            start = cut_y - CUTOUT // 2
            if (last_row >= start) & (first_row < start + CUTOUT):
                top = out_y - start
                left = out_x - (cut_x - CUTOUT // 2)
                cut = (top.to(tl.uint32) < CUTOUT) & (left.to(tl.uint32) < CUTOUT)
                w0 = tl.where(cut, 0.0, w0)
                w1 = tl.where(cut, 0.0, w1)
                w2 = tl.where(cut, 0.0, w2)
    kind = out.dtype.element_ty
    candidate = out + n * (H * W * C)
    if CHANNELS_LAST and C == 3:
        # Neighbouring threads must write neighbouring bytes: the three channels are interleaved
        # with a fourth that is not stored.
        pairs = tl.join(tl.join(w0.to(kind), w2.to(kind)), tl.join(w1.to(kind), w2.to(kind)))
        i = tl.arange(0, 4 * BLOCK)
        stored = (i & 3) < 3
        if not even:
            stored = stored & (tile * BLOCK + (i >> 2) < H * W)
        target = candidate + tile * (BLOCK * 3) + ((i >> 2) * 3 + (i & 3))
        tl.store(target, tl.reshape(pairs, [4 * BLOCK]), mask=stored)
    elif even:
        tl.store(candidate + p, w0.to(kind))
        if C == 3:
            tl.store(candidate + p + H * W, w1.to(kind))
            tl.store(candidate + p + 2 * H * W, w2.to(kind))
    else:
        tl.store(candidate + p, w0.to(kind), mask=valid)
        if C == 3:
            tl.store(candidate + p + H * W, w1.to(kind), mask=valid)
            tl.store(candidate + p + 2 * H * W, w2.to(kind), mask=valid)


@triton.jit(do_not_specialize=["first"])
def _kernel(
    out, originals, pool, operation, applied, argument, center, partner, offset, flip, cut,
    records, E, first, scale0, scale1, scale2, bias0, bias1, bias2,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr,
    LAUNCH_SLOTS: tl.constexpr,
    FUSED: tl.constexpr, DEFAULT: tl.constexpr, PADDING: tl.constexpr, CUTOUT: tl.constexpr,
    CHANNELS_LAST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(0).to(tl.int64)
    source = originals + (n // E) * (H * W * C)
    mine = True
    start = 0
    if not FUSED and LAUNCH_SLOTS == 2:
        # Candidates with at most one applied operation and those with two have a launch each: the
        # former need few registers and run with more threads at a time.
        at = n * K + first
        one = (tl.load(applied + at) != 0) & (tl.load(operation + at) >= 0)
        two = (tl.load(applied + at + 1) != 0) & (tl.load(operation + at + 1) >= 0)
        mine = (one & two) == (SLOTS == 2)
        if SLOTS == 1:
            start = tl.where(one, 0, 1)
    if mine:
        slot1, tables1, slot2, tables2 = 0, 0, 0, 0
        if SLOTS >= 1:
            slot1 = slot_of(
                operation, applied, argument, center, partner, n, first + start, pool, H, W, C, K
            )
            if FUSED:
                tables1 = tables_of(source, slot1, slot1, slot1, H, W, C, 0, BLOCK)
            else:
                tables1 = recalled_tables(records, n * LAUNCH_SLOTS + start, slot1, H, W, C)
        if SLOTS == 2:
            slot2 = slot_of(
                operation, applied, argument, center, partner, n, first + 1, pool, H, W, C, K
            )
            if FUSED:
                tables2 = tables_of(source, slot2, slot1, tables1, H, W, C, 1, BLOCK)
            else:
                tables2 = recalled_tables(records, n * LAUNCH_SLOTS + 1, slot2, H, W, C)
        offset_y, offset_x, turn, cut_y, cut_x = 0, 0, 1, 0, 0
        if DEFAULT:
            offset_y, offset_x = tl.load(offset + 2 * n), tl.load(offset + 2 * n + 1)
            turn = tl.where(tl.load(flip + n) != 0, -1, 1)
            cut_y, cut_x = tl.load(cut + 2 * n), tl.load(cut + 2 * n + 1)
        tiles: tl.constexpr = (H * W + BLOCK - 1) // BLOCK
        for tile in range(tl.program_id(1), tiles, tl.num_programs(1)):
            _tile(
                out, source, tile, n, slot1, tables1, slot2, tables2, offset_y, offset_x,
                turn, cut_y, cut_x, scale0, scale1, scale2, bias0, bias1, bias2, H, W, C,
                SLOTS, DEFAULT, PADDING, CUTOUT, CHANNELS_LAST, BLOCK,
            )  # fmt: skip


def render_kernel(
    out: Tensor,
    originals: Tensor,
    num_candidates: int,
    subpolicies: tuple[Tensor, ...],
    pool: Tensor,
    placed: tuple[Tensor, ...] | None,
    settings: tuple[int, int, tuple[float, ...]] | None,
    channels_last: bool,
) -> None:
    """Fill `out` with candidates.

    Args:
        out: `[N,C,H,W]`, N = B·E, contiguous or with channels last.
        originals: uint8 `[B,C,H,W]`, contiguous.
        num_candidates: E.
        subpolicies: operation, applied, argument, center and partner, `[…,K]`, contiguous.
        pool: uint8 `[M,C,H,W]`, where partners are.
        placed: offset `[…,2]`, flip and Cutout's centre `[…,2]`; None to store bytes.
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
    padding, cutout, norm = settings or (0, 0, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    operation, applied, *others = subpolicies
    sub = (operation, applied.view(torch.uint8), *others)
    where = (placed[0], placed[1].view(torch.uint8), placed[2]) if placed else (source,) * 3
    fused = height * width <= FUSED_PIXELS or not slots
    block = min(BLOCK, max(32, triton.next_power_of_2(height * width)))
    sizes = {
        "H": height, "W": width, "C": channels, "K": max(1, operation.shape[-1]), "BLOCK": block,
        "num_warps": max(1, block // (32 * PIXELS_PER_THREAD)), "enable_fp_fusion": False,
    }  # fmt: skip
    records = source
    if not fused:
        records = torch.zeros((n, slots, RECORD), dtype=torch.int32, device=out.device)
        for phase in range(slots):
            count_kernel[(n, PARTS[phase], slots - phase)](
                source, pool, *sub, records, E, first, SLOTS=slots, PHASE=phase, **sizes
            )
    for launch in [slots] if fused else range(1, slots + 1):
        _kernel[(n, 1 if fused else PROGRAMS)](
            out, source, pool, *sub, *where, records, E, first, *norm, SLOTS=launch,
            LAUNCH_SLOTS=slots, FUSED=fused, DEFAULT=placed is not None, PADDING=padding,
            CUTOUT=cutout, CHANNELS_LAST=channels_last,
            maxnreg=None if fused else REGISTERS[launch], **sizes,
        )  # fmt: skip
