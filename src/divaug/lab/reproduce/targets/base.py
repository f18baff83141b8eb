"""What a target is: jobs, stage by stage, and what their records come to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from divaug._names import unknown_name
from divaug.lab.recipes import Recipe
from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.jobs import Job, TrainJob
from divaug.lab.reproduce.measurement import MeasureJob
from divaug.lab.reproduce.merging import together
from divaug.lab.reproduce.options import PAPER_ROW, ROW_NAMES, Options, recipe_of
from divaug.lab.reproduce.outcomes import Outcome
from divaug.lab.reproduce.records import RunRecord
from divaug.lab.reproduce.store import Store
from divaug.lab.reproduce.timing import this_setting

__all__ = ["Plan", "Target", "cells", "exists", "measured_by", "once", "runs_behind"]


@dataclass(frozen=True)
class Plan:
    """What a stage's jobs are made from.

    Args:
        options: which cells, and how much they are shrunk.
        rows: of the target.
        methods: of the target.
        store: the records of the stages before.
        device: where jobs will run.
        eager: whether without compilation and CUDA graphs.
        machine: the kind of machine that jobs are only listed for; None for this one.
    """

    options: Options
    rows: tuple[str, ...]
    methods: tuple[str, ...]
    store: Store
    device: str | None = None
    eager: bool = False
    machine: str | None = None

    def setting(self, recipe: Recipe) -> str:
        """Where and how the steps are timed that jobs follow from; see `setting_of`.

        Of another machine than this one the timings that it has tell; the last where they differ.
        """
        if self.machine is None:
            return this_setting(recipe, self.device, eager=self.eager)
        timed = [one for one in self.store.timed(recipe) if one.machine == self.machine]
        wanted = [one for one in timed if not (self.eager and one.compiled)]
        return wanted[-1].setting if wanted else self.machine


@dataclass(frozen=True)
class Target:
    """A table, a figure or a comparison.

    Args:
        name: of the command.
        title: what it shows.
        methods: that it compares, in the order of its table.
        stages: each makes a list of jobs from what the stages before left.
        analyse: makes tables and figures from the records.
        rows: dataset and network, where nobody asks for others.
        many_rows: whether its tables can show more than one row.
        known_rows: those it may be asked for.
        later: in words, what follows from a stage whose records are not there yet.
        about: what its page says first.
    """

    name: str
    title: str
    methods: tuple[str, ...]
    stages: tuple[Callable[[Plan], list[Job]], ...]
    analyse: Callable[[Findings], Outcome]
    rows: tuple[str, ...] = (PAPER_ROW,)
    many_rows: bool = False
    known_rows: tuple[str, ...] = ROW_NAMES
    later: str = ""
    about: str = ""

    def plan(
        self,
        options: Options,
        store: Store,
        device: str | None = None,
        *,
        eager: bool = False,
        machine: str | None = None,
    ) -> Plan:
        """The target as the options narrow it.

        Raises:
            ValueError: a method or row that the target does not have, or more rows than it shows.
        """
        for row in options.rows:
            if row not in self.known_rows:
                raise ValueError(unknown_name(f"row of {self.name}:", row, self.known_rows))
        if len(options.rows) > 1 and not self.many_rows:
            raise ValueError(f"`{self.name}` shows one row, got {', '.join(options.rows)}.")
        for name in options.methods:
            if name not in self.methods:
                raise ValueError(unknown_name(f"method of {self.name}:", name, self.methods))
        methods = tuple(name for name in self.methods if name in (options.methods or self.methods))
        return Plan(options, options.rows or self.rows, methods, store, device, eager, machine)

    def findings(self, options: Options, store: Store) -> Findings:
        """The records, through the options."""
        self.plan(options, store)  # refuses what is not known
        return Findings(store, options, self.rows, self.methods, self.known_rows)

    def outcome(self, options: Options, store: Store) -> Outcome:
        """What the records come to; runs that were shrunk are called so."""
        if options.rows or self.many_rows:
            found = self.analyse(self.findings(options, store))
        else:
            found = together(self._by_row(options, store))
        found = replace(found, about=self.about)
        if not options.shrunk:
            return found
        note = f"Not the paper's setting: {options.shrunk}."
        return replace(found, sentences=(note, *found.sentences))

    def _by_row(self, options: Options, store: Store) -> dict[str, Outcome]:
        """The outcome of each row that has records; of the target's own where none has."""
        outcomes = {
            row: self.analyse(self.findings(replace(options, rows=(row,)), store))
            for row in dict.fromkeys([*self.rows, *self.known_rows])
        }
        own = self.rows[0]
        return {row: one for row, one in outcomes.items() if not one.empty} or {own: outcomes[own]}


def cells(plan: Plan, methods: Sequence[str] | None = None, *, keep: bool = False) -> list[Job]:
    """Train every cell; the first seed of all comes before the second of any.

    Args:
        plan: the rows, the seeds and, unless they are given, the methods.
        methods: of the cells.
        keep: whether their networks are kept for the stages that follow.
    """
    names = plan.methods if methods is None else methods
    jobs: list[Job] = []
    for seed in range(plan.options.seeds):
        for row in plan.rows:
            for name in names:
                if exists(row, name):
                    jobs.append(TrainJob(recipe_of(row, name, seed, plan.options), keep))
    return list(dict.fromkeys(jobs))


def _measurements(plan: Plan, scorers: Sequence[str]) -> list[Job]:
    """Measure every method with the scorers' networks; first with those of the first seed."""
    return [
        MeasureJob(recipe_of(row, scorer, seed, plan.options), name)
        for seed in range(plan.options.seeds)
        for row in plan.rows
        for scorer in scorers
        for name in plan.methods
        if exists(row, name)
    ]


def _scorers(plan: Plan, names: Sequence[str]) -> list[Job]:
    """Train the networks that measure others: one for each seed, as one network has no spread."""
    return [
        TrainJob(recipe_of(row, name, seed, plan.options))
        for seed in range(plan.options.seeds)
        for row in plan.rows
        for name in names
    ]


def measured_by(names: Sequence[str]) -> tuple[Callable[[Plan], list[Job]], ...]:
    """Two stages: train the scorers and every cell, then measure every method with the scorers."""
    return (
        lambda plan: list(dict.fromkeys([*_scorers(plan, names), *cells(plan)])),
        lambda plan: _measurements(plan, names),
    )


def runs_behind(
    findings: Findings, rows: Sequence[str], extra: Sequence[str] = ()
) -> list[RunRecord]:
    """Every run that the cells of some rows are made from, those of extra methods first."""
    names = dict.fromkeys([*extra, *findings.methods])
    return [run for row in rows for name in names for run in findings.runs(row, name)]


def once(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Each run once: a run may stand in several columns of a table."""
    return list({run.hash: run for run in runs}.values())


def exists(row: str, augmenter: str) -> bool:
    """Whether there is a recipe: PBA, for one, has no schedule for ImageNet."""
    try:
        recipe_of(row, augmenter, 0, Options())
    except ValueError:
        return False
    return True
