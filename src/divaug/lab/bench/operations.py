"""Batched operations against a Pillow loop and torchvision called image by image."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from divaug._expand import replay
from divaug._random import Purpose, Stream
from divaug._subpolicies import SubPolicies
from divaug.lab.bench import pillow_loop, torchvision_loop
from divaug.lab.bench.harness import (
    environment,
    median_seconds,
    peak_bytes,
    progress,
    threads,
)
from divaug.lab.figures.canvas import resize, to_picture
from divaug.lab.figures.scene import DAY, NIGHT, scene
from divaug.operations import OPERATIONS
from divaug.policies import Listed, Partners, Policy, Uniform

__all__ = ["CASES", "KIND", "MEMORY_LIMIT", "Case", "measure"]

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
