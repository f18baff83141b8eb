"""The cost of a step on this machine: time, parts and memory."""

import gc
import os
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch

from divaug.lab.bench import step as benchmark
from divaug.lab.bench.expansion import STEP_SHAPES, verify
from divaug.lab.bench.harness import peak_bytes
from divaug.lab.bench.step import Ready, random_data
from divaug.lab.recipes import Recipe
from divaug.lab.reproduce.options import about, cost_hash
from divaug.lab.results.frame import TRAIN_IMAGES
from divaug.lab.results.places import machine_of, portable, setting_of
from divaug.lab.results.records import Cost
from divaug.lab.train.build import assemble
from divaug.lab.train.device import Hardware, fast_settings
from divaug.lab.train.folder import environment
from divaug.lab.train.processes import Processes
from divaug.lab.train.step import run_of

__all__ = ["new_batch", "this_machine", "this_setting", "tidy", "time_step"]

# Device → timed stretches and steps in a stretch: a GPU is fast, and its clock is fine.
_REPEATS = {"cuda": (15, 10), "cpu": (9, 1)}


def this_setting(recipe: Recipe, device: str | None = None, *, eager: bool = False) -> str:
    """Return all that times taken here will share; see `setting_of`."""
    hardware = Hardware.choose(device, recipe.precision, eager=eager)
    return setting_of(_place(hardware, torch.get_num_threads()))


def new_batch() -> str:
    """Return a name for steps that are timed beside one; later ones sort behind earlier ones."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"


def tidy() -> None:
    """Give back what a run held; compiled networks of one kind share a limited cache."""
    if torch.cuda.is_available():
        torch.compiler.reset()
        gc.collect()
        torch.cuda.empty_cache()


def this_machine(recipe: Recipe, device: str | None = None) -> str:
    """Return the kind of machine that times belong to."""
    return machine_of(_place(Hardware.choose(device, recipe.precision), torch.get_num_threads()))


@lru_cache(maxsize=8)
def _place(hardware: Hardware, _threads: int) -> Mapping[str, Any]:
    return environment(hardware, Processes())


@lru_cache(maxsize=1)
def _check_kernels() -> None:
    """Once: a fast step that computes something else is not to be timed."""
    verify(1, STEP_SHAPES)


def time_step(
    recipe: Recipe,
    device: str | None = None,
    *,
    eager: bool = False,
    batch: str,
    base: Ready | None = None,
) -> Cost:
    """Time the step of a recipe on random images, with its parts and its memory.

    Args:
        recipe: whose step.
        device: where.
        eager: whether without compilation and CUDA graphs.
        batch: of the record.
        base: the step it is timed in turns with; None where it is that step itself.

    Raises:
        ValueError: on a GPU, where the kernels differ from batched PyTorch in a single bit.
    """
    hardware = Hardware.choose(device, recipe.precision, eager=eager)
    if hardware.device.type == "cuda":
        _check_kernels()
    memory = _peak_bytes(recipe, hardware)
    repeats, steps = _REPEATS[hardware.device.type]
    found = benchmark.measure(
        recipe, device, repeats=repeats, steps=steps, eager=eager, beside=base
    )
    place, own = portable(found["environment"]), found["step_ms"]
    return Cost.model_validate(
        {
            "hash": cost_hash(recipe, setting_of(place), batch),
            **about(recipe),
            "step_ms": own,
            "base_ms": found["beside_ms"] if base else own,
            "parts_ms": found["parts_ms"],
            "peak_bytes": memory,
            "environment": place,
            "batch": batch,
        }
    )


def _peak_bytes(recipe: Recipe, hardware: Hardware) -> int:
    """Most bytes alive while a step runs, those of network, optimiser and images included."""
    images = recipe.train_images or TRAIN_IMAGES[recipe.dataset]
    cuda = hardware.device.type == "cuda"
    with fast_settings(hardware):
        if cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated() if cuda else 0
        parts = assemble(recipe, random_data(recipe, images), hardware, Processes())
        inputs = next(parts.feed.epoch(0, 0))
        parts.step.begin_epoch(0)
        run_step = run_of(parts.step)
        if not cuda:
            return peak_bytes(lambda: run_step(inputs))
        for _ in range(3):
            run_step(inputs)
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
