"""What the records say about the cells that a target asks for."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from divaug.lab.recipes import Recipe
from divaug.lab.reproduce.methods import method
from divaug.lab.reproduce.options import ROW_NAMES, Options, recipe_of
from divaug.lab.reproduce.records import CostRecord, MeasurementRecord, RunRecord
from divaug.lab.reproduce.store import Store
from divaug.lab.reproduce.summaries import Mark, Summary, paired, summarize

__all__ = ["Findings"]


@dataclass(frozen=True)
class Findings:
    """Records, looked at through the options of a target.

    Args:
        store: all records.
        options: which cells, and how much they are shrunk.
        target_rows: where the options name none.
        target_methods: where the options name none.
        known_rows: that are of the target's kind.
    """

    store: Store
    options: Options
    target_rows: tuple[str, ...]
    target_methods: tuple[str, ...]
    known_rows: tuple[str, ...] = ROW_NAMES

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods asked for, in the order of the tables."""
        wanted = self.options.methods or self.target_methods
        return tuple(name for name in self.target_methods if name in wanted)

    def rows(self, needed: Sequence[str] | None = None) -> tuple[str, ...]:
        """The rows asked for; else the target's, and all others that have runs of its methods."""
        if self.options.rows:
            return self.options.rows
        names = needed or self.methods
        found = [row for row in self.known_rows if any(self.runs(row, name) for name in names)]
        return tuple(dict.fromkeys([*self.target_rows, *found]))

    def recipe(self, row: str, augmenter: str, epochs: int | None = None) -> Recipe:
        """The cell's recipe with the first seed."""
        return recipe_of(row, augmenter, 0, self.options, epochs=epochs)

    def title(self, row: str, augmenter: str) -> str:
        """A method as people read it."""
        return method(augmenter).title(self.recipe(row, "default"))

    def runs(self, row: str, augmenter: str, epochs: int | None = None) -> list[RunRecord]:
        """The finished runs of a cell, by seed; empty where the cell does not exist."""
        try:
            recipe = self.recipe(row, augmenter, epochs)
        except ValueError:  # no such recipe: nothing was published for that dataset
            return []
        return self.store.cell(recipe)

    def lengths(self, row: str) -> tuple[int, ...]:
        """The epochs asked for; where nobody asks, all that the row's methods were run for."""
        recipes = [self.recipe(row, name) for name in self.methods]
        asked = recipes[0].epochs
        if self.options.epochs or asked != recipe_of(row, self.methods[0], 0, Options()).epochs:
            return (asked,)
        found = {epochs for one in recipes for epochs in self.store.lengths(one)}
        return tuple(sorted(found, reverse=True))

    def accuracy(self, row: str, augmenter: str, epochs: int | None = None) -> Summary | None:
        """Test accuracy of the last epoch over the seeds of a cell."""
        return summarize(run.accuracy for run in self.runs(row, augmenter, epochs))

    def by_seed(
        self,
        row: str,
        augmenter: str,
        value: Callable[[RunRecord], float],
        epochs: int | None = None,
    ) -> dict[Mark, float]:
        """A value of each run of a cell that has it."""
        found = {run.mark: value(run) for run in self.runs(row, augmenter, epochs)}
        return {mark: one for mark, one in found.items() if math.isfinite(one)}

    def difference(
        self, row: str, first: str, second: str, epochs: int | None = None
    ) -> Summary | None:
        """Accuracy of the first minus that of the second, over the seeds that both have.

        A run in bfloat16 and one in float32 are no pair.

        Args:
            row: dataset and network.
            first: a method, with its usual epochs.
            second: another.
            epochs: of the second; None for its usual ones.
        """
        ours = self.by_seed(row, first, lambda run: run.accuracy)
        return paired(ours, self.by_seed(row, second, lambda run: run.accuracy, epochs))

    def measurements(self, row: str, scorer: str, augmenter: str) -> list[MeasurementRecord]:
        """What a scorer's networks found of an augmenter, by the scorer's seed."""
        return self.store.measured(self.recipe(row, scorer), augmenter)

    def costs(self, row: str, augmenter: str) -> list[CostRecord]:
        """The timings of a method's step, the oldest first."""
        try:
            recipe = self.recipe(row, augmenter)
        except ValueError:
            return []
        return self.store.timed(recipe)

    def settings(self, row: str, augmenter: str) -> list[str]:
        """Where and how a method's step was timed; see `setting_of`."""
        return sorted({cost.setting for cost in self.costs(row, augmenter)})

    def related_costs(
        self, row: str, augmenter: str, base: str, setting: str
    ) -> tuple[CostRecord | None, CostRecord | None]:
        """A method's timing and that of another in the same batch; None for what is not there.

        The oldest such pair counts, so that epochs which follow from it stay what they are.
        """
        own = [cost for cost in self.costs(row, augmenter) if cost.setting == setting]
        others = {c.batch: c for c in self.costs(row, base) if c.setting == setting}
        for cost in own:
            if cost.batch in others:
                return cost, others[cost.batch]
        return (own[0] if own else None), None
