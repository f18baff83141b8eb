"""RandAugment as timm draws it, from the strings of its training script."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from divaug.checks import check_number, check_whole
from divaug.data_files import read_data
from divaug.operations.magnitude import read_ranges
from divaug.policies.table import Entry
from divaug.policies.tabular import TablePolicy

__all__ = ["TimmRandAugment"]

_STRING = re.compile(r"rand(-(m|n|inc)\d+|-(p|mstd)\d+(\.\d+)?)*")
_PART = re.compile(r"-([a-z]+)([\d.]+)")
_USUAL = {"m": 10.0, "n": 2.0, "p": 0.5, "mstd": 0.0, "inc": 0.0}
_MOST = 10
_UNIFORM = 100
_QUANTILES = [(k + 0.5) / 64 for k in range(64)]


@dataclass(frozen=True)
class TimmRandAugment(TablePolicy):
    """timm's RandAugment from its string; 10 is the strongest, so `m9` turns by 27 degrees.

    Operations, their probability and their arguments are timm's, but 0 bits become 1, and
    magnitudes that are drawn (`mstd`) are one of 64 quantiles. Moved pixels are the nearest ones,
    on black; timm interpolates, on the mean colour.

    Args:
        config: "rand" and parts: `m` magnitude, at most 10, `n` operations, `p` probability of
            each, `mstd` standard deviation of the magnitude, above 100 for any up to `m`, `inc1`
            for operations that get stronger with it.

    Example:
        >>> TimmRandAugment("rand-m9-n3-mstd0.5-inc1").num_operations
        3
    """

    config: str = "rand-m9-mstd0.5-inc1"

    def __post_init__(self) -> None:
        settings = self._parts()
        check_whole("n", int(settings["n"]), 1, 16)
        check_number("`p`", settings["p"], 0, 1)

    @property
    def num_operations(self) -> int:
        """The part `n`."""
        return int(self._parts()["n"])

    def rows(self) -> Sequence[Sequence[Entry]]:
        """One row for each operation and each magnitude that it may have."""
        settings, data = self._parts(), read_data("timm.json")
        ranges = dict(read_ranges(data["ranges"]))
        if settings["inc"]:
            ranges |= read_ranges(data["increasing"])
        p = (settings["p"], settings["p"])
        return [
            [Entry(name, entry, p, (m / _MOST, m / _MOST))] * self.num_operations
            for name, entry in ranges.items()
            for m in _magnitudes(settings["m"], settings["mstd"])
        ]

    def _parts(self) -> dict[str, float]:
        text = str(self.config)
        if not _STRING.fullmatch(text):
            raise ValueError(
                "`config` must be 'rand' with the parts m, n, p, mstd and inc, such as "
                f"'rand-m9-mstd0.5-inc1', got {self.config!r}; leave other parts out."
            )
        return _USUAL | {key: float(value) for key, value in _PART.findall(text)}


def _magnitudes(m: float, deviation: float) -> list[float]:
    """Equally likely magnitudes, kept in the range as timm keeps them."""
    if not deviation:
        drawn = [m]
    elif deviation > _UNIFORM:
        drawn = [m * q for q in _QUANTILES]
    else:
        drawn = [NormalDist(m, deviation).inv_cdf(q) for q in _QUANTILES]
    return [min(max(one, 0.0), _MOST) for one in drawn]
