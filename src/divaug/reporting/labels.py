"""What the page calls its runs."""

from collections.abc import Sequence

from divaug.reporting.reading import RunRecord

__all__ = ["labels_of"]


def labels_of(runs: Sequence[RunRecord]) -> list[str]:
    """Number and augmenter of each run, with its epochs where others of that augmenter differ."""
    # Names of augmenters come from a table; a recipe's own name could be anything.
    lengths: dict[str, set[int]] = {}
    for run in runs:
        lengths.setdefault(run.recipe.augmenter, set()).add(run.recipe.epochs)
    return [
        f"{i} {run.recipe.augmenter}"
        + (f", {run.recipe.epochs} epochs" if len(lengths[run.recipe.augmenter]) > 1 else "")
        for i, run in enumerate(runs, 1)
    ]
