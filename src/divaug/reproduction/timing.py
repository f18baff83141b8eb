"""The cost of a step on this machine: time, parts and memory."""

from functools import lru_cache

import torch

from divaug.benchmarks import step as benchmark
from divaug.benchmarks.harness import peak_bytes
from divaug.benchmarks.random_data import random_data
from divaug.recipes import Recipe
from divaug.reproduction.records import CostRecord, machine_of, portable
from divaug.training.assembly import assemble
from divaug.training.distributed import Processes
from divaug.training.environment import environment
from divaug.training.graphs import run_of
from divaug.training.hardware import Hardware, fast_settings

__all__ = ["this_machine", "time_step"]

# Device → timed stretches and steps in a stretch: a GPU is fast, and its clock is fine.
_REPEATS = {"cuda": (15, 10), "cpu": (5, 1)}


def this_machine(recipe: Recipe, device: str | None = None) -> str:
    """The kind of machine that times belong to."""
    return _machine(Hardware.choose(device, recipe.precision), torch.get_num_threads())


@lru_cache(maxsize=8)
def _machine(hardware: Hardware, _threads: int) -> str:
    return machine_of(environment(hardware, Processes()))


def time_step(recipe: Recipe, device: str | None = None, *, eager: bool = False) -> CostRecord:
    """Time the step of a recipe on random images, with its parts and its memory."""
    hardware = Hardware.choose(device, recipe.precision, eager=eager)
    memory = _peak_bytes(recipe, hardware)
    repeats, steps = _REPEATS[hardware.device.type]
    found = benchmark.measure(recipe, device, repeats=repeats, steps=steps, eager=eager)
    place = portable(found["environment"])
    return CostRecord(recipe, found["step_ms"], found["parts_ms"], memory, place)


def _peak_bytes(recipe: Recipe, hardware: Hardware) -> int:
    """Most bytes alive while a step runs, those of network, optimiser and dataset included."""
    cuda = hardware.device.type == "cuda"
    with fast_settings(hardware):
        if cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated() if cuda else 0
        parts = assemble(recipe, random_data(recipe), hardware, Processes())
        inputs = next(parts.feed.epoch(0, 0))
        parts.step.begin_epoch(0)
        run_step = run_of(parts.step)
        if not cuda:
            return peak_bytes(lambda: run_step(inputs))
        for _ in range(3):
            run_step(inputs)
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
