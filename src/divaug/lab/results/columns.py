"""Columns of values over seeds."""

from divaug.lab.results.stats import NOT_RUN, Mean
from divaug.lab.tables import Column, duration, table

__all__ = [
    "Column", "count", "interval", "number", "percent", "points", "seconds", "spread", "summary",
    "table",
]  # fmt: skip

_ENDS = ("mean", "std", "n")


def summary(
    key: str,
    name: str,
    digits: int = 2,
    factor: float = 1.0,
    *,
    sign: bool = False,
    missing: str = "—",
) -> Column:
    """Return a column of means: mean ± deviation."""

    def show(found: Mean) -> str:
        return found.show(digits, factor, sign=sign)

    return Column(key, name, show, missing, True, _ENDS)


def percent(key: str, name: str, missing: str = NOT_RUN) -> Column:
    """Return a column of accuracies over seeds, in percent."""
    return summary(key, name, 2, 100, missing=missing)


def points(key: str, name: str, missing: str = "—") -> Column:
    """Return a column of differences in accuracy over seeds, in points."""
    return summary(key, name, 2, 100, sign=True, missing=missing)


def spread(key: str, name: str, digits: int = 4, *, sign: bool = False) -> Column:
    """Return a column of means as they are."""
    return summary(key, name, digits, sign=sign, missing=NOT_RUN)


def number(key: str, name: str, form: str = "{}", missing: str = "—") -> Column:
    """Return a column of numbers."""
    return Column(key, name, form, missing, True)


def count(key: str, name: str, counts: str) -> Column:
    """Return a column with the n of a mean that another column shows."""
    return Column(key, name, numeric=True, counts=counts)


def interval(key: str, name: str) -> Column:
    """Return a column of 95 % intervals of mean differences in accuracy, in points."""
    return Column(key, name, Mean.interval, "—", True, ("low", "high"))


def seconds(key: str, name: str, missing: str) -> Column:
    """Return a column of mean times."""
    return Column(key, name, lambda found: duration(found.mean), missing, True, _ENDS)
