"""The lines of a run's `metrics.jsonl`, checked and typed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Epoch", "Interval", "Kept", "parse_epoch", "parse_interval"]

# What runs write was a float32; beyond it no axis can be drawn.
_MOST = 3.5e38


@dataclass(frozen=True)
class Kept:
    """What an augmenter kept in an epoch; numbers that do not exist are NaN.

    Args:
        applied: operation → how often a kept sub-policy applied it.
        drawn: operation → how often a kept sub-policy held it.
        probability: operation → mean probability it was kept with.
        diversity_kept: mean Variance Diversity of the kept candidates.
        diversity_all: mean Variance Diversity of all candidates.
        diversity_best: mean of the largest that any choice had had.
    """

    applied: Mapping[str, float]
    drawn: Mapping[str, float]
    probability: Mapping[str, float]
    diversity_kept: float
    diversity_all: float
    diversity_best: float = math.nan


@dataclass(frozen=True)
class Epoch:
    """An epoch; `number` counts from 1, numbers that do not exist are NaN.

    Args:
        number: of the epoch.
        step: steps taken since the run began.
        loss: mean over the epoch, of augmented images in training mode.
        diversity: mean Variance Diversity of the trained views, in training mode.
        test_accuracy: at its end; NaN where there was no evaluation.
        seconds: since the run began, over all starts.
        kept: what the augmenter kept; None where the run has no record.
    """

    number: int
    step: int
    loss: float
    diversity: float
    test_accuracy: float
    seconds: float
    kept: Kept | None


@dataclass(frozen=True)
class Interval:
    """Some steps within an epoch."""

    step: int
    learning_rate: float


def parse_epoch(line: Mapping[str, Any]) -> Epoch:
    """An epoch from its line.

    Raises:
        KeyError: a field is missing.
        ValueError: a field is of another kind.
    """
    accuracy = _number(line, "test_accuracy") if "test_accuracy" in line else math.nan
    return Epoch(
        _whole(line, "epoch", 0) + 1,
        _whole(line, "step", 1),
        _number(line, "loss"),
        _number(line, "diversity"),
        accuracy,
        _number(line, "seconds"),
        _kept(line.get("record")),
    )


def parse_interval(line: Mapping[str, Any]) -> Interval:
    """An interval from its line; raises as `parse_epoch`."""
    return Interval(_whole(line, "step", 1), _number(line, "learning_rate"))


def _kept(record: object) -> Kept | None:
    if record is None:
        return None
    if not isinstance(record, Mapping):
        raise ValueError("`record` must be an object")
    applied, drawn, probability = (
        _numbers(record, name) for name in ("operations", "drawn", "probability")
    )
    if not applied.keys() == drawn.keys() == probability.keys():
        raise ValueError("`record` must name the same operations everywhere")
    of_kept, of_all = _number(record, "diversity_kept"), _number(record, "diversity_all")
    best = _number(record, "diversity_best") if "diversity_best" in record else math.nan
    return Kept(applied, drawn, probability, of_kept, of_all, best)


def _numbers(content: Mapping[str, Any], name: str) -> dict[str, float]:
    found = content[name]
    if not isinstance(found, Mapping):
        raise ValueError(f"`{name}` must be an object")
    return {str(key): _number(found, key) for key in found}


def _number(content: Mapping[str, Any], name: str) -> float:
    value = content[name]
    if value is None:  # how runs write what is no number
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"`{name}` must be a number, got {value!r}")
    if abs(value) > _MOST:  # infinity too; NaN is not above anything
        raise ValueError(f"`{name}` must be a number that float32 can hold, got {value!s:.12}")
    return float(value)


def _whole(content: Mapping[str, Any], name: str, least: int) -> int:
    value = content[name]
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"`{name}` must be an int of at least {least}, got {value!r}")
    return value
