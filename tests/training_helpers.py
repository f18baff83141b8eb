"""Small datasets and recipes for the tests of training."""

import os
import signal

import torch
from torch import nn

from divaug.lab import models
from divaug.lab.datasets import Dataset
from divaug.lab.recipes import Recipe
from divaug.lab.train.console import Silent
from divaug.lab.train.folder import read_metrics

SIDE = 16


def toy_data(num_train=48, num_test=20, channels=1, num_classes=4, seed=0):
    """Images of noise around a pattern of their class: easy to learn, not trivial."""
    generator = torch.Generator().manual_seed(seed)

    def part(n):
        labels = torch.arange(n) % num_classes
        images = torch.randint(
            0, 120, (n, channels, SIDE, SIDE), dtype=torch.uint8, generator=generator
        )
        for i, label in enumerate(labels.tolist()):
            images[i, :, label * 4 : label * 4 + 4] += 120
        return images, labels

    train, test = part(num_train), part(num_test)
    names = tuple("abcdefgh"[:num_classes])
    mean, std = (0.35,) * channels, (0.25,) * channels
    return Dataset("toy", *train, *test, num_classes, names, mean, std)


class Counting(nn.Module):
    """Counts images, and lets a BatchNorm learn, whatever the mode: nothing of that may stay."""

    def __init__(self, num_classes=4):
        super().__init__()
        self.norm = nn.BatchNorm2d(1)
        self.last = nn.Linear(SIDE * SIDE, num_classes)
        self.register_buffer("seen", torch.tensor(0))

    def forward(self, x):
        self.norm.train()
        self.seen += len(x)
        return self.last(self.norm(x).flatten(1))


def toy_recipe(**changes):
    fields = {
        "name": "toy",
        "dataset": "toy",
        "model": "tiny-resnet-8",
        "augmenter": "default",
        "epochs": 2,
        "batch_size": 8,
        "learning_rate": 0.05,
        "weight_decay": 5e-4,
        "num_candidates": 3,
        "num_selected": 2,
        "evaluate_every": 1,
        "checkpoint_every": 1,
        "log_every": 2,
        "precision": "float32",
        "num_workers": 0,
    }
    return Recipe(**(fields | changes))


class PlainNetwork(nn.Module):
    """A network without BatchNorm, whose result for an image depends on that image alone."""

    def __init__(self, num_classes, in_channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(in_channels, 8, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(8 * (SIDE // 2) ** 2, num_classes),
        )

    def forward(self, images):
        return self.body(images)


class PlainEntry:
    """Makes "plain" a known network for the block."""

    def __enter__(self):
        models.MODELS["plain"] = PlainNetwork

    def __exit__(self, *_):
        del models.MODELS["plain"]


def same_story(one, two):
    """Whether two records agree in all but time."""

    def plain(folder):
        timing = ("seconds", "epoch_seconds", "images_per_second", "time")
        return [
            {key: value for key, value in line.items() if key not in timing}
            for line in read_metrics(folder)
        ]

    return plain(one) == plain(two)


class StopAfter(Silent):
    """Sends this process a signal after so many steps."""

    def __init__(self, steps, number=signal.SIGTERM):
        self.left, self.number = steps, number

    def advance(self):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), self.number)
