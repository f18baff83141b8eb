"""Recipes: complete, named sets of hyper-parameters, and how to change one."""

from divaug.lab.recipes._checks import PRECISIONS
from divaug.lab.recipes._curves import CURVES
from divaug.lab.recipes._overrides import override
from divaug.lab.recipes._recipe import Recipe
from divaug.lab.recipes._semi_supervised import FAMILIES, LABELS, family_of, relabel
from divaug.lab.recipes._table import RECIPES, ROWS, Row, recipe

__all__ = [
    "CURVES",
    "FAMILIES",
    "LABELS",
    "PRECISIONS",
    "RECIPES",
    "ROWS",
    "Recipe",
    "Row",
    "family_of",
    "override",
    "recipe",
    "relabel",
]
