"""A small part of the shipped data, and options that make every run take a moment."""

import numpy as np

from divaug.datasets import shipped
from divaug.reproduction.options import DEMO_ROW, Options

#: Three steps of twenty images an epoch.
OPTIONS = Options((DEMO_ROW,), (), 1, 2, 0.02, ("batch_size=20",))


def write_data(path, num_test=50):
    part = shipped().subset(200, num_test=num_test)
    np.savez(
        path,
        x_train=part.train_images.numpy(),
        y_train=part.train_labels.numpy(),
        x_test=part.test_images.numpy(),
        y_test=part.test_labels.numpy(),
    )
    return path
