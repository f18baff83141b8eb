"""The folder of a run: recipe, environment, metrics as JSON lines, TensorBoard events, checkpoints.

RUN/recipe.json         every hyper-parameter
RUN/data.json           the dataset: name, path, sizes, classes, fingerprint
RUN/split.json          which images are labelled, where not all are
RUN/environment.json    machine, versions, commit; one entry for each start
RUN/metrics.jsonl       a line for each logged interval and each epoch
RUN/result.json         how far it came, what it reached, and where its time went
RUN/tensorboard/        the same for TensorBoard, where it is installed
RUN/checkpoints/        the last two
"""

import importlib.util
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from divaug.recipes import Recipe
from divaug.training.files import WriteError, replace_text, writing
from divaug.training.metrics import METRICS, read_metrics
from divaug.training.splits import SPLIT, Split

__all__ = ["HARMLESS", "Run", "check_folder", "read_metrics", "read_recipe", "read_result"]

#: Fields of a recipe that a resumed run may change: they decide what is written and how fast, and
#: never what is trained.
HARMLESS = ("evaluate_every", "checkpoint_every", "log_every", "num_workers")


def check_folder(folder: Path, recipe: Recipe, resume: bool) -> None:
    """See whether a run may be written there, without writing anything.

    Raises:
        FileExistsError: something is there, and nobody asked to resume it.
        PermissionError: nothing can be written there.
        ValueError: what is there is no run, or a run of another recipe.
    """
    _check_permission(folder)
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
    changed = known.differences(recipe)
    different = {name: both for name, both in changed.items() if name not in HARMLESS}
    if different:
        named = ", ".join(f"{n} was {a!r} and is {b!r}" for n, (a, b) in different.items())
        raise ValueError(
            f"the run in {folder} was started with another recipe: {named}; resume it with the "
            f"same one, or write to another folder (only {', '.join(HARMLESS)} may change)."
        )


def _check_permission(folder: Path) -> None:
    """Notice before the work begins what would end it at its first line."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if there.is_dir() and not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"`out` is {folder}, and you may not write to {there}.")


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


def read_result(folder: Path) -> dict[str, Any] | None:
    """What a run said of itself when it last ended; None where it never did, or was cut short."""
    try:
        found = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


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

    def open(
        self,
        recipe: Recipe,
        environment: Mapping[str, Any],
        step: int = 0,
        split: Split | None = None,
    ) -> None:
        """Make the folder, or cut its record back to the step that is resumed from."""
        if self.folder is None:
            return
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        kept = [line for line in read_metrics(self.folder) if line["step"] <= step]
        replace_text(self.folder / "recipe.json", recipe.to_json())
        if self.data:
            replace_text(self.folder / "data.json", self.data)
        if split is not None:
            replace_text(self.folder / SPLIT, split.to_json())
        starts = self._starts()
        replace_text(
            self.folder / "environment.json",
            json.dumps([*starts, {"step": step, **environment}], indent=1) + "\n",
        )
        text = "".join(json.dumps(line) + "\n" for line in kept)
        replace_text(self.folder / METRICS, text)
        with writing(self.folder / "tensorboard"):
            self._events = _tensorboard(self.folder / "tensorboard", step)

    def _starts(self) -> list[Any]:
        assert self.folder is not None
        path = self.folder / "environment.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return found if isinstance(found, list) else []

    def write(self, line: Mapping[str, Any]) -> None:
        """Add a line to the record; it must have `kind` and `step`."""
        if self.folder is None:
            return
        path = self.folder / METRICS
        with writing(path), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(_plain(line)) + "\n")
        if self._events is None:
            return
        with writing(self.folder / "tensorboard"):
            for name, value in line.items():
                if isinstance(value, float):
                    self._events.add_scalar(f"{line['kind']}/{name}", value, line["step"])

    def conclude(self, result: Mapping[str, Any]) -> None:
        """Say how far the run came; the number of starts is added."""
        if self.folder is not None:
            content = {**_plain(result), "starts": len(self._starts())}
            replace_text(self.folder / "result.json", json.dumps(content, indent=1) + "\n")

    def close(self, *, failed: bool = False) -> None:
        """Finish writing; `failed` says that the run ends with an error, which is told first."""
        if self._events is None or self.folder is None:
            return
        events, self._events = self._events, None
        try:
            with writing(self.folder / "tensorboard"):
                events.close()
        except WriteError:
            if not failed:
                raise

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


def _tensorboard(folder: Path, step: int) -> _Writer | None:
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    purge = step + 1 if step else None
    writer: _Writer = SummaryWriter(str(folder), purge_step=purge)
    return writer
