"""Telling how a run in a list goes, and stopping it when the time is up."""

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from divaug.lab.recipes import Recipe
from divaug.lab.train.console import Silent, counted

__all__ = ["Watch"]


class Watch(Silent):
    """A line for each evaluation; at its time it asks the run to stop, as a signal would.

    A run that is asked finishes its step, saves and leaves; nothing is lost.

    Args:
        until: seconds since 1970; None for never.
        begin: called before the first step of a start.
    """

    def __init__(
        self, until: float | None = None, begin: Callable[[], None] = lambda: None
    ) -> None:
        self._until, self._begin = until, begin
        self._recipe: Recipe | None = None
        self.asked = False

    def start(self, recipe: Recipe, steps: int, step: int) -> None:
        """Say what begins, or goes on."""
        self._recipe = recipe
        self._begin()
        going = f"goes on at step {step:,}" if step else "begins"
        self.note(f"{going}: {counted(recipe.epochs, 'epoch')} of {counted(steps, 'step')}")

    def advance(self) -> None:
        """Ask once when it is time."""
        if self.asked or self._until is None or time.time() < self._until:
            return
        # In any other thread nobody would take the signal for a wish, and the process would end.
        if threading.current_thread() is threading.main_thread():
            self.asked = True
            signal.raise_signal(signal.SIGTERM)

    def epoch(self, line: dict[str, Any]) -> None:
        """Say what an evaluation found."""
        if "test_accuracy" not in line or self._recipe is None:
            return
        self.note(
            f"epoch {line['epoch'] + 1}/{self._recipe.epochs}  loss {line['loss']:.4f}  "
            f"test accuracy {line['test_accuracy']:.2%}  {line['seconds']:.0f} s"
        )

    def note(self, text: str) -> None:
        """Say it, with the name of the run before it."""
        name = f"{self._recipe.name}, seed {self._recipe.seed}: " if self._recipe else ""
        print(name + text, flush=True)
