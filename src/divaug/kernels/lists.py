"""Which candidates of large images need which kernel, sorted out on the device.

A kernel that is launched for everything and leaves at once for most spends its time starting. So
one small kernel writes lists, and a fixed number of programs work through each of them.
"""

from enum import IntEnum

import triton
import triton.language as tl

from divaug.kernels.ids import SHARPNESS
from divaug.kernels.pixels import tabled
from divaug.kernels.statistics import wants

__all__ = ["List", "list_kernel"]


class List(IntEnum):
    """What a list holds: numbers of candidates, or of slots that need a look-up table."""

    ONE = 0  # at most one operation, without a table
    TWO = 1  # two operations without a table
    ONE_TABLED = 2  # one operation, a table
    TWO_TABLED = 3  # two operations, at least one of them a table
    SHARPENED = 4  # two operations of which the second is Sharpness
    TABLES = 5  # slots whose table depends on the original at most
    LATER_TABLES = 6  # slots that need the statistics of what an operation made


_ONE, _TWO = tl.constexpr(int(List.ONE)), tl.constexpr(int(List.TWO))
_ONE_TABLED, _TWO_TABLED = (
    tl.constexpr(int(List.ONE_TABLED)),
    tl.constexpr(int(List.TWO_TABLED)),
)
_SHARPENED = tl.constexpr(int(List.SHARPENED))
_TABLES, _LATER_TABLES = tl.constexpr(int(List.TABLES)), tl.constexpr(int(List.LATER_TABLES))
BLOCK = 256


@triton.jit
def _append(lists, counts, which: tl.constexpr, room, value, wanted):
    """Append the wanted values to a list; their order among programs is left to chance."""
    rank = tl.cumsum(wanted.to(tl.int32), 0) - 1
    start = tl.atomic_add(counts + which, tl.sum(wanted.to(tl.int32), 0))
    tl.store(lists + which * room + start + rank, value, mask=wanted)


@triton.jit(do_not_specialize=["n_candidates", "first", "room"])
def list_kernel(
    lists, counts, operation, applied, n_candidates, room, first,
    K: tl.constexpr, SLOTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Append every candidate, and every slot that needs a table, to its list."""
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    known = n < n_candidates
    at = n.to(tl.int64) * K + first
    coin1 = tl.load(applied + at, mask=known, other=0) != 0
    op1 = tl.where(coin1, tl.load(operation + at, mask=known, other=-1), -1)
    op2 = n * 0 - 1
    if SLOTS == 2:
        coin2 = tl.load(applied + at + 1, mask=known, other=0) != 0
        op2 = tl.where(coin2, tl.load(operation + at + 1, mask=known, other=-1), -1)
    both = (op1 >= 0) & (op2 >= 0)
    sharp = both & (op2 == SHARPNESS)
    plain = (tabled(op1) | tabled(op2)) == 0
    late = (op1 >= 0) & wants(op2)
    pair = both & (sharp == 0)
    _append(lists, counts, _ONE, room, n, known & (both == 0) & plain)
    _append(lists, counts, _ONE_TABLED, room, n, (both == 0) & (plain == 0))
    _append(lists, counts, _TABLES, room, n * SLOTS, tabled(op1))
    if SLOTS == 2:
        _append(lists, counts, _TWO, room, n, pair & plain)
        _append(lists, counts, _TWO_TABLED, room, n, pair & (plain == 0))
        _append(lists, counts, _SHARPENED, room, n, sharp)
        _append(lists, counts, _TABLES, room, n * SLOTS + 1, tabled(op2) & (late == 0))
        _append(lists, counts, _LATER_TABLES, room, n * SLOTS + 1, late)
