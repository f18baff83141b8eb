"""Timing work on a device: CUDA graphs and events on a GPU, a plain clock on a CPU."""

import statistics
import time
from collections.abc import Callable

import torch

from divaug.training.hardware import Hardware

__all__ = ["WARM_UP", "milliseconds", "stretches"]

#: Calls before the clock starts.
WARM_UP = 3


def milliseconds(work: Callable[[], object], hardware: Hardware, repeats: int, steps: int) -> float:
    """Median milliseconds of a call, as a graph of its own where the hardware has graphs."""
    replayed = _recorded(work) if hardware.graphed else work
    for _ in range(WARM_UP):
        replayed()
    return statistics.median(stretches(replayed, hardware, repeats, steps))


def _recorded(work: Callable[[], object]) -> Callable[[], object]:
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(WARM_UP):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=aside):
        work()
    return graph.replay


def stretches(
    work: Callable[[], object], hardware: Hardware, repeats: int, steps: int
) -> list[float]:
    """Milliseconds a call, for each stretch of calls."""
    clock = _gpu_clock if hardware.device.type == "cuda" else _cpu_clock
    return [clock(work, steps) / steps for _ in range(repeats)]


def _gpu_clock(work: Callable[[], object], steps: int) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    begin.record()
    for _ in range(steps):
        work()
    end.record()
    end.synchronize()
    elapsed: float = begin.elapsed_time(end)
    return elapsed


def _cpu_clock(work: Callable[[], object], steps: int) -> float:
    begin = time.perf_counter()
    for _ in range(steps):
        work()
    return 1e3 * (time.perf_counter() - begin)
