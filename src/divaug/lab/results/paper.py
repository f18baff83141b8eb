"""Numbers that the paper prints, as data."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from divaug.lab.results.columns import Column

__all__ = ["ADVERSARIAL", "Printed", "column", "cost", "printed"]

#: A method of the paper's table that is not built here.
ADVERSARIAL = "adversarial-autoaugment"


@dataclass(frozen=True)
class Printed:
    """A cell of a table of the paper: percent, deviation where there is one, digits after it."""

    percent: float
    percent_spread: float | None = None
    digits: int = 1

    def show(self) -> str:
        """Return the cell as the paper prints it."""
        spread = f" ± {self.percent_spread:.{self.digits}f}" if self.percent_spread else ""
        return f"{self.percent:.{self.digits}f}{spread}"


def column(name: str) -> Column:
    """Return a column of printed numbers."""
    return Column("paper", name, Printed.show, numeric=True, ends=("percent", "percent_spread"))


@cache
def _content() -> Any:
    path = Path(__file__).parent / "data" / "paper.json"
    return json.loads(path.read_text(encoding="utf-8"))


def printed(row: str, augmenter: str, table: str = "supervised") -> Printed | None:
    """Return a cell of a table of the paper; None for a dash.

    Args:
        row: dataset and network, or family and labels.
        augmenter: the method.
        table: "supervised" or "random_baseline": accuracies; "semi_supervised": errors.

    Example:
        >>> printed("cifar10-wide-resnet-40-2", "divaug").show()
        '96.9 ± 0.1'
    """
    found = _rows(table).get(row, {}).get(augmenter)
    digits = 2 if table == "semi_supervised" else 1
    if found is None:
        return None
    return Printed(found[0], found[1] if len(found) > 1 else None, digits)


def _rows(table: str) -> Any:
    found = _content()[table]
    return found.get("errors", found)


def random_baselines() -> str:
    """Return the paper's comparison with a random choice in words, wherever it has one.

    Example:
        >>> random_baselines().partition(";")[0]
        'cifar10-wide-resnet-28-10 98.1 ± 0.1 against 97.7 ± 0.1'
    """
    texts = []
    for row in _rows("random_baseline"):
        pair = [printed(row, name, "random_baseline") for name in ("divaug", "random")]
        texts.append(f"{row} {' against '.join(one.show() for one in pair if one)}")
    return "; ".join(texts)


def few_labels_rows() -> tuple[str, ...]:
    """Return the rows of the paper's semi-supervised table."""
    return tuple(_rows("semi_supervised"))


def few_labels_steps() -> int:
    """Return the steps of a trial in the paper's semi-supervised table."""
    return int(_content()["semi_supervised"]["steps"])


def cost(dataset: str, augmenter: str) -> float | None:
    """Return the paper's cost of training relative to RandAugment; None where it gives none."""
    found: float | None = _content()["cost"].get(dataset, {}).get(augmenter)
    return found
