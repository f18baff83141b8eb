"""Batched operations against a Pillow loop and torchvision called image by image."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from divaug.benchmarks import pillow_loop, torchvision_loop
from divaug.benchmarks.harness import (
    environment,
    median_seconds,
    peak_bytes,
    place,
    progress,
    threads,
)
from divaug.figures.canvas import resize, to_picture
from divaug.figures.scene import DAY, NIGHT, scene
from divaug.operations import OPERATIONS
from divaug.policies import Listed, Policy, Uniform
from divaug.policies.table import Partners
from divaug.randomness import Purpose, Stream
from divaug.replaying import replay
from divaug.subpolicies import SubPolicies
from divaug.tables import Table

__all__ = ["CASES", "KIND", "MEMORY_LIMIT", "Case", "measure", "operation_table", "table"]

KIND = "operations"
#: Bytes of temporaries and result per pixel of the batch (B·H·W) that we allow ourselves.
MEMORY_LIMIT = 12.0


@dataclass(frozen=True)
class Case:
    """A batch of B images of size² pixels."""

    batch: int
    size: int


CASES = (Case(1024, 32), Case(64, 224))


@dataclass(frozen=True, eq=False)
class Work:
    """Images and drawn sub-policies in the form that each contender likes best."""

    images: Tensor
    subpolicies: SubPolicies

    @staticmethod
    def draw(case: Case, policy: Policy, seed: int) -> "Work":
        images = photographs(case, seed)
        index = torch.arange(case.batch)
        stream = Stream(seed, 0, index)
        drawn = policy.draw(stream, 1, (case.size, case.size), Partners(case.batch, index))
        return Work(images, drawn)

    def batched(self) -> Tensor:
        return replay(self.images, self.subpolicies, backend="torch")[:, 0]


def photographs(case: Case, seed: int) -> Tensor:
    """Images with the look of photographs: the two scenes, each shifted, lit and with noise."""
    base = torch.stack([resize(scene(96, p), case.size, case.size) for p in (DAY, NIGHT)])
    stream = Stream(seed, 0, torch.arange(case.batch))
    kind, shift, light, _ = (w[:, 0, 0] for w in stream.words(Purpose.ORDER, 1, 1))
    noise = torch.stack(stream.words(Purpose.SHUFFLE, 1, -(-case.size * case.size * 3 // 4)), -1)
    images = base[kind & 1].to(torch.int32)
    column = (torch.arange(case.size) + shift[:, None]) % case.size
    turned = images.gather(3, column[:, None, None].expand(images.shape))
    lit = turned * (160 + light % 96)[:, None, None, None] // 256
    grain = (noise.flatten(1)[:, : images[0].numel()] % 25).view(images.shape) - 12
    return (lit + grain).clamp(0, 255).to(torch.uint8)


def check_equal(work: Work) -> None:
    """Refuse to go on unless our pixels are Pillow's for every image of the batch."""
    theirs = pillow_loop.batch_loop(work.images, pillow_loop.steps_of(work.subpolicies[:, 0]))
    differs = (work.batched() != theirs).flatten(1).any(1)
    if bool(differs.any()):
        i = int(differs.nonzero()[0])
        line = work.subpolicies[:, 0].describe()[i]
        raise ValueError(f"image {i} differs from Pillow's after {line}: no times are shown.")


def contenders(work: Work, repeats: int) -> dict[str, float]:
    """Median seconds of each way to turn the batch into the augmented batch."""
    steps = pillow_loop.steps_of(work.subpolicies[:, 0])
    images, pictures = work.images, [to_picture(image) for image in work.images]
    twins = torchvision_loop.twins()

    def by_torchvision() -> Tensor:
        return torchvision_loop.batch_loop(images, steps, twins)

    return {
        "divaug": median_seconds(work.batched, repeats=3 * repeats, warm_up=2),
        "divaug_alone": _on_one_core(work.batched, repeats=3 * repeats, warm_up=2),
        "pillow": median_seconds(lambda: pillow_loop.batch_loop(images, steps), repeats=repeats),
        # What is left of Pillow's time where images come and go as Pillow's own objects.
        "pillow_only": median_seconds(
            lambda: pillow_loop.apply_loop(pictures, steps), repeats=repeats
        ),
        "torchvision": median_seconds(by_torchvision, repeats=repeats),
        "torchvision_alone": _on_one_core(by_torchvision, repeats=repeats),
    }


def _on_one_core(run: Callable[[], object], *, repeats: int, warm_up: int = 1) -> float:
    """The same with one thread: a loop with Pillow has one core, and others for other batches."""
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


def table(result: dict[str, Any]) -> Table:
    """Two-operation sub-policies: times, ratios, throughput and memory."""
    rows = []
    for case in result["cases"]:
        ours, alone = (case["seconds"][way] for way in ("divaug", "divaug_alone"))
        for name, seconds in case["seconds"].items():
            rows.append(
                (
                    f"{case['batch']} × {case['size']} px",
                    _NAMES[name],
                    f"{1e3 * seconds:.1f}",
                    f"{case['batch'] / seconds:,.0f}",
                    f"{seconds / ours:.1f}×",
                    f"{seconds / alone:.1f}×" if name in _ON_ONE_CORE else "",
                    f"{case['bytes_per_pixel']:.1f}" if name == "divaug" else "",
                )
            )
    return Table(
        columns=(
            "batch",
            "way",
            "ms",
            "images/s",
            "time ÷ ours",
            "÷ ours, one thread",
            "peak B/px",
        ),
        rows=tuple(rows),
        title="Random two-operation sub-policies, every image its own",
        numeric=(2, 3, 4, 5, 6),
        notes=(
            "A uint8 batch in, a uint8 batch out. A loop with Pillow has one core; torchvision and "
            "we have as many threads as stand below, and one where it says so.",
            "Medians; all of our pixels were equal to Pillow's before the clock started.",
            _losses(result),
            place(result["environment"]),
        ),
    )


_NAMES = {
    "divaug": "divaug, batched",
    "divaug_alone": "divaug, batched, one thread",
    "pillow": "Pillow loop",
    "pillow_only": "Pillow loop, conversions left out",
    "torchvision": "torchvision v2 loop",
    "torchvision_alone": "torchvision v2 loop, one thread",
}
# What is compared with our time on one core.
_ON_ONE_CORE = ("divaug_alone", "pillow", "pillow_only", "torchvision_alone")


def operation_table(result: dict[str, Any]) -> Table:
    """How many times faster than Pillow's loop each operation is, alone, on one core each."""
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


_LEFT_OUT = {"pillow": "", "pillow_only": ", conversions left out"}


def _losses(result: dict[str, Any]) -> str:
    """Where Pillow's loop is the faster one, in a sentence or two."""
    lost = {
        case["size"]: [
            name
            for name, seconds in case["operations"].items()
            if seconds["pillow_only"] < seconds["divaug_alone"]
        ]
        for case in result["cases"]
    }
    slower = [f"at {size} px for {_listed(names)}" for size, names in lost.items() if names]
    whole = [
        f"{case['size']} px"
        for case in result["cases"]
        if case["seconds"]["pillow_only"] < case["seconds"]["divaug_alone"]
    ]
    sentences = []
    if whole:
        sentences.append(
            "On one core each, Pillow is faster where images come and go as Pillow's own objects, "
            f"at {', '.join(whole)}."
        )
    if slower:
        sentences.append(
            "Of single operations, on one core each and with its conversions left out, Pillow is "
            f"faster {', '.join(slower)}."
        )
    return " ".join(sentences) or "On one core each, Pillow was faster nowhere."


def _listed(names: list[str]) -> str:
    """Operations in a sentence: those that are missing where most are there."""
    others = [name for name in OPERATIONS if name not in names]
    if len(names) <= len(others):
        return ", ".join(names)
    return f"all but {', '.join(others)}" if others else "all"
