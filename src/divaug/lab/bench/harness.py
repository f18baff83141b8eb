"""The parts that all benchmarks share: place, time and memory, and their files."""

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from divaug.lab.checkout import commit, commit_of, processor, shortened
from divaug.lab.train.folder import replace_text

__all__ = [
    "environment",
    "median_seconds",
    "peak_bytes",
    "place",
    "progress",
    "read_result",
    "threads",
    "write_result",
]

_PACKAGES = ("torch", "torchvision", "pillow", "numpy", "scikit-learn", "triton")


def environment() -> dict[str, Any]:
    """Return the machine, the versions and the commit that a measurement belongs to."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    number = commit()
    return {
        "processor": processor(),
        "cores": _cores(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": found,
        "commit": shortened(number) if number else None,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def place(env: dict[str, Any]) -> str:
    """Describe in one sentence where a measurement was taken."""
    where = env["gpu"] or f"{env['processor']}, {env['threads']} of {env['cores']} cores"
    # On a shared machine times differ from run to run; the load shows it.
    if env.get("load") is not None:
        where += f" (load {env['load']:g} at the start)"
    versions = ", ".join(f"{name} {version}" for name, version in env["packages"].items())
    return f"Measured on {where}; Python {env['python']}, {versions}; commit {commit_of(env)}."


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch use that many threads inside the block; 0 for one a core."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or _cores())
    try:
        yield
    finally:
        torch.set_num_threads(before)


def median_seconds(
    run: Callable[[], object], *, repeats: int = 7, warm_up: int = 1, budget: float = 20.0
) -> float:
    """Return the median wall-clock seconds of a call.

    Args:
        run: the call.
        repeats: number of timed calls; fewer where the budget is spent, but at least three.
        warm_up: calls before the clock starts.
        budget: seconds after which no further call is started.
    """
    for _ in range(warm_up):
        run()
    times: list[float] = []
    while len(times) < repeats and (len(times) < 3 or sum(times) < budget):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def peak_bytes(run: Callable[[], object]) -> int:
    """Return the most bytes of CPU tensors alive at once that the call allocated.

    Every allocation and release is taken from the profiler's trace, so temporaries inside torch's
    own functions count, and the result too.
    """
    # The profiler reports machines without a GPU as an error; this variable is its own switch.
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")
    activities = [torch.profiler.ProfilerActivity.CPU]
    # One cycle is all there is; torch 2.11 warns about further ones unless events are kept.
    with torch.profiler.profile(
        activities=activities, profile_memory=True, acc_events=True
    ) as profile:
        result = run()
    del result
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    memory = [e for e in events if e.get("name") == "[memory]" and e["args"]["Device Type"] == 0]
    alive = peak = 0
    for event in sorted(memory, key=lambda e: float(e["ts"])):
        alive += int(event["args"]["Bytes"])
        peak = max(peak, alive)
    return peak


def write_result(path: Path, result: dict[str, Any]) -> None:
    """Write measurements as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, json.dumps(result, indent=1) + "\n")


def read_result(path: Path, kind: str) -> dict[str, Any]:
    """Read measurements of that kind."""
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if result.get("benchmark") != kind:
        raise ValueError(f"{path} holds no measurements of {kind!r}.")
    return result


def progress(text: str) -> None:
    """Print progress on stderr, so that stdout holds the tables alone."""
    print(text, file=sys.stderr, flush=True)
