"""What stands in a record, and is refused where it is something else."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from divaug.lab.recipes import Recipe

__all__ = ["recipe_in", "to_count", "to_number"]


def recipe_in(content: Mapping[str, Any]) -> Recipe:
    """A recipe from a record; fields that are newer than the record get their default."""
    known = {field.name for field in fields(Recipe)}
    unknown = sorted(content.keys() - known)
    if unknown:
        raise ValueError(f"the recipe has fields that are not known here: {', '.join(unknown)}")
    return Recipe(**content)


def to_number(value: object) -> float:
    """A number of a record; null is none."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a number was expected, got {value!r}")
    return float(value)


def to_count(value: object) -> int:
    """How many there are of something."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"a number of things was expected, got {value!r}")
    return value
