"""Time of the semi-supervised step against its network passes alone, in one run.

The passes are what no implementation can do without: scoring the candidates, where the method asks
the network, and the forward and backward passes of the training images. They are timed together, on
images that were made before, as one CUDA graph on a GPU.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from divaug.lab.bench.clocks import in_turns, milliseconds
from divaug.lab.bench.step import check_kernels, ready, where_measured
from divaug.lab.bench.step_parts import Works, choosing, updating, widening
from divaug.lab.datasets import Dataset
from divaug.lab.recipes import Recipe
from divaug.lab.tables import Table
from divaug.lab.train.batches import Inputs
from divaug.lab.train.device import fast_settings
from divaug.lab.train.folder import environment
from divaug.lab.train.processes import Processes
from divaug.lab.train.semi import Role, SemiStep

__all__ = ["KIND", "compare", "measure", "table"]

KIND = "semi-step"


def measure(
    recipe: Recipe,
    device: str | None = None,
    *,
    repeats: int = 20,
    steps: int = 10,
    eager: bool = False,
    data: Dataset | None = None,
) -> dict[str, Any]:
    """Time a recipe's whole step, its network passes alone, and what it does beside them.

    Args:
        recipe: with unlabelled images.
        device: where; None for a GPU where there is one.
        repeats: timed stretches; the median counts.
        steps: steps in a stretch.
        eager: whether to do without compilation and CUDA graphs.
        data: the dataset; None for random images of the same shape.

    Returns:
        Milliseconds of the step (`median`, `low`, `high`), of its passes, their ratio, the parts.
    """
    one = ready(recipe, device, eager=eager, data=data)
    hardware, step = one.hardware, one.parts.step
    if not isinstance(step, SemiStep):
        raise ValueError(f"recipe {recipe.name!r} has no unlabelled images to time.")
    with fast_settings(hardware):
        (whole,) = in_turns([one.run], hardware, repeats, steps)
        alone = {
            name: milliseconds(work, hardware, repeats, steps)
            for name, work in _works(step, one.inputs).items()
        }
    passes = alone.pop("network passes")
    return {
        "benchmark": KIND,
        "recipe": recipe.to_dict(),
        "step_ms": whole,
        "passes_ms": passes,
        "ratio": whole["median"] / passes,
        "parts_ms": alone,
        "repeats": repeats,
        "steps": steps,
        "environment": environment(hardware, Processes()),
    }


def compare(
    recipes: Sequence[Recipe], device: str | None = None, *, repeats: int = 20, eager: bool = False
) -> dict[str, Any]:
    """Time several recipes in one run."""
    check_kernels(recipes, device, eager=eager)
    found = [measure(recipe, device, repeats=repeats, eager=eager) for recipe in recipes]
    return {"benchmark": KIND, "cases": found, "environment": found[0]["environment"]}


def table(result: dict[str, Any]) -> Table:
    """Milliseconds of the step and of its passes, their ratio, and the parts beside them."""
    parts = list(dict.fromkeys(part for case in result["cases"] for part in case["parts_ms"]))
    rows = []
    for case in result["cases"]:
        whole, fields = case["step_ms"], case["recipe"]
        batch = f"{fields['batch_size']} + {fields['unlabelled_batch_size']}"
        times = [f"{case['parts_ms'][p]:.2f}" if p in case["parts_ms"] else "" for p in parts]
        rows.append(
            (
                fields["name"],
                batch,
                f"{whole['median']:.2f}",
                f"{whole['low']:.2f} to {whole['high']:.2f}",
                f"{case['passes_ms']:.2f}",
                f"{case['ratio']:.2f}",
                *times,
            )
        )
    columns = ("recipe", "batch", "step, ms", "spread", "network passes, ms", "ratio", *parts)
    return Table(
        columns,
        tuple(rows),
        title="The semi-supervised step",
        numeric=tuple(range(2, len(columns))),
        notes=(
            "Network passes: scoring, where the method asks the network, and forward and backward "
            "of all images trained on. Parts are timed alone.",
            where_measured(result),
        ),
    )


def _works(step: SemiStep, inputs: Inputs) -> Works:
    """The network passes, and each part beside them, as functions of nothing."""
    batch = step.gather(inputs)
    widen = widening(step, batch)

    def weaken() -> tuple[Tensor, Tensor]:
        labelled = step.weakly(batch.labelled.images, Role.LABELLED)
        return labelled, step.weakly(batch.images, Role.WEAK)

    candidates = widen()
    asked = choosing(step, candidates, batch.indices)
    return {
        "network passes": _passing(step, *weaken(), candidates, asked.get("score")),
        "gather": lambda: step.gather(inputs),
        "expand": widen,
        "weak": weaken,
        **asked,
        "optimiser": updating(step),
    }


def _passing(
    step: SemiStep,
    labelled: Tensor,
    originals: Tensor,
    candidates: Tensor,
    ask: Callable[[], object] | None,
) -> Callable[[], None]:
    """Scoring, where the network is asked, and forward and backward of all images trained on."""
    layout = torch.channels_last if step.hardware.channels_last else torch.contiguous_format
    views = candidates[:, : step.augment.views].flatten(0, 1).contiguous(memory_format=layout)

    def passes() -> None:
        if ask:
            ask()
        step.optimizer.zero_grad()
        given, _, augmented = step.predict(labelled, originals, views)
        (given.square().mean() + augmented.square().mean()).backward()

    return passes
