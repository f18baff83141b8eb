"""The settings of a policy, which may come from a person's file: one check for each kind."""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from divaug.checks import check_whole, holds_integers
from divaug.names import unknown_name
from divaug.operations.magnitude import Range, Side
from divaug.operations.table import EVERY, Operation

__all__ = ["check_epoch", "check_extra", "check_fits", "check_name"]


# What an int64 holds.
_LAST_EPOCH = 2**63 - 1


def check_name(kind: str, value: object, known: Collection[str]) -> None:
    """Refuse what is not one of the known names, whatever its type."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(unknown_name(kind, value, tuple(known)))


def check_epoch(epoch: object) -> int | Tensor:
    """The number of an epoch, refused if it is none, whether or not a policy goes by it."""
    if not isinstance(epoch, Tensor):
        return check_whole("epoch", epoch, 0, _LAST_EPOCH)
    # The value of a tensor may be on a device: reading it would wait.
    if epoch.numel() != 1 or not holds_integers(epoch):
        raise ValueError(
            "`epoch` must be a whole number or an integer tensor of one element, got a tensor of "
            f"shape {tuple(epoch.shape)} and {epoch.dtype}."
        )
    return epoch.to(torch.int64)


def check_extra(extra: object) -> None:
    """Refuse what are not pairs of an operation and its range, each operation under a new name."""
    if not isinstance(extra, tuple) or not all(map(_is_pair, extra)):
        raise ValueError(
            f"`extra` must be a tuple of pairs (Operation, Range), got {extra!r}; for a single "
            "operation write ((operation, range),)."
        )
    taken = set(EVERY)
    for operation, entry in extra:
        if operation.name in taken:
            raise ValueError(
                f"`extra` names {operation.name!r}, which is taken; give your operation its own "
                "name, and list it once."
            )
        taken.add(operation.name)
        if entry.side is Side.NONE:  # others depend on the size of the images
            check_fits(operation, entry, 1, 1)


def _is_pair(pair: object) -> bool:
    return (
        isinstance(pair, tuple)
        and len(pair) == 2
        and isinstance(pair[0], Operation)
        and isinstance(pair[1], Range)
    )


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
            f"the range of {operation.name} must give whole numbers, got one from {min(ends):g} to "
            f"{max(ends):g} that does not; give it rounding=Rounding.DOWN, and a whole `minimum`."
        )
