"""Time, bandwidth, memory and waits of work on a device.

On a GPU, time is taken with CUDA graphs and events; on a CPU, with a plain clock.
"""

import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from divaug.lab.train.device import Hardware

__all__ = [
    "WARM_UP",
    "copy_bandwidth",
    "in_turns",
    "milliseconds",
    "no_waits",
    "peak_memory",
    "require_cuda",
    "seconds_per_call",
    "stretches",
    "time_calls",
    "waits_forbidden",
]

Work = Callable[[], object]

#: Calls before the clock starts.
WARM_UP = 3
# Calls captured in one graph, so that the launch of the graph itself does not count.
_CALLS = 10


def milliseconds(work: Work, hardware: Hardware, repeats: int, steps: int) -> float:
    """Median milliseconds of a call, as a graph of its own where the hardware has graphs."""
    replayed = _recorded(work) if hardware.graphed else work
    for _ in range(WARM_UP):
        replayed()
    return statistics.median(stretches(replayed, hardware, repeats, steps))


def stretches(work: Work, hardware: Hardware, repeats: int, steps: int) -> list[float]:
    """Return milliseconds a call, for each stretch of calls."""
    clock = _gpu_clock if hardware.device.type == "cuda" else _cpu_clock
    return [clock(work, steps) / steps for _ in range(repeats)]


def in_turns(
    works: Sequence[Work], hardware: Hardware, repeats: int, steps: int
) -> list[dict[str, float]]:
    """Time calls in turns: milliseconds a call of each, median, lowest and highest."""
    rounds = [[stretches(work, hardware, 1, steps)[0] for work in works] for _ in range(repeats)]
    return [
        {"median": statistics.median(times), "low": min(times), "high": max(times)}
        for times in zip(*rounds, strict=True)
    ]


def time_calls(work: Work) -> dict[str, float]:
    """Time a call on a GPU in two ways.

    Returns:
        `graph_ms`, replayed from a graph: what the work itself takes; and `eager_ms`, called from
        Python back to back: what a loop without graphs sees.
    """
    graph = _graph_milliseconds(work)
    for _ in range(_CALLS):
        work()
    calls = 5 * _CALLS
    # Many stretches: a host that is busy with something else for a moment spoils some of them.
    eager = statistics.median(_gpu_clock(work, calls) for _ in range(15)) / calls
    return {"graph_ms": graph, "eager_ms": eager}


def seconds_per_call(work: Work, calls: int) -> float:
    """Wall-clock seconds of one call, the GPU synchronised at the end; for slow work."""
    work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls


def require_cuda() -> None:
    """Raise ValueError where there is no CUDA device."""
    if not torch.cuda.is_available():
        raise ValueError("this benchmark needs a CUDA device, and torch finds none here.")


def copy_bandwidth(num_bytes: int) -> float:
    """Measure a device-to-device copy of `num_bytes`: bytes a second, read plus written."""
    source = torch.randint(0, 256, (num_bytes // 2,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / (_graph_milliseconds(lambda: target.copy_(source)) / 1000)


@contextmanager
def waits_forbidden() -> Iterator[None]:
    """Raise RuntimeError for work in the block that synchronises."""
    before = torch.cuda.get_sync_debug_mode()
    try:
        with warnings.catch_warnings():
            # torch warns once in a process that this mode misses some synchronisations.
            warnings.filterwarnings("ignore", "Synchronization debug mode is a prototype")
            torch.cuda.set_sync_debug_mode("error")
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def no_waits(work: Work) -> None:
    """Raise if the call synchronises."""
    work()
    torch.cuda.synchronize()
    with waits_forbidden():
        work()


def peak_memory(work: Work) -> int:
    """Most bytes of the device that the call held at once beyond what was there."""
    work()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def _graph_milliseconds(work: Work) -> float:
    """Median milliseconds of a call on a GPU, many of them in one graph."""
    replay = _recorded(work, _CALLS)
    replay()
    return statistics.median(_gpu_clock(replay, 1) for _ in range(30)) / _CALLS


def _recorded(work: Work, calls: int = 1) -> Work:
    """Return a graph of so many calls, after a few that are not recorded."""
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


def _gpu_clock(work: Work, steps: int) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(steps):
        work()
    end.record()
    end.synchronize()
    elapsed: float = begin.elapsed_time(end)
    return elapsed


def _cpu_clock(work: Work, steps: int) -> float:
    begin = time.perf_counter()
    for _ in range(steps):
        work()
    return 1e3 * (time.perf_counter() - begin)
