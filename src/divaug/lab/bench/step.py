"""Time of the whole training step and of its parts, for a recipe, on one device.

On a GPU every part is recorded as a CUDA graph of its own and replayed, so that its time is the
device's and not that of launching kernels one by one. The parts are timed alone: their sum may
differ a little from the whole. Backward is what forward and backward take together, less forward.
Data loading is all that brings a batch: an epoch's order, handing out its parts, looking images up.

A semi-supervised step is held against its network passes alone, which no implementation can do
without: scoring the candidates, where the method scores, and forward and backward of the training
images. They are timed together, on images that were made before.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from divaug import DivAug, Views, score, select
from divaug._score import logits_of
from divaug._select import METHODS
from divaug.lab.bench.device import WARM_UP, in_turns, milliseconds, stretches
from divaug.lab.bench.expansion import STEP_SHAPES, verify
from divaug.lab.bench.harness import place
from divaug.lab.datasets import DATASETS, Dataset
from divaug.lab.recipes import Recipe
from divaug.lab.tables import Table
from divaug.lab.train.batches import Batch, Inputs
from divaug.lab.train.build import Parts, assemble
from divaug.lab.train.device import Hardware, fast_settings
from divaug.lab.train.folder import environment
from divaug.lab.train.processes import Processes
from divaug.lab.train.semi import MixedBatch, Role, SemiStep
from divaug.lab.train.step import Step, TrainingStep, run_of
from divaug.objectives import OBJECTIVES

__all__ = [
    "KIND",
    "SEMI_KIND",
    "Ready",
    "compare",
    "measure",
    "parts_table",
    "random_data",
    "ready",
    "semi_table",
    "table",
    "tables",
]

KIND, SEMI_KIND = "step", "semi-step"
#: The parts of a step by name, each as a function of nothing.
Works: TypeAlias = dict[str, Callable[[], object]]

# Dataset → side of its images.
_SIDES = {"cifar10": 32, "cifar100": 32, "svhn": 32, "fashion_mnist_small": 28}


def random_data(recipe: Recipe, num_images: int = 10_000) -> Dataset:
    """Make a dataset of noise in the shape of a recipe's, which must be in memory."""
    if recipe.dataset not in _SIDES:
        known = ", ".join(_SIDES)
        raise ValueError(
            f"there are no random images for {recipe.dataset!r}; pass `data`, or one of {known}."
        )
    facts, side = DATASETS[recipe.dataset], _SIDES[recipe.dataset]
    generator = torch.Generator().manual_seed(0)
    shape = (num_images, len(facts.statistics.mean), side, side)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    labels = torch.arange(num_images) % facts.num_classes
    names = tuple(map(str, range(facts.num_classes)))
    mean, std = facts.statistics.mean, facts.statistics.std
    test = (images[:1], labels[:1])
    return Dataset("random", images, labels, *test, facts.num_classes, names, mean, std)


@dataclass(frozen=True)
class Ready:
    """The step of a recipe, recorded and warmed up.

    Args:
        recipe: the recipe.
        hardware: the device and how it is used.
        parts: the assembled training.
        inputs: those of one batch.
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


def measure(
    recipe: Recipe,
    device: str | None = None,
    *,
    repeats: int = 20,
    steps: int = 10,
    eager: bool = False,
    data: Dataset | None = None,
    beside: Ready | None = None,
) -> dict[str, Any]:
    """Time a recipe's training step and its parts.

    Args:
        recipe: network, augmenter and batch.
        device: cpu or cuda; None for a GPU where there is one.
        repeats: timed stretches; the median counts.
        steps: steps in a stretch.
        eager: whether to do without compilation and CUDA graphs.
        data: the dataset; None for random images of the same shape.
        beside: another step that is timed in turns with it, in the same state of the machine.

    Returns:
        Milliseconds of the whole step (`median`, `low`, `high`) and of each part, with the recipe
        and where it ran; `beside_ms` is the other step's. Of a supervised step also each part's
        share of the whole, of a semi-supervised one its network passes and the ratio to them.
    """
    one = ready(recipe, device, eager=eager, data=data)
    with fast_settings(one.hardware):
        runs = [one.run, *([beside.run] if beside else [])]
        for run in runs[1:] * WARM_UP:  # it may have been idle for long
            run()
        whole, *other = in_turns(runs, one.hardware, repeats, steps)
        return _case(one, whole, repeats, steps) | ({"beside_ms": other[0]} if other else {})


def compare(
    recipes: Sequence[Recipe],
    device: str | None = None,
    *,
    repeats: int = 20,
    steps: int = 10,
    eager: bool = False,
) -> dict[str, Any]:
    """Time several recipes of one kind in one run, those of one network in turns.

    A GPU is slower when it is warm: in turns, all are timed in the same state, and their ratio
    belongs to one machine and moment. Where a GPU is timed, its kernels are compared with batched
    PyTorch before.
    """
    if len({OBJECTIVES[recipe.objective].unlabelled is None for recipe in recipes}) > 1:
        raise ValueError("recipes with and without unlabelled images cannot be compared.")
    if Hardware.choose(device, recipes[0].precision, eager=eager).device.type == "cuda":
        verify(1, STEP_SHAPES)
    cases: dict[Recipe, dict[str, Any]] = {}
    for model in dict.fromkeys(recipe.model for recipe in recipes):
        group = [ready(r, device, eager=eager) for r in recipes if r.model == model]
        with fast_settings(group[0].hardware):
            wholes = in_turns([one.run for one in group], group[0].hardware, repeats, steps)
            for one, whole in zip(group, wholes, strict=True):
                cases[one.recipe] = _case(one, whole, repeats, steps)
    found = [cases[recipe] for recipe in recipes]
    return {
        "benchmark": found[0]["benchmark"],
        "in_turns": True,
        "cases": found,
        "environment": found[0]["environment"],
    }


def _case(one: Ready, whole: dict[str, float], repeats: int, steps: int) -> dict[str, Any]:
    """Return all that is measured of a recipe whose whole step was timed."""
    step, hardware = one.parts.step, one.hardware
    works = _semi_works if isinstance(step, SemiStep) else _works
    alone = {
        name: milliseconds(work, hardware, repeats, steps)
        for name, work in works(step, one.inputs).items()
    }
    semi = "network passes" in alone
    if semi:
        passes = alone.pop("network passes")
        found = {"passes_ms": passes, "ratio": whole["median"] / passes, "parts_ms": alone}
    else:
        fed = _feeding(one.parts, one.inputs, hardware, repeats)
        alone = {"data loading": fed + alone.pop("gather"), **alone}
        alone["backward"] = alone.pop("forward and backward") - alone["forward"]
        found = {
            "parts_ms": alone,
            "share": {name: part / whole["median"] for name, part in alone.items()},
            "originals_per_second": 1e3 * one.recipe.batch_size / whole["median"],
            "views": one.parts.augment.views,
        }
    return {
        "benchmark": SEMI_KIND if semi else KIND,
        "recipe": one.recipe.to_dict(),
        "step_ms": whole,
        **found,
        "repeats": repeats,
        "steps": steps,
        "environment": environment(hardware, Processes()),
    }


def _works(step: TrainingStep, inputs: Inputs) -> Works:
    """Return the parts of a supervised step."""
    assert isinstance(step, Step)
    batch, hardware = step.gather(inputs), step.hardware
    with hardware.autocast():
        images, labels = step.augment(
            batch.images, batch.labels, index=batch.indices, epoch=step.epoch
        )
    assert labels is not None

    def forward() -> Tensor:
        with hardware.autocast():
            logits = logits_of(step.forward(images)).float()
        return F.cross_entropy(logits, labels)

    def both() -> None:
        step.optimizer.zero_grad()
        forward().backward()

    widen = _widening(step, batch)
    works: Works = {"gather": lambda: step.gather(inputs), "expand": widen}
    works |= _choosing(step, widen(), batch.indices)
    return works | {"forward": forward, "forward and backward": both, "optimiser": _updating(step)}


def _semi_works(step: TrainingStep, inputs: Inputs) -> Works:
    """Return the network passes of a semi-supervised step, and each part beside them."""
    assert isinstance(step, SemiStep)
    batch = step.gather(inputs)
    widen = _widening(step, batch)

    def weaken() -> tuple[Tensor, Tensor]:
        labelled = step.weakly(batch.labelled.images, Role.LABELLED)
        return labelled, step.weakly(batch.images, Role.WEAK)

    candidates, (labelled, originals) = widen(), weaken()
    choosing = _choosing(step, candidates, batch.indices)
    layout = torch.channels_last if step.hardware.channels_last else torch.contiguous_format
    views = candidates[:, : step.augment.views].flatten(0, 1).contiguous(memory_format=layout)

    def passes() -> None:
        if scoring := choosing.get("score"):
            scoring()
        step.optimizer.zero_grad()
        given, _, augmented = step.predict(labelled, originals, views)
        (given.square().mean() + augmented.square().mean()).backward()

    return {
        "network passes": passes,
        "gather": lambda: step.gather(inputs),
        "expand": widen,
        "weak": weaken,
        **choosing,
        "optimiser": _updating(step),
    }


def _feeding(parts: Parts, inputs: Inputs, hardware: Hardware, repeats: int) -> float:
    """Time an epoch's order and the copies to a recorded step: milliseconds a step."""
    places = tuple(part.clone() for part in inputs)

    def feed() -> None:
        for given in parts.feed.epoch(0, 0):
            for place_, part in zip(places, given, strict=True):
                place_.copy_(part, non_blocking=True)

    feed()
    return statistics.median(stretches(feed, hardware, repeats, 1)) / parts.feed.steps


def _widening(step: TrainingStep, batch: Batch | MixedBatch) -> Callable[[], Tensor]:
    """Return the work of making a batch's candidates."""
    augment, dtype = step.augment, step.hardware.dtype
    assert isinstance(augment, DivAug | Views)

    def widen() -> Tensor:
        images, index, when = batch.images, batch.indices, augment.step
        return augment.expansion.candidates(images, index, when, step.epoch, dtype)[0]

    return widen


def _choosing(step: TrainingStep, candidates: Tensor, indices: Tensor) -> Works:
    """Return the work of scoring and of selecting, if the augmenter's rule needs them."""
    augment, hardware = step.augment, step.hardware
    if not isinstance(augment, DivAug) or not METHODS[augment.method].needs_probs:
        return {}
    seed, when = augment.expansion.seed, torch.zeros((), dtype=torch.int64, device=hardware.device)

    def scoring() -> Tensor:
        with hardware.autocast():
            return score(augment.model, candidates)

    def selecting() -> Tensor:
        return select(probs, augment.num_selected, augment.method, seed, step=when, index=indices)

    probs = scoring()
    return {"score": scoring, "select": selecting}


def _updating(step: TrainingStep) -> Callable[[], None]:
    """Return the work of the optimiser."""
    # Gradients of a fixed place in memory; what they hold does not matter for the time.
    gradients = [torch.zeros_like(parameter) for parameter in step.optimizer.parameters]

    def update() -> None:
        for parameter, gradient in zip(step.optimizer.parameters, gradients, strict=True):
            parameter.grad = gradient
        step.optimizer.step()

    return update


def tables(result: dict[str, Any]) -> tuple[Table, ...]:
    """Return all tables of a comparison."""
    if result["benchmark"] == SEMI_KIND:
        return (semi_table(result),)
    return table(result), parts_table(result)


def table(result: dict[str, Any]) -> Table:
    """Return milliseconds of the step, relative to the first recipe with the same network."""
    rows = []
    for case in result["cases"]:
        median, spread = _times(case["step_ms"])
        speed, relative = case["originals_per_second"], _relative(case, result["cases"])
        rows.append((case["recipe"]["name"], median, spread, f"{relative:.2f}", f"{speed:,.0f}"))
    return Table(
        ("recipe", "step, ms", "spread", "relative", "originals/s"),
        tuple(rows),
        title="The training step",
        numeric=(1, 2, 3, 4),
        notes=(
            "Relative to the first recipe with the same network, timed in turns with it.",
            place(result["environment"]),
        ),
    )


def parts_table(result: dict[str, Any]) -> Table:
    """Return milliseconds of each part of the step and its share of the whole."""
    names = [case["recipe"]["name"] for case in result["cases"]]

    def cell(case: dict[str, Any], part: str) -> str:
        if part not in case["parts_ms"]:
            return ""
        return f"{case['parts_ms'][part]:.2f} ({case['share'][part]:.1%})"

    return Table(
        ("part", *names),
        tuple((p, *(cell(case, p) for case in result["cases"])) for p in _parts_of(result)),
        title="The parts of a step, ms",
        numeric=tuple(range(1, len(names) + 1)),
        notes=("Parts are timed alone; counting and copies make up the rest.",),
    )


def semi_table(result: dict[str, Any]) -> Table:
    """Return milliseconds of the step and of its passes, their ratio, and the parts beside them."""
    parts, rows = _parts_of(result), []
    for case in result["cases"]:
        recipe, alone = case["recipe"], case["parts_ms"]
        batch = f"{recipe['batch_size']} + {recipe['unlabelled_batch_size']}"
        passes = f"{case['passes_ms']:.2f}", f"{case['ratio']:.2f}"
        times = [f"{alone[part]:.2f}" if part in alone else "" for part in parts]
        rows.append((recipe["name"], batch, *_times(case["step_ms"]), *passes, *times))
    columns = ("recipe", "batch", "step, ms", "spread", "network passes, ms", "ratio", *parts)
    return Table(
        columns,
        tuple(rows),
        title="The semi-supervised step",
        numeric=tuple(range(2, len(columns))),
        notes=(
            "Network passes: scoring, where the method scores candidates, and forward and backward "
            "of all images trained on. Parts are timed alone.",
            place(result["environment"]),
        ),
    )


def _times(whole: dict[str, float]) -> tuple[str, str]:
    return f"{whole['median']:.2f}", f"{whole['low']:.2f} to {whole['high']:.2f}"


def _parts_of(result: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(part for case in result["cases"] for part in case["parts_ms"]))


def _relative(case: dict[str, Any], cases: list[dict[str, Any]]) -> float:
    model = case["recipe"]["model"]
    first = next(one for one in cases if one["recipe"]["model"] == model)
    return float(case["step_ms"]["median"] / first["step_ms"]["median"])
