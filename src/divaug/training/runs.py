"""The folder of a run: recipe, environment, metrics as JSON lines, TensorBoard events, checkpoints.

RUN/recipe.json         every hyper-parameter
RUN/data.json           the dataset: name, path, sizes, classes, fingerprint
RUN/environment.json    machine, versions, commit; one entry for each start
RUN/metrics.jsonl       a line for each logged interval and each epoch
RUN/tensorboard/        the same for TensorBoard, where it is installed
RUN/checkpoints/        the last two
"""

import importlib.util
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from divaug.recipes import Recipe

__all__ = ["Run", "check_folder", "read_metrics", "read_recipe"]


def check_folder(folder: Path, recipe: Recipe, resume: bool) -> None:
    """See whether a run may be written there, without writing anything.

    Raises:
        FileExistsError: something is there, and nobody asked to resume it.
        ValueError: what is there is no run, or a run of another recipe.
    """
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"`out` must be a folder, and {folder} is a file.")
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not resume:
        raise FileExistsError(
            f"{folder} exists and is not empty: resume the run in it (--resume), or write to "
            "another folder."
        )
    known = read_recipe(folder)
    different = known.differences(recipe)
    if different:
        named = ", ".join(f"{n} was {a!r} and is {b!r}" for n, (a, b) in different.items())
        raise ValueError(
            f"the run in {folder} was started with another recipe: {named}; resume it with the "
            "same one, or write to another folder."
        )


def read_recipe(folder: Path) -> Recipe:
    """The recipe that a run was started with.

    Raises:
        ValueError: the folder is no run.
    """
    path = folder / "recipe.json"
    if not path.is_file():
        raise ValueError(f"{folder} is no run: there is no recipe.json in it.")
    try:
        return Recipe.from_json(path.read_text(encoding="utf-8"))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's record; a last line that was cut short is left out."""
    path = folder / "metrics.jsonl"
    return list(_lines(path)) if path.is_file() else []


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            return


class _Writer(Protocol):
    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...

    def close(self) -> None: ...


@dataclass
class Run:
    """A run's folder, open for writing; `folder=None` writes nothing.

    Args:
        folder: where; None for the processes that do not write.
        data: the text of `data.json`; empty for none.
    """

    folder: Path | None
    data: str = ""

    def __post_init__(self) -> None:
        self._events: _Writer | None = None

    def open(self, recipe: Recipe, environment: Mapping[str, Any], step: int = 0) -> None:
        """Make the folder, or cut its record back to the step that is resumed from."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        _replace(self.folder / "recipe.json", recipe.to_json())
        if self.data:
            _replace(self.folder / "data.json", self.data)
        starts = self._starts()
        _replace(
            self.folder / "environment.json",
            json.dumps([*starts, {"step": step, **environment}], indent=1) + "\n",
        )
        kept = [line for line in read_metrics(self.folder) if line["step"] <= step]
        text = "".join(json.dumps(line) + "\n" for line in kept)
        _replace(self.folder / "metrics.jsonl", text)
        self._events = _tensorboard(self.folder / "tensorboard", step)

    def _starts(self) -> list[Any]:
        assert self.folder is not None
        path = self.folder / "environment.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError):
            return []
        return found if isinstance(found, list) else []

    def write(self, line: Mapping[str, Any]) -> None:
        """Add a line to the record; it must have `kind` and `step`."""
        if self.folder is None:
            return
        with (self.folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(_plain(line)) + "\n")
        if self._events is not None:
            for name, value in line.items():
                if isinstance(value, float):
                    self._events.add_scalar(f"{line['kind']}/{name}", value, line["step"])

    def close(self) -> None:
        """Finish writing."""
        if self._events is not None:
            self._events.close()
            self._events = None

    @property
    def checkpoints(self) -> Path | None:
        """The folder of checkpoints."""
        return None if self.folder is None else self.folder / "checkpoints"


def _plain(value: Any) -> Any:
    """As JSON knows it: numbers that are none become null."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    aside = path.with_name(path.name + ".unfinished")
    with aside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def _tensorboard(folder: Path, step: int) -> _Writer | None:
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    purge = step + 1 if step else None
    writer: _Writer = SummaryWriter(str(folder), purge_step=purge)
    return writer
