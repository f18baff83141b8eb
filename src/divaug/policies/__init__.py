"""Policies: what may be drawn. All fill the same sub-policies; all can be written as JSON."""

from divaug._random import Purpose, Stream, below, uniform
from divaug.policies.base import Policy, TablePolicy, from_json, settled
from divaug.policies.lists import Identity, Listed, Single, Uniform
from divaug.policies.pba import PBA
from divaug.policies.published import (
    AutoAugment,
    FastAutoAugment,
    RandAugment,
    SharedLevel,
    TimmRandAugment,
    TrivialAugment,
)
from divaug.policies.table import Entry, Partners

__all__ = [
    "PBA",
    "AutoAugment",
    "Entry",
    "FastAutoAugment",
    "Identity",
    "Listed",
    "Partners",
    "Policy",
    "Purpose",
    "RandAugment",
    "SharedLevel",
    "Single",
    "Stream",
    "TablePolicy",
    "TimmRandAugment",
    "TrivialAugment",
    "Uniform",
    "below",
    "from_json",
    "settled",
    "uniform",
]
