"""The demonstration: one small network trained with the default augmentation and with DivAug.

Both take as many steps, and a step of DivAug takes longer. So that nobody takes one for the other,
the default augmentation is also given DivAug's time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from divaug import recipes
from divaug.recipes import Recipe
from divaug.reporting import write_report
from divaug.tables import Table
from divaug.training import RunResult, train
from divaug.training.interruption import pass_on
from divaug.training.progress import Reporter, counted

__all__ = ["Demonstration", "demonstrate", "plan"]

_AS_LONG = "default, as long as divaug"
# A step of DivAug takes six to eight times as long on a processor: it scores 8 candidates of an
# image and trains on 4.
_LONGER = 7


@dataclass(frozen=True)
class Demonstration:
    """What came out.

    Args:
        runs: row of the table → its run.
        page: the report of the runs.
    """

    runs: dict[str, RunResult]
    page: Path

    def table(self) -> Table:
        """Accuracy and time of each."""
        rows = []
        for name, run in self.runs.items():
            assert run.test is not None
            time = f"{run.seconds:.0f} s"
            rows.append((name, f"{run.step:,}", f"{run.test.accuracy:.2%}", time))
        first = next(iter(self.runs.values()))
        assert first.test is not None
        return Table(
            ("augmentation", "steps", "test accuracy", "time"),
            tuple(rows),
            numeric=(1, 2, 3),
            notes=(
                f"{first.recipe.model}, {counted(first.recipe.epochs, 'epoch')} of the part of "
                "Fashion-MNIST that ships with the project, one seed; DivAug trains on "
                f"{first.recipe.num_selected} views of each image in a step.",
                f"The last row has {_LONGER} times the epochs, about DivAug's time: where time is "
                "what is scarce, compare DivAug with that row.",
                f"{first.test.images:,} test images: differences below "
                f"{_noise(first.test.images):.1%} mean nothing.",
            ),
        )


def _noise(images: int) -> float:
    """Two standard errors of the difference of two accuracies around 80 %."""
    return float(2.0 * (2 * 0.8 * 0.2 / images) ** 0.5)


def demonstrate(
    out: str | Path,
    changes: Sequence[str] = (),
    *,
    reporter: Reporter | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Demonstration:
    """Train and write the report; runs that are in the folder already are continued.

    Args:
        out: where the runs go, each into a folder of its own, and `report.html`.
        changes: to all recipes, like "epochs=1".
        reporter: told how it goes; None for bars or lines.
        say: told what is kept where a signal ends it.
    """
    runs = {}
    for name, (folder, recipe) in plan(changes).items():
        run = train(recipe, Path(out) / folder, resume=True, device="cpu", reporter=reporter)
        if not run.finished:
            say(
                f"stopped after step {run.step:,} of {folder}, saved to {run.checkpoint}; give the "
                "same command again to go on"
            )
            pass_on(run.signal)
        runs[name] = run
    found = Demonstration(runs, Path(out) / "report.html")
    write_report([run.folder for run in runs.values()], found.page, summary=found.table())
    return found


def plan(changes: Sequence[str] = ()) -> dict[str, tuple[str, Recipe]]:
    """Row of the table → folder and recipe of its run.

    Raises:
        ValueError: a change that a recipe does not allow.
    """
    default, divaug = (
        recipes.override(recipes.recipe(name), changes) for name in ("demo-default", "demo-divaug")
    )
    longer = replace(
        default,
        name="demo-default-long",
        epochs=_LONGER * default.epochs,
        evaluate_every=_LONGER * default.evaluate_every,
        checkpoint_every=_LONGER * default.checkpoint_every,
    )
    return {
        default.augmenter: (default.augmenter, default),
        divaug.augmenter: (divaug.augmenter, divaug),
        _AS_LONG: ("default-long", longer),
    }
