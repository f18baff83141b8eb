"""What the page calls its runs."""

from collections.abc import Iterator, Mapping, Sequence

from divaug.lab.recipes import Recipe
from divaug.lab.report.reading import RunRecord
from divaug.lab.train.console import counted

__all__ = ["labels_of"]


def labels_of(runs: Sequence[RunRecord]) -> list[str]:
    """Number and augmenter of each run, and objective, labels and epochs where these differ."""
    # Names of augmenters come from a table; a recipe's own name could be anything.
    alike: dict[str, list[Recipe]] = {}
    for run in runs:
        alike.setdefault(run.recipe.augmenter, []).append(run.recipe)
    return [
        ", ".join([f"{i} {run.recipe.augmenter}", *_differences(run.recipe, alike)])
        for i, run in enumerate(runs, 1)
    ]


def _differences(recipe: Recipe, alike: Mapping[str, Sequence[Recipe]]) -> Iterator[str]:
    """Objective, labels and epochs, where others of the same augmenter have other ones."""
    others = alike[recipe.augmenter]
    labels = counted(recipe.labels, "label") if recipe.labels else "all labels"
    for name, text in (
        ("objective", recipe.objective),
        ("labels", labels),
        ("epochs", counted(recipe.epochs, "epoch")),
    ):
        if any(getattr(other, name) != getattr(recipe, name) for other in others):
            yield text
