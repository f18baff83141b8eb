"""Time and memory on a GPU: device events, medians, and the checks that come before any number."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

__all__ = [
    "Timing",
    "copy_bandwidth",
    "no_waits",
    "peak_memory",
    "require_cuda",
    "seconds_per_call",
    "time_calls",
]

#: Calls captured in one graph, so that the launch of the graph itself does not count.
CALLS = 10


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one call.

    Args:
        graph: device time, replayed from a captured graph: what the work itself takes.
        eager: called from Python back to back: what a loop without graphs sees.
    """

    graph: float
    eager: float


def require_cuda() -> torch.device:
    """The CUDA device, or an error that says what to do."""
    if not torch.cuda.is_available():
        raise ValueError("this benchmark needs a CUDA device, and torch finds none here.")
    return torch.device("cuda")


def time_calls(run: Callable[[], object], repeats: int = 30) -> Timing:
    """Time a call both ways; it is warmed up first."""
    return Timing(_graph(run, repeats), _eager(run, 20 * CALLS))


def _graph(run: Callable[[], object], repeats: int) -> float:
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            run()
    graph.replay()
    return statistics.median(_elapsed(graph.replay) for _ in range(repeats)) / CALLS


def _eager(run: Callable[[], object], calls: int) -> float:
    for _ in range(CALLS):
        run()

    def loop() -> None:
        for _ in range(calls):
            run()

    return statistics.median(_elapsed(loop) for _ in range(3)) / calls


def _elapsed(run: Callable[[], object]) -> float:
    start, stop = (
        torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        for _ in range(2)
    )
    start.record()
    run()
    stop.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(stop))


def seconds_per_call(run: Callable[[], object], calls: int) -> float:
    """Wall-clock seconds of one call, the device waited for at the end; for slow things."""
    run()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls


def copy_bandwidth(num_bytes: int) -> float:
    """Bytes a second, read plus written, of a device-to-device copy that moves `num_bytes`."""
    source = torch.randint(0, 256, (num_bytes // 2,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / (_graph(lambda: target.copy_(source), 30) / 1000)


def no_waits(run: Callable[[], object]) -> None:
    """Raise if the call makes the host wait for the device."""
    run()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        run()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def peak_memory(run: Callable[[], object]) -> int:
    """Most bytes of the device that the call held at once beyond what was there."""
    run()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before
