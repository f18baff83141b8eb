"""What the paper prints, as data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = ["ADVERSARIAL", "Printed", "cost", "printed", "random_baseline"]

#: A method of the paper's table that is not built here.
ADVERSARIAL = "adversarial-autoaugment"


@dataclass(frozen=True)
class Printed:
    """A cell of a table of the paper, in percent.

    Args:
        accuracy: as printed.
        spread: the deviation printed after ±; None where there is none.
    """

    accuracy: float
    spread: float | None = None

    def show(self) -> str:
        """As the paper prints it."""
        return f"{self.accuracy:.1f}" + (f" ± {self.spread:.1f}" if self.spread else "")


@lru_cache(maxsize=1)
def _content() -> Mapping[str, Any]:
    path = Path(__file__).parent / "data" / "paper.json"
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def printed(row: str, augmenter: str) -> Printed | None:
    """The test accuracy that the paper's table of supervised training has; None for a dash.

    Example:
        >>> printed("cifar10-wide-resnet-40-2", "divaug")
        Printed(accuracy=96.9, spread=0.1)
    """
    return _cell(_content()["supervised"], row, augmenter)


def random_baseline(row: str, augmenter: str) -> Printed | None:
    """The test accuracy that the paper's comparison with a random choice has; None for none."""
    return _cell(_content()["random_baseline"], row, augmenter)


def cost(augmenter: str) -> float | None:
    """The paper's cost of training relative to RandAugment; None where it gives none."""
    found: float | None = _content()["cost"].get(augmenter)
    return found


def _cell(table: Mapping[str, Any], row: str, augmenter: str) -> Printed | None:
    found = table.get(row, {}).get(augmenter)
    return None if found is None else Printed(*found)
