"""RandAugment as the authors' semi-supervised code has it: one level for all operations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from divaug._checks import check_number, check_whole, read_data
from divaug._random import Stream
from divaug._subpolicies import SubPolicies
from divaug.operations.magnitude import read_ranges
from divaug.policies.table import Entry, Partners, choose, finish
from divaug.policies.tabular import TablePolicy

__all__ = ["SharedLevel"]


@dataclass(frozen=True)
class SharedLevel(TablePolicy):
    """n of the 20 operations of `uda` with replacement, each with one chance, all at one level.

    The level is drawn anew for every candidate, uniformly from the low to the high end of a range;
    where a range is symmetric about the identity, its middle changes nothing.

    Args:
        n: operations of a sub-policy, 2 in the authors' code.
        probability: chance of each to be applied.
    """

    n: int = 2
    probability: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_whole("n", self.n, 1, 16))
        p = check_number("`probability`", self.probability, 0, 1)
        object.__setattr__(self, "probability", p)

    def rows(self) -> Sequence[Sequence[Entry]]:
        """One row an operation."""
        # A level leads from the low to the high end of a range; the space `uda` has the same
        # values, sorted by their strength. With one level for two operations that is another draw.
        ranges = read_ranges(read_data("shared_level.json")["ranges"])
        p = (self.probability, self.probability)
        return [[Entry(name, entry, p)] * self.n for name, entry in ranges.items()]

    def draw(
        self,
        stream: Stream,
        candidates: int,
        size: tuple[int, int],
        partners: Partners,
        epoch: int | Tensor | None = None,  # noqa: ARG002 (a table does not change with the epoch)
    ) -> SubPolicies:
        """Draw `candidates` sub-policies for every sample of the stream: `[B,E,n]`."""
        table = self.table(*size, stream.index.device)
        chosen = choose(table, stream, candidates)
        level = chosen.magnitude[..., :1].expand_as(chosen.magnitude).contiguous()
        shared = replace(chosen, magnitude=level)
        return finish(shared, stream, size, partners, table.operations)
