"""Population Based Augmentation: a schedule of policies, one for each stretch of epochs."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from divaug._checks import check_whole, read_data
from divaug._random import Purpose, Stream, Words, uniform
from divaug._subpolicies import SubPolicies
from divaug.operations.table import TABLE
from divaug.policies.base import Policy
from divaug.policies.checks import check_name
from divaug.policies.levels import CIFAR_LEVELS
from divaug.policies.schedule import AT_MOST, MOST_OPERATIONS, Schedule, needed_epoch
from divaug.policies.table import ChosenOperations, Entry, Partners, compile_table, finish

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
        """The segment of every epoch of the (stretched) schedule."""
        schedule = read_data("pba.json")["schedules"][self.dataset]
        total = self.total_epochs or schedule["total_epochs"]
        segments = schedule["segments"]
        lengths = [int(s["epochs"] * total / schedule["total_epochs"]) for s in segments]
        stretched = [i for i, length in enumerate(lengths) for _ in range(length)]
        return stretched + [len(segments) - 1] * (total - len(stretched))

    def segments(self) -> list[list[Entry]]:
        """The 30 entries of every segment."""

        def entry(operation: str, p: float, level: int) -> Entry:
            return Entry(operation, CIFAR_LEVELS[operation](level), (p, p), (level / 10,) * 2)

        data: list[dict[str, Any]] = read_data("pba.json")["schedules"][self.dataset]["segments"]
        return [[entry(*one) for one in s["copy_1"] + s["copy_2"]] for s in data]

    def schedule(self, height: int, width: int, device: torch.device) -> Schedule:
        """The schedule for images of that size, on a device; made once."""
        return _compiled(self, height, width, device)

    def draw(
        self,
        stream: Stream,
        candidates: int,
        size: tuple[int, int],
        partners: Partners,
        epoch: int | Tensor | None = None,
    ) -> SubPolicies:
        """Draw `candidates` sub-policies for every sample at that epoch: `[B,E,2]`."""
        when = needed_epoch(epoch, "PBA")
        *tables, segment_of_epoch = self.schedule(*size, stream.index.device)
        last = len(segment_of_epoch) - 1
        when = torch.as_tensor(when, device=stream.index.device).clamp(0, last)
        # Indexing with a tensor of no axes would make the host wait for its value.
        segment = segment_of_epoch.index_select(0, when.view(1))
        all_integers, all_floats = (part.index_select(0, segment)[0] for part in tables)
        entry, used = self._walk(stream, candidates, all_floats[:, 0])
        integers, floats = all_integers[entry], all_floats[entry]
        chosen = ChosenOperations(
            applied=used,
            probability=floats[..., 0],
            magnitude=floats[..., 2],
            integers=torch.where(used[..., None], integers, -1),
            floats=floats,
        )
        return finish(chosen, stream, size, partners, tuple(TABLE.values()))

    def _walk(self, stream: Stream, candidates: int, p: Tensor) -> tuple[Tensor, Tensor]:
        """The entries applied first in a random order, `[B,E,2]`, and whether there are so many."""
        count_word = stream.words(Purpose.COUNT, candidates, 1)[0]
        drawn = uniform(count_word)
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


@lru_cache(maxsize=32)
def _compiled(policy: PBA, height: int, width: int, device: torch.device) -> Schedule:
    table = compile_table(policy.segments(), joint=True, height=height, width=width).to(device)
    of_epoch = torch.tensor(policy.segment_of_epoch(), device=device)
    return Schedule(table.integers, table.floats, of_epoch)
