"""A dataset in one ``.npz`` file."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from divaug.lab.datasets.dataset import Dataset, channel_statistics

__all__ = ["npz"]

_KEYS = ("x_train", "y_train", "x_test", "y_test")


def npz(path: str | Path, *, name: str | None = None) -> Dataset:
    """Load a dataset from ``x_train``, ``y_train``, ``x_test`` and ``y_test`` in an ``.npz`` file.

    Images are uint8, ``[N,H,W]``, ``[N,H,W,C]`` or ``[N,C,H,W]`` with one or three channels. Labels
    are integers from 0, ``[N]`` or ``[N,1]``. An array ``class_names`` may name the classes;
    without it, every class must have training images.

    Args:
        path: the file.
        name: name of the dataset; the file's by default.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, or its arrays are not a dataset.
    """
    path = Path(path)
    arrays = _read(path)
    train_labels = _labels(path, "y_train", arrays)
    test_labels = _labels(path, "y_test", arrays)
    train_images = _images(path, "x_train", arrays)
    if "class_names" in arrays:
        class_names = tuple(str(one) for one in arrays["class_names"].tolist())
    else:
        class_names = tuple(str(label) for label in range(int(train_labels.max()) + 1))
        unseen = sorted(set(range(len(class_names))) - set(train_labels.tolist()))
        if unseen:
            raise ValueError(
                f"{path}: `y_train` must have every class from 0 to {len(class_names) - 1}, got "
                f"none of class {unseen[0]}; name all classes in `class_names`."
            )
    mean, std = channel_statistics(train_images)
    return Dataset(
        name=name or path.stem,
        train_images=train_images,
        train_labels=train_labels,
        test_images=_images(path, "x_test", arrays),
        test_labels=test_labels,
        num_classes=len(class_names),
        class_names=class_names,
        mean=mean,
        std=std,
    )


def _read(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file:
            content = np.load(file, allow_pickle=False)
            if not isinstance(content, np.lib.npyio.NpzFile):
                raise ValueError("it is one array")
            arrays = {key: content[key] for key in (*_KEYS, "class_names") if key in content}
    except FileNotFoundError:
        raise
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} must be an .npz file with {', '.join(_KEYS)}: {error}; write it with "
            "numpy.savez."
        ) from error
    missing = [key for key in _KEYS if key not in arrays]
    if missing:
        raise ValueError(f"{path} must hold {', '.join(_KEYS)}; {missing[0]} is missing.")
    return arrays


def _images(path: Path, key: str, arrays: dict[str, NDArray[Any]]) -> Tensor:
    array = arrays[key]
    if array.dtype != np.uint8 or array.ndim not in (3, 4) or not array.size:
        raise ValueError(
            f"{path}: `{key}` must be uint8 [N,H,W], [N,H,W,C] or [N,C,H,W], got {array.dtype} "
            f"{list(array.shape)}; convert floats in [0, 1] with (x * 255).round().astype('uint8')."
        )
    if array.ndim == 3:
        array = array[:, None]
    elif array.shape[3] in (1, 3):
        array = array.transpose(0, 3, 1, 2)
    elif array.shape[1] not in (1, 3):
        raise ValueError(
            f"{path}: `{key}` must have 1 or 3 channels, got {list(array.shape)}; convert the "
            "images to grey or to colour."
        )
    return torch.from_numpy(np.ascontiguousarray(array))


def _labels(path: Path, key: str, arrays: dict[str, NDArray[Any]]) -> Tensor:
    array = arrays[key]
    if array.dtype.kind not in "iu" or array.size != len(array) or not array.size:
        raise ValueError(
            f"{path}: `{key}` must be integers [N], got {array.dtype} {list(array.shape)}; convert "
            "floats with y.astype('int64')."
        )
    return torch.from_numpy(array.reshape(-1).astype(np.int64))
