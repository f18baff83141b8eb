"""Drawing from a schedule in one kernel; twin of `policies.PBA.draw`."""

from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from divaug._random import MASK, Purpose, Stream
from divaug.kernels.finishing import finish, sub_policies
from divaug.kernels.launching import Launcher
from divaug.kernels.philox import philox, uniform
from divaug.policies.schedule import AT_MOST, MOST_OPERATIONS, Schedule, needed_epoch
from divaug.policies.table import Partners

__all__ = ["draw_schedule"]

_COUNT = tl.constexpr(int(Purpose.COUNT))
_SHUFFLE = tl.constexpr(int(Purpose.SHUFFLE))
_COIN = tl.constexpr(int(Purpose.COIN))
_NONE = tl.constexpr(AT_MOST[0])
_ONE = tl.constexpr(AT_MOST[1])
_K = tl.constexpr(MOST_OPERATIONS)
BLOCK = 16


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
def _kernel(
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
        finish(
            i * _K + k, mask, sample, now, seed_low, seed_high, e | (k << 16), own,
            tl.where(used, tl.load(ints, mask=mask, other=-1), -1),
            tl.where(used, tl.load(ints + 2, mask=mask, other=-1), -1),
            tl.where(used, tl.load(ints + 3, mask=mask, other=-1), -1),
            nums, tl.load(nums, mask=mask, other=0.0), tl.load(nums + 2, mask=mask, other=0.0),
            used, pool, H, W, operation, applied, argument, center, partner, probability,
            magnitude,
        )  # fmt: skip
        hit = tl.where(hit == nearest[:, None], beyond, hit)


@lru_cache(maxsize=16)
def _drawer(own_row: bool, step: bool, epoch: bool, entries: int) -> Launcher:
    constants = {
        "OWN_ROW": own_row, "POINTER_STEP": step, "POINTER_EPOCH": epoch, "ENTRIES": entries,
        "BLOCK": BLOCK,
    }  # fmt: skip
    return Launcher(_kernel, constants, {"num_warps": 4, "enable_fp_fusion": False})


def draw_schedule(
    stream: Stream,
    candidates: int,
    size: tuple[int, int],
    schedule: Schedule,
    partners: Partners,
    epoch: int | Tensor | None,
) -> list[Tensor]:
    """Draw sub-policies from the entries of an epoch.

    Args:
        stream: seed, step and samples.
        candidates: E.
        size: height and width of the images.
        schedule: the entries, and which of them an epoch has.
        partners: where second images are drawn from.
        epoch: which one, and there must be one; beyond the schedule it is the last.

    Returns:
        The tensors of `SubPolicies` in their order, `[B,E,2]`.
    """
    B, device = stream.index.shape[0], stream.index.device
    when = needed_epoch(epoch, "PBA")
    integers, floats, segment_of_epoch = schedule
    drawn = sub_policies(B, candidates, MOST_OPERATIONS, device)
    if not B * candidates:
        return drawn
    nothing, entries = stream.index, integers.shape[1]
    at = (stream.step, when.to(device, torch.int64) if isinstance(when, Tensor) else when)
    tensors = [one if isinstance(one, Tensor) else nothing for one in at]
    numbers = [0 if isinstance(one, Tensor) else one for one in at]
    drawer = _drawer(
        partners.own is None, *(isinstance(one, Tensor) for one in at),
        triton.next_power_of_2(entries),
    )  # fmt: skip
    drawer(
        -(-B * candidates // BLOCK),
        (
            stream.index, *tensors, segment_of_epoch, integers, floats, *drawn,
            nothing if partners.own is None else partners.own,
        ),
        (
            numbers[0] & MASK, numbers[1], stream.seed & MASK, stream.seed >> 32, B, candidates,
            entries, len(segment_of_epoch) - 1, partners.count, *size,
        ),
    )  # fmt: skip
    return drawn
