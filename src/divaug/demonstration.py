"""The demonstration: one small network trained twice, with the default augmentation and DivAug."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from divaug import recipes
from divaug.measuring import Measurement, measure_run
from divaug.reporting import write_report
from divaug.tables import Table
from divaug.training import RunResult, train
from divaug.training.interruption import pass_on
from divaug.training.progress import Reporter

__all__ = ["Demonstration", "demonstrate"]

_NAMES = ("demo-default", "demo-divaug")
# Training images that the diversities are taken over; all of them would double the time.
_MEASURED = 500


@dataclass(frozen=True)
class Demonstration:
    """What came out.

    Args:
        runs: augmenter → its run.
        measured: augmenter → its measures, all with the network of the first run.
        page: the report of the runs.
    """

    runs: dict[str, RunResult]
    measured: dict[str, Measurement]
    page: Path

    def table(self) -> Table:
        """Accuracy, diversity and time of each."""
        rows = []
        for name, run in self.runs.items():
            assert run.test is not None
            diversity = self.measured[name].variance_diversity
            rows.append(
                (name, f"{run.test.accuracy:.2%}", f"{diversity:.4f}", f"{run.seconds:.0f} s")
            )
        first = next(iter(self.runs.values()))
        assert first.test is not None
        return Table(
            ("augmentation", "test accuracy", "Variance Diversity", "time"),
            tuple(rows),
            numeric=(1, 2, 3),
            notes=(
                f"{first.recipe.model}, {first.recipe.epochs} epochs ({first.step} steps) of the "
                "part of Fashion-MNIST that ships with the project, one seed; DivAug trains on "
                f"{first.recipe.num_selected} views of each image in a step.",
                "Variance Diversity is measured with the network of the first run; the report has "
                "that of each run's own network while it trained.",
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
) -> Demonstration:
    """Train twice, measure and write the report; runs that are in the folder already are continued.

    Args:
        out: where the two runs go, each into a folder of its own, and `report.html`.
        changes: to both recipes, like "epochs=1".
        reporter: told how it goes; None for bars or lines.
    """
    runs = {}
    for name in _NAMES:
        recipe = recipes.override(recipes.recipe(name), changes)
        folder = Path(out) / recipe.augmenter
        runs[recipe.augmenter] = train(recipe, folder, resume=True, device="cpu", reporter=reporter)
        if not runs[recipe.augmenter].finished:
            pass_on(runs[recipe.augmenter].signal)
    first = next(iter(runs.values()))
    size = min(_MEASURED, first.recipe.train_images or _MEASURED)
    measured = measure_run(first.folder, list(runs), views=4, images=size, device="cpu")
    page = Path(out) / "report.html"
    write_report([run.folder for run in runs.values()], page)
    return Demonstration(runs, measured, page)
