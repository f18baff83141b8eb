"""Which data a run was trained on: written with the run, compared when it is used again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from divaug.default_augmentation import DefaultAugmentation
from divaug.lab.datasets import DataIdentity, Dataset, ImageFiles, identify
from divaug.lab.recipes import Recipe
from divaug.lab.train.data import load_data, place_of

__all__ = [
    "DataRecord",
    "load_recorded",
    "read_data_record",
    "record_of",
    "refuse_other",
    "resumed_data",
]

_FORMAT = "divaug.data/1"
_NAME = "data.json"


@dataclass(frozen=True)
class DataRecord:
    """The data of a run.

    Args:
        identity: name, sizes, classes and fingerprint.
        path: where it was read from, absolute; None for the usual place of a named dataset, and
            for tensors that came from nowhere.
        mean: what images are normalised with, of each channel; None where the run does not say.
        std: likewise.
        class_names: one a class, in the order of the labels; None where the run does not say.
        held_out: the share of each class that a seed put aside for testing, 0 where the data has a
            test part of its own; None where the run does not say.
    """

    identity: DataIdentity
    path: str | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    class_names: tuple[str, ...] | None = None
    held_out: float | None = None

    def __str__(self) -> str:
        """As messages name it."""
        return f"{self.identity} at {self.path}" if self.path else str(self.identity)

    def to_json(self) -> str:
        """The text of the run's `data.json`."""
        content = {"format": _FORMAT, **self.identity.to_dict(), "path": self.path}
        if self.mean and self.std:
            content |= {"mean": self.mean, "std": self.std}
        if self.class_names is not None:
            content["class_names"] = self.class_names
        if self.held_out is not None:
            content["held_out"] = self.held_out
        return json.dumps(content, indent=1) + "\n"

    def normalise(self, default: DefaultAugmentation) -> DefaultAugmentation:
        """The same augmentation with the mean and deviation of this data, where they are known."""
        if self.mean is None or self.std is None:
            return default
        if len(self.mean) != len(default.mean):
            raise ValueError(
                f"the run's {_NAME} has a mean of {len(self.mean)} channels, and images of "
                f"{self.identity} have {len(default.mean)}; it is damaged."
            )
        return replace(default, mean=self.mean, std=self.std)

    def is_same(self, other: "DataRecord") -> bool:
        """Whether the content is the same, wherever it lies."""
        return self.identity.fingerprint == other.identity.fingerprint

    def existing_path(self) -> str | None:
        """Where to read the data again.

        Raises:
            FileNotFoundError: it was moved.
        """
        if self.path is not None and not Path(self.path).exists():
            raise FileNotFoundError(
                f"the run was trained on {self.identity}, and {self.path} does not exist any more; "
                "say where the data is now with --data."
            )
        return self.path


def read_data_record(folder: Path) -> DataRecord | None:
    """What a run says of its data; None for a run that says nothing.

    Raises:
        ValueError: the file is damaged.
    """
    path = folder / _NAME
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError(f"its `format` is not {_FORMAT!r}")
        place = content.get("path")
        if not isinstance(place, str | None):
            raise ValueError(f"`path` must be text or null, got {place!r}")
        mean, std = (_numbers(content, name) for name in ("mean", "std"))
        if (mean is None) != (std is None) or len(mean or ()) != len(std or ()):
            raise ValueError("`mean` and `std` must have a number for each channel")
        names, held_out = _names(content), content.get("held_out")
        if held_out is not None and (type(held_out) not in (int, float) or not 0 <= held_out < 1):
            raise ValueError(f"`held_out` must be a number in [0, 1), got {held_out!r}")
        return DataRecord(DataIdentity.from_dict(content), place, mean, std, names, held_out)
    except (ValueError, KeyError) as error:  # what is no JSON or no text is a ValueError too
        raise ValueError(f"{path} is damaged: {error}.") from None


def _numbers(content: Mapping[str, Any], name: str) -> tuple[float, ...] | None:
    """A number for each channel; None in runs of older releases, which do not have them."""
    values = content.get(name)
    if values is None:
        return None
    if not isinstance(values, list) or not all(type(v) in (int, float) for v in values):
        raise ValueError(f"`{name}` must be a list of numbers, got {values!r}")
    return tuple(map(float, values))


def _names(content: Mapping[str, Any]) -> tuple[str, ...] | None:
    """A name for each class; None in runs of older releases, which do not have them."""
    names = content.get("class_names")
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"`class_names` must be a list of texts, got {names!r}")
    return tuple(names)


def record_of(data: Dataset | ImageFiles, path: str | None = None) -> DataRecord:
    """What a run says of a dataset."""
    held_out = data.held_out if isinstance(data, ImageFiles) else 0.0
    return DataRecord(
        identify(data), path, tuple(data.mean), tuple(data.std), tuple(data.class_names), held_out
    )


def load_recorded(
    recipe: Recipe,
    data: str | Path | Dataset | ImageFiles | None,
    *,
    download: bool = True,
    any_classes: bool = False,
) -> tuple[Dataset | ImageFiles, DataRecord]:
    """A dataset, loaded as `load_data` does unless it is one already, and the record of it."""
    if isinstance(data, Dataset):
        return data, record_of(data)
    if isinstance(data, ImageFiles):
        place = str(Path(data.root).absolute()) if data.root else None
        return data, record_of(data, place)
    found = load_data(recipe, data, download=download, any_classes=any_classes)
    return found, record_of(found, place_of(recipe, data))


def resumed_data(
    recipe: Recipe,
    data: str | Path | Dataset | ImageFiles | None,
    folder: Path,
    *,
    resume: bool,
) -> tuple[Dataset | ImageFiles, DataRecord]:
    """The data of a run that begins or goes on, and the record of it.

    Args:
        recipe: of the run.
        data: a dataset, or where to find it; None for what the run was begun with.
        folder: of the run.
        resume: whether a run in that folder goes on.

    Raises:
        ValueError: a run would go on with other data.
    """
    before = read_data_record(folder) if resume else None
    if data is None and before is not None:
        data = before.existing_path()
    found, record = load_recorded(recipe, data)
    if before is not None and not before.is_same(record):
        raise ValueError(
            f"the run in {folder} was trained on {before} and cannot be resumed with {record}; "
            f"{_remedy(before.identity, record.identity)}, or write to another folder."
        )
    return found, record


def refuse_other(
    own: DataRecord | None, recipe: Recipe, data: Dataset | ImageFiles, remedy: str
) -> None:
    """Refuse data that a run was not trained on, where the run says what that was.

    Args:
        own: what the run says.
        recipe: of the run.
        data: that something of the run is to be recorded with.
        remedy: what to do instead, to end the sentence.

    Raises:
        ValueError: it is other data.
    """
    if own is None:
        return
    _, now = load_recorded(recipe, data)
    if not now.is_same(own):
        raise ValueError(
            f"the run was trained on {own}, and a record of it cannot be made with {now}; give the "
            f"same data (--data), or {remedy}."
        )


def _remedy(before: DataIdentity, now: DataIdentity) -> str:
    """What to do about data that a run was not begun with."""
    if replace(now, fingerprint=before.fingerprint) == before:
        return "its content has changed since (a repair changes it too): put back what was there"
    return "give it the same data"
