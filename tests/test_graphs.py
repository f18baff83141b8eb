"""The logic around a recorded step, with a stand-in for CUDA: what is undone, copied, replayed."""

from contextlib import contextmanager, nullcontext

import pytest
import torch

from divaug.lab.train import Hardware, step
from divaug.lab.train.build import assemble
from divaug.lab.train.processes import Processes
from divaug.lab.train.step import GraphedStep, Step, run_of, state_of
from tests.training_helpers import toy_data, toy_recipe


class StandIn:
    """What the module uses of `torch.cuda`. While recording, a step does nothing, as on a GPU."""

    def __init__(self, monkeypatch, kind=Step):
        self.recording, self.recorded, self.warmed, call = False, [], 0, kind.__call__

        def watched(this, inputs):
            if self.recording:
                self.recorded.append((this, inputs))
                return
            self.warmed += 1
            call(this, inputs)

        monkeypatch.setattr(kind, "__call__", watched)
        self._call = call
        monkeypatch.setattr(step.torch, "cuda", self)

    def CUDAGraph(self):  # noqa: N802 (torch's name)
        outer = self

        class Graph:
            def replay(self):
                for this, inputs in outer.recorded:
                    outer._call(this, inputs)

        return Graph()

    @contextmanager
    def graph(self, *_arguments, **_keywords):
        self.recording = True
        yield
        self.recording = False

    def Stream(self):  # noqa: N802 (torch's name)
        class Stream:
            def wait_stream(self, other):
                pass

        return Stream()

    current_stream = Stream

    def stream(self, _stream):
        return nullcontext()

    def synchronize(self):
        pass


def parts_of(augmenter="divaug", graphed=False):
    hardware = Hardware(torch.device("cpu"), graphed=graphed)
    recipe = toy_recipe(augmenter=augmenter)
    return assemble(recipe, toy_data(), hardware, Processes())


def run(parts, runner):
    for epoch in range(2):
        parts.step.begin_epoch(epoch)
        for inputs in parts.feed.epoch(epoch, 0):
            runner(inputs)


@pytest.mark.parametrize("augmenter", ["divaug", "pba"])
def test_a_recorded_step_trains_to_the_same_bits(monkeypatch, augmenter):
    plain, recorded = parts_of(augmenter), parts_of(augmenter, graphed=True)
    run(plain, run_of(plain.step))
    stand_in = StandIn(monkeypatch)
    run(recorded, run_of(recorded.step))
    assert stand_in.warmed == step.WARM_UP
    assert len(stand_in.recorded) == 1
    for a, b in zip(state_of(plain.step), state_of(recorded.step), strict=True):
        assert torch.equal(a, b)
    assert recorded.augment.state_dict() == plain.augment.state_dict()
    one, two = recorded.augment.record(), plain.augment.record()
    assert (one.images, one.drawn) == (two.images, two.drawn)


def test_recording_leaves_everything_as_it_was(monkeypatch):
    parts = parts_of()
    parts.step.begin_epoch(0)
    before = [tensor.detach().clone() for tensor in state_of(parts.step)]
    StandIn(monkeypatch)
    GraphedStep(parts.step)._record(next(parts.feed.epoch(0, 0)))
    for old, new in zip(before, state_of(parts.step), strict=True):
        assert torch.equal(old, new)
    assert parts.augment.state_dict() == {"step": 0, "seed": 0}
