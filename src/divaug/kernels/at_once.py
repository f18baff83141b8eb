"""Small images from draw to finished candidate in one kernel, a program for each candidate.

What was drawn is stored for the caller and used from registers: nothing is read back, and there is
one launch instead of two.
"""

from functools import lru_cache

import triton
import triton.language as tl
from torch import Tensor

from divaug.kernels import has_shared_atomics
from divaug.kernels.candidates import (
    LAUNCHERS,
    MAX_SLOTS,
    Finish,
    Settings,
    Sizes,
    at_a_word,
    fused,
    normalisation,
)
from divaug.kernels.draw import Drawn, draw_default, draw_operations, room_for
from divaug.kernels.launching import Launcher
from divaug.kernels.render import finish_candidate
from divaug.kernels.statistics import slot_of
from divaug.policies.table import Partners, PolicyTable
from divaug.randomness import MASK, Stream

__all__ = ["expand_kernel", "fits"]


@triton.jit(
    do_not_specialize=[
        "step", "seed_low", "seed_high", "B", "rows", "count", "crops", "flip_chance",
    ]
)  # fmt: skip
def _kernel(
    out, originals, pool, index, step_tensor, integers, floats, own_rows, operation, applied,
    argument, center, partner, probability, magnitude, step, seed_low, seed_high, B, rows, count,
    crops, flip_chance, scale0, scale1, scale2, bias0, bias1, bias2,
    E: tl.constexpr, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr,
    JOINT: tl.constexpr, OWN_ROW: tl.constexpr, POINTER_STEP: tl.constexpr, DEFAULT: tl.constexpr,
    PADDING: tl.constexpr, CUTOUT: tl.constexpr, CHANNELS_LAST: tl.constexpr,
    ATOMICS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(0).to(tl.int64)
    b = n // E
    e = n % E
    there = b < B  # always: the kernel that draws alone has more lanes than work
    now = tl.load(step_tensor) if POINTER_STEP else step
    sample = tl.load(index + b)
    own = b if OWN_ROW else tl.load(own_rows + b)
    op, strength, y, x, other = draw_operations(
        n * K, there, sample, now, seed_low, seed_high, e, 0, own, integers, floats, rows, count,
        operation, applied, argument, center, partner, probability, magnitude, H, W, K, JOINT,
    )  # fmt: skip
    slot1 = slot_of(op, strength, y, x, other, pool, H, W, C)
    slot2 = 0
    if K == 2:
        op, strength, y, x, other = draw_operations(
            n * K + 1, there, sample, now, seed_low, seed_high, e, 1, own, integers, floats, rows,
            count, operation, applied, argument, center, partner, probability, magnitude, H, W, K,
            JOINT,
        )  # fmt: skip
        slot2 = slot_of(op, strength, y, x, other, pool, H, W, C)
    offset_y, offset_x, turn, cut_y, cut_x = 0, 0, 1, 0, 0
    if DEFAULT:
        offset_y, offset_x, mirrored, cut_y, cut_x = draw_default(
            sample, now, seed_low, seed_high, e, crops, flip_chance, H, W
        )
        turn = tl.where(mirrored, -1, 1)
    finish_candidate(
        out, originals + b * (H * W * C), n, slot1, slot2, offset_y, offset_x, turn, cut_y, cut_x,
        scale0, scale1, scale2, bias0, bias1, bias2, H, W, C, K, DEFAULT, PADDING, CUTOUT,
        CHANNELS_LAST, ATOMICS, BLOCK,
    )  # fmt: skip


@lru_cache(maxsize=LAUNCHERS)
def _expander(
    sizes: Sizes, finish: Finish, joint: bool, own_row: bool, on_device: bool, atomics: bool
) -> Launcher:
    constants = {
        "JOINT": joint, "OWN_ROW": own_row, "POINTER_STEP": on_device, "DEFAULT": finish.default,
        "PADDING": finish.padding, "CUTOUT": finish.cutout, "CHANNELS_LAST": finish.channels_last,
        "ATOMICS": atomics, "BLOCK": sizes.block,
    }  # fmt: skip
    return Launcher(_kernel, sizes._asdict() | constants, sizes.options(None))


def fits(originals: Tensor, table: PolicyTable) -> bool:
    """Whether one program holds what a candidate needs: few pixels, at most two operations."""
    slots = table.integers.shape[1]
    return len(originals) > 0 and fused(*originals.shape[2:]) and 1 <= slots <= MAX_SLOTS


def expand_kernel(
    out: Tensor,
    originals: Tensor,
    stream: Stream,
    candidates: int,
    table: PolicyTable,
    partners: Partners,
    pool: Tensor,
    chance: float,
    settings: Settings | None,
    channels_last: bool,
) -> Drawn:
    """Draw sub-policies and fill `out` with finished candidates.

    Args:
        out: `[N,C,H,W]`, N = B·E, contiguous or with channels last.
        originals: uint8 `[B,C,H,W]`, contiguous, that `fits`.
        stream: seed, step and samples.
        candidates: E.
        table: what sub-policies are drawn from.
        partners: where second images are drawn from.
        pool: uint8 `[M,C,H,W]`, where they are.
        chance: of a mirror image.
        settings: of the default augmentation; None to store bytes.
        channels_last: the layout of `out`.

    Returns:
        The sub-policies.
    """
    B, channels, height, width = originals.shape
    drawn = room_for(table, B, candidates)
    padding, cutout, norm = normalisation(settings)
    on_device = isinstance(stream.step, Tensor)
    expander = _expander(
        Sizes(candidates, height, width, channels, table.integers.shape[1]),
        Finish(settings is not None, padding, cutout, channels_last),
        table.joint, partners.own is None, on_device, has_shared_atomics(out.device),
    )  # fmt: skip
    index = stream.index
    expander(
        B * candidates,
        (
            out, at_a_word(originals), at_a_word(pool), index,
            stream.step if isinstance(stream.step, Tensor) else index, table.integers, table.floats,
            index if partners.own is None else partners.own, *drawn,
        ),
        (
            0 if isinstance(stream.step, Tensor) else stream.step & MASK, stream.seed & MASK,
            stream.seed >> 32, B, table.integers.shape[0], partners.count, 2 * padding + 1,
            float(chance), *norm,
        ),
    )  # fmt: skip
    return drawn
