"""Policies as tensors, and the drawing of sub-policies from these tensors in batched PyTorch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from divaug._checks import check_whole, holds_integers
from divaug._names import unknown_name
from divaug._random import Purpose, Stream, Words, below, uniform
from divaug._subpolicies import SubPolicies
from divaug.operations.magnitude import Range, Rounding
from divaug.operations.table import FURTHER, TABLE, Operation

__all__ = [
    "AT_MOST",
    "MOST_OPERATIONS",
    "ChosenOperations",
    "Entry",
    "Partners",
    "Plan",
    "PolicyTable",
    "Schedule",
    "check_epoch",
    "check_fits",
    "compile_table",
    "needed_epoch",
]

#: The id of "no operation", as in RandAugment's list.
IDENTITY = -1
#: Chances that at most 0 and at most 1 operations of a schedule are applied; otherwise at most 2.
AT_MOST = (0.2, 0.5)
MOST_OPERATIONS = 2
#: The largest number that an int64 holds.
_LAST_EPOCH = 2**63 - 1


@dataclass(frozen=True)
class Entry:
    """One operation of one row: what may be drawn.

    Args:
        operation: its name, or None for the identity.
        range: from magnitude to argument.
        probability: lowest and highest probability of being applied; drawn uniformly between.
        magnitude: lowest and highest magnitude; drawn uniformly between.
        levels: draw the magnitude from that many evenly spaced values; 0 for any value.
    """

    operation: str | None
    range: Range
    probability: tuple[float, float] = (0.0, 1.0)
    magnitude: tuple[float, float] = (0.0, 1.0)
    levels: int = 0

    def __post_init__(self) -> None:
        for name in ("probability", "magnitude"):  # equal entries are looked up
            ends = tuple(getattr(self, name))
            if len(ends) != 2:
                raise ValueError(f"`{name}` of an entry must be (lowest, highest), got {ends!r}.")
            object.__setattr__(self, name, ends)
        if not 0 <= self.probability[0] <= self.probability[1] <= 1:
            raise ValueError(
                f"`probability` of an entry must lie in [0, 1], the lower end first, got "
                f"{self.probability!r}."
            )


@dataclass(frozen=True, eq=False)
class Partners:
    """The images that second images are drawn from.

    Args:
        count: number of images in the pool.
        own: int64 `[B]`, the row of each sample itself, which is not drawn; of a sample that is
            not in the pool any other number. None where the pool is the batch and sample b its
            row b.
    """

    count: int
    own: Tensor | None = None


@dataclass(frozen=True, eq=False)
class PolicyTable:
    """Rows of K entries as tensors, for one size of image.

    Args:
        joint: whether one row is drawn for all K operations (a list of sub-policies) or one for
            each (a list of operations).
        operations: the table that the ids point into.
        integers: int32 `[R,K,4]`: operation, levels, signed, rounding.
        floats: float32 `[R,K,8]`: lowest probability, its span, lowest magnitude, its span, base,
            offset, slope, minimum.
    """

    joint: bool
    operations: tuple[Operation, ...]
    integers: Tensor
    floats: Tensor

    @property
    def num_rows(self) -> int:
        """R, the number of rows."""
        return len(self.integers)

    @property
    def num_operations(self) -> int:
        """K, the number of operations of a sub-policy."""
        return self.integers.shape[1]

    def draw(
        self,
        stream: Stream,
        candidates: int,
        size: tuple[int, int],
        partners: Partners,
        epoch: int | Tensor | None = None,  # noqa: ARG002 (a table does not change with the epoch)
    ) -> SubPolicies:
        """Draw `candidates` sub-policies for every sample of the stream: `[B,E,K]`."""
        return self.choose(stream, candidates).finish(stream, size, partners, self.operations)

    def choose(self, stream: Stream, candidates: int) -> "ChosenOperations":
        """Draw operations with their coins and magnitudes for every sample: `[B,E,K]`."""
        row_word, p_word, coin, m_word = stream.words(
            Purpose.OPERATION, candidates, self.num_operations
        )
        row = below(row_word, self.num_rows)
        if self.joint:
            row = row[..., :1].expand_as(row)
        slot = torch.arange(self.num_operations, device=row.device)
        integers, floats = self.integers[row, slot], self.floats[row, slot]
        probability = floats[..., 0] + floats[..., 1] * uniform(p_word)
        return ChosenOperations(
            applied=(uniform(coin) < probability) & (integers[..., 0] >= 0),
            probability=probability,
            magnitude=floats[..., 2] + floats[..., 3] * _fraction(m_word, integers[..., 1]),
            integers=integers,
            floats=floats,
        )


@dataclass(frozen=True, eq=False)
class Schedule:
    """Entries that change with the epoch, as tensors, for one size of image.

    For each candidate a number of operations is drawn (0, 1 or 2), the entries of the epoch are
    shuffled, and each is applied with its own probability until that number is reached.

    Args:
        operations: the table that the ids point into.
        integers: int32 `[segments,entries,4]`; see `PolicyTable`.
        floats: float32 `[segments,entries,8]`; see `PolicyTable`.
        segment_of_epoch: int64 `[epochs]`; later epochs have the last segment.
    """

    operations: tuple[Operation, ...]
    integers: Tensor
    floats: Tensor
    segment_of_epoch: Tensor

    def draw(
        self,
        stream: Stream,
        candidates: int,
        size: tuple[int, int],
        partners: Partners,
        epoch: int | Tensor | None = None,
    ) -> SubPolicies:
        """Draw `candidates` sub-policies for every sample at that epoch: `[B,E,2]`."""
        device, last = stream.index.device, len(self.segment_of_epoch) - 1
        when = torch.as_tensor(needed_epoch(epoch, "a schedule"), device=device).clamp(0, last)
        # Indexing with a tensor of no axes would synchronise.
        segment = self.segment_of_epoch.index_select(0, when.view(1))
        integers, floats = (x.index_select(0, segment)[0] for x in (self.integers, self.floats))
        entry, used = _walk(stream, candidates, floats[:, 0])
        drawn = floats[entry]
        chosen = ChosenOperations(
            applied=used,
            probability=drawn[..., 0],
            magnitude=drawn[..., 2],
            integers=torch.where(used[..., None], integers[entry], -1),
            floats=drawn,
        )
        return chosen.finish(stream, size, partners, self.operations)


#: Tensors that sub-policies are drawn from, in batched PyTorch or in a kernel.
Plan: TypeAlias = PolicyTable | Schedule


@dataclass(frozen=True, eq=False)
class ChosenOperations:
    """Operations already chosen, `[B,E,K]`, whose sign, place and partner are still to be drawn."""

    applied: Tensor
    probability: Tensor
    magnitude: Tensor
    integers: Tensor
    floats: Tensor

    def finish(
        self,
        stream: Stream,
        size: tuple[int, int],
        partners: Partners,
        operations: tuple[Operation, ...],
    ) -> SubPolicies:
        """Draw sign, place and partner."""
        _, candidates, slots = self.applied.shape
        sign_word, y, x, partner_word = stream.words(Purpose.PLACE, candidates, slots)
        sign = 1.0 - 2.0 * (sign_word >= 1 << 31).to(torch.float32)
        partner = _another(partner_word, partners)
        return SubPolicies(
            operation=self.integers[..., 0].contiguous(),
            applied=self.applied,
            argument=_arguments_of(self.magnitude, sign, self.integers, self.floats),
            center=torch.stack([below(y, size[0]), below(x, size[1])], -1).to(torch.int32),
            partner=partner,
            probability=self.probability,
            magnitude=self.magnitude,
            operations=operations,
        )


def _arguments_of(magnitude: Tensor, sign: Tensor, integers: Tensor, floats: Tensor) -> Tensor:
    """Compute base + sign·(offset + slope·m), rounded, at least the minimum; float32.

    One operation a line: each is rounded by itself, here as in the kernels.
    """
    strength = floats[..., 6] * magnitude
    strength = floats[..., 5] + strength
    value = floats[..., 4] + strength * torch.where(integers[..., 2] == 1, sign, 1.0)
    rounding = integers[..., 3]
    value = torch.where(rounding == int(Rounding.DOWN), value.floor(), value)
    value = torch.where(rounding == int(Rounding.HALF_DOWN), (value - 0.5).ceil(), value)
    value = torch.where(rounding == int(Rounding.TOWARDS_ZERO), value.trunc(), value)
    return torch.maximum(value, floats[..., 7])


def _fraction(word: Tensor, levels: Tensor) -> Tensor:
    step = below(word, levels.to(torch.int64)).to(torch.float32)
    return torch.where(levels > 0, step / (levels - 1).clamp(min=1), uniform(word))


def _another(word: Tensor, partners: Partners) -> Tensor:
    """Any image of the pool but the sample's own, where it has one there."""
    own = partners.own
    if own is None:
        own = torch.arange(len(word), device=word.device)
    own = own[:, None, None]
    # Draw among the others and skip over it; a pool of one leaves only itself.
    inside = (own >= 0) & (own < partners.count) & (partners.count > 1)
    partner = below(word, partners.count - inside.to(torch.int64))
    return partner + (inside & (partner >= own)).to(torch.int64)


def _walk(stream: Stream, candidates: int, p: Tensor) -> tuple[Tensor, Tensor]:
    """Return the entries applied first in a random order, `[B,E,2]`, and which of them are used."""
    drawn = uniform(stream.words(Purpose.COUNT, candidates, 1)[0])
    count = sum((drawn >= chance).to(torch.int64) for chance in AT_MOST)
    keys = _per_entry(stream.words(Purpose.SHUFFLE, candidates, 8), len(p))
    order = keys.argsort(stable=True, dim=-1)
    coins = uniform(_per_entry(stream.words(Purpose.COIN, candidates, 8), len(p)))
    applied = (coins < p).gather(-1, order)
    rank = applied.cumsum(-1) * applied  # 1 for the first applied entry, 2 for the second
    slot = torch.arange(1, MOST_OPERATIONS + 1, device=p.device)
    hit = rank[..., None, :] == slot[:, None]
    entry = order.gather(-1, hit.to(torch.int64).argmax(-1))
    return entry, hit.any(-1) & (slot <= count)


def _per_entry(words: Words, entries: int) -> Tensor:
    return torch.stack(words, -1).flatten(-2)[..., :entries]


def compile_table(
    rows: Sequence[Sequence[Entry]],
    joint: bool,
    height: int,
    width: int,
    device: torch.device,
    extra: Sequence[Operation] = (),
) -> PolicyTable:
    """Turn entries into tensors for images of that size; `extra` holds operations of your own."""
    named = {entry.operation for row in rows for entry in row}
    further = (this for name, this in FURTHER.items() if name in named)
    operations = (*TABLE.values(), *further, *extra)
    position = {operation.name: i for i, operation in enumerate(operations)}
    _check_entries(rows, operations, height, width)

    def integers(entry: Entry) -> list[int]:
        i = IDENTITY if entry.operation is None else position[entry.operation]
        return [i, entry.levels, int(entry.range.signed), int(entry.range.rounding)]

    def floats(entry: Entry) -> list[float]:
        (p0, p1), (m0, m1), this = entry.probability, entry.magnitude, entry.range
        side = this.side.pixels(height, width)
        strength = [this.base, this.offset * side, this.slope * side, this.minimum]
        return [p0, p1 - p0, m0, m1 - m0, *strength]

    whole = [[integers(entry) for entry in row] for row in rows]
    real = [[floats(entry) for entry in row] for row in rows]
    return PolicyTable(
        joint,
        operations,
        torch.tensor(whole, dtype=torch.int32, device=device),
        torch.tensor(real, dtype=torch.float32, device=device),
    )


def _check_entries(
    rows: Sequence[Sequence[Entry]], operations: Sequence[Operation], height: int, width: int
) -> None:
    """Refuse entries of unknown operations or with arguments beyond their ranges."""
    known = {operation.name: operation for operation in operations}
    for entry in dict.fromkeys(entry for row in rows for entry in row):
        if entry.operation is None:
            continue
        if entry.operation not in known:
            raise ValueError(unknown_name("operation", entry.operation, tuple(known)))
        check_fits(known[entry.operation], entry.range, height, width, entry.magnitude)


def check_fits(
    operation: Operation,
    entry: Range,
    height: int,
    width: int,
    magnitudes: tuple[float, float] = (0.0, 1.0),
) -> None:
    """Refuse a range with arguments that the operation does not accept, on images of that size."""
    if not operation.needs_argument:
        return
    ends: Sequence[float] = [
        entry.value(m, sign, height, width) for m in magnitudes for sign in (-1, 1)
    ]
    if not (min(ends) >= operation.low and max(ends) <= operation.high):
        raise ValueError(
            f"the range of {operation.name} must stay in [{operation.low:g}, {operation.high:g}] "
            f"{operation.unit}, got {min(ends):g} to {max(ends):g}; narrow the range, or widen "
            "`low` and `high` of the operation."
        )
    rounds = entry.rounding or not entry.slope  # without a slope, only the ends are given
    if operation.whole and (not rounds or any(end % 1 for end in ends)):
        raise ValueError(
            f"the range of {operation.name} must give integers, got {min(ends):g} to "
            f"{max(ends):g}; give it rounding=Rounding.DOWN and an integer `minimum`."
        )


def check_epoch(epoch: object) -> int | Tensor:
    """Return an epoch after checking it."""
    if not isinstance(epoch, Tensor):
        return check_whole("epoch", epoch, 0, _LAST_EPOCH)
    # The value of a tensor may be on a device: reading it would wait.
    if epoch.numel() != 1 or not holds_integers(epoch):
        raise ValueError(
            "`epoch` must be an int or an integer tensor of one element, got a tensor of "
            f"shape {tuple(epoch.shape)} and {epoch.dtype}."
        )
    return epoch.to(torch.int64)


def needed_epoch(epoch: int | Tensor | None, policy: str) -> int | Tensor:
    """Return the epoch, which a policy of that name needs."""
    if epoch is None:
        raise ValueError(f"{policy} is a schedule: pass `epoch`, the number of the current epoch.")
    return check_epoch(epoch)
