"""Large candidates on three streams: what reads something runs after what wrote it."""

import pytest
import torch

pytest.importorskip("triton")

from divaug.kernels import plan
from divaug.kernels.launch import Launcher
from divaug.kernels.lookup_tables import table_kernel
from divaug.kernels.plan import fork, wait_for
from divaug.kernels.worklists import List, list_kernel

GPU = torch.device("cuda", 0)
TABLES, LATER = "tables", "later tables"


class Stream:
    """Stands in for a stream: knows what has ended before whatever is launched on it next."""

    def __init__(self):
        self.known = set()

    def record_event(self):
        return frozenset(self.known)

    def wait_event(self, event):
        self.known |= event


@pytest.fixture
def launched(monkeypatch):
    """Name of a launch → what had certainly ended before; "end" is for what comes after all."""
    current, further, before = Stream(), {}, {}

    def launch(launcher, programs, tensors, numbers, stream=None):
        if launcher._kernel is list_kernel:
            name = "lists"
        elif launcher._kernel is table_kernel:
            name = {List.TABLES: TABLES, List.LATER_TABLES: LATER}[numbers[0]]
        else:
            name = List(numbers[0])
        on = stream or current
        before[name] = frozenset(on.known)
        on.known.add(name)

    monkeypatch.setattr(Launcher, "__call__", launch)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: current)
    monkeypatch.setattr(plan, "_stream", lambda _, n: further.setdefault(n, Stream()))
    monkeypatch.setattr(plan, "fork", lambda _, lanes: fork(GPU, lanes))
    monkeypatch.setattr(plan, "wait_for", lambda mark, _: wait_for(mark, GPU))

    def run(slots):
        images = torch.empty((2, 3, 224, 224), dtype=torch.uint8, device="meta")
        out = torch.empty((8, 3, 224, 224), device="meta")
        kinds = (torch.int32, torch.bool, torch.float32, torch.int32, torch.int64)
        sub = tuple(torch.empty((2, 4, slots), dtype=kind, device="meta") for kind in kinds)
        monkeypatch.setattr(plan, "_at_a_word", lambda images: images)  # has no address here
        plan.render(out, images, 4, sub, images, None, None, False)
        before["end"] = frozenset(current.known)
        return before, further

    return run


def test_two_operations(launched):
    before, _ = launched(2)
    writers = {List.ONE, List.TWO, List.ONE_TABLED, List.TWO_TABLED, List.SHARPENED}
    assert before["end"] == {"lists", TABLES, LATER} | writers
    assert before["lists"] == set()
    for name in (TABLES, LATER, *writers):
        assert "lists" in before[name]
    # Tables of a second operation are counted on what the first one, perhaps with a table, made.
    for name in (LATER, List.ONE_TABLED, List.SHARPENED):
        assert TABLES in before[name]
    assert before[List.TWO_TABLED] >= {TABLES, LATER}


def test_they_run_beside_each_other(launched):
    before, further = launched(2)
    for name in (List.ONE, List.TWO, TABLES):
        assert before[name] == {"lists"}
    assert before[List.ONE_TABLED].isdisjoint({LATER, List.TWO, List.SHARPENED})
    assert len(further) == 2


def test_one_operation_has_no_pairs(launched):
    before, _ = launched(1)
    assert before["end"] == {"lists", TABLES, List.ONE, List.ONE_TABLED}
    assert before[List.ONE_TABLED] >= {"lists", TABLES}
