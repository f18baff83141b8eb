"""The targets: a table, a figure or a comparison each. A new one is a file and a line here."""

from collections.abc import Mapping
from types import MappingProxyType

from divaug._names import unknown_name
from divaug.lab.results.outcome import Target
from divaug.lab.results.targets import (
    affinity,
    choice,
    cost,
    diversity,
    equal_cost,
    evolution,
    random_baseline,
    rotate,
    semi_supervised,
    supervised,
)

__all__ = ["TARGETS", "target"]

_MODULES = (
    supervised, random_baseline, choice, diversity, affinity, rotate, evolution, cost, equal_cost,
    semi_supervised,
)  # fmt: skip
TARGETS: Mapping[str, Target] = MappingProxyType({one.TARGET.name: one.TARGET for one in _MODULES})
"""Name → target."""


def target(name: str) -> Target:
    """Look a target up.

    Raises:
        ValueError: an unknown name, with the nearest one.
    """
    if name not in TARGETS:
        raise ValueError(unknown_name("target", name, tuple(TARGETS)))
    return TARGETS[name]
