"""Recipes: complete, named sets of hyper-parameters, and how to change one."""

from divaug.recipes._checks import PRECISIONS
from divaug.recipes._curves import CURVES
from divaug.recipes._overrides import override
from divaug.recipes._recipe import Recipe
from divaug.recipes._semi_supervised import FAMILIES, LABELS, family_of, relabel
from divaug.recipes._table import RECIPES, ROWS, Row, recipe

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
