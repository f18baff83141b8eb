"""The targets: a table, a figure or a comparison each. A new one is a file and a line here."""

from collections.abc import Mapping
from types import MappingProxyType

from divaug._names import unknown_name
from divaug.lab.reproduce.targets import (
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
from divaug.lab.reproduce.targets.base import Target

__all__ = ["TARGETS", "Target", "target"]

TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        one.name: one
        for one in (
            supervised.TARGET,
            random_baseline.TARGET,
            choice.TARGET,
            diversity.TARGET,
            affinity.TARGET,
            rotate.TARGET,
            evolution.TARGET,
            cost.TARGET,
            equal_cost.TARGET,
            semi_supervised.TARGET,
        )
    }
)
"""Name → target."""


def target(name: str) -> Target:
    """Look a target up.

    Raises:
        ValueError: an unknown name, with the nearest one.
    """
    if name not in TARGETS:
        raise ValueError(unknown_name("target", name, tuple(TARGETS)))
    return TARGETS[name]
