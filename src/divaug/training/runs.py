"""The folder of a run: recipe, environment, metrics as JSON lines, checkpoints.

RUN/recipe.json         every hyper-parameter
RUN/data.json           the dataset: name, path, sizes, classes' names, mean, std, fingerprint
RUN/split.json          which images are labelled, where not all are
RUN/environment.json    machine, versions, commit; one entry for each start
RUN/metrics.jsonl       a line for each logged interval and each epoch
RUN/result.json         how far it came, what it reached, and where its time went
RUN/tensorboard/        the same for TensorBoard, if it is to be written
RUN/checkpoints/        the last two
RUN/.lock               empty; locked by the process that writes
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from divaug.recipes import Recipe
from divaug.training.files import replace_text, writing
from divaug.training.locks import Lock
from divaug.training.metrics import METRICS, read_metrics
from divaug.training.splits import SPLIT, Split

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

__all__ = ["Run", "read_metrics", "read_recipe", "read_result"]

_RECIPE = "recipe.json"


def read_recipe(folder: Path) -> Recipe:
    """The recipe that a run was started with.

    Raises:
        ValueError: the folder is no run.
    """
    path = folder / _RECIPE
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


@dataclass
class Run:
    """A run's folder, open for writing; `folder=None` writes nothing.

    Args:
        folder: where; None for the processes that do not write.
        data: the text of `data.json`; empty for none.
        lock: the right to write there; None to do without.
        tensorboard: whether to write the curves for TensorBoard too.
    """

    folder: Path | None
    data: str = ""
    lock: Lock | None = None
    tensorboard: bool = False

    def __post_init__(self) -> None:
        self._curves: SummaryWriter | None = None

    def open(
        self,
        recipe: Recipe,
        environment: Mapping[str, Any],
        step: int = 0,
        split: Split | None = None,
    ) -> None:
        """Make the folder, or cut its record back to the step that is resumed from.

        Raises:
            FileExistsError: another run was begun there since the folder was looked at.
            BlockingIOError: another process writes there.
        """
        if self.folder is None:
            return
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        kept = [line for line in read_metrics(self.folder) if line["step"] <= step]
        replace_text(self.folder / _RECIPE, recipe.to_json())
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
        if self.tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            # What earlier starts wrote of later steps is withdrawn.
            self._curves = SummaryWriter(self.folder / "tensorboard", purge_step=step + 1)

    def _take_lock(self) -> None:
        """Of a run that goes on it is taken already; of a new one there was no folder so far."""
        assert self.folder is not None
        if self.lock is None or self.lock.taken:
            return
        self.lock.take()
        if (self.folder / _RECIPE).exists():
            raise FileExistsError(
                f"another process has begun a run in {self.folder} meanwhile; write to another "
                "folder."
            )

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
        if self._curves is not None:
            for name, value in line.items():
                if isinstance(value, float):
                    self._curves.add_scalar(f"{line['kind']}/{name}", value, line["step"])

    def conclude(self, result: Mapping[str, Any]) -> None:
        """Say how far the run came; the number of starts is added."""
        if self.folder is not None:
            content = {**_plain(result), "starts": len(self._starts())}
            replace_text(self.folder / "result.json", json.dumps(content, indent=1) + "\n")

    def close(self) -> None:
        """Finish writing."""
        if self._curves is not None:
            self._curves.close()

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
