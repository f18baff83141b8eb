"""What the tensors of sub-policies may hold: shapes, dtypes, and values that somebody can draw."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from divaug.constants import constant
from divaug.operations.table import Operation

__all__ = ["DTYPES", "check_partners", "check_shapes", "check_values"]

#: Tensor of sub-policies → its dtype.
DTYPES: Mapping[str, torch.dtype] = {
    "operation": torch.int32,
    "applied": torch.bool,
    "argument": torch.float32,
    "center": torch.int32,
    "partner": torch.int64,
    "probability": torch.float32,
    "magnitude": torch.float32,
}


def check_shapes(tensors: Mapping[str, Tensor]) -> None:
    """Refuse what cannot be the tensors of sub-policies; no value is looked at.

    Raises:
        ValueError: something else than a tensor, another shape or another dtype.
    """
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(
                f"`{name}` must be a {DTYPES[name]} tensor, got {type(tensor).__name__}."
            )
    shape = tensors["operation"].shape
    for name, tensor in tensors.items():
        expected = (*shape, 2) if name == "center" else tuple(shape)
        if tuple(tensor.shape) != expected:
            raise ValueError(f"`{name}` must have shape {expected}, got {tuple(tensor.shape)}.")
        if tensor.dtype != DTYPES[name]:
            raise ValueError(f"`{name}` must be {DTYPES[name]}, got {tensor.dtype}.")


def check_values(tensors: Mapping[str, Tensor], operations: Sequence[Operation]) -> None:
    """Refuse operations, arguments, places and partners that there are not.

    Waits for the device, once where there is nothing to refuse.

    Raises:
        ValueError: a value out of its range.
    """
    rules = _rules(tensors, operations)
    broken = torch.stack([rule.broken.any() for rule in rules]).tolist()
    for rule in (rule for rule, anywhere in zip(rules, broken, strict=True) if anywhere):
        operation = int(tensors["operation"][rule.broken][0])
        got = tensors[rule.name][rule.broken][0].tolist()
        raise ValueError(f"`{rule.name}` {rule.words(operation)}, got {got!r}.")


class _Rule(NamedTuple):
    """What a tensor must hold: where it does not, and the rule in words for an operation's id."""

    name: str
    broken: Tensor
    words: Callable[[int], str]


def _rules(tensors: Mapping[str, Tensor], operations: Sequence[Operation]) -> tuple[_Rule, ...]:
    ids, argument, p = tensors["operation"], tensors["argument"], tensors["probability"]
    known = (ids >= -1) & (ids < len(operations))
    limits = constant(
        # For −1, which is no operation.
        ((0.0,) * 4, *((o.low, o.high, o.needs_argument, o.whole) for o in operations)),
        ids.device,
    )
    low, high, needed, whole = limits[(torch.where(known, ids, -1) + 1).long()].unbind(-1)
    used = (needed > 0) & tensors["applied"]

    def range_of(i: int) -> str:
        this = operations[i]
        return f"of {this.name} must lie in [{this.low:g}, {this.high:g}] {this.unit}"

    def whole_of(i: int) -> str:
        return f"of {operations[i].name} must be a whole number of {operations[i].unit}"

    return (
        _Rule("operation", ~known, lambda _: f"must lie in [-1, {len(operations) - 1}]"),
        _Rule("probability", ~((p >= 0) & (p <= 1)), lambda _: "must lie in [0, 1]"),
        _Rule("center", (tensors["center"] < 0).any(-1), lambda _: "must not be negative"),
        _Rule("partner", tensors["partner"] < 0, lambda _: "must not be negative"),
        _Rule("argument", used & ~((argument >= low) & (argument <= high)), range_of),
        _Rule("argument", used & (whole > 0) & (argument != argument.round()), whole_of),
    )


def check_partners(partner: Tensor, count: int, advice: str) -> None:
    """Refuse partners that a pool of `count` images does not have; waits for the device."""
    if partner.numel() and not (int(partner.min()) >= 0 and int(partner.max()) < count):
        raise ValueError(
            f"`partner` lies in [{int(partner.min())}, {int(partner.max())}], and the pool has "
            f"{count} images; {advice}"
        )
