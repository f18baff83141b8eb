"""Benchmarks: their gates close, their measures measure, their tables say what was measured."""

import contextlib
import warnings

import pytest
import torch

from divaug import expand
from divaug.default_augmentation import cifar10
from divaug.lab.bench import device, harness, loops, operations, selection
from divaug.lab.bench.operations import Case, Work
from divaug.operations import OPERATIONS
from divaug.policies import Uniform

SMALL = Case(24, 16)


@pytest.fixture(scope="module")
def measured():
    return operations.measure((SMALL,), repeats=3)


def test_the_gate_lets_equal_pixels_through_and_stops_others(monkeypatch):
    work = Work.draw(SMALL, Uniform(), 0)
    operations.check_equal(work)
    right = Work.batched

    def off_by_one(self):
        out = right(self).clone()
        out[7, 1, 3, 3] ^= 1
        return out

    monkeypatch.setattr(Work, "batched", off_by_one)
    with pytest.raises(ValueError, match=r"image 7 differs .* no times are shown"):
        operations.measure((SMALL,), repeats=3)


def test_pillow_and_torchvision_have_a_twin_for_every_operation():
    twins = loops.torchvision_twins()
    assert tuple(loops.PILLOW) == tuple(twins) == OPERATIONS
    work = Work.draw(SMALL, Uniform(), 0)
    theirs, ours = loops.torchvision_loop(work.images, work.steps, twins), work.batched()
    assert theirs.shape == ours.shape
    # It does the same job, though not to the bit.
    assert (theirs.float() - ours.float()).abs().mean() < 12


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_pipeline_with_pillow_makes_the_candidates_of_expand(dtype):
    """Bit by bit: what is timed against us does the same work."""
    images = operations.photographs(Case(40, 32), seed=2)
    expected, drawn = expand(images, 1, Uniform(), cifar10(), 5, step=3, dtype=dtype)
    assert set(drawn.placement.flip.flatten().tolist()) == {False, True}
    steps = loops.steps_of(drawn[:, 0])
    found = loops.finished_by_pillow(images, steps, drawn.placement, dtype)
    assert torch.equal(found, expected[:, 0])


def test_the_table_holds_the_measured_ratios(measured):
    table = operations.table(measured)
    seconds = measured["cases"][0]["seconds"]
    rows = {row[1]: row for row in table.rows}
    assert len(rows) == len(seconds) == 6
    row = rows["Pillow loop"]
    assert row[4] == f"{seconds['pillow'] / seconds['divaug']:.1f}×"
    assert row[5] == f"{seconds['pillow'] / seconds['divaug_alone']:.1f}×"
    on_two = {name for name, line in rows.items() if not line[5]}
    assert on_two == {"divaug, batched", "torchvision v2 loop"}  # not compared with one core
    each = measured["cases"][0]["operations"]
    assert [row[0] for row in operations.operation_table(measured).rows] == list(each)
    assert operations.operation_table(measured).rows[4][1] == (
        f"{each['Rotate']['pillow'] / each['Rotate']['divaug_alone']:.1f}×"
    )


def test_ours_and_torchvisions_are_also_timed_with_one_thread(monkeypatch):
    seen = {"ours": [], "theirs": []}

    class Watched(Work):
        def batched(self):
            seen["ours"].append(torch.get_num_threads())
            return self.images

    def watch(images, *_):
        seen["theirs"].append(torch.get_num_threads())
        return images

    monkeypatch.setattr(loops, "torchvision_loop", watch)
    drawn = Work.draw(SMALL, Uniform(), 0)
    before = torch.get_num_threads()
    with harness.threads(2):
        operations.contenders(Watched(drawn.images, drawn.subpolicies), repeats=3)
    # Two or one to warm up, the others timed.
    assert seen == {"ours": [2] * 11 + [1] * 11, "theirs": [2] * 4 + [1] * 4}
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ((), "is faster nowhere."),
        (("Rotate", "Cutout"), "is faster at 16 px for Rotate, Cutout."),
        (("the sub-policies", "Rotate"), "is faster at 16 px for the sub-policies, Rotate."),
    ],
)
def test_operations_that_lose_to_pillow_are_named(measured, lost, told):
    case = measured["cases"][0]

    def times(name):
        return {**case["seconds"], "divaug_alone": 1.0, "pillow_only": 0.5 if name in lost else 9.0}

    changed = case | {
        "seconds": times("the sub-policies"),
        "operations": {name: times(name) for name in OPERATIONS},
    }
    assert told in " ".join(operations.table(measured | {"cases": [changed]}).notes)


def test_memory_counts_what_is_alive_at_once():
    def three_at_once():
        a = torch.zeros(1000, dtype=torch.uint8)
        b = a + 1
        return a + b

    def two_at_once():
        a = torch.zeros(1000, dtype=torch.uint8)
        for _ in range(5):
            a = a + 1
        return a

    # Numbers that become tensors on the way take a few bytes more.
    assert 3000 <= harness.peak_bytes(three_at_once) < 3100
    assert 2000 <= harness.peak_bytes(two_at_once) < 2100


def test_a_batch_that_takes_too_much_memory_is_refused(monkeypatch):
    monkeypatch.setattr(operations, "MEMORY_LIMIT", 1.0)
    with pytest.raises(ValueError, match="bytes a pixel"):
        operations.measure((SMALL,), repeats=3)


def test_results_are_read_back_and_wrong_kinds_refused(tmp_path, measured):
    path = tmp_path / "new" / "a.json"
    harness.write_result(path, measured)
    assert harness.read_result(path, "operations") == measured
    with pytest.raises(ValueError, match="'select'"):
        harness.read_result(path, "select")


def test_candidates_of_one_image_mostly_agree():
    probs = selection.realistic_probs(256, 8, 10, 3.0, 0)
    torch.testing.assert_close(probs.sum(-1), torch.ones(256, 8))
    within = (probs - probs.mean(1, keepdim=True)).square().sum(-1).mean()
    between = (probs - probs.mean((0, 1))).square().sum(-1).mean()
    assert 0 < within < between / 2


def test_selection_is_measured_against_the_optimum(monkeypatch):
    monkeypatch.setattr(selection, "CLASSES", (10,))
    monkeypatch.setattr(selection, "BATCH", 16)
    result = selection.measure(repeats=3, batch=256)
    assert result["times"][0]["divaug"] > 0
    for one in result["quality"]["mean_diversity"]:
        assert one["exact"] > one["greedy"] > one["uniform"]
        assert one["exact"] > one["kmeans++"] > one["uniform"]
    assert len(selection.table(result).rows) == 1


def test_the_gate_of_selection_stops_a_choice_no_better_than_chance(monkeypatch):
    monkeypatch.setattr(selection, "_mean_diversity", lambda *_: 1.0)
    with pytest.raises(ValueError, match="no better than chance"):
        selection.check(selection.realistic_probs(16, 8, 10, 3.0, 0))


def test_without_scikit_learn_selection_is_timed_alone(monkeypatch):
    monkeypatch.setattr(selection.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(selection, "CLASSES", (10,))
    shown = selection.table(selection.measure(repeats=3, batch=64))
    assert float(shown.rows[0][1]) > 0
    assert shown.rows[0][2:] == ("—", "—")
    assert "pip install scikit-learn" in shown.notes[-1]


@pytest.mark.parametrize("before", [0, 1])
def test_waiting_is_forbidden_for_the_block_alone(before, monkeypatch):
    modes = [before]

    def put(mode):
        if len(modes) == 1:  # torch says so once in a process; here a warning is an error
            warnings.warn("Synchronization debug mode is a prototype feature", stacklevel=2)
        modes.append(mode)

    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: modes[-1])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", put)
    with contextlib.suppress(KeyError), device.waits_forbidden():
        assert modes[-1] == "error"
        raise KeyError
    assert modes == [before, "error", before]
