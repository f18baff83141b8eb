"""Telling people how a run goes: bars on a terminal, plain lines anywhere else."""

import importlib.util
import sys
from typing import TYPE_CHECKING, Any, Protocol

from divaug.recipes import RECIPES, Recipe
from divaug.training.distributed import Processes
from divaug.training.meters import Averages

if TYPE_CHECKING:
    from rich.progress import TaskID

__all__ = ["Bars", "Lines", "Reporter", "Silent", "counted", "reporter_for"]


class Reporter(Protocol):
    """What the loop tells."""

    def start(self, recipe: Recipe, steps: int, step: int) -> None:
        """A run of a recipe, with so many steps an epoch, begins at a step."""

    def advance(self) -> None:
        """A step was launched."""

    def interval(self, averages: Averages, images_per_second: float) -> None:
        """A logged interval is over."""

    def epoch(self, line: dict[str, Any]) -> None:
        """An epoch is over; `line` is what the record says of it."""

    def note(self, text: str) -> None:
        """Something to know."""

    def close(self) -> None:
        """The run is over."""


class Silent:
    """Says nothing: for libraries, and for all processes but the first."""

    def start(self, recipe: Recipe, steps: int, step: int) -> None:
        """Nothing."""

    def advance(self) -> None:
        """Nothing."""

    def interval(self, averages: Averages, images_per_second: float) -> None:
        """Nothing."""

    def epoch(self, line: dict[str, Any]) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def counted(number: int, noun: str) -> str:
    """A number of things.

    Example:
        >>> counted(1, "epoch"), counted(1200, "step")
        ('1 epoch', '1,200 steps')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _plan(recipe: Recipe, steps: int, step: int) -> str:
    """What is trained, shortly: the run's `recipe.json` has every field."""
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


class Lines(Silent):
    """A line of text for each epoch."""

    def __init__(self) -> None:
        self._epochs = 0

    def start(self, recipe: Recipe, steps: int, step: int) -> None:
        """Say what there is to do."""
        self._epochs = recipe.epochs
        self.note(_plan(recipe, steps, step))

    def epoch(self, line: dict[str, Any]) -> None:
        """Say what came out."""
        self.note(_sentence(line, self._epochs))

    def note(self, text: str) -> None:
        """Say it."""
        print(text, flush=True)


class Bars(Silent):
    """A bar with speed, loss, accuracy, diversity and the time left."""

    def __init__(self) -> None:
        from divaug.training.bars import progress

        self._bar = progress()
        self._task: TaskID | None = None
        self._epochs, self._steps, self._step = 0, 1, 0

    def start(self, recipe: Recipe, steps: int, step: int) -> None:
        """Say what there is to do and draw the bar."""
        self._epochs, self._steps, self._step = recipe.epochs, steps, step
        total = recipe.epochs * steps
        self.note(_plan(recipe, steps, step))
        self._task = self._bar.add_task("training", total=total, completed=step, told=())
        self._bar.start()

    def advance(self) -> None:
        """Move the bar."""
        assert self._task is not None
        self._step += 1
        epoch = min((self._step - 1) // self._steps + 1, self._epochs)
        self._bar.update(self._task, advance=1, description=f"epoch {epoch}/{self._epochs}")

    def interval(self, averages: Averages, images_per_second: float) -> None:
        """Renew the numbers."""
        assert self._task is not None
        told = (
            f"{images_per_second:,.0f} images/s",
            f"loss {averages.loss:.4f}",
            f"accuracy {averages.accuracy:.1%}",
            f"diversity {averages.diversity:.3f}",
        )
        self._bar.update(self._task, told=told)

    def epoch(self, line: dict[str, Any]) -> None:
        """Leave a line above the bar."""
        self.note(_sentence(line, self._epochs))

    def note(self, text: str) -> None:
        """Leave a line above the bar."""
        self._bar.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.stop()


def reporter_for(processes: Processes) -> Reporter:
    """Bars on a terminal, lines elsewhere, silence in all processes but the first.

    Without rich, which draws the bars, lines have to do on a terminal too.
    """
    if not processes.first:
        return Silent()
    drawn = sys.stdout.isatty() and importlib.util.find_spec("rich") is not None
    return Bars() if drawn else Lines()
