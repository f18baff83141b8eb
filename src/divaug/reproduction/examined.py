"""The record of an examination, and its content as text holds it."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from divaug.choices import Candidates, Choice
from divaug.examining import Examination
from divaug.recipes import Recipe
from divaug.reproduction.identity import examination_hash
from divaug.reproduction.records import recipe_in

__all__ = ["ExaminationRecord", "to_number"]

_NAMES = ("space", "way", "rule")


@dataclass(frozen=True)
class ExaminationRecord:
    """What the rules of selection keep of the candidates of a run's network.

    Args:
        recipe: of the run.
        epochs: whole ones that its network had trained.
        values: what came out.
        train_images: how many there were to look at.
        environment: machine, versions, commit and command.
        fingerprint: of the data, as runs have it.
    """

    recipe: Recipe
    epochs: int
    values: Examination
    train_images: int
    environment: Mapping[str, Any]
    fingerprint: str

    @property
    def hash(self) -> str:
        """What the examination is found again by."""
        return examination_hash(self.recipe, self.epochs)

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {
            "epochs": self.epochs,
            "train_images": self.train_images,
            "values": asdict(self.values),
            "recipe": self.recipe.to_dict(),
            "environment": dict(self.environment),
            "fingerprint": self.fingerprint,
        }

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> "ExaminationRecord":
        """Read what `to_dict` gave.

        Raises:
            ValueError, KeyError, TypeError: it is no examination.
        """
        found = content["values"]
        values = Examination(
            _count(found["images"]),
            tuple(Candidates(**_numbers(one)) for one in found["candidates"]),
            tuple(Choice(**_numbers(one)) for one in found["choices"]),
        )
        return ExaminationRecord(
            recipe_in(content["recipe"]),
            _count(content["epochs"]),
            values,
            _count(content["train_images"]),
            content["environment"],
            content["fingerprint"],
        )


def _numbers(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same with a number for all but the names; null is none."""
    return {key: one if key in _NAMES else to_number(one) for key, one in content.items()}


def to_number(value: object) -> float:
    """A number of a record; null is none."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a number was expected, got {value!r}")
    return float(value)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"a number of things was expected, got {value!r}")
    return value
