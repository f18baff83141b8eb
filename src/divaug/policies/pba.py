"""Population Based Augmentation: a schedule of policies, one for each stretch of epochs."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import torch

from divaug._checks import check_whole
from divaug.operations.magnitude import read_data
from divaug.policies.base import Policy, check_name
from divaug.policies.levels import CIFAR_LEVELS
from divaug.policies.table import MOST_OPERATIONS, Entry, Plan, Schedule, compile_table

__all__ = ["PBA"]


@dataclass(frozen=True)
class PBA(Policy):
    """The published schedules: 30 entries (two copies of 15 operations) that change with the epoch.

    For each image a number of operations is drawn (0, 1 or 2), the entries are shuffled, and each
    is applied with its own probability until that number is reached. Epochs count from 0; those
    beyond the end of the schedule keep its last segment.

    Args:
        dataset: "cifar10" (200 epochs) or "svhn" (160 epochs).
        total_epochs: length of the training that the schedule is stretched to; None for its own.
            As its authors do it, each segment's share is rounded down and the last segment gets
            the rest, which in short trainings is much of them.
    """

    needs_epoch: ClassVar[bool] = True
    dataset: str = "cifar10"
    total_epochs: int | None = None

    def __post_init__(self) -> None:
        schedules = tuple(read_data("pba.json")["schedules"])
        check_name("dataset of PBA:", self.dataset, schedules)
        if self.total_epochs is not None:
            epochs = check_whole("total_epochs", self.total_epochs, 1)
            object.__setattr__(self, "total_epochs", epochs)

    @property
    def num_operations(self) -> int:
        """At most 2."""
        return MOST_OPERATIONS

    def segment_of_epoch(self) -> list[int]:
        """Return the segment of every epoch of the (stretched) schedule."""
        schedule = read_data("pba.json")["schedules"][self.dataset]
        total = self.total_epochs or schedule["total_epochs"]
        segments = schedule["segments"]
        lengths = [int(s["epochs"] * total / schedule["total_epochs"]) for s in segments]
        stretched = [i for i, length in enumerate(lengths) for _ in range(length)]
        return stretched + [len(segments) - 1] * (total - len(stretched))

    def segments(self) -> list[list[Entry]]:
        """Return the 30 entries of every segment."""

        def entry(operation: str, p: float, level: int) -> Entry:
            return Entry(operation, CIFAR_LEVELS[operation](level), (p, p), (level / 10,) * 2)

        data: list[dict[str, Any]] = read_data("pba.json")["schedules"][self.dataset]["segments"]
        return [[entry(*one) for one in s["copy_1"] + s["copy_2"]] for s in data]

    def plan(self, height: int, width: int, device: torch.device) -> Plan | None:
        """Return the schedule."""
        return _compiled(self, height, width, device)


@lru_cache(maxsize=32)
def _compiled(policy: PBA, height: int, width: int, device: torch.device) -> Schedule:
    table = compile_table(policy.segments(), True, height, width, device)
    of_epoch = torch.tensor(policy.segment_of_epoch(), device=device)
    return Schedule(table.operations, table.integers, table.floats, of_epoch)
