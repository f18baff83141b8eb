"""Selection on a GPU: one kernel, timed after comparing its choices with the CPU's."""

from typing import Any

import torch

from divaug._select import METHODS, select
from divaug.lab.bench import clocks, device
from divaug.lab.bench.harness import environment, place, progress
from divaug.lab.bench.selection import realistic_probs
from divaug.lab.tables import Table

__all__ = ["KIND", "measure", "table"]

KIND = "select-device"
BATCH, CANDIDATES, SELECTED = 128, 8, 4
CLASSES = (10, 100, 1000)


def _case(classes: int, method: str, seed: int) -> dict[str, Any]:
    progress(f"measuring {method} with {classes} classes")
    on_cpu = realistic_probs(BATCH, CANDIDATES, classes, 3.0, seed)
    probs, index = on_cpu.cuda(), torch.arange(BATCH, device="cuda")
    step = torch.full((), seed, dtype=torch.int64, device="cuda")
    expected = select(on_cpu, SELECTED, method, seed, step=seed)
    if not torch.equal(
        select(probs, SELECTED, method, seed, step=step, index=index).cpu(), expected
    ):
        raise ValueError(f"{method} chose otherwise on the device: no times are shown.")

    def run() -> object:
        return select(probs, SELECTED, method, seed, step=step, index=index)

    device.no_waits(run)
    timing = clocks.time_calls(run)
    return {
        "classes": classes,
        "method": method,
        "graph_ms": timing.graph,
        "eager_ms": timing.eager,
        "host_waits": 0,
    }


def measure(seed: int = 0) -> dict[str, Any]:
    """Compare, then time every method and number of classes."""
    device.require_cuda()
    cases = [_case(classes, method, seed) for method in METHODS for classes in CLASSES]
    return {
        "benchmark": KIND,
        "environment": environment(),
        "batch": BATCH,
        "candidates": CANDIDATES,
        "selected": SELECTED,
        "cases": cases,
    }


def table(result: dict[str, Any]) -> Table:
    """Milliseconds of one call."""
    rows = tuple(
        (c["method"], f"{c['classes']}", f"{c['graph_ms']:.4f}", f"{c['eager_ms']:.4f}")
        for c in result["cases"]
    )
    notes = (
        f"B={result['batch']}, E={result['candidates']}, S={result['selected']}; the choices equal "
        "the CPU's, and no call waits for the host.",
        place(result["environment"]),
    )
    columns = ("method", "classes", "graph, ms", "eager, ms")
    return Table(columns, rows, "Selection on a GPU", (1, 2, 3), notes)
