"""The speed of a logged interval: its own images over its own time, whenever it is read."""

import math
import time

import pytest
import torch

from divaug.lab.train import train
from divaug.lab.train.console import Silent
from divaug.lab.train.folder import read_metrics
from divaug.lab.train.meter import Meter, Timestamp
from divaug.lab.train.processes import Processes
from divaug.lab.train.step import SUMS, Step
from tests.training_helpers import StopAfter, toy_data, toy_recipe

DATA = toy_data(num_train=25 * 8)
STEP_SECONDS = 0.02


@pytest.fixture
def slow_steps(monkeypatch):
    """Steps long enough that what else a run does is small beside them."""
    call = Step.__call__

    def slow(step, inputs):
        time.sleep(STEP_SECONDS)
        call(step, inputs)

    monkeypatch.setattr(Step, "__call__", slow)


def run(out, log_every, **keywords):
    recipe = toy_recipe(epochs=2, log_every=log_every, evaluate_every=2)
    keywords = {"data": DATA, "device": "cpu", "reporter": Silent()} | keywords
    return train(recipe, out, **keywords)


def by_epoch(folder):
    """For each epoch: its line, and those of its intervals."""
    lines = read_metrics(folder)
    for epoch in (line for line in lines if line["kind"] == "epoch"):
        inside = [line for line in lines if line["kind"] == "interval"]
        yield epoch, [line for line in inside if line["epoch"] == epoch["epoch"]]


def seconds_of(interval, begin):
    return 8 * (interval["step"] - begin) / interval["images_per_second"]


@pytest.mark.usefixtures("slow_steps")
@pytest.mark.parametrize("stop", [None, 8])
def test_the_times_of_the_intervals_add_up_to_that_of_the_epoch(tmp_path, stop):
    """Also where the run was interrupted within an interval."""
    if stop:
        run(tmp_path / "run", 5, reporter=StopAfter(stop))
    run(tmp_path / "run", 5, resume=stop is not None)
    epochs = list(by_epoch(tmp_path / "run"))
    assert len(epochs) == 2
    for epoch, intervals in epochs:
        assert len(intervals) == 5
        total = sum(seconds_of(line, line["step"] - 5) for line in intervals)
        assert total == pytest.approx(epoch["epoch_seconds"], rel=0.1)
        for line in intervals:
            speed = epoch["images_per_second"]
            assert speed / 2 < line["images_per_second"] < 8 / STEP_SECONDS
            assert line["images_per_second"] < 2 * speed


@pytest.mark.usefixtures("slow_steps")
def test_an_interval_that_does_not_end_with_the_epoch_counts_its_own_steps(tmp_path):
    run(tmp_path / "run", 10)
    epochs = list(by_epoch(tmp_path / "run"))
    assert [[line["step"] for line in inside] for _, inside in epochs] == [[10, 20], [30, 40, 50]]
    for epoch, intervals in epochs:
        for line in intervals:
            speed = epoch["images_per_second"]
            assert speed / 2 < line["images_per_second"] < 8 / STEP_SECONDS


@pytest.mark.usefixtures("slow_steps")
def test_the_progress_shows_the_speeds_of_the_record(tmp_path):
    shown = []

    class Listening(Silent):
        def interval(self, means, images_per_second):
            shown.append((means["loss"], images_per_second))

    run(tmp_path / "run", 5, reporter=Listening())
    told = [line for line in read_metrics(tmp_path / "run") if line["kind"] == "interval"]
    assert shown == [(line["loss"], line["images_per_second"]) for line in told]


def sums_after(steps, device="cpu"):
    sums = torch.zeros(len(SUMS), dtype=torch.float64, device=device)
    sums[SUMS.index("originals")] = 8 * steps
    return sums


def test_a_step_that_was_not_timed_does_not_count(monkeypatch):
    """The first step of a start may be compiled: its images have no time, and are no speed."""
    now = [0.0]
    monkeypatch.setattr("divaug.lab.train.meter.time.perf_counter", lambda: now[0])
    meter = Meter(Processes(), torch.device("cpu"))
    bad = torch.tensor(math.inf, dtype=torch.float64)
    now[0] = 100.0
    meter.begin(untimed=8)
    meter.push(1, sums_after(1), bad)
    now[0] = 104.0
    first = meter.push(3, sums_after(3), bad)
    assert math.isnan(first.images_per_second)
    now[0] = 109.0
    assert meter.flush().images_per_second == 16 / 4.0  # read late, timed when it was pushed
    assert meter.seconds() == 5.0
    resumed = Meter(Processes(), torch.device("cpu"), base=meter.base, spent=5.0)
    resumed.begin()
    now[0] = 112.0
    resumed.push(4, sums_after(4), bad)
    assert resumed.flush().images_per_second == 8 / (5.0 + 3.0)


@pytest.mark.gpu
def test_on_a_gpu_the_time_is_the_devices_and_the_host_does_not_wait():
    device = torch.device("cuda")
    sums, bad = sums_after(1, device), torch.tensor(math.inf, dtype=torch.float64, device=device)
    meter = Meter(Processes(), device)
    torch.cuda._sleep(1)  # the first call loads the kernel
    meter.push(0, sums_after(0, device), bad)
    begin = Timestamp(device)
    torch.cuda._sleep(50_000_000)
    end = Timestamp(device)
    meter.push(1, sums, bad)
    assert not torch.cuda.current_stream().query()  # the host did not wait for the nap to end
    torch.cuda._sleep(200_000_000)  # launched later, and no part of what is read
    reading = meter.flush()
    nap = end.since(begin)
    assert nap > 50_000_000 / 3e9  # the device's time: no clock of a GPU is faster than 3 GHz
    assert 8 / reading.images_per_second == pytest.approx(nap, rel=0.2)
