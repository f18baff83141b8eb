"""What the paper prints, as data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = [
    "ADVERSARIAL",
    "Printed",
    "PrintedError",
    "cost",
    "printed",
    "random_baseline",
    "random_baselines",
    "semi_supervised",
]

#: A method of the paper's table that is not built here.
ADVERSARIAL = "adversarial-autoaugment"

#: What the columns of a printed number end in where programs read them: our own are no percentages.
PRINTED = ("percent", "percent_spread")


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

    def parts(self) -> dict[str, float | None]:
        """Accuracy and deviation, each in a column of its own where programs read them."""
        return dict(zip(PRINTED, (self.accuracy, self.spread), strict=True))


@dataclass(frozen=True)
class PrintedError:
    """A cell of the paper's semi-supervised table: error in percent, and what it was reached in.

    Args:
        error: as printed.
        spread: the deviation printed after ±.
        steps: of each trial.
        trials: how many.

    Example:
        >>> str(PrintedError(7.37, 0.15, 200_000, 4))
        '7.37 ± 0.15'
    """

    error: float
    spread: float
    steps: int
    trials: int

    def __str__(self) -> str:
        return f"{self.error:.2f} ± {self.spread:.2f}"

    def parts(self) -> dict[str, float | None]:
        """Error and deviation, each in a column of its own where programs read them."""
        return dict(zip(PRINTED, (self.error, self.spread), strict=True))


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


def random_baselines() -> str:
    """The paper's comparison with a random choice in words, wherever it has one.

    Example:
        >>> random_baselines().partition(";")[0]
        'cifar10-wide-resnet-28-10 98.1 ± 0.1 against 97.7 ± 0.1'
    """
    rows = _content()["random_baseline"]
    pairs = {row: [_cell(rows, row, name) for name in ("divaug", "random")] for row in rows}
    return "; ".join(
        f"{row} {' against '.join(one.show() for one in pair if one)}"
        for row, pair in pairs.items()
    )


def semi_supervised(row: str, augmenter: str) -> PrintedError | None:
    """The test error that the paper's semi-supervised table has; None for what it has not.

    Example:
        >>> semi_supervised("uda-paper-1000", "divaug").error
        6.94
    """
    table = _content()["semi_supervised"]
    found = table["errors"].get(row, {}).get(augmenter)
    if found is None:
        return None
    error, spread = found
    return PrintedError(error, spread, table["steps"], table["trials"])


def cost(dataset: str, augmenter: str) -> float | None:
    """The paper's cost of training relative to RandAugment; None where it gives none.

    Example:
        >>> cost("cifar10", "divaug"), cost("svhn", "divaug")
        (4.5, None)
    """
    found: float | None = _content()["cost"].get(dataset, {}).get(augmenter)
    return found


def _cell(table: Mapping[str, Any], row: str, augmenter: str) -> Printed | None:
    found = table.get(row, {}).get(augmenter)
    return None if found is None else Printed(*found)
