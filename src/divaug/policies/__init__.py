"""Policies: what may be drawn. All fill the same sub-policies; all can be written as JSON."""

from divaug.policies.base import Policy, from_json
from divaug.policies.pba import PBA
from divaug.policies.published import AutoAugment, FastAutoAugment, Listed
from divaug.policies.random import Identity, RandAugment, Single, TrivialAugment, Uniform
from divaug.policies.shared_level import SharedLevel
from divaug.policies.table import Entry
from divaug.policies.tabular import TablePolicy
from divaug.policies.timm import TimmRandAugment

__all__ = [
    "PBA",
    "AutoAugment",
    "Entry",
    "FastAutoAugment",
    "Identity",
    "Listed",
    "Policy",
    "RandAugment",
    "SharedLevel",
    "Single",
    "TablePolicy",
    "TimmRandAugment",
    "TrivialAugment",
    "Uniform",
    "from_json",
]
