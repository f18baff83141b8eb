"""What else augments each image differently: torchvision, Kornia, and Pillow on all cores."""

import importlib.util
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from divaug.default_augmentation import cifar10
from divaug.expansion import expand
from divaug.lab.bench import clocks
from divaug.lab.bench.harness import environment, median_seconds
from divaug.lab.bench.operations import Case, Work
from divaug.lab.bench.pillow_loop import apply_loop, steps_of
from divaug.lab.bench.pillow_pipeline import finish_loop, finishes_of
from divaug.lab.figures.canvas import to_picture
from divaug.policies import Identity, Uniform

__all__ = ["IMAGES", "speeds"]

#: Side → images of a batch.
IMAGES = {32: 256, 224: 64}
#: How many images, their side, the seed.
_Task: TypeAlias = tuple[int, int, int]


def speeds(images: Tensor, side: int, seed: int) -> dict[str, float]:
    """Images a second of the alternatives, each image with an augmentation of its own.

    Args:
        images: uint8 `[B,3,side,side]` on a GPU.
        side: their height and width.
        seed: of what Pillow works on.
    """
    found = {"torchvision": _per_image(images, _torchvision())}
    if importlib.util.find_spec("kornia") is not None:
        found["kornia"] = _per_image(images.to(torch.float32) / 255, _kornia())
    cores = environment()["cores"]
    share = 8 * IMAGES[side]
    with ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
        tasks = [(share, side, seed)] * cores
        for name, work in {"": _operations, ", finished": _finished}.items():
            everywhere = partial(_on_all, pool, work, tasks)
            seconds = median_seconds(everywhere, repeats=5, warm_up=3)
            found[f"Pillow on {cores} cores{name}"] = share * cores / seconds
    return found


def _on_all(pool: ProcessPoolExecutor, work: Callable[[_Task], int], tasks: list[_Task]) -> None:
    list(pool.map(work, tasks))


@lru_cache(maxsize=4)
def _drawn(count: int, side: int, seed: int) -> Work:
    """Images and draws, made once in every process."""
    torch.set_num_threads(1)
    return Work.draw(Case(count, side), Uniform(), seed)


@lru_cache(maxsize=4)
def _pictures(count: int, side: int, seed: int) -> tuple[Any, Any]:
    work = _drawn(count, side, seed)
    return [to_picture(image) for image in work.images], steps_of(work.subpolicies[:, 0])


@lru_cache(maxsize=4)
def _pipeline(count: int, side: int, seed: int) -> tuple[Any, ...]:
    work, default = _drawn(count, side, seed), cifar10()
    draws = expand(work.images, 1, Identity(), default, seed)[1].placement
    assert draws is not None
    steps = steps_of(work.subpolicies[:, 0])
    return work.images, steps, default, finishes_of(draws), torch.bfloat16


def _operations(task: _Task) -> int:
    """The sub-policies alone, on images that are already Pillow's."""
    return len(apply_loop(*_pictures(*task)))


def _finished(task: _Task) -> int:
    """From bytes to finished candidates, as `expand` makes them."""
    return len(finish_loop(*_pipeline(*task)))


def _torchvision() -> Callable[[Tensor], object]:
    from torchvision.transforms import v2

    augment: Callable[[Tensor], object] = v2.RandAugment(num_ops=2)
    return augment


def _kornia() -> Callable[[Tensor], object]:
    from kornia.augmentation.auto import RandAugment as KorniaRandAugment

    augment = KorniaRandAugment(n=2, m=10)
    return lambda image: augment(image[None])


def _per_image(images: Tensor, augment: Callable[[Tensor], object]) -> float:
    def loop() -> None:
        for image in images:
            augment(image)

    return len(images) / clocks.seconds_per_call(loop, 2)
