"""How long jobs will take, from steps that were timed on the same kind of machine."""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields
from pathlib import Path
from typing import Any

from divaug.lab.recipes import Recipe
from divaug.lab.report.table import duration
from divaug.lab.reproduce.jobs import Job, TrainJob
from divaug.lab.reproduce.machines import machine_of
from divaug.lab.reproduce.methods import Method, method
from divaug.lab.reproduce.options import TRAIN_IMAGES
from divaug.lab.reproduce.store import Store
from divaug.lab.reproduce.timing import this_machine
from divaug.lab.tables import Table
from divaug.objectives import OBJECTIVES

__all__ = ["SEMI_STEP_FILE", "STEP_FILE", "Estimator", "list_jobs"]

#: Steps that were timed with `divaug bench step`, in a checkout of the project.
STEP_FILE = Path("benchmarks/results/step.json")
#: The same with unlabelled images.
SEMI_STEP_FILE = Path("benchmarks/results/semi-step.json")

# What a case must have in common with a recipe; files from before a field have its default.
_ALIKE = (
    "dataset", "model", "batch_size", "num_candidates", "num_selected", "objective",
    "unlabelled_batch_size", "joint_forward", "ema_decay",
)  # fmt: skip
_DEFAULTS = {field.name: field.default for field in fields(Recipe)}


class Estimator:
    """Knows how long a step takes on this machine, as far as anybody has timed it.

    Args:
        store: records, timings among them.
        device: where jobs will run.
        machine: the kind of machine, like "NVIDIA H200"; None for this one.
        steps: a file of `divaug bench step`; one that is not there says nothing.
        semi_steps: likewise, of `divaug bench step --objective uda`.

    Raises:
        ValueError: a machine that nobody has timed a step on.
    """

    def __init__(
        self,
        store: Store,
        device: str | None = None,
        machine: str | None = None,
        steps: Path = STEP_FILE,
        semi_steps: Path = SEMI_STEP_FILE,
    ) -> None:
        self._store, self._device, self._machine = store, device, machine
        self._cases = [*_read_cases(steps), *_read_cases(semi_steps)]
        if machine is not None and machine not in self.machines:
            known = ", ".join(map(repr, self.machines)) or "none so far"
            raise ValueError(
                f"`machine` must be one that steps were timed on ({known}), got {machine!r}; leave "
                "it out for this machine."
            )

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines that somebody has timed a step on."""
        found = {cost.machine for cost in self._store.costs.values()}
        return tuple(sorted(found | {machine_of(case["environment"]) for case in self._cases}))

    def machine(self, recipe: Recipe) -> str:
        """The machine that the estimate for a recipe is for."""
        return self._machine or this_machine(recipe, self._device)

    def seconds(self, job: Job, done: int = 0) -> float | None:
        """How long a training takes from so many epochs on; None for what nobody has timed."""
        if not isinstance(job, TrainJob):
            return None
        milliseconds = self._step(job.recipe, self.machine(job.recipe))
        steps = _epoch_steps(job.recipe)
        if milliseconds is None or steps is None:
            return None
        return (job.recipe.epochs - done) * steps * milliseconds / 1e3

    def elsewhere(self, jobs: Sequence[TrainJob]) -> list[str]:
        """The machines on which the step of some of these trainings was timed."""
        recipes = [job.recipe for job in jobs]
        return [m for m in self.machines if any(self._step(r, m) is not None for r in recipes)]

    def _step(self, recipe: Recipe, machine: str) -> float | None:
        timed = [cost for cost in self._store.timed(recipe) if cost.machine == machine]
        if timed:
            return float(timed[-1].step_ms["median"])
        found = [
            case
            for case in self._cases
            if machine_of(case["environment"]) == machine
            and all(
                case["recipe"].get(name, _DEFAULTS[name]) == getattr(recipe, name)
                for name in _ALIKE
            )
        ]
        return _from_cases({case["recipe"]["augmenter"]: case for case in found}, recipe)


def _few_labels(recipe: Recipe) -> bool:
    return OBJECTIVES[recipe.objective].unlabelled is not None


def _epoch_steps(recipe: Recipe) -> int | None:
    """Steps of an epoch; None for a dataset of unknown size."""
    images = recipe.train_images or TRAIN_IMAGES.get(recipe.dataset)
    if recipe.epoch_steps or images is None:
        return recipe.epoch_steps or None
    batch = recipe.unlabelled_batch_size if _few_labels(recipe) else recipe.batch_size
    return max(1, images // batch)


def _from_cases(cases: Mapping[str, Mapping[str, Any]], recipe: Recipe) -> float | None:
    """A method's step from its own timing, or from one that does the same work."""
    own = cases.get(recipe.augmenter)
    if own is not None:
        return float(own["step_ms"]["median"])
    wanted = method(recipe.augmenter)
    alike = _like(wanted)
    if alike not in cases:
        return None
    case = cases[alike]
    spared = (
        0.0
        if wanted.asks or not wanted.many
        else sum(case["parts_ms"].get(part, 0.0) for part in ("score", "select"))
    )
    return float(case["step_ms"]["median"]) - spared


def _like(wanted: Method) -> str:
    """Whose step is timed in the benchmark and most like it."""
    return "divaug" if wanted.many else "randaugment"


def _read_cases(path: Path) -> Sequence[Mapping[str, Any]]:
    try:
        cases: Sequence[Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    return cases


def list_jobs(
    jobs: Sequence[Job],
    store: Store,
    estimator: Estimator,
    later: str = "",
    again: Set[str] = frozenset(),
    begun: Mapping[str, int] | None = None,
) -> Table:
    """The list with an estimate of time for what is still to do.

    Args:
        jobs: all of them.
        store: says which are done.
        estimator: knows times.
        later: what follows from them, in words.
        again: hashes of runs with a record that are trained again for their network.
        begun: hash → epochs done, of runs that will go on.
    """
    epochs = begun or {}
    rows, total, unknown, waiting = [], 0.0, list[Job](), 0
    for i, job in enumerate(jobs, 1):
        repeated = job.hash in again
        done = job.done(store) and not repeated
        waiting += not done
        seconds = None if done else estimator.seconds(job, epochs.get(job.hash, 0))
        total += seconds or 0.0
        if not done and seconds is None:
            unknown.append(job)
        about = "" if done else "unknown" if seconds is None else f"about {duration(seconds)}"
        state = "done" if done else "to do"
        state += ", its network is needed" if repeated else ""
        if not done and job.hash in epochs:
            # A run may have ended without a record, which is then all there is to do.
            state += f" from epoch {epochs[job.hash] + 1} on" if seconds != 0 else ", its record"
        rows.append((str(i), job.label, state, about, job.hash))
    notes = [f"Still to do: {waiting} of {len(rows)}."]
    if total:
        notes.append(f"Trainings take about {duration(total)}, evaluations not counted.")
    notes += _unknown_notes(unknown, estimator)
    if later:
        notes.append(f"{later[0].upper()}{later[1:]}.")
    return Table(
        ("", "job", "state", "time", "hash"), tuple(rows), numeric=(0, 3), notes=tuple(notes)
    )


def _unknown_notes(unknown: Sequence[Job], estimator: Estimator) -> list[str]:
    """Why times are unknown, and what can be done about it."""
    trainings = [job for job in unknown if isinstance(job, TrainJob)]
    notes = []
    if trainings:
        few = all(_few_labels(job.recipe) for job in trainings)
        timing = f"bench step --objective uda --json {SEMI_STEP_FILE}" if few else "reproduce cost"
        notes.append(
            f"{len(trainings)} of unknown time: nobody has timed such a step on "
            f"{estimator.machine(trainings[0].recipe)}; `divaug {timing}` does."
        )
        if others := estimator.elsewhere(trainings):
            choices = " or ".join(f'--machine "{name}"' for name in others)
            notes.append(f"Some were timed elsewhere: {choices} estimates for that machine.")
    if rest := len(unknown) - len(trainings):
        notes.append(f"{rest} without an estimate: only trainings have one.")
    return notes
