"""The jobs of each target, stage by stage. A new target is a line in `STAGES`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from divaug._names import unknown_name
from divaug.lab.recipes import LABELS, Recipe
from divaug.lab.reproduce.jobs import Job, Store, examining, measuring, timing, training
from divaug.lab.reproduce.options import (
    FEW_LABELS_ROWS,
    PAPER_ROW,
    ROW_NAMES,
    Options,
    exists,
    recipe_of,
)
from divaug.lab.reproduce.timing import this_setting
from divaug.lab.results import Records, View, target
from divaug.lab.results.methods import SCORERS
from divaug.lab.results.targets.compared import REFERENCE, epochs_at_equal_time
from divaug.lab.results.targets.cost import BASE

__all__ = ["LATER", "STAGES", "Plan", "plan_of"]


@dataclass(frozen=True)
class Plan:
    """The inputs of a stage's list of jobs.

    Args:
        options: which cells, and how much they are shrunk.
        rows: rows of the target.
        methods: methods of the target.
        store: the records of the stages before.
        device: device of the jobs.
        eager: whether without compilation and CUDA graphs.
    """

    options: Options
    rows: tuple[str, ...]
    methods: tuple[str, ...]
    store: Store
    device: str | None = None
    eager: bool = False

    def recipe(self, row: str, name: str, seed: int = 0, epochs: int | None = None) -> Recipe:
        """Return the recipe of a cell."""
        return recipe_of(row, name, seed, self.options, epochs=epochs)

    def each(self, names: Sequence[str] | None = None) -> list[Recipe]:
        """Return the recipe of every cell; the first seed of all comes before the second of any.

        Args:
            names: methods; None for those of the target.
        """
        return [
            self.recipe(row, name, seed)
            for seed in range(self.options.seeds)
            for row in self.rows
            for name in (self.methods if names is None else names)
            if exists(row, name)
        ]


def plan_of(
    name: str, options: Options, store: Store, device: str | None = None, *, eager: bool = False
) -> Plan:
    """Return a target as the options narrow it.

    Raises:
        ValueError: an unknown target, or a row or method that it does not have.
    """
    chosen = target(name)
    known = FEW_LABELS_ROWS if chosen.few_labels else ROW_NAMES
    for row in options.rows:
        if row not in known:
            raise ValueError(unknown_name(f"row of {name}:", row, known))
    usual = known[: len(LABELS)] if chosen.few_labels else (PAPER_ROW,)
    methods = chosen.chosen(options.methods)
    return Plan(options, options.rows or usual, methods, store, device, eager)


_Stage = Callable[[Plan], list[Job]]


def _cells(plan: Plan, *, keep: bool = False) -> list[Job]:
    return [training(recipe, keep=keep) for recipe in plan.each()]


def _examinations(plan: Plan) -> list[Job]:
    return [examining(recipe) for recipe in plan.each()]


def _measured_by(scorers: Sequence[str]) -> tuple[_Stage, _Stage]:
    """Make two stages: train scorers and every cell, then measure methods with the scorers."""

    def trainings(plan: Plan) -> list[Job]:
        return [training(one) for one in dict.fromkeys([*plan.each(scorers), *plan.each()])]

    def measurements(plan: Plan) -> list[Job]:
        return [
            measuring(plan.recipe(row, scorer, seed), name)
            for seed in range(plan.options.seeds)
            for row in plan.rows
            for scorer in scorers
            for name in plan.methods
            if exists(row, name)
        ]

    return trainings, measurements


def _timings(plan: Plan, base: str) -> list[Job]:
    """Time the step of every method, beside that of a base."""
    jobs: list[Job] = []
    for row in plan.rows:
        first = plan.recipe(row, base)
        others = [plan.recipe(row, name) for name in plan.methods if exists(row, name)]
        setting = this_setting(first, plan.device, eager=plan.eager)
        jobs.append(timing(first, tuple(others), setting))
    return jobs


def _timings_beside_divaug(plan: Plan) -> list[Job]:
    names = dict.fromkeys([*plan.methods, REFERENCE])
    return _timings(replace(plan, methods=tuple(names)), REFERENCE)


def _in_divaugs_time(plan: Plan) -> list[Job]:
    """Train every method for as long as DivAug, by the steps that were timed on this machine."""
    view = View(Records.of(plan.store.values()), plan.options, plan.methods)
    jobs: list[Job] = []
    for seed in range(plan.options.seeds):
        for row in plan.rows:
            usual = plan.recipe(row, REFERENCE)
            setting = this_setting(usual, plan.device, eager=plan.eager)
            for name in plan.methods:
                epochs = epochs_at_equal_time(view, row, name, setting, usual.epochs)
                if epochs is not None:
                    jobs.append(training(plan.recipe(row, name, seed, epochs)))
    return jobs


#: Target → its stages; each makes a list of jobs from the records of the stages before.
STAGES: Mapping[str, tuple[_Stage, ...]] = {
    "supervised": (_cells,),
    "random-baseline": (_cells,),
    "choice": (lambda plan: _cells(plan, keep=True), _examinations),
    "diversity": _measured_by(["none"]),
    "affinity": _measured_by(SCORERS),
    "rotate": _measured_by(["none"]),
    "evolution": (_cells,),
    "cost": (lambda plan: _timings(plan, BASE),),
    "equal-cost": (_timings_beside_divaug, _in_divaugs_time),
    "semi-supervised": (_cells,),
}
#: Target → what follows from a stage whose records are not there yet.
LATER = {"equal-cost": "Then every method is trained for the epochs that follow from these times."}
