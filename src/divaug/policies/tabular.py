"""A policy that is a table: what its rows say is compiled to tensors, and drawn from these."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor

from divaug.operations.table import FURTHER, Operation
from divaug.policies.base import Policy, comes_along, frozen
from divaug.policies.table import Entry, Partners, PolicyTable, compile_table, draw
from divaug.randomness import Stream
from divaug.subpolicies import SubPolicies

__all__ = ["TablePolicy"]


@dataclass(frozen=True)
class TablePolicy(Policy):
    """A policy that is a table of entries: rows drawn uniformly, jointly or one per operation."""

    joint: ClassVar[bool] = False

    @abstractmethod
    def rows(self) -> Sequence[Sequence[Entry]]:
        """R rows of K entries; a policy of your own is asked at every call."""

    def extra_operations(self) -> tuple[Operation, ...]:
        """Operations beyond the sixteen that the rows name."""
        named = {entry.operation for row in self.rows() for entry in row}
        return tuple(this for name, this in FURTHER.items() if name in named)

    @property
    def num_operations(self) -> int:
        """K, the number of operations of a sub-policy."""
        return len(self.rows()[0])

    def table(self, height: int, width: int, device: torch.device) -> PolicyTable:
        """The entries as tensors for images of that size; made once for each device and rows."""
        # Of others, equal ones need not draw alike, nor one that is changed as it did before.
        made = _known_table if comes_along(type(self)) else _table_of
        return made(self, height, width, device)

    def draw(
        self,
        stream: Stream,
        candidates: int,
        size: tuple[int, int],
        partners: Partners,
        epoch: int | Tensor | None = None,  # noqa: ARG002 (a table does not change with the epoch)
    ) -> SubPolicies:
        """Draw `candidates` sub-policies for every sample of the stream: `[B,E,K]`."""
        return draw(self.table(*size, stream.index.device), stream, candidates, size, partners)


@lru_cache(maxsize=128)
def _known_table(policy: TablePolicy, height: int, width: int, device: torch.device) -> PolicyTable:
    """That of a policy that comes along, found without a look at its rows."""
    return _table_of(policy, height, width, device)


def _table_of(policy: TablePolicy, height: int, width: int, device: torch.device) -> PolicyTable:
    rows, extra = frozen(policy.rows()), tuple(policy.extra_operations())
    return _table(rows, policy.joint, extra, height, width, device)


@lru_cache(maxsize=128)
def _table(
    rows: tuple[tuple[Entry, ...], ...],
    joint: bool,
    extra: tuple[Operation, ...],
    height: int,
    width: int,
    device: torch.device,
) -> PolicyTable:
    """The same tensors for the same rows: to copy them to a GPU makes the host wait."""
    return compile_table(rows, joint=joint, height=height, width=width, extra=extra).to(device)
