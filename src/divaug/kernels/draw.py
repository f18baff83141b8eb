"""Drawing sub-policies and default augmentations in one kernel; twin of `policies.table.draw`."""

from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from divaug._random import MASK, Purpose, Stream
from divaug.kernels.finishing import finish, sub_policies
from divaug.kernels.launching import Launcher
from divaug.kernels.philox import below, philox, uniform
from divaug.policies.table import Partners, PolicyTable

__all__ = ["draw_kernel"]

_OPERATION = tl.constexpr(int(Purpose.OPERATION))
_CROP = tl.constexpr(int(Purpose.CROP))
_CUTOUT = tl.constexpr(int(Purpose.CUTOUT))
BLOCK = 128


@triton.jit
def _draw_operations(
    i, mask, sample, now, seed_low, seed_high, e, k, own, integers, floats, rows, pool, H, W,
    operation, applied, argument, center, partner, probability, magnitude,
    K: tl.constexpr, JOINT: tl.constexpr,
):  # fmt: skip
    place = e | (k << 16)
    row_word, p_word, coin, m_word = philox(seed_low, seed_high, sample, now, place, _OPERATION)
    if JOINT and K > 1:
        row_word, _, _, _ = philox(seed_low, seed_high, sample, now, e, _OPERATION)
    entry = below(row_word, rows) * K + k
    ints = integers + entry * 4
    nums = floats + entry * 8
    op = tl.load(ints, mask=mask, other=-1)
    levels = tl.load(ints + 1, mask=mask, other=0)
    signed = tl.load(ints + 2, mask=mask, other=0)
    rounding = tl.load(ints + 3, mask=mask, other=0)
    span = tl.load(nums + 1, mask=mask, other=0.0) * uniform(p_word)
    p = tl.load(nums, mask=mask, other=0.0) + span
    level = below(m_word, levels).to(tl.float32)
    level = tl.div_rn(level, tl.maximum(levels - 1, 1).to(tl.float32))
    fraction = tl.where(levels > 0, level, uniform(m_word))
    m = tl.load(nums + 3, mask=mask, other=0.0) * fraction
    m = tl.load(nums + 2, mask=mask, other=0.0) + m
    used = (uniform(coin) < p) & (op >= 0)
    finish(
        i, mask, sample, now, seed_low, seed_high, place, own, op, signed, rounding, nums, p, m,
        used, pool, H, W, operation, applied, argument, center, partner, probability, magnitude,
    )  # fmt: skip


@triton.jit(
    do_not_specialize=[
        "step", "seed_low", "seed_high", "B", "E", "rows", "pool", "H", "W", "crops", "out_h",
        "out_w", "flip_chance",
    ]
)  # fmt: skip
def _kernel(
    index, step_tensor, integers, floats, operation, applied, argument, center, partner,
    probability, magnitude, offset, flip, cut, own_rows, step, seed_low, seed_high, B, E, rows,
    pool, H, W, crops, out_h, out_w, flip_chance,
    K: tl.constexpr, JOINT: tl.constexpr, TABLE: tl.constexpr,
    OWN_ROW: tl.constexpr, DEFAULT: tl.constexpr, POINTER_STEP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    now = tl.load(step_tensor) if POINTER_STEP else step
    if TABLE:
        mask = i < B * E * K
        b = i // (E * K)
        sample = tl.load(index + b, mask=mask, other=0)
        own = b if OWN_ROW else tl.load(own_rows + b, mask=mask, other=0)
        _draw_operations(
            i, mask, sample, now, seed_low, seed_high, (i // K) % E, i % K, own, integers, floats,
            rows, pool, H, W, operation, applied, argument, center, partner, probability,
            magnitude, K, JOINT,
        )  # fmt: skip
    if DEFAULT:
        mask = i < B * E
        sample = tl.load(index + i // E, mask=mask, other=0)
        y, x, coin, _ = philox(seed_low, seed_high, sample, now, i % E, _CROP)
        tl.store(offset + 2 * i, below(y, crops).to(tl.int32), mask=mask)
        tl.store(offset + 2 * i + 1, below(x, crops).to(tl.int32), mask=mask)
        tl.store(flip + i, (uniform(coin) < flip_chance).to(tl.uint8), mask=mask)
        y, x, _, _ = philox(seed_low, seed_high, sample, now, i % E, _CUTOUT)
        tl.store(cut + 2 * i, below(y, out_h).to(tl.int32), mask=mask)
        tl.store(cut + 2 * i + 1, below(x, out_w).to(tl.int32), mask=mask)


@lru_cache(maxsize=64)
def _drawer(
    K: int, joint: bool, table: bool, own_row: bool, default: bool, on_device: bool
) -> Launcher:
    constants = {
        "K": K, "JOINT": joint, "TABLE": table, "OWN_ROW": own_row, "DEFAULT": default,
        "POINTER_STEP": on_device, "BLOCK": BLOCK,
    }  # fmt: skip
    return Launcher(_kernel, constants, {"num_warps": 4, "enable_fp_fusion": False})


def draw_kernel(
    stream: Stream,
    candidates: int,
    size: tuple[int, int],
    table: PolicyTable | None,
    partners: Partners,
    default: tuple[int, float, tuple[int, int]] | None,
) -> tuple[list[Any], list[Any]]:
    """Draw sub-policies and the default augmentation.

    Args:
        stream: seed, step and samples.
        candidates: E.
        size: height and width of the images.
        table: what sub-policies are drawn from; None to draw none.
        partners: where second images are drawn from.
        default: padding, flip chance and output size; None to draw no default augmentation.

    Returns:
        The tensors of `SubPolicies` in their order, and those of `Placement`.
    """
    B, E, device = stream.index.shape[0], candidates, stream.index.device

    def empty(dtype: torch.dtype, *more: int) -> Tensor:
        return torch.empty((B, E, *more), dtype=dtype, device=device)

    K = table.num_operations if table else 0
    drawn = sub_policies(B, E, K, device) if table else []
    placed = [empty(torch.int32, 2), empty(torch.bool), empty(torch.int32, 2)] if default else []
    work = max(B * E * K if table else 0, B * E if default else 0)
    if not work:
        return drawn, placed
    nothing = stream.index
    sub = drawn or [nothing] * 7
    end = placed or [nothing] * 3
    padding, chance, out = default or (0, 0.0, (1, 1))
    on_device = isinstance(stream.step, Tensor)
    step = stream.step if isinstance(stream.step, Tensor) else nothing
    now = 0 if isinstance(stream.step, Tensor) else stream.step & MASK
    drawer = _drawer(
        max(K, 1), bool(table and table.joint), table is not None, partners.own is None,
        default is not None, on_device,
    )  # fmt: skip
    drawer(
        -(-work // BLOCK),
        (
            stream.index, step, *((table.integers, table.floats) if table else (nothing, nothing)),
            *sub, *end,
            nothing if partners.own is None else partners.own,
        ),
        (
            now, stream.seed & MASK, stream.seed >> 32, B, E, table.num_rows if table else 1,
            partners.count, *size, 2 * padding + 1, *out, float(chance),
        ),
    )  # fmt: skip
    return drawn, placed
