"""A dataset in one ``.npz`` file."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from divaug.lab.datasets._dataset import Dataset
from divaug.lab.datasets._numpy_files import check_start, reading
from divaug.lab.datasets._statistics import channel_statistics, require_variation

_KEYS = ("x_train", "y_train", "x_test", "y_test")
_OPTIONAL = ("class_names", "layout")
_CHANNELS = (1, 3)
# Layout → the axes in the order [N,C,H,W].
_LAYOUTS = {"NCHW": (0, 1, 2, 3), "NHWC": (0, 3, 1, 2)}


def npz(path: str | Path, *, name: str | None = None, layout: str | None = None) -> Dataset:
    """Load a dataset from ``x_train``, ``y_train``, ``x_test`` and ``y_test`` in an ``.npz`` file.

    Images are uint8, ``[N,H,W]``, ``[N,H,W,C]`` or ``[N,C,H,W]`` with one or three channels. Labels
    are whole numbers from 0, ``[N]`` or ``[N,1]``. An array ``class_names`` may name the classes;
    without it, their number is one more than the largest value in ``y_train``, and every class must
    have training images. An entry ``layout``, ``"NHWC"`` or ``"NCHW"``, says which it is where the
    shape fits both. Objects (pickles) are never read.

    Args:
        path: The file.
        name: What to call the dataset; the file's name by default.
        layout: ``"NHWC"`` or ``"NCHW"`` where the shape fits both, in place of the file's own.

    Raises:
        OSError: If there is no such file, or it must not be read.
        ValueError: If the file is damaged, images are not uint8, labels not whole numbers, or its
            arrays do not fit together.
    """
    path = Path(path)
    arrays = _read(path)
    layout = _checked_layout(path, arrays, layout)
    train_images = _images(path, "x_train", arrays, layout)
    test_images = _images(path, "x_test", arrays, layout)
    train_labels = _labels(path, "y_train", arrays, len(train_images))
    test_labels = _labels(path, "y_test", arrays, len(test_images))
    _check_classes(path, train_labels, test_labels, named="class_names" in arrays)
    class_names = _class_names(arrays, train_labels)
    statistics = channel_statistics(train_images)
    require_variation(statistics, path)
    return Dataset(
        name=name or path.stem,
        train_images=train_images,
        train_labels=train_labels,
        test_images=test_images,
        test_labels=test_labels,
        num_classes=len(class_names),
        class_names=class_names,
        mean=statistics.mean,
        std=statistics.std,
    )


def _read(path: Path) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; give the path of an .npz file with {_KEYS}")
    remedy = (
        f"write it again with numpy.savez and {_KEYS}; images in files of their own are given as "
        "the folder that they lie in, a folder for each class"
    )
    with reading(path, "a plain .npz file", remedy), path.open("rb") as file:
        check_start(file)
        content = np.load(file, allow_pickle=False)
        if not isinstance(content, np.lib.npyio.NpzFile):
            raise ValueError("it is one array")
        arrays = {key: content[key] for key in (*_KEYS, *_OPTIONAL) if key in content}
        strange = [key for key, array in arrays.items() if not isinstance(array, np.ndarray)]
        if strange:
            raise ValueError(f"{strange[0]} is no array")
    missing = [key for key in _KEYS if key not in arrays]
    if missing:
        raise ValueError(f"{path} must hold {_KEYS}; {missing} missing")
    return arrays


def _images(path: Path, key: str, arrays: dict[str, NDArray[Any]], layout: str | None) -> Tensor:
    array = arrays[key]
    if array.dtype != np.uint8:
        raise ValueError(
            f"{path}: {key} must be uint8 (0 … 255), got {array.dtype}; {_remedy(array)}"
        )
    if array.ndim == 3:
        array = array[:, None]
    elif array.ndim == 4:
        array = array.transpose(_LAYOUTS[_layout(path, key, array.shape, layout)])
    else:
        raise ValueError(
            f"{path}: {key} must be [N,H,W], [N,H,W,C] or [N,C,H,W], got {list(array.shape)}"
        )
    if array.size == 0:
        raise ValueError(f"{path}: {key} is empty, {list(array.shape)}; at least one image needed")
    return torch.from_numpy(np.ascontiguousarray(array))


def _checked_layout(path: Path, arrays: dict[str, NDArray[Any]], given: str | None) -> str | None:
    if given is None and "layout" not in arrays:
        return None
    wanted = arrays["layout"].tolist() if given is None else given
    if wanted not in list(_LAYOUTS):
        raise ValueError(f"{path}: layout must be one of {sorted(_LAYOUTS)}, got {wanted!r}")
    return str(wanted)


def _layout(path: Path, key: str, shape: tuple[int, ...], layout: str | None) -> str:
    if layout is not None:
        channels = shape[_LAYOUTS[layout][1]]
        if channels not in _CHANNELS:
            raise ValueError(
                f"{path}: {key} must have 1 or 3 channels, got {channels} in {list(shape)} read as "
                f"layout {layout}; give the other layout, or leave it out"
            )
        return layout
    fits = [name for name, axes in _LAYOUTS.items() if shape[axes[1]] in _CHANNELS]
    if not fits:
        raise ValueError(
            f"{path}: the shape of {key}, {list(shape)}, has no axis of 1 or 3 channels for "
            "[N,H,W,C] and [N,C,H,W]; convert the images to grey or to colour"
        )
    if len(fits) > 1:
        raise ValueError(
            f"{path}: the shape of {key}, {list(shape)}, fits both [N,H,W,C] and [N,C,H,W]; say "
            'which it is in the file: numpy.savez(..., layout="NHWC"), or "NCHW"'
        )
    return fits[0]


def _remedy(array: NDArray[Any]) -> str:
    """How to make bytes of such numbers."""
    if array.dtype.kind in "iu":
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        if low >= 0 and high <= 255:
            return "they are bytes already: x.astype('uint8')"
        return "convert 16 bits with (x // 257).astype('uint8')"
    return "convert floats in [0, 1] with (x * 255).round().astype('uint8')"


def _labels(path: Path, key: str, arrays: dict[str, NDArray[Any]], num_images: int) -> Tensor:
    array = arrays[key]
    if array.dtype.kind not in "iu":
        raise ValueError(
            f"{path}: {key} must be whole numbers, got {array.dtype}; "
            "convert floats with y.astype('int64')"
        )
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (num_images,):
        raise ValueError(
            f"{path}: {key} must be one label an image, [{num_images}], got {list(array.shape)}"
        )
    return torch.from_numpy(array.astype(np.int64))


def _check_classes(path: Path, train: Tensor, test: Tensor, *, named: bool) -> None:
    """Refuse a stray label, which would make a network with outputs that nothing trains."""
    seen = set(train.tolist())
    if not seen or min(seen) < 0:
        return  # `Dataset` names it
    num_missing = max(seen) + 1 - len(seen)
    if num_missing and not named:
        first = itertools.islice((i for i in range(max(seen)) if i not in seen), 3)
        more = ", …" if num_missing > 3 else ""
        raise ValueError(
            f"{path}: y_train has no image of {num_missing:,} of its {max(seen) + 1:,} classes "
            f"({', '.join(map(str, first))}{more}); its labels reach from {min(seen)} to "
            f"{max(seen)}: mend the stray ones, count classes from 0 without gaps, or name all "
            "classes in class_names"
        )
    unseen = sorted(set(test.tolist()) - seen)
    if unseen and unseen[0] >= 0:
        raise ValueError(
            f"{path}: y_test has classes that y_train has not: {', '.join(map(str, unseen[:3]))}"
            f"{', …' if len(unseen) > 3 else ''}; a network cannot learn them"
        )


def _class_names(arrays: dict[str, NDArray[Any]], train_labels: Tensor) -> tuple[str, ...]:
    if "class_names" in arrays:
        names = arrays["class_names"].reshape(-1).tolist()
        return tuple(
            name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
            for name in names
        )
    num_classes = int(train_labels.max()) + 1 if train_labels.numel() else 0
    return tuple(str(label) for label in range(num_classes))
