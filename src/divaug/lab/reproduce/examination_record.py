"""The record of an examination, and its content as text holds it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from divaug.lab.examine import Candidates, Choice, Examination
from divaug.lab.recipes import Recipe
from divaug.lab.reproduce.content import recipe_in, to_count, to_number
from divaug.lab.reproduce.identity import examination_hash

__all__ = ["ExaminationRecord"]

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
            to_count(found["images"]),
            tuple(Candidates(**_numbers(one)) for one in found["candidates"]),
            tuple(Choice(**_numbers(one)) for one in found["choices"]),
        )
        return ExaminationRecord(
            recipe_in(content["recipe"]),
            to_count(content["epochs"]),
            values,
            to_count(content["train_images"]),
            content["environment"],
            content["fingerprint"],
        )


def _numbers(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same with a number for all but the names; null is none."""
    return {key: one if key in _NAMES else to_number(one) for key, one in content.items()}
