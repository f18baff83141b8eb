"""Drawing sub-policies and default augmentations in one kernel; twin of `policies.table.draw`."""

from functools import lru_cache
from typing import TypeAlias

import torch
import triton
import triton.language as tl
from torch import Tensor

from divaug.kernels.launching import Launcher
from divaug.kernels.philox import below, philox, uniform
from divaug.policies.table import Partners, PolicyTable
from divaug.randomness import MASK, Purpose, Stream

__all__ = ["draw_default", "draw_kernel", "draw_operations", "room_for"]

_OPERATION = tl.constexpr(int(Purpose.OPERATION))
_PLACE = tl.constexpr(int(Purpose.PLACE))
_CROP = tl.constexpr(int(Purpose.CROP))
_CUTOUT = tl.constexpr(int(Purpose.CUTOUT))
BLOCK = 128

#: The tensors of `SubPolicies`, in their order.
Drawn: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
#: Those of `DefaultDraws`.
Placed: TypeAlias = tuple[Tensor, Tensor, Tensor]


@triton.jit
def _argument(magnitude, sign, signed, rounding, floats, mask):
    """Compute base + sign·(offset + slope·m), rounded, at least the minimum; see `arguments_of`."""
    strength = tl.load(floats + 6, mask=mask, other=0.0) * magnitude
    strength = tl.load(floats + 5, mask=mask, other=0.0) + strength
    turned = strength * tl.where(signed == 1, sign, 1.0)
    value = tl.load(floats + 4, mask=mask, other=0.0) + turned
    value = tl.where(rounding == 1, tl.floor(value), value)
    value = tl.where(rounding == 2, tl.ceil(value - 0.5), value)
    return tl.maximum(value, tl.load(floats + 7, mask=mask, other=0.0))


@triton.jit
def draw_operations(
    i, mask, sample, now, seed_low, seed_high, e, k, own, integers, floats, rows, pool,
    operation, applied, argument, center, partner, probability, magnitude,
    H, W, K: tl.constexpr, JOINT: tl.constexpr,
):  # fmt: skip
    """Draw and store slots i: operation (−1 where its coin failed), argument, place, partner."""
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
    sign_word, y_word, x_word, other_word = philox(seed_low, seed_high, sample, now, place, _PLACE)
    sign = tl.where(sign_word >= 2147483648, -1.0, 1.0)
    strength = _argument(m, sign, signed, rounding, nums, mask)
    y, x = below(y_word, H).to(tl.int32), below(x_word, W).to(tl.int32)
    other = below(other_word, tl.maximum(pool - 1, 1))
    other = tl.where((pool > 1) & (other >= own), other + 1, other)
    heads = (uniform(coin) < p) & (op >= 0)
    tl.store(operation + i, op, mask=mask)
    tl.store(applied + i, heads.to(tl.uint8), mask=mask)
    tl.store(argument + i, strength, mask=mask)
    tl.store(center + 2 * i, y, mask=mask)
    tl.store(center + 2 * i + 1, x, mask=mask)
    tl.store(partner + i, other, mask=mask)
    tl.store(probability + i, p, mask=mask)
    tl.store(magnitude + i, m, mask=mask)
    return tl.where(heads, op, -1), strength, y, x, other


@triton.jit
def draw_default(sample, now, seed_low, seed_high, e, crops, flip_chance, H, W):
    """Draw the crop's corner, whether to mirror, and Cutout's centre."""
    y, x, coin, _ = philox(seed_low, seed_high, sample, now, e, _CROP)
    cut_y, cut_x, _, _ = philox(seed_low, seed_high, sample, now, e, _CUTOUT)
    return (
        below(y, crops).to(tl.int32), below(x, crops).to(tl.int32), uniform(coin) < flip_chance,
        below(cut_y, H).to(tl.int32), below(cut_x, W).to(tl.int32),
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
        draw_operations(
            i, mask, sample, now, seed_low, seed_high, (i // K) % E, i % K, own, integers, floats,
            rows, pool, operation, applied, argument, center, partner, probability, magnitude,
            H, W, K, JOINT,
        )  # fmt: skip
    if DEFAULT:
        mask = i < B * E
        sample = tl.load(index + i // E, mask=mask, other=0)
        offset_y, offset_x, mirrored, cut_y, cut_x = draw_default(
            sample, now, seed_low, seed_high, i % E, crops, flip_chance, out_h, out_w
        )
        tl.store(offset + 2 * i, offset_y, mask=mask)
        tl.store(offset + 2 * i + 1, offset_x, mask=mask)
        tl.store(flip + i, mirrored.to(tl.uint8), mask=mask)
        tl.store(cut + 2 * i, cut_y, mask=mask)
        tl.store(cut + 2 * i + 1, cut_x, mask=mask)


@lru_cache(maxsize=64)
def _drawer(
    K: int, joint: bool, table: bool, own_row: bool, default: bool, on_device: bool
) -> Launcher:
    constants = {
        "K": K, "JOINT": joint, "TABLE": table, "OWN_ROW": own_row, "DEFAULT": default,
        "POINTER_STEP": on_device, "BLOCK": BLOCK,
    }  # fmt: skip
    return Launcher(_kernel, constants, {"num_warps": 4, "enable_fp_fusion": False})


def room_for(table: PolicyTable, B: int, E: int) -> Drawn:
    """Sub-policies `[B,E,K]` with nothing in them yet."""
    shape, device = (B, E, table.integers.shape[1]), table.integers.device

    def empty(dtype: torch.dtype, *more: int) -> Tensor:
        return torch.empty((*shape, *more), dtype=dtype, device=device)

    whole, real = torch.int32, torch.float32
    return (
        empty(whole), empty(torch.bool), empty(real), empty(whole, 2), empty(torch.int64),
        empty(real), empty(real),
    )  # fmt: skip


def _room_for_default(B: int, E: int, device: torch.device) -> Placed:
    return (
        torch.empty((B, E, 2), dtype=torch.int32, device=device),
        torch.empty((B, E), dtype=torch.bool, device=device),
        torch.empty((B, E, 2), dtype=torch.int32, device=device),
    )


def draw_kernel(
    stream: Stream,
    candidates: int,
    size: tuple[int, int],
    table: PolicyTable | None,
    partners: Partners,
    default: tuple[int, float, tuple[int, int]] | None,
) -> tuple[Drawn | None, Placed | None]:
    """Draw sub-policies and the default augmentation.

    Args:
        stream: seed, step and samples.
        candidates: E.
        size: height and width of the images.
        table: what sub-policies are drawn from; None to draw none.
        partners: where second images are drawn from.
        default: padding, flip chance and output size; None to draw no default augmentation.

    Returns:
        The sub-policies and the draws of the default augmentation.
    """
    B, E, device = stream.index.shape[0], candidates, stream.index.device
    K = table.integers.shape[1] if table else 0
    drawn = room_for(table, B, E) if table else None
    placed = _room_for_default(B, E, device) if default else None
    work = max(B * E * K if table else 0, B * E if default else 0)
    if not work:
        return drawn, placed
    nothing = stream.index
    sub = drawn or (nothing,) * 7
    rows = (table.integers, table.floats) if table else (nothing, nothing)
    end = placed or (nothing,) * 3
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
            stream.index, step, *rows, *sub, *end,
            nothing if partners.own is None else partners.own,
        ),
        (
            now, stream.seed & MASK, stream.seed >> 32, B, E, rows[0].shape[0] if table else 1,
            partners.count, *size, 2 * padding + 1, *out, float(chance),
        ),
    )  # fmt: skip
    return drawn, placed
