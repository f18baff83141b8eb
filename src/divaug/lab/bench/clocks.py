"""Timing work on a device: CUDA graphs and events on a GPU, a plain clock on a CPU."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from divaug.lab.train.device import Hardware

__all__ = [
    "WARM_UP",
    "Timing",
    "gpu_milliseconds",
    "in_turns",
    "milliseconds",
    "seconds_per_call",
    "stretches",
    "time_calls",
]

#: Calls before the clock starts.
WARM_UP = 3
#: Calls captured in one graph, so that the launch of the graph itself does not count.
CALLS = 10


def milliseconds(work: Callable[[], object], hardware: Hardware, repeats: int, steps: int) -> float:
    """Median milliseconds of a call, as a graph of its own where the hardware has graphs."""
    replayed = _recorded(work) if hardware.graphed else work
    for _ in range(WARM_UP):
        replayed()
    return statistics.median(stretches(replayed, hardware, repeats, steps))


def stretches(
    work: Callable[[], object], hardware: Hardware, repeats: int, steps: int
) -> list[float]:
    """Milliseconds a call, for each stretch of calls."""
    clock = _gpu_clock if hardware.device.type == "cuda" else _cpu_clock
    return [clock(work, steps) / steps for _ in range(repeats)]


def in_turns(
    works: Sequence[Callable[[], object]], hardware: Hardware, repeats: int, steps: int
) -> list[dict[str, float]]:
    """Milliseconds a call of each: median, lowest and highest of stretches taken in turns."""
    rounds = [[stretches(work, hardware, 1, steps)[0] for work in works] for _ in range(repeats)]
    return [
        {"median": statistics.median(times), "low": min(times), "high": max(times)}
        for times in zip(*rounds, strict=True)
    ]


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one call on a GPU.

    Args:
        graph: device time, replayed from a captured graph: what the work itself takes.
        eager: called from Python back to back: what a loop without graphs sees.
    """

    graph: float
    eager: float


def time_calls(work: Callable[[], object]) -> Timing:
    """Time a call on a GPU both ways; it is warmed up first."""
    graph = gpu_milliseconds(work)
    for _ in range(CALLS):
        work()
    calls = 5 * CALLS
    # Many stretches: a host that is busy with something else for a moment spoils some of them.
    return Timing(graph, statistics.median(_gpu_clock(work, calls) for _ in range(15)) / calls)


def gpu_milliseconds(work: Callable[[], object], repeats: int = 30) -> float:
    """Median milliseconds of a call on a GPU, many of them in one graph."""
    replay = _recorded(work, CALLS)
    replay()
    return statistics.median(_gpu_clock(replay, 1) for _ in range(repeats)) / CALLS


def seconds_per_call(work: Callable[[], object], calls: int) -> float:
    """Wall-clock seconds of one call, the GPU waited for at the end; for slow things."""
    work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls


def _recorded(work: Callable[[], object], calls: int = 1) -> Callable[[], object]:
    """A graph of so many calls, after a few that are not recorded."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(WARM_UP):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=aside):
        for _ in range(calls):
            work()
    return graph.replay


def _gpu_clock(work: Callable[[], object], steps: int) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
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
