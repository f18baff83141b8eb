"""Benchmarks: their gates close, their measures measure, their tables say what was measured."""

import contextlib
import json
import warnings

import pytest
import torch

from divaug import expand
from divaug.benchmarks import harness, operations, operations_tables, pillow_loop, selection
from divaug.benchmarks.device import waits_forbidden
from divaug.benchmarks.operations import Case, Work
from divaug.benchmarks.pillow_pipeline import finish_loop, finishes_of
from divaug.default_augmentation import cifar10
from divaug.operations import OPERATIONS
from divaug.policies import Uniform
from divaug.randomness import Stream

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
    with pytest.raises(ValueError, match="image 7 differs"):
        operations.check_equal(work)
    with pytest.raises(ValueError, match="no times are shown"):
        operations.measure((SMALL,), repeats=3)


def test_pillow_has_a_twin_for_every_operation():
    assert tuple(pillow_loop.PILLOW) == OPERATIONS


def test_torchvision_has_a_twin_for_every_operation():
    from divaug.benchmarks.torchvision_loop import batch_loop, twins

    assert tuple(twins()) == OPERATIONS
    work = Work.draw(SMALL, Uniform(), 0)
    steps = pillow_loop.steps_of(work.subpolicies[:, 0])
    theirs, ours = batch_loop(work.images, steps, twins()), work.batched()
    assert theirs.shape == ours.shape
    # It does the same job, though not to the bit.
    assert (theirs.float() - ours.float()).abs().mean() < 12


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_pipeline_with_pillow_makes_the_candidates_of_expand(dtype):
    """Bit by bit: what is timed against us does the same work."""
    images = operations.photographs(operations.Case(40, 32), seed=2)
    index, default = torch.arange(40), cifar10()
    expected, drawn = expand(images, 1, Uniform(), default, 5, index, step=3, dtype=dtype)
    finishes = finishes_of(default.draw(Stream(5, 3, index), 1, (32, 32)))
    assert {finish.flip for finish in finishes} == {False, True}
    found = finish_loop(images, pillow_loop.steps_of(drawn[:, 0]), default, finishes, dtype)
    assert torch.equal(found, expected[:, 0])


def test_the_table_holds_the_measured_ratios(measured):
    table = operations_tables.table(measured)
    seconds = measured["cases"][0]["seconds"]
    assert [row[1] for row in table.rows] == [operations_tables._NAMES[name] for name in seconds]
    row = {line[1]: line for line in table.rows}["Pillow loop"]
    assert row[4] == f"{seconds['pillow'] / seconds['divaug']:.1f}×"
    assert row[5] == f"{seconds['pillow'] / seconds['divaug_alone']:.1f}×"
    on_two = {name for name, line in {r[1]: r for r in table.rows}.items() if not line[5]}
    assert on_two == {"divaug, batched", "torchvision v2 loop"}  # not compared with one core
    each = measured["cases"][0]["operations"]
    assert [row[0] for row in operations_tables.operation_table(measured).rows] == list(each)
    assert operations_tables.operation_table(measured).rows[4][1] == (
        f"{each['Rotate']['pillow'] / each['Rotate']['divaug_alone']:.1f}×"
    )


def test_one_of_our_times_is_with_one_thread():
    seen = []

    class Watched(Work):
        def batched(self):
            seen.append(torch.get_num_threads())
            return self.images

    drawn = Work.draw(SMALL, Uniform(), 0)
    with harness.threads(2):
        operations.contenders(Watched(drawn.images, drawn.subpolicies), repeats=1)
    assert seen == [2] * 5 + [1] * 5  # two to warm up, three timed


def test_one_of_torchvisions_times_is_with_one_thread(monkeypatch):
    seen = []
    monkeypatch.setattr(
        operations.torchvision_loop,
        "batch_loop",
        lambda images, *_: seen.append(torch.get_num_threads()) or images,
    )
    with harness.threads(2):
        found = operations.contenders(Work.draw(SMALL, Uniform(), 0), repeats=3)
    assert seen == [2] * 4 + [1] * 4  # one to warm up, three timed
    assert list(found) == list(operations_tables._NAMES)


def _notes(measured, slower, *, whole):
    """The notes where those operations, and the whole sub-policies or not, lost to Pillow."""
    changed = json.loads(json.dumps(measured))
    case = changed["cases"][0]
    won, lost = ({"divaug_alone": 1.0, "pillow_only": theirs} for theirs in (9.0, 0.5))
    case["seconds"] |= lost if whole else won
    for name, seconds in case["operations"].items():
        seconds |= lost if name in slower else won
    return " ".join(operations_tables.table(changed).notes)


def test_losses_are_named(measured):
    notes = _notes(measured, ("Rotate", "Cutout"), whole=True)
    assert "faster at 16 px for Rotate, Cutout." in notes
    assert "Pillow's own objects, at 16 px" in notes
    notes = _notes(measured, OPERATIONS[:-2], whole=False)
    assert "faster at 16 px for all but Cutout, SamplePairing." in notes
    assert "Pillow's own objects" not in notes
    assert "faster at 16 px for all." in _notes(measured, OPERATIONS, whole=False)
    assert "Pillow was faster nowhere" in _notes(measured, (), whole=False)


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


def test_the_median_is_over_the_timed_calls():
    calls = []
    assert harness.median_seconds(lambda: calls.append(1), repeats=5, warm_up=2) >= 0
    assert len(calls) == 7


def test_threads_are_given_back():
    before = torch.get_num_threads()
    with harness.threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


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
    assert "100 %" not in selection.quality_table(result).to_text()
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
    with waits_forbidden():
        assert modes[-1] == "error"
    with contextlib.suppress(KeyError), waits_forbidden():
        raise KeyError
    assert modes == [before, "error", before, "error", before]
