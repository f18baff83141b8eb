"""What the augmenters of all processes kept, and how it is put back after a restart."""

from typing import Any

import torch

from divaug.augmenters import Augmenter
from divaug.records import Record, Sums
from divaug.training.distributed import Processes

__all__ = ["kept_so_far", "load_kept", "total_state"]

_NUMBERS = ("applied", "drawn", "probability", "diversity")


def total_state(
    augment: Augmenter, processes: Processes, device: torch.device
) -> dict[str, Any] | None:
    """An augmenter's record state, added up over all processes; all must ask."""
    mine = augment.record_state()
    if mine is None or not processes.shared:
        return mine
    # One message of doubles: counts stay exact up to 2⁵³.
    flat = [value for name in _NUMBERS for value in mine[name]] + [mine["images"]]
    total = processes.total(torch.tensor(flat, dtype=torch.float64, device=device)).tolist()
    both: dict[str, Any] = dict(mine)
    for name in _NUMBERS:
        kind, count = type(mine[name][0]), len(mine[name])
        both[name], total = [kind(value) for value in total[:count]], total[count:]
    return both | {"images": int(total[0])}


def kept_so_far(augment: Augmenter, processes: Processes, device: torch.device) -> Record:
    """The record of all processes since the epoch began."""
    found = total_state(augment, processes, device)
    if found is None:
        raise ValueError("nothing was augmented yet: there is no record.")
    return Sums.from_state(found).to_record()


def load_kept(augment: Augmenter, state: dict[str, Any] | None, processes: Processes) -> None:
    """Restore a record: all of it in the first process, an empty one in the others."""
    augment.load_record_state(state)
    if not processes.first:
        augment.reset_record()
