"""Make the part of Fashion-MNIST that ships with the package.

usage: python tools/make_fashion_mnist_small.py ROOT [OUT]

ROOT is a folder with Fashion-MNIST as torchvision lays it out; missing files are downloaded. The
images are drawn by a fixed seed: every run gives the same arrays, and the same bytes with the same
zlib.
"""

import sys
import zipfile
from pathlib import Path

import numpy as np

from divaug.lab.datasets import balanced_indices, load

NUM_TRAIN, NUM_TEST, SEED = 3000, 1500, 0
OUT = Path(__file__).parents[1] / "src/divaug/lab/datasets/data/fashion_mnist_small.npz"


def main(root: str, out: str | None = None) -> None:
    """Draw the images and write the file."""
    data = load("fashion_mnist", root)
    train = balanced_indices(data.train_labels, NUM_TRAIN, data.num_classes, seed=SEED)
    test = balanced_indices(data.test_labels, NUM_TEST, data.num_classes, seed=SEED)
    arrays = {
        "x_train": data.train_images[train, 0].numpy(),
        "y_train": data.train_labels[train].numpy().astype(np.uint8),
        "x_test": data.test_images[test, 0].numpy(),
        "y_test": data.test_labels[test].numpy().astype(np.uint8),
        "class_names": np.array(data.class_names),
        # Where the images stand in the whole dataset.
        "train_index": train.numpy().astype(np.int32),
        "test_index": test.numpy().astype(np.int32),
    }
    path = Path(out) if out else OUT
    write(path, arrays)
    print(f"wrote {path}: {path.stat().st_size} bytes")


def write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write an .npz file whose bytes depend on the arrays alone (no time of day)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
