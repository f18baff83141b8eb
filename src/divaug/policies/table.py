"""A policy as a table, and the one function that draws sub-policies from any such table."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from divaug._names import unknown_name
from divaug._random import Purpose, Stream, below, uniform
from divaug._subpolicies import SubPolicies
from divaug.operations.magnitude import Range, Rounding
from divaug.operations.table import TABLE, Operation
from divaug.policies.checks import check_fits

__all__ = [
    "IDENTITY",
    "ChosenOperations",
    "Entry",
    "Partners",
    "PolicyTable",
    "arguments_of",
    "choose",
    "compile_table",
    "draw",
    "finish",
]

#: The id of "no operation", as in RandAugment's list.
IDENTITY = -1


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
        """R, how many rows may be drawn."""
        return len(self.integers)

    @property
    def num_operations(self) -> int:
        """K, how many operations a sub-policy has."""
        return self.integers.shape[1]

    def to(self, device: torch.device) -> "PolicyTable":
        """The table on another device."""
        return PolicyTable(
            self.joint, self.operations, self.integers.to(device), self.floats.to(device)
        )


def compile_table(
    rows: Sequence[Sequence[Entry]],
    *,
    joint: bool,
    height: int,
    width: int,
    extra: Sequence[Operation] = (),
) -> PolicyTable:
    """Turn entries into tensors for images of that size; `extra` adds operations.

    Raises:
        ValueError: an entry whose arguments its operation does not accept.
    """
    operations = (*TABLE.values(), *extra)
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

    return PolicyTable(
        joint,
        operations,
        torch.tensor(
            [[integers(entry) for entry in row] for row in rows], dtype=torch.int32, device="cpu"
        ),
        torch.tensor(
            [[floats(entry) for entry in row] for row in rows], dtype=torch.float32, device="cpu"
        ),
    )


def _check_entries(
    rows: Sequence[Sequence[Entry]], operations: Sequence[Operation], height: int, width: int
) -> None:
    """Refuse entries of no known operation, and with arguments that it does not accept."""
    known = {operation.name: operation for operation in operations}
    for entry in dict.fromkeys(entry for row in rows for entry in row):
        if entry.operation is None:
            continue
        if entry.operation not in known:
            raise ValueError(unknown_name("operation", entry.operation, tuple(known)))
        check_fits(known[entry.operation], entry.range, height, width, entry.magnitude)


def arguments_of(magnitude: Tensor, sign: Tensor, integers: Tensor, floats: Tensor) -> Tensor:
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


@dataclass(frozen=True, eq=False)
class Partners:
    """Where second images are drawn from.

    Args:
        count: number of images in the pool.
        own: int64 `[B]`, the row of each sample itself, which is not drawn; of a sample that is
            not in the pool any other number. None where the pool is the batch and sample b its
            row b.
    """

    count: int
    own: Tensor | None = None


@dataclass(frozen=True, eq=False)
class ChosenOperations:
    """Operations already chosen, `[B,E,K]`, whose sign, place and partner are still to be drawn."""

    applied: Tensor
    probability: Tensor
    magnitude: Tensor
    integers: Tensor
    floats: Tensor


def draw(
    table: PolicyTable,
    stream: Stream,
    candidates: int,
    size: tuple[int, int],
    partners: Partners,
) -> SubPolicies:
    """Draw `candidates` sub-policies for every sample of the stream.

    Args:
        table: what may be drawn, on the device of the stream.
        stream: seed, step and samples.
        candidates: E, how many are drawn for each sample.
        size: height and width of the images, for the places.
        partners: where second images come from.
    """
    chosen = choose(table, stream, candidates)
    return finish(chosen, stream, size, partners, table.operations)


def choose(table: PolicyTable, stream: Stream, candidates: int) -> ChosenOperations:
    """Draw operations with their coins and magnitudes for every sample of the stream: `[B,E,K]`."""
    row_word, p_word, coin, m_word = stream.words(
        Purpose.OPERATION, candidates, table.num_operations
    )
    row = below(row_word, table.num_rows)
    if table.joint:
        row = row[..., :1].expand_as(row)
    slot = torch.arange(table.num_operations, device=row.device)
    integers, floats = table.integers[row, slot], table.floats[row, slot]
    probability = floats[..., 0] + floats[..., 1] * uniform(p_word)
    return ChosenOperations(
        applied=(uniform(coin) < probability) & (integers[..., 0] >= 0),
        probability=probability,
        magnitude=floats[..., 2] + floats[..., 3] * _fraction(m_word, integers[..., 1]),
        integers=integers,
        floats=floats,
    )


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


def finish(
    chosen: ChosenOperations,
    stream: Stream,
    size: tuple[int, int],
    partners: Partners,
    operations: tuple[Operation, ...],
) -> SubPolicies:
    """Draw sign, place and partner for operations already chosen."""
    _, candidates, slots = chosen.applied.shape
    sign_word, y, x, partner_word = stream.words(Purpose.PLACE, candidates, slots)
    sign = 1.0 - 2.0 * (sign_word >= 1 << 31).to(torch.float32)
    partner = _another(partner_word, partners)
    return SubPolicies(
        operation=chosen.integers[..., 0].contiguous(),
        applied=chosen.applied,
        argument=arguments_of(chosen.magnitude, sign, chosen.integers, chosen.floats),
        center=torch.stack([below(y, size[0]), below(x, size[1])], -1).to(torch.int32),
        partner=partner,
        probability=chosen.probability,
        magnitude=chosen.magnitude,
        operations=operations,
    )
