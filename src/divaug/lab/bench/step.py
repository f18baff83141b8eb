"""Time of the whole training step and of its parts, for a recipe, on one device.

On a GPU every part is recorded as a CUDA graph of its own and replayed, so that its time is the
device's and not that of launching kernels one by one. The parts are timed alone: their sum may
differ a little from the whole. Backward is what forward and backward take together, less forward.
Data loading is all that brings a batch: an epoch's order, handing out its parts, looking images up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from divaug.lab.bench.clocks import WARM_UP, in_turns, milliseconds
from divaug.lab.bench.expansion import STEP_SHAPES, verify
from divaug.lab.bench.random_data import random_data
from divaug.lab.bench.step_parts import feeding, works_of
from divaug.lab.checkout import commit_of
from divaug.lab.datasets import Dataset
from divaug.lab.recipes import Recipe
from divaug.lab.tables import Table
from divaug.lab.train.batches import Inputs
from divaug.lab.train.build import Parts, assemble
from divaug.lab.train.device import Hardware, fast_settings
from divaug.lab.train.folder import environment
from divaug.lab.train.processes import Processes
from divaug.lab.train.step import run_of

__all__ = [
    "KIND",
    "Ready",
    "check_kernels",
    "compare",
    "measure",
    "parts_table",
    "ready",
    "table",
    "where_measured",
]

KIND = "step"


def measure(
    recipe: Recipe,
    device: str | None = None,
    *,
    repeats: int = 20,
    steps: int = 10,
    eager: bool = False,
    data: Dataset | None = None,
    beside: "Ready | None" = None,
) -> dict[str, Any]:
    """Time a recipe's training step and its parts.

    Args:
        recipe: which network, augmenter and batch.
        device: where; None for a GPU where there is one.
        repeats: timed stretches; the median counts.
        steps: steps in a stretch.
        eager: whether to do without compilation and CUDA graphs.
        data: the dataset; None for random images of the same shape.
        beside: another step that is timed in turns with it, in the same state of the machine.

    Returns:
        Milliseconds of the whole step (`median`, `low`, `high`), of each part, and each part's
        share of the whole, with the recipe and where it ran; `beside_ms` is the other step's.
    """
    one = ready(recipe, device, eager=eager, data=data)
    with fast_settings(one.hardware):
        runs = [one.run, *([beside.run] if beside else [])]
        for run in runs[1:] * WARM_UP:  # it may have been idle for long
            run()
        whole, *other = in_turns(runs, one.hardware, repeats, steps)
        return _case(one, whole, repeats, steps) | ({"beside_ms": other[0]} if other else {})


@dataclass(frozen=True)
class Ready:
    """The step of a recipe, recorded and warmed up.

    Args:
        recipe: what it trains.
        hardware: where.
        parts: the assembled training.
        inputs: of one batch.
        run: trains on them.
    """

    recipe: Recipe
    hardware: Hardware
    parts: Parts
    inputs: Inputs
    run: Callable[[], None]


def ready(
    recipe: Recipe,
    device: str | None = None,
    *,
    eager: bool = False,
    data: Dataset | None = None,
) -> Ready:
    """Assemble a recipe's training and warm its step up; see `measure` for the arguments."""
    hardware = Hardware.choose(device, recipe.precision, eager=eager)
    with fast_settings(hardware):
        parts = assemble(recipe, data or random_data(recipe), hardware, Processes())
        inputs = next(parts.feed.epoch(0, 0))
        parts.step.begin_epoch(0)
        run_step = run_of(parts.step)
        for _ in range(WARM_UP):
            run_step(inputs)
    return Ready(recipe, hardware, parts, inputs, lambda: run_step(inputs))


def _case(one: Ready, whole: dict[str, float], repeats: int, steps: int) -> dict[str, Any]:
    """All that is measured of a recipe whose whole step was timed."""
    parts, hardware = one.parts, one.hardware
    alone = {
        name: milliseconds(work, hardware, repeats, steps)
        for name, work in works_of(parts, one.inputs, hardware).items()
    }
    fed = feeding(parts, one.inputs, hardware, repeats)
    alone = {"data loading": fed + alone.pop("gather"), **alone}
    together = alone.pop("forward and backward")
    alone["backward"] = together - alone["forward"]
    return {
        "benchmark": KIND,
        "recipe": one.recipe.to_dict(),
        "step_ms": whole,
        "parts_ms": alone,
        "share": {name: part / whole["median"] for name, part in alone.items()},
        "originals_per_second": 1e3 * one.recipe.batch_size / whole["median"],
        "views": parts.augment.views,
        "repeats": repeats,
        "steps": steps,
        "environment": environment(hardware, Processes()),
    }


def check_kernels(recipes: Sequence[Recipe], device: str | None, *, eager: bool) -> None:
    """Compare the kernels with batched PyTorch if a GPU is to be timed; raises at a wrong bit."""
    if recipes and Hardware.choose(device, recipes[0].precision, eager=eager).device.type == "cuda":
        verify(1, STEP_SHAPES)


def compare(
    recipes: Sequence[Recipe],
    device: str | None = None,
    *,
    repeats: int = 20,
    steps: int = 10,
    eager: bool = False,
) -> dict[str, Any]:
    """Time several recipes in one run, those of one network in turns.

    A GPU is slower when it is warm: in turns, all are timed in the same state, and their ratio
    belongs to one machine and moment.
    """
    check_kernels(recipes, device, eager=eager)
    cases: dict[Recipe, dict[str, Any]] = {}
    for model in dict.fromkeys(recipe.model for recipe in recipes):
        group = [ready(r, device, eager=eager) for r in recipes if r.model == model]
        with fast_settings(group[0].hardware):
            wholes = in_turns([one.run for one in group], group[0].hardware, repeats, steps)
            for one, whole in zip(group, wholes, strict=True):
                cases[one.recipe] = _case(one, whole, repeats, steps)
    found = [cases[recipe] for recipe in recipes]
    return {
        "benchmark": KIND,
        "in_turns": True,
        "cases": found,
        "environment": found[0]["environment"],
    }


def table(result: dict[str, Any]) -> Table:
    """Milliseconds of the step, relative to the first recipe with the same network."""
    rows = []
    for case in result["cases"]:
        whole = case["step_ms"]
        speed = f"{case['originals_per_second']:,.0f}"
        spread = f"{whole['low']:.2f} to {whole['high']:.2f}"
        name, relative = case["recipe"]["name"], f"{_relative(case, result['cases']):.2f}"
        rows.append((name, f"{whole['median']:.2f}", spread, relative, speed))
    return Table(
        ("recipe", "step, ms", "spread", "relative", "originals/s"),
        tuple(rows),
        title="The training step",
        numeric=(1, 2, 3, 4),
        notes=(
            "Relative to the first recipe with the same network, "
            + ("timed in turns with it." if result.get("in_turns") else "timed before it."),
            where_measured(result),
        ),
    )


def parts_table(result: dict[str, Any]) -> Table:
    """Milliseconds of each part of the step and its share of the whole."""
    names = [case["recipe"]["name"] for case in result["cases"]]
    parts = list(dict.fromkeys(part for case in result["cases"] for part in case["parts_ms"]))

    def cell(case: dict[str, Any], part: str) -> str:
        if part not in case["parts_ms"]:
            return ""
        return f"{case['parts_ms'][part]:.2f} ({case['share'][part]:.1%})"

    rows = tuple((part, *(cell(case, part) for case in result["cases"])) for part in parts)
    return Table(
        ("part", *names),
        rows,
        title="The parts of a step, ms",
        numeric=tuple(range(1, len(names) + 1)),
        notes=("Parts are timed alone; counting and copies make up the rest.",),
    )


def _relative(case: dict[str, Any], cases: list[dict[str, Any]]) -> float:
    model = case["recipe"]["model"]
    first = next(one for one in cases if one["recipe"]["model"] == model)
    return float(case["step_ms"]["median"] / first["step_ms"]["median"])


def where_measured(result: dict[str, Any]) -> str:
    """A sentence about the machine and the versions."""
    env = result["environment"]
    versions = ", ".join(f"{name} {version}" for name, version in env["packages"].items())
    machine = env.get("gpu") or env["processor"]
    return f"Measured on {machine}; Python {env['python']}, {versions}; commit {commit_of(env)}."
