"""One of two processes whose training is stopped and resumed; started by the test of processes."""

import os
import signal
from pathlib import Path

import torch
import torch.distributed as dist

from divaug import models
from divaug.training import train
from divaug.training.progress import Silent
from tests.training_helpers import toy_data, toy_recipe

EPOCHS, EPOCH_STEPS = 2, 6
# Test images of each process: other batches in evaluation mode are candidates.
TESTED = 10


class Killed(BaseException):
    """Ends a training at once, as SIGKILL ends a process: nothing more is written."""


def kill():
    raise Killed


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


#: Name of the run → for each start that is stopped: the pass of the network, counted from 1, and
#: what happens there. A signal in the last step of an epoch stops that epoch's evaluation.
STOPS = {
    "whole": [],
    "signal in mid-epoch": [(("training", 4), terminate)],
    "signal before the first evaluation": [(("training", EPOCH_STEPS), terminate)],
    "signal before the last evaluation": [(("training", EPOCHS * EPOCH_STEPS), terminate)],
    "signal in the first evaluation": [(("evaluation", 1), terminate)],
    "kill in the first evaluation": [(("evaluation", 1), kill)],
    "kill in the last evaluation": [(("evaluation", EPOCHS), kill)],
    "two kills in one evaluation": [(("evaluation", 1), kill)] * 2,
    "signal in mid-epoch, then a kill": [
        (("training", EPOCH_STEPS + 2), terminate),
        (("evaluation", 1), kill),
    ],
}


class Stopped:
    """Makes "stopped" a known network for the block, whose passes are counted."""

    def __init__(self, place, stop):
        self.place, self.stop = place, stop
        self.passes = {"training": 0, "evaluation": 0, "scoring": 0}

    def __enter__(self):
        models.MODELS["stopped"] = self.network

    def __exit__(self, *_):
        del models.MODELS["stopped"]

    def network(self, num_classes, in_channels):
        network = models.build("tiny-resnet-8", num_classes, in_channels)
        network.register_forward_pre_hook(self.count)
        return network

    def count(self, network, inputs):
        kind = "evaluation" if len(inputs[0]) == TESTED else "scoring"
        kind = "training" if network.training else kind
        self.passes[kind] += 1
        if (kind, self.passes[kind]) == self.place:
            self.stop()


def start(out, place=None, stop=None):
    """Start or resume a run; returns whether it came to its end."""
    with Stopped(place, stop):
        recipe = toy_recipe(augmenter="divaug", model="stopped", epochs=EPOCHS)
        data = toy_data(num_train=8 * EPOCH_STEPS, num_test=2 * TESTED)
        resume = Path(out).exists()
        dist.barrier()
        try:
            return train(
                recipe, out, data=data, resume=resume, device="cpu", reporter=Silent()
            ).finished
        except Killed:
            return False


def run(rank, world, folder):
    """Train every run of `STOPS`: each is stopped, and resumed until it is finished."""
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(rank)}
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world
    )
    try:
        for name, stops in STOPS.items():
            for place, stop in stops:
                assert not start(f"{folder}/{name}", place, stop)
            assert start(f"{folder}/{name}")
    finally:
        dist.destroy_process_group()
