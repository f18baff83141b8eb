"""Numbers that the paper prints, as data."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

__all__ = [
    "ADVERSARIAL",
    "Printed",
    "cost",
    "printed",
    "random_baseline",
    "random_baselines",
    "semi_supervised",
    "semi_supervised_rows",
    "semi_supervised_steps",
]

#: A method of the paper's table that is not built here.
ADVERSARIAL = "adversarial-autoaugment"


@dataclass(frozen=True)
class Printed:
    """A cell of a table of the paper.

    Args:
        percent: accuracy or error, as printed.
        percent_spread: the deviation printed after ±; None where there is none.
        digits: that are printed.
    """

    percent: float
    percent_spread: float | None = None
    digits: int = 1
    ends: ClassVar = ("percent", "percent_spread")

    def show(self) -> str:
        """The cell as the paper prints it."""
        spread = f" ± {self.percent_spread:.{self.digits}f}" if self.percent_spread else ""
        return f"{self.percent:.{self.digits}f}{spread}"


@cache
def _content() -> Any:
    path = Path(__file__).parent / "data" / "paper.json"
    return json.loads(path.read_text(encoding="utf-8"))


def _cell(table: Any, row: str, augmenter: str, digits: int = 1) -> Printed | None:
    found = table.get(row, {}).get(augmenter)
    return None if found is None else Printed(*[*found, None][:2], digits)


def printed(row: str, augmenter: str) -> Printed | None:
    """The test accuracy in the paper's table of supervised training; None for a dash.

    Example:
        >>> printed("cifar10-wide-resnet-40-2", "divaug").show()
        '96.9 ± 0.1'
    """
    return _cell(_content()["supervised"], row, augmenter)


def random_baseline(row: str, augmenter: str) -> Printed | None:
    """The test accuracy in the paper's comparison with a random choice; None for none."""
    return _cell(_content()["random_baseline"], row, augmenter)


def random_baselines() -> str:
    """The paper's comparison with a random choice in words, wherever it has one.

    Example:
        >>> random_baselines().partition(";")[0]
        'cifar10-wide-resnet-28-10 98.1 ± 0.1 against 97.7 ± 0.1'
    """
    pairs = {
        row: [random_baseline(row, name) for name in ("divaug", "random")]
        for row in _content()["random_baseline"]
    }
    return "; ".join(
        f"{row} {' against '.join(one.show() for one in pair if one)}"
        for row, pair in pairs.items()
    )


def semi_supervised(row: str, augmenter: str) -> Printed | None:
    """The test error in the paper's semi-supervised table; None for none.

    Example:
        >>> semi_supervised("uda-paper-1000", "divaug").percent
        6.94
    """
    return _cell(_content()["semi_supervised"]["errors"], row, augmenter, 2)


def semi_supervised_rows() -> tuple[str, ...]:
    """The rows of the paper's semi-supervised table."""
    return tuple(_content()["semi_supervised"]["errors"])


def semi_supervised_steps() -> int:
    """The steps of a trial of the paper's semi-supervised table."""
    return int(_content()["semi_supervised"]["steps"])


def cost(dataset: str, augmenter: str) -> float | None:
    """The paper's cost of training relative to RandAugment; None where it gives none.

    Example:
        >>> cost("cifar10", "divaug"), cost("svhn", "divaug")
        (4.5, None)
    """
    found: float | None = _content()["cost"].get(dataset, {}).get(augmenter)
    return found
