"""Batched operations against a Pillow loop and torchvision called image by image."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from divaug import SubPolicies, expand, replay
from divaug.lab.bench import loops
from divaug.lab.bench.harness import (
    environment,
    median_seconds,
    peak_bytes,
    place,
    progress,
    threads,
)
from divaug.lab.figures.canvas import resize, to_picture
from divaug.lab.figures.scene import DAY, NIGHT, scene
from divaug.lab.tables import Table
from divaug.operations import OPERATIONS
from divaug.policies import Listed, Policy, Uniform

__all__ = [
    "CASES",
    "KIND",
    "MEMORY_LIMIT",
    "Case",
    "Work",
    "measure",
    "operation_table",
    "photographs",
    "table",
]

KIND = "operations"
#: Bytes of temporaries and result that a pixel of the batch (B·H·W) may take.
MEMORY_LIMIT = 12.0


@dataclass(frozen=True)
class Case:
    """A batch of B images of size² pixels."""

    batch: int
    size: int


CASES = (Case(1024, 32), Case(64, 224))


@dataclass(frozen=True, eq=False)
class Work:
    """Images and the sub-policy drawn for each."""

    images: Tensor
    subpolicies: SubPolicies

    @staticmethod
    def draw(case: Case, policy: Policy, seed: int) -> "Work":
        """Draw images and a sub-policy for each."""
        images = photographs(case, seed)
        return Work(images, expand(images, 1, policy, seed=seed)[1])

    def batched(self) -> Tensor:
        """Apply them as one batch."""
        return replay(self.images, self.subpolicies, backend="torch")[:, 0]

    @property
    def steps(self) -> list[list[loops.Step]]:
        """The sub-policies for a loop over images."""
        return loops.steps_of(self.subpolicies[:, 0])


def photographs(case: Case, seed: int) -> Tensor:
    """Draw images that look like photographs: two scenes, shifted, lit and with noise."""
    B, size = case.batch, case.size
    generator = torch.Generator().manual_seed(seed)

    def random(high: int, *shape: int) -> Tensor:
        return torch.randint(0, high, shape, dtype=torch.int32, generator=generator)

    base = torch.stack([resize(scene(96, palette), size, size) for palette in (DAY, NIGHT)])
    images = base[random(2, B)].to(torch.int32)
    column = (torch.arange(size) + random(size, B, 1)) % size
    turned = images.gather(3, column[:, None, None].expand(images.shape))
    lit = turned * (160 + random(96, B, 1, 1, 1)) // 256
    return (lit + random(25, *images.shape) - 12).clamp(0, 255).to(torch.uint8)


def check_equal(work: Work) -> None:
    """Raise ValueError unless our pixels are Pillow's for every image of the batch."""
    theirs = loops.pillow_loop(work.images, work.steps)
    differs = (work.batched() != theirs).flatten(1).any(1)
    if bool(differs.any()):
        i = int(differs.nonzero()[0])
        line = work.subpolicies[:, 0].describe()[i]
        raise ValueError(f"image {i} differs from Pillow's after {line}: no times are shown.")


def contenders(work: Work, repeats: int) -> dict[str, float]:
    """Median seconds of each way to turn the batch into the augmented batch."""
    steps, images = work.steps, work.images
    pictures = [to_picture(image) for image in images]
    twins = loops.torchvision_twins()

    def by_torchvision() -> Tensor:
        return loops.torchvision_loop(images, steps, twins)

    return {
        "divaug": median_seconds(work.batched, repeats=3 * repeats, warm_up=2),
        "divaug_alone": _on_one_core(work.batched, repeats=3 * repeats, warm_up=2),
        "pillow": median_seconds(lambda: loops.pillow_loop(images, steps), repeats=repeats),
        # What is left of Pillow's time where images come and go as Pillow's own objects.
        "pillow_only": median_seconds(
            lambda: loops.apply_loop(pictures, steps, loops.PILLOW), repeats=repeats
        ),
        "torchvision": median_seconds(by_torchvision, repeats=repeats),
        "torchvision_alone": _on_one_core(by_torchvision, repeats=repeats),
    }


def _on_one_core(run: Callable[[], object], *, repeats: int, warm_up: int = 1) -> float:
    """Do the same with one thread, as a loop with Pillow has one core."""
    with threads(1):
        return median_seconds(run, repeats=repeats, warm_up=warm_up)


def _measure_case(case: Case, repeats: int, seed: int) -> dict[str, Any]:
    progress(f"measuring {case.batch} images of {case.size}×{case.size} pixels")
    work = Work.draw(case, Uniform(), seed)
    check_equal(work)
    bytes_per_pixel = peak_bytes(work.batched) / (case.batch * case.size**2)
    if bytes_per_pixel > MEMORY_LIMIT:
        raise ValueError(
            f"the batch took {bytes_per_pixel:.1f} bytes a pixel at {case.size} px, more than "
            f"{MEMORY_LIMIT:g}."
        )
    single = {}
    for name in OPERATIONS:
        one = Work.draw(case, Listed((((name, 1.0, 0.7),),)), seed)
        check_equal(one)
        single[name] = contenders(one, repeats)
    return {
        "batch": case.batch,
        "size": case.size,
        "seconds": contenders(work, repeats),
        "bytes_per_pixel": bytes_per_pixel,
        "operations": single,
    }


def measure(cases: tuple[Case, ...] = CASES, repeats: int = 7, seed: int = 0) -> dict[str, Any]:
    """Measure every case in one run; raises ValueError where our pixels are not Pillow's."""
    env = environment()
    measured = [_measure_case(case, repeats, seed) for case in cases]
    return {"benchmark": KIND, "environment": env, "cases": measured}


_NAMES = {
    "divaug": "divaug, batched",
    "divaug_alone": "divaug, batched, one thread",
    "pillow": "Pillow loop",
    "pillow_only": "Pillow loop, conversions left out",
    "torchvision": "torchvision v2 loop",
    "torchvision_alone": "torchvision v2 loop, one thread",
}
# Compared with our time on one core.
_ON_ONE_CORE = ("divaug_alone", "pillow", "pillow_only", "torchvision_alone")
_LEFT_OUT = {"pillow": "", "pillow_only": ", conversions left out"}
_NOTES = (
    "A uint8 batch in, a uint8 batch out. A loop with Pillow has one core; torchvision and "
    "we have as many threads as stand below, and one where that is named.",
    "Medians; all of our pixels were equal to Pillow's before the clock started.",
)


def table(result: dict[str, Any]) -> Table:
    """Return two-operation sub-policies: times, ratios, throughput and memory."""
    return Table(
        ("batch", "way", "ms", "images/s", "time ÷ ours", "÷ ours, one thread", "peak B/px"),
        tuple(row for case in result["cases"] for row in _rows(case)),
        title="Random two-operation sub-policies, every image its own",
        numeric=(2, 3, 4, 5, 6),
        notes=(*_NOTES, _losses(result), place(result["environment"])),
    )


def _rows(case: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each way to augment the batch."""
    ours, alone = (case["seconds"][way] for way in ("divaug", "divaug_alone"))
    for name, seconds in case["seconds"].items():
        yield (
            f"{case['batch']} × {case['size']} px",
            _NAMES[name],
            f"{1e3 * seconds:.1f}",
            f"{case['batch'] / seconds:,.0f}",
            f"{seconds / ours:.1f}×",
            f"{seconds / alone:.1f}×" if name in _ON_ONE_CORE else "",
            f"{case['bytes_per_pixel']:.1f}" if name == "divaug" else "",
        )


def operation_table(result: dict[str, Any]) -> Table:
    """Tabulate each operation's speed relative to Pillow's loop, on one core each."""
    ways = [(case, way) for case in result["cases"] for way in ("pillow", "pillow_only")]

    def ratio(case: dict[str, Any], way: str, name: str) -> str:
        seconds = case["operations"][name]
        return f"{seconds[way] / seconds['divaug_alone']:.1f}×"

    return Table(
        columns=("operation", *(f"{c['size']} px{_LEFT_OUT[way]}" for c, way in ways)),
        rows=tuple((name, *(ratio(c, way, name) for c, way in ways)) for name in OPERATIONS),
        title="Pillow loop ÷ ours with one thread, one operation at m = 0.7 for every image",
        numeric=tuple(range(1, len(ways) + 1)),
    )


def _losses(result: dict[str, Any]) -> str:
    """Return where Pillow's loop is the faster one, conversions left out and on one core each."""
    lost = []
    for case in result["cases"]:
        names = [name for name, seconds in case["operations"].items() if _is_lost(seconds)]
        whole = ["the sub-policies"] if _is_lost(case["seconds"]) else []
        if whole or names:
            lost.append(f"at {case['size']} px for {', '.join([*whole, *names])}")
    where = "; ".join(lost) or "nowhere"
    return f"On one core each, with conversions left out, Pillow is faster {where}."


def _is_lost(seconds: dict[str, float]) -> bool:
    return seconds["pillow_only"] < seconds["divaug_alone"]
