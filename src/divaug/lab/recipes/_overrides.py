"""Changing a recipe by text: `field=value`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from divaug.lab.recipes._recipe import Recipe
from divaug.lab.recipes._semi_supervised import warmup_with
from divaug.names import unknown_name
from divaug.objectives import OBJECTIVES

__all__ = ["override"]

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def _switch(text: str) -> bool:
    return _WORDS[text.lower()]


# Type of a field → how its text is read and what it should look like.
_READ: Mapping[type, tuple[Callable[[str], Any], str]] = {
    bool: (_switch, "true or false"),
    int: (int, "a whole number"),
    float: (float, "a number"),
    str: (str, "text"),
}


def override(recipe: Recipe, changes: Iterable[str]) -> Recipe:
    """Return the recipe with fields replaced.

    Another number of labels brings the warm-up along, as `relabel` does, unless that is set too.

    Args:
        recipe: what to start from.
        changes: texts like "epochs=3"; the value is read by the field's type.

    Raises:
        TypeError: `recipe` is no recipe, or `changes` is a text instead of a list of them.
        ValueError: an unknown field (all are listed), or a value that its field does not allow, or
            that `relabel` does not.

    Example:
        >>> from divaug.lab.recipes import recipe
        >>> override(recipe("demo-divaug"), ["epochs=1", "learning_rate=0.05"]).learning_rate
        0.05
    """
    _check(recipe, changes)
    kinds: dict[str, Any] = {field.name: field.type for field in fields(Recipe)}
    values: dict[str, Any] = {}
    for change in changes:
        if not isinstance(change, str):
            raise TypeError(
                f"a change must be a text that reads field=value, got {change!r}; write for "
                'example "epochs=3".'
            )
        name, separator, text = change.partition("=")
        name = name.strip()
        if not separator:
            raise ValueError(f"a change must read field=value, got {change!r}.")
        if name not in kinds:
            raise ValueError(unknown_name("field of a recipe:", name, tuple(kinds)))
        read, expected = _READ[kinds[name]]
        try:
            values[name] = read(text.strip())
        except (ValueError, KeyError):
            raise ValueError(f"`{name}` must be {expected}, got {text.strip()!r}.") from None
    changed = replace(recipe, **values)
    if "warmup" in values or OBJECTIVES[changed.objective].unlabelled is None:
        return changed
    return replace(changed, warmup=warmup_with(recipe, changed.labels))


def _check(recipe: object, changes: object) -> None:
    if not isinstance(recipe, Recipe):
        raise TypeError(
            f"`recipe` must be a Recipe, got {recipe!r}; look one up with recipe(name)."
        )
    # A text is a list of its letters, none of which is a change.
    if isinstance(changes, str) or not isinstance(changes, Iterable):
        raise TypeError(
            f"`changes` must be a list of texts, got {changes!r}; a single one stands in a list: "
            '["epochs=3"].'
        )
