"""How a learning rate falls: one function for each name that a recipe may give."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from torch import Tensor

__all__ = ["CURVES"]

CURVES: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType(
    {
        "cosine": lambda u: 0.5 * (1.0 + (u * math.pi).cos()),
        # UDA's and FixMatch's: ends at a fifth of the peak.
        "cosine-7/16": lambda u: (u * (7.0 * math.pi / 16.0)).cos(),
    }
)
"""Name → from the share of the steps that is over to the share of the learning rate."""
