"""The job that times steps: a batch of methods, each in turns with one of them."""

from dataclasses import dataclass
from typing import ClassVar

from divaug.lab.bench.step import Ready, ready
from divaug.lab.recipes import Recipe
from divaug.lab.reproduce.identity import cost_hash, step_hash
from divaug.lab.reproduce.store import Store, read_store, save
from divaug.lab.reproduce.timing import new_batch, tidy, time_step
from divaug.lab.reproduce.work import End, Shelf, Work

__all__ = ["TimeJob"]


@dataclass(frozen=True)
class TimeJob:
    """Time the steps of methods, each in turns with that of a base.

    Times drift with clocks, drivers and sources: methods are only related to a base that was timed
    in the same batch, so a batch that goes on after an interruption begins with the base anew.

    Args:
        base: whose step the others are related to.
        recipes: whose steps.
        setting: where and how; see `setting_of`.
    """

    base: Recipe
    recipes: tuple[Recipe, ...]
    setting: str
    alone: ClassVar[bool] = True
    needs: ClassVar[None] = None

    @property
    def hash(self) -> str:
        """What the list shows; each timing has a hash of its own."""
        steps = "-".join(step_hash(recipe) for recipe in (self.base, *self.recipes))
        return cost_hash(self.base, self.setting, steps)

    @property
    def label(self) -> str:
        """Whose steps are timed."""
        names = dict.fromkeys(one.augmenter for one in (self.base, *self.recipes))
        row = self.base.name.removesuffix(f"-{self.base.augmenter}")
        return f"time the steps of {', '.join(names)} on {row}"

    def done(self, store: Store) -> bool:
        """Whether every timing has a record, beside the base's."""
        return not self._missing(store)

    def _missing(self, store: Store) -> list[Recipe]:
        def batches(recipe: Recipe) -> set[str]:
            return {cost.batch for cost in store.timed(recipe) if cost.setting == self.setting}

        beside = batches(self.base)
        return [recipe for recipe in (self.base, *self.recipes) if not batches(recipe) & beside]

    def execute(self, work: Work, _shelf: Shelf) -> End:
        """Time the base and what is missing, and write the records."""
        batch, missing = new_batch(), self._missing(read_store(work.results))
        device, eager = work.device, work.eager
        base: Ready | None = None
        for recipe in dict.fromkeys([self.base, *missing]):
            if not work.may_begin:
                return End.TIME_UP
            tidy()
            if recipe != self.base and base is None:
                base = ready(self.base, device, eager=eager)
            save(work.results, time_step(recipe, device, eager=eager, batch=batch, base=base))
        return End.FINISHED
