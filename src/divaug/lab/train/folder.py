"""The folder of a run.

RUN/recipe.json         every hyper-parameter
RUN/data.json           the dataset: name, path, sizes, classes' names, mean, std, fingerprint
RUN/split.json          the labelled images, where not all are
RUN/environment.json    machine, versions, commit; one entry for each start
RUN/metrics.jsonl       a line for each logged interval and each epoch
RUN/result.json         how far it came, its accuracy, and its time
RUN/tensorboard/        the curves for TensorBoard, with `tensorboard`
RUN/checkpoints/        the last two
RUN/.lock               held by the process that writes
"""

import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from filelock import FileLock, Timeout

from divaug.lab.checkout import commit, processor
from divaug.lab.recipes import Recipe
from divaug.lab.train.data import DATA, SPLIT, DataRecord, Split
from divaug.lab.train.device import Hardware
from divaug.lab.train.processes import Processes

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


_RECIPE, _ENVIRONMENT, _RESULT, _LOCK = "recipe.json", "environment.json", "result.json", ".lock"
METRICS = "metrics.jsonl"

#: Fields of a recipe that a resumed run may change: they decide what is written and how fast, and
#: never what is trained.
HARMLESS = ("evaluate_every", "checkpoint_every", "log_every", "num_workers")

_PACKAGES = ("divaug", "torch", "torchvision", "numpy", "triton", "safetensors")


class WriteError(OSError):
    """A file could not be written: a full disk, no permission."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn errors of the system in the block into a `WriteError` that names the file."""
    try:
        yield
    except OSError as error:
        # A full disk is noticed while writing, and then the system names no file.
        raise WriteError(f"cannot write {path}: {error.strerror or error}.") from error


def replace_text(path: Path, text: str) -> None:
    """Write a file whole or not at all; a pipe or a device directly."""
    with writing(path):
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        aside = path.with_name(path.name + ".unfinished")
        try:
            with aside.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)


def read_recipe(folder: Path) -> Recipe:
    """Read the recipe that a run was started with."""
    path = folder / _RECIPE
    if not path.is_file():
        raise ValueError(f"{folder} is no run: there is no recipe.json in it.")
    try:
        return Recipe.from_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_result(folder: Path) -> dict[str, Any]:
    """Read the result of a run's last start; empty if it never ended."""
    path = folder / _RESULT
    found: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
    return found


def read_metrics(
    folder: Path, note: Callable[[str], None] = lambda _: None
) -> list[dict[str, Any]]:
    """Read the lines of a run's record; none if there is no record yet.

    A last line that was cut short, as a power failure leaves it, is dropped, and `note` called.
    """
    path = folder / METRICS
    texts = path.read_bytes().splitlines() if path.is_file() else []
    lines = []
    for number, text in enumerate(texts, start=1):
        try:
            lines.append(dict(json.loads(text)))
        except (ValueError, TypeError):
            if number < len(texts):
                raise ValueError(f"{path} is damaged: line {number} is no JSON object.") from None
            note(f"{path}: line {number}, the last one, was cut short and is dropped.")
    return lines


def read_epochs(folder: Path) -> list[dict[str, Any]]:
    """Read the lines of a run's record that end an epoch."""
    return [line for line in read_metrics(folder) if line["kind"] == "epoch"]


def is_empty(folder: Path) -> bool:
    """Return True if the folder holds nothing, or does not exist."""
    if not folder.is_dir():
        return not folder.exists()
    return all(path.name == _LOCK for path in folder.iterdir())


def check_place(folder: Path) -> None:
    """Check that a folder can be made and written, before the work begins."""
    there = next(one for one in (folder, *folder.absolute().parents) if os.path.lexists(one))
    if not there.is_dir():
        raise FileExistsError(f"`out` must be a folder, and {there} is a file; write elsewhere.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"`out` is {folder}, and {there} cannot be written; write elsewhere.")


class RunFolder:
    """The folder of a run, open for writing in the first process.

    Nothing is written before `open`. The folder is locked until the end of the block, so that a
    second process is refused.

    Args:
        folder: path of the folder.
        writes: True in the process that writes; the others write nothing.
        tensorboard: True to write the curves for TensorBoard too.
    """

    def __init__(self, folder: Path, *, writes: bool = True, tensorboard: bool = False) -> None:
        self.folder, self.writes, self._tensorboard = folder, writes, tensorboard
        self._lock = FileLock(folder / _LOCK, timeout=0)
        self._curves: SummaryWriter | None = None

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(self, *_: object) -> None:
        if self._curves is not None:
            self._curves.close()
        self._lock.release(force=True)

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.folder / "checkpoints"

    def check(self, recipe: Recipe, *, resume: bool) -> None:
        """Check that a run may be written there, and lock a run that is there."""
        folder = self.folder
        if self.writes:
            check_place(folder)
        if is_empty(folder):
            return
        if not resume:
            raise FileExistsError(
                f"{folder} exists and is not empty: resume the run in it (--resume), or write to "
                "another folder."
            )
        changed = read_recipe(folder).differences(recipe)
        self._acquire()
        different = {name: both for name, both in changed.items() if name not in HARMLESS}
        if different:
            named = ", ".join(f"{n} was {a!r} and is {b!r}" for n, (a, b) in different.items())
            raise ValueError(
                f"the run in {folder} was started with another recipe: {named}; resume it with the "
                "same one (on the command line by leaving its name out), or write to another "
                f"folder (only {', '.join(HARMLESS)} may change)."
            )

    def _acquire(self) -> None:
        if not self.writes or self._lock.is_locked:
            return
        try:
            self._lock.acquire()
        except Timeout:
            raise BlockingIOError(
                f"{self.folder} is being written by another process; wait until it has ended, or "
                "write to another folder."
            ) from None

    def open(
        self,
        recipe: Recipe,
        data: DataRecord,
        environment: Mapping[str, Any],
        *,
        step: int = 0,
        split: Split | None = None,
    ) -> None:
        """Make the folder, or cut its record back to the step that is resumed from."""
        if not self.writes:
            return
        folder, begun = self.folder, self._lock.is_locked
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._acquire()
        if not begun and (folder / _RECIPE).exists():
            raise FileExistsError(
                f"another process has begun a run in {folder}; write to another folder."
            )
        kept = [line for line in read_metrics(folder) if line["step"] <= step]
        replace_text(folder / _RECIPE, recipe.to_json())
        replace_text(folder / DATA, data.to_json())
        if split is not None:
            replace_text(folder / SPLIT, split.to_json())
        starts = [*self._starts(), {"step": step, **environment}]
        replace_text(folder / _ENVIRONMENT, json.dumps(starts, indent=1) + "\n")
        replace_text(folder / METRICS, "".join(json.dumps(line) + "\n" for line in kept))
        if self._tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            # What earlier starts wrote of later steps is withdrawn.
            self._curves = SummaryWriter(folder / "tensorboard", purge_step=step + 1)

    def _starts(self) -> list[Any]:
        path = self.folder / _ENVIRONMENT
        return list(json.loads(path.read_bytes())) if path.is_file() else []

    def write(self, line: Mapping[str, Any]) -> None:
        """Add a line to the record; it must have `kind` and `step`."""
        if not self.writes:
            return
        path = self.folder / METRICS
        with writing(path), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(_plain(line)) + "\n")
        if self._curves is not None:
            for name, value in line.items():
                if isinstance(value, float):
                    self._curves.add_scalar(f"{line['kind']}/{name}", value, line["step"])

    def conclude(self, result: Mapping[str, Any]) -> None:
        """Write the result, with the number of starts."""
        if self.writes:
            content = {**_plain(result), "starts": len(self._starts())}
            replace_text(self.folder / _RESULT, json.dumps(content, indent=1) + "\n")


def _plain(value: Any) -> Any:
    """Replace numbers that JSON cannot hold by null."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def environment(hardware: Hardware, processes: Processes) -> dict[str, Any]:
    """Describe what a run runs on: machine, versions and, where it is known, the commit."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    cuda = hardware.device.type == "cuda"
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "device": hardware.device.type,
        "gpu": torch.cuda.get_device_name(hardware.device) if cuda else None,
        "cuda": torch.version.cuda if cuda else None,
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "processes": processes.count,
        "precision": str(hardware.dtype).removeprefix("torch."),
        "compiled": hardware.compiled,
        "graphed": hardware.graphed,
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": versions,
        "commit": commit(),
    }
