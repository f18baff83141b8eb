"""Drawing of sub-policies and default augmentations in kernels; twin of `divaug.policies.table`."""

from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from divaug._random import MASK, Purpose, Stream
from divaug.kernels.launch import Launcher
from divaug.kernels.philox import below, philox, uniform
from divaug.policies.table import (
    AT_MOST,
    MOST_OPERATIONS,
    Partners,
    Plan,
    PolicyTable,
    Schedule,
    needed_epoch,
)

__all__ = ["draw_kernels"]

_OPERATION, _PLACE = tl.constexpr(int(Purpose.OPERATION)), tl.constexpr(int(Purpose.PLACE))
_CROP, _CUTOUT = tl.constexpr(int(Purpose.CROP)), tl.constexpr(int(Purpose.CUTOUT))
_COUNT, _SHUFFLE = tl.constexpr(int(Purpose.COUNT)), tl.constexpr(int(Purpose.SHUFFLE))
_COIN = tl.constexpr(int(Purpose.COIN))
_NONE = tl.constexpr(AT_MOST[0])
_ONE = tl.constexpr(AT_MOST[1])
_K = tl.constexpr(MOST_OPERATIONS)
TABLE_BLOCK = 128
SCHEDULE_BLOCK = 16


@triton.jit
def _argument(magnitude, sign, signed, rounding, floats, mask):
    """Compute base + sign·(offset + slope·m), rounded, at least the minimum: `_arguments_of`."""
    strength = tl.load(floats + 6, mask=mask, other=0.0) * magnitude
    strength = tl.load(floats + 5, mask=mask, other=0.0) + strength
    turned = strength * tl.where(signed == 1, sign, 1.0)
    value = tl.load(floats + 4, mask=mask, other=0.0) + turned
    value = tl.where(rounding == 1, tl.floor(value), value)
    value = tl.where(rounding == 2, tl.ceil(value - 0.5), value)
    value = tl.where(rounding == 3, tl.where(value < 0, tl.ceil(value), tl.floor(value)), value)
    return tl.maximum(value, tl.load(floats + 7, mask=mask, other=0.0))


@triton.jit
def _finish(
    i, mask, sample, now, seed_low, seed_high, place, own, op, signed, rounding, floats, p, m, used,
    pool, H, W, operation, applied, argument, center, partner, probability, magnitude,
):  # fmt: skip
    """Draw sign, place and partner of the operations at ``i``, and write all that they are."""
    sign_word, y, x, partner_word = philox(seed_low, seed_high, sample, now, place, _PLACE)
    sign = tl.where(sign_word >= 2147483648, -1.0, 1.0)
    inside = (own >= 0) & (own < pool) & (pool > 1)
    other = below(partner_word, tl.where(inside, pool - 1, pool))
    other = tl.where(inside & (other >= own), other + 1, other)
    tl.store(operation + i, op, mask=mask)
    tl.store(applied + i, used.to(tl.uint8), mask=mask)
    tl.store(argument + i, _argument(m, sign, signed, rounding, floats, mask), mask=mask)
    tl.store(center + 2 * i, below(y, H).to(tl.int32), mask=mask)
    tl.store(center + 2 * i + 1, below(x, W).to(tl.int32), mask=mask)
    tl.store(partner + i, other, mask=mask)
    tl.store(probability + i, p, mask=mask)
    tl.store(magnitude + i, m, mask=mask)


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
    _finish(
        i, mask, sample, now, seed_low, seed_high, place, own, op, signed, rounding, nums, p, m,
        used, pool, H, W, operation, applied, argument, center, partner, probability, magnitude,
    )  # fmt: skip


@triton.jit(
    do_not_specialize=[
        "step", "seed_low", "seed_high", "B", "E", "rows", "pool", "H", "W", "crops", "out_h",
        "out_w", "flip_chance",
    ]
)  # fmt: skip
def _table_kernel(
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


@triton.jit
def _word(seed_low, seed_high, sample, now, e, j, purpose: tl.constexpr):
    """The word of entry j: four entries share the words of a slot."""
    w0, w1, w2, w3 = philox(seed_low, seed_high, sample, now, e | ((j // 4) << 16), purpose)
    low = tl.where(j % 4 == 0, w0, w1)
    high = tl.where(j % 4 == 2, w2, w3)
    return tl.where(j % 4 < 2, low, high)


@triton.jit(
    do_not_specialize=[
        "step", "epoch", "seed_low", "seed_high", "B", "E", "entries", "last", "pool", "H", "W",
    ]
)  # fmt: skip
def _schedule_kernel(
    index, step_tensor, epoch_tensor, segment_of_epoch, integers, floats, operation, applied,
    argument, center, partner, probability, magnitude, own_rows,
    step, epoch, seed_low, seed_high, B, E, entries, last, pool, H, W,
    OWN_ROW: tl.constexpr, POINTER_STEP: tl.constexpr, POINTER_EPOCH: tl.constexpr,
    ENTRIES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < B * E
    b = i // E
    e = i % E
    sample = tl.load(index + b, mask=mask, other=0)
    own = b if OWN_ROW else tl.load(own_rows + b, mask=mask, other=0)
    now = tl.load(step_tensor) if POINTER_STEP else step
    when = tl.load(epoch_tensor) if POINTER_EPOCH else epoch
    segment = tl.load(segment_of_epoch + tl.minimum(tl.maximum(when, 0), last))
    integers += segment * entries * 4
    floats += segment * entries * 8
    drawn, _, _, _ = philox(seed_low, seed_high, sample, now, e, _COUNT)
    count = (uniform(drawn) >= _NONE).to(tl.int32) + (uniform(drawn) >= _ONE).to(tl.int32)
    # A row of this block is a candidate, a column an entry.
    j = tl.arange(0, ENTRIES)[None, :]
    there = j < entries
    key = _word(seed_low, seed_high, sample[:, None], now, e[:, None], j, _SHUFFLE)
    coin = _word(seed_low, seed_high, sample[:, None], now, e[:, None], j, _COIN)
    # Entries with one key follow each other, as in a stable sort.
    turn = key.to(tl.int64) * ENTRIES + j
    beyond = tl.full([BLOCK, ENTRIES], 1 << 62, tl.int64)
    turn = tl.where(there, turn, beyond)
    chance = tl.load(floats + 8 * j, mask=there, other=0.0)
    hit = tl.where((uniform(coin) < chance) & there, turn, beyond)
    first = tl.min(turn, axis=1)
    for k in tl.static_range(_K):
        nearest = tl.min(hit, axis=1)
        found = nearest < (1 << 62)
        entry = tl.where(found, nearest, first) % ENTRIES
        used = found & (k < count)
        ints = integers + 4 * entry
        nums = floats + 8 * entry
        _finish(
            i * _K + k, mask, sample, now, seed_low, seed_high, e | (k << 16), own,
            tl.where(used, tl.load(ints, mask=mask, other=-1), -1),
            tl.where(used, tl.load(ints + 2, mask=mask, other=-1), -1),
            tl.where(used, tl.load(ints + 3, mask=mask, other=-1), -1),
            nums, tl.load(nums, mask=mask, other=0.0), tl.load(nums + 2, mask=mask, other=0.0),
            used, pool, H, W, operation, applied, argument, center, partner, probability,
            magnitude,
        )  # fmt: skip
        hit = tl.where(hit == nearest[:, None], beyond, hit)


@lru_cache(maxsize=64)
def _table_drawer(
    K: int, joint: bool, table: bool, own_row: bool, default: bool, on_device: bool
) -> Launcher:
    constants = {
        "K": K, "JOINT": joint, "TABLE": table, "OWN_ROW": own_row, "DEFAULT": default,
        "POINTER_STEP": on_device, "BLOCK": TABLE_BLOCK,
    }  # fmt: skip
    return Launcher(_table_kernel, constants, {"num_warps": 4, "enable_fp_fusion": False})


@lru_cache(maxsize=16)
def _schedule_drawer(own_row: bool, step: bool, epoch: bool, entries: int) -> Launcher:
    constants = {
        "OWN_ROW": own_row, "POINTER_STEP": step, "POINTER_EPOCH": epoch, "ENTRIES": entries,
        "BLOCK": SCHEDULE_BLOCK,
    }  # fmt: skip
    return Launcher(_schedule_kernel, constants, {"num_warps": 4, "enable_fp_fusion": False})


def draw_kernels(
    stream: Stream,
    candidates: int,
    size: tuple[int, int],
    plan: Plan | None,
    partners: Partners,
    epoch: int | Tensor | None,
    default: tuple[int, float, tuple[int, int]] | None,
) -> tuple[list[Any] | None, list[Any] | None]:
    """Draw sub-policies and the default augmentation.

    Args:
        stream: seed, step and samples.
        candidates: E.
        size: height and width of the images.
        plan: what sub-policies are drawn from; None to draw none.
        partners: where second images are drawn from.
        epoch: number of the epoch, for a schedule.
        default: padding, flip chance and output size; None to draw no default augmentation.

    Returns:
        The tensors of `SubPolicies` in their order, and those of `Placement`; None for what was
        not drawn.
    """
    if not isinstance(plan, Schedule):
        return _draw_table(stream, candidates, size, plan, partners, default)
    drawn = _draw_schedule(stream, candidates, size, plan, partners, epoch)
    return drawn, _draw_table(stream, candidates, size, None, partners, default)[1]


def _sub_policies(B: int, E: int, K: int, device: torch.device) -> list[Any]:
    """Allocate the tensors of `SubPolicies`, in their order."""

    def empty(dtype: torch.dtype, *more: int) -> Tensor:
        return torch.empty((B, E, K, *more), dtype=dtype, device=device)

    whole, real = torch.int32, torch.float32
    return [
        empty(whole), empty(torch.bool), empty(real), empty(whole, 2), empty(torch.int64),
        empty(real), empty(real),
    ]  # fmt: skip


def _number(value: int | Tensor, nothing: Tensor) -> tuple[Tensor, int, bool]:
    """Return the tensor and the number that a kernel is given, and whether it reads the tensor."""
    return (value, 0, True) if isinstance(value, Tensor) else (nothing, value, False)


def _draw_table(
    stream: Stream,
    candidates: int,
    size: tuple[int, int],
    table: PolicyTable | None,
    partners: Partners,
    default: tuple[int, float, tuple[int, int]] | None,
) -> tuple[list[Any] | None, list[Any] | None]:
    B, E, device = stream.index.shape[0], candidates, stream.index.device

    def empty(dtype: torch.dtype, *more: int) -> Tensor:
        return torch.empty((B, E, *more), dtype=dtype, device=device)

    K = table.num_operations if table else 0
    drawn = _sub_policies(B, E, K, device) if table else None
    placed = [empty(torch.int32, 2), empty(torch.bool), empty(torch.int32, 2)] if default else None
    work = max(B * E * K, B * E if default else 0)
    if not work:
        return drawn, placed
    nothing = stream.index
    step, now, on_device = _number(stream.step, nothing)
    padding, chance, out = default or (0, 0.0, (1, 1))
    drawer = _table_drawer(
        max(K, 1), bool(table and table.joint), table is not None, partners.own is None,
        default is not None, on_device,
    )  # fmt: skip
    drawer(
        -(-work // TABLE_BLOCK),
        (
            nothing, step, *((table.integers, table.floats) if table else (nothing, nothing)),
            *(drawn or [nothing] * 7), *(placed or [nothing] * 3),
            nothing if partners.own is None else partners.own,
        ),
        (
            now & MASK, stream.seed & MASK, stream.seed >> 32, B, E,
            table.num_rows if table else 1, partners.count, *size, 2 * padding + 1, *out,
            float(chance),
        ),
    )  # fmt: skip
    return drawn, placed


def _draw_schedule(
    stream: Stream,
    candidates: int,
    size: tuple[int, int],
    schedule: Schedule,
    partners: Partners,
    epoch: int | Tensor | None,
) -> list[Any]:
    B, device, nothing = stream.index.shape[0], stream.index.device, stream.index
    when = needed_epoch(epoch, "a schedule")
    drawn = _sub_policies(B, candidates, MOST_OPERATIONS, device)
    if not B * candidates:
        return drawn
    step, now, step_there = _number(stream.step, nothing)
    there = when.to(device, torch.int64) if isinstance(when, Tensor) else when
    epochs, number, epoch_there = _number(there, nothing)
    entries, of_epoch = schedule.integers.shape[1], schedule.segment_of_epoch
    drawer = _schedule_drawer(
        partners.own is None, step_there, epoch_there, triton.next_power_of_2(entries)
    )
    drawer(
        -(-B * candidates // SCHEDULE_BLOCK),
        (
            nothing, step, epochs, of_epoch, schedule.integers, schedule.floats, *drawn,
            nothing if partners.own is None else partners.own,
        ),
        (
            now & MASK, number, stream.seed & MASK, stream.seed >> 32, B, candidates, entries,
            len(of_epoch) - 1, partners.count, *size,
        ),
    )  # fmt: skip
    return drawn
