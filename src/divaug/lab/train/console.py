"""Progress of a run on the console: a bar on a terminal, plain lines anywhere else."""

import sys
from typing import TYPE_CHECKING, Any

from divaug.lab.recipes import RECIPES, Recipe
from divaug.lab.train.processes import Processes

if TYPE_CHECKING:
    from rich.progress import TaskID

__all__ = ["Bars", "Lines", "Reporter", "Silent", "counted", "reporter_for"]


class Reporter:
    """The silent reporter, and the base of all others: the loop calls its methods."""

    def start(self, recipe: Recipe, steps: int, step: int) -> None:
        """Begin a run of a recipe, with so many steps an epoch, at a step."""

    def advance(self) -> None:
        """Count a step that was launched."""

    def interval(self, means: dict[str, float], images_per_second: float) -> None:
        """Report a logged interval."""

    def epoch(self, line: dict[str, Any]) -> None:
        """Report an epoch by its line of the record."""

    def note(self, text: str) -> None:
        """Report a sentence."""

    def close(self) -> None:
        """End the report."""


Silent = Reporter


def counted(number: int, noun: str) -> str:
    """Write a number of things.

    Example:
        >>> counted(1, "epoch"), counted(1200, "step")
        ('1 epoch', '1,200 steps')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _plan(recipe: Recipe, steps: int, step: int) -> str:
    known = RECIPES.get(recipe.name)
    changes = known.differences(recipe) if known else {}
    changed = ", ".join(f"{name}={new}" for name, (_, new) in changes.items())
    done = f", from step {step:,}" if step else ""
    return (
        f"recipe {recipe.name}: {recipe.model} on {recipe.dataset} with {recipe.augmenter}"
        f"{f'; changed: {changed}' if changed else ''} (every field in recipe.json)\n"
        f"training for {counted(recipe.epochs, 'epoch')} of {counted(steps, 'step')}{done}"
    )


def _sentence(line: dict[str, Any], epochs: int) -> str:
    parts = [
        f"epoch {line['epoch'] + 1}/{epochs}",
        f"loss {line['loss']:.4f}",
        f"accuracy {line['accuracy']:.2%}",
    ]
    if line["diversity"]:
        parts.append(f"diversity {line['diversity']:.4f}")
    if "test_accuracy" in line:
        parts.append(f"test accuracy {line['test_accuracy']:.2%}")
    parts += [f"{line['images_per_second']:,.0f} images/s", f"{line['seconds']:.0f} s"]
    return "  ".join(parts)


class Lines(Reporter):
    """A line of text for each epoch."""

    def __init__(self) -> None:
        self._epochs = 0

    def start(self, recipe: Recipe, steps: int, step: int) -> None:
        """Print the plan."""
        self._epochs = recipe.epochs
        self.note(_plan(recipe, steps, step))

    def epoch(self, line: dict[str, Any]) -> None:
        """Print the epoch's line."""
        self.note(_sentence(line, self._epochs))

    def note(self, text: str) -> None:
        """Print a sentence."""
        print(text, flush=True)


class Bars(Lines):
    """A bar with speed, loss, accuracy and the time left; lines above it."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        super().__init__()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:.0f}%"),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            expand=True,
        )
        self._task: TaskID | None = None
        self._steps = self._step = 1

    def start(self, recipe: Recipe, steps: int, step: int) -> None:
        """Print the plan and draw the bar."""
        super().start(recipe, steps, step)
        self._steps, self._step = steps, step
        total = recipe.epochs * steps
        self._task = self._bar.add_task("training", total=total, completed=step, numbers="")
        self._bar.start()

    def advance(self) -> None:
        """Move the bar."""
        assert self._task is not None
        self._step += 1
        epoch = min((self._step - 1) // self._steps + 1, self._epochs)
        self._bar.update(self._task, advance=1, description=f"epoch {epoch}/{self._epochs}")

    def interval(self, means: dict[str, float], images_per_second: float) -> None:
        """Update the numbers."""
        assert self._task is not None
        numbers = (
            f"{images_per_second:,.0f} images/s  loss {means['loss']:.4f}  "
            f"accuracy {means['accuracy']:.1%}"
        )
        self._bar.update(self._task, numbers=numbers)

    def note(self, text: str) -> None:
        """Print a sentence above the bar."""
        self._bar.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.stop()


def reporter_for(processes: Processes) -> Reporter:
    """Choose a bar on a terminal, lines elsewhere, silence in all processes but the first."""
    if not processes.first:
        return Reporter()
    return Bars() if sys.stdout.isatty() else Lines()
