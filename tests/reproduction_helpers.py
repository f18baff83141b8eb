"""A small part of the shipped data, and options that make every run take a moment."""

import math
from dataclasses import replace

import numpy as np

from divaug.lab.datasets import load
from divaug.lab.recipes import recipe
from divaug.lab.report.lines import Kept
from divaug.lab.reproduce.options import DEMO_ROW, Options
from divaug.lab.reproduce.records import EpochRecord, FewLabels, RunRecord
from divaug.operations import OPERATIONS

#: Three steps of twenty images an epoch.
OPTIONS = Options((DEMO_ROW,), (), 1, 2, 0.02, ("batch_size=20",))

#: Rows with few labels: three steps of ten labelled and sixteen unlabelled images an epoch. All
#: predictions are believed and none is sharpened, so that in so few steps methods differ.
FEW_LABELS = Options(
    ("fashion_mnist_small-uda-50",),
    (),
    1,
    2,
    0.05,
    (
        "batch_size=10", "unlabelled_batch_size=16", "epoch_steps=3", "confidence=0.0",
        "temperature=1.0", "unlabelled_weight=1.0", "learning_rate=0.1", "annealing=none",
    ),
)  # fmt: skip


def write_data(path, num_test=50):
    part = load("fashion_mnist_small").subset(200, num_test=num_test)
    np.savez(
        path,
        x_train=part.train_images.numpy(),
        y_train=part.train_labels.numpy(),
        x_test=part.test_images.numpy(),
        y_test=part.test_labels.numpy(),
    )
    return path


RECIPE = recipe("cifar10-wide-resnet-40-2-divaug")
PLACE = {"gpu": None, "processor": "Some CPU", "threads": 2, "commit": "abc", "command": ["divaug"]}
TIME = {"start_up": 40.0, "training": 300.0, "evaluation": 20.0, "checkpoints": 5.0}
DATA = {"name": "cifar10", "fingerprint": "0" * 16, "train_images": 50_000, "test_images": 10_000}


def kept(epoch):
    counts = {name: 25_000 + 7 * i + epoch for i, name in enumerate(OPERATIONS)}
    applied = {name: count // 2 for name, count in counts.items()}
    probability = {name: 0.5 + 0.0123456 * i for i, name in enumerate(OPERATIONS)}
    return Kept(applied, counts, probability, 0.123456, 0.0987654)


def made_semi_run(augmenter="divaug", epochs=20, accuracy=0.9, row="uda-paper-1000", **changes):
    """A record that no run wrote: few labels, 1,000 steps an epoch."""
    one = replace(recipe(f"{row}-{augmenter}"), epochs=epochs, **changes)
    epoch = EpochRecord(
        1, 1.5, 0.5, 0.2, math.nan, math.nan, 9.0, None, 1.0, 0.1, 0.75
    )  # fmt: skip
    lines = [replace(epoch, number=e) for e in range(1, epochs)]
    lines.append(replace(epoch, number=epochs, test_accuracy=accuracy, test_loss=0.3))
    few = FewLabels(one.labels, 50_000, one.seed, f"{one.labels:08}{one.seed:08}", 1000 * epochs)
    return RunRecord(one, DATA, (PLACE,), 1, TIME, tuple(lines), few)


def made_run(epochs=3, **changes):
    """A record that no run wrote: DivAug on CIFAR-10."""
    one = replace(RECIPE, epochs=epochs, **changes)
    lines = [
        EpochRecord(e, 1.5 / e, 0.5, 0.2, 0.9 if e == epochs else math.nan, 0.3, 10.0 * e, kept(e))
        for e in range(1, epochs + 1)
    ]
    return RunRecord(one, DATA, (PLACE,), 1, TIME, tuple(lines))


def marks_of(figure):
    """The points of a figure, without their bars and rings: what its legend names."""
    return [line for line in figure.axes[0].lines if not line.get_label().startswith("_")]
