"""The magnitudes of a space as a table for people."""

from divaug.lab.tables import Table
from divaug.operations.magnitude import argument, space_of
from divaug.operations.table import EVERY

__all__ = ["MAGNITUDES", "magnitude_table"]

#: The magnitudes that tables and pictures show.
MAGNITUDES = (0.0, 0.25, 0.5, 0.75, 1.0)


def magnitude_table(space: str = "paper", height: int = 32, width: int = 32) -> Table:
    """Operation, unit, argument at five magnitudes, signed or not, source.

    Where the sign changes more than the sign of the argument, both arguments are listed.

    Example:
        >>> magnitude_table("paper").rows[4][:4]
        ('Rotate', 'degrees', '0', '±7.5')
    """
    rows = []
    for name, entry in space_of(space).items():
        cells = [_cell(name, m, space, height, width, entry.signed) for m in MAGNITUDES]
        sign = "yes" if entry.signed else "no"
        rows.append((name, EVERY[name].unit or "none", *cells, sign, entry.source))
    return Table(
        columns=("operation", "unit", *(f"m={m:g}" for m in MAGNITUDES), "signed", "source"),
        rows=tuple(rows),
        title=f"Space {space!r} on images of {height}×{width} pixels",
        numeric=tuple(range(2, 2 + len(MAGNITUDES))),
    )


def _cell(name: str, m: float, space: str, height: int, width: int, signed: bool) -> str:
    high = argument(name, m, space=space, sign=1, height=height, width=width)
    low = argument(name, m, space=space, sign=-1, height=height, width=width)
    if high is None or low is None:
        return "-"
    if not signed or high == low:
        return f"{high:.4g}"
    return f"±{high:.4g}" if high == -low else f"{low:.4g}/{high:.4g}"
