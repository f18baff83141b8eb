"""Lists of the candidates of large images that each kernel works on, made on the device.

A kernel that is launched for everything and leaves at once for most spends its time starting. So
one small kernel writes lists, and a fixed number of programs work through each of them.
"""

from enum import IntEnum

import triton
import triton.language as tl

from divaug.kernels.geometry import SHARPNESS
from divaug.kernels.pixels import tabled

__all__ = ["List", "list_kernel"]


class List(IntEnum):
    """The lists: indices of candidates, or of slots that need a look-up table."""

    ONE = 0  # at most one operation, without a table
    TWO = 1  # two operations without a table
    ONE_TABLED = 2  # one operation, a table
    TWO_TABLED = 3  # two operations, at least one of them a table
    SHARPENED = 4  # two operations of which the second is Sharpness
    TABLES = 5  # slots that need the statistics of the original
    LATER_TABLES = 6  # slots that need the statistics of what an operation made


_ONE, _TWO = tl.constexpr(int(List.ONE)), tl.constexpr(int(List.TWO))
_ONE_TABLED, _TWO_TABLED = (
    tl.constexpr(int(List.ONE_TABLED)),
    tl.constexpr(int(List.TWO_TABLED)),
)
_SHARPENED = tl.constexpr(int(List.SHARPENED))
_TABLES, _LATER_TABLES = tl.constexpr(int(List.TABLES)), tl.constexpr(int(List.LATER_TABLES))
BLOCK = 256


@triton.jit(do_not_specialize=["n_candidates", "first", "room"])
def list_kernel(
    lists, counts, operation, applied, n_candidates, room, first,
    K: tl.constexpr, SLOTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Append every candidate, and every slot that needs a table, to its list.

    All lists at once, a column each: the programs meet at one atomic addition. The order of what
    several programs append is left to chance.
    """
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
    any_table = tabled(op1) | tabled(op2)
    mine = tl.where(both, tl.where(any_table, _TWO_TABLED, _TWO),
                    tl.where(any_table, _ONE_TABLED, _ONE))  # fmt: skip
    mine = tl.where(both & (op2 == SHARPNESS), _SHARPENED, mine)
    late = (op1 >= 0) & tabled(op2)
    early = tabled(op1) | (tabled(op2) & (op1 < 0))
    early_slot = tl.where(tabled(op1), n * SLOTS, n * SLOTS + 1)
    which = tl.arange(0, 8)[None, :]
    member = (which == mine[:, None]) & known[:, None]
    member = member | ((which == _TABLES) & early[:, None])
    member = member | ((which == _LATER_TABLES) & late[:, None])
    value = tl.where(which == _TABLES, early_slot[:, None], n[:, None])
    value = tl.where(which == _LATER_TABLES, (n * SLOTS + 1)[:, None], value)
    one = member.to(tl.int32)
    start = tl.atomic_add(counts + tl.arange(0, 8), tl.sum(one, 0))
    place = which * room + start[None, :] + tl.cumsum(one, 0) - 1
    tl.store(lists + place, value, mask=member)
