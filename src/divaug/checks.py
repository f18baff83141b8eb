"""Numbers that settings may be, refused with the rule that they break."""

import math

__all__ = ["check_number", "check_whole"]


def check_whole(setting: str, value: object, low: int, high: int | None = None) -> None:
    """Refuse what is not a whole number from `low` to `high`; None for no upper end."""
    top = math.inf if high is None else high
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= top:
        return
    rule = f"of at least {low}" if high is None else f"in [{low}, {high}]"
    raise ValueError(f"`{setting}` must be a whole number {rule}, got {value!r}.")


def check_number(what: str, value: object, low: float, high: float) -> None:
    """Refuse what is not a number from `low` to `high`; NaN is none."""
    if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
        return
    raise ValueError(f"{what} must be a number in [{low:g}, {high:g}], got {value!r}.")
