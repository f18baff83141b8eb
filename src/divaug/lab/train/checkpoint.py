"""Checkpoints that survive: written aside, synced, renamed; the last two are kept.

A checkpoint is a folder: `model.safetensors` (the network that a run evaluates),
`optimizer.safetensors` (momentum, and the trained weights where the model is their average) and
`state.json` (numbers, and the SHA-256 of the other two). Nothing is pickled or unpickled.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from divaug._base import Augmenter
from divaug._record import Record, Sums
from divaug.lab.recipes import Recipe, explain
from divaug.lab.train.build import Parts
from divaug.lab.train.folder import RunFolder, read_metrics, read_result, writing
from divaug.lab.train.processes import Processes, share_buffers
from divaug.lab.train.step import TrainingStep

#: Number of checkpoints of a run that are kept.
KEPT = 2
#: The files of a checkpoint.
MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"

_ASIDE = ".unfinished-"
_MOMENTUM, _TRAINED = "momentum.", "trained."


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A training run at one step: tensors by name, and all else that JSON can hold."""

    step: int
    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    info: Mapping[str, Any]


@checked_dataclass(frozen=True)
class State:
    """The `state.json` of a checkpoint; `sha256` is by tensor file."""

    step: int
    sha256: dict[str, str]
    info: dict[str, Any]


def save(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint into a folder of checkpoints and drop the oldest ones.

    Until the new one is whole nothing old is touched: when the disk is full or the process dies
    the older checkpoints stay as they are.

    Returns:
        The checkpoint's own folder.
    """
    target = folder / f"step-{checkpoint.step:08d}"
    with writing(target):
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(f"{_ASIDE}*"):  # by a process that died while it wrote
            shutil.rmtree(left, ignore_errors=True)
        aside = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=folder))
        try:
            _fill(aside, checkpoint)
            if target.exists():
                shutil.rmtree(target)
            aside.rename(target)
            _sync(folder)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        for old in find(folder)[:-KEPT]:
            shutil.rmtree(old)
    return target


def _fill(folder: Path, checkpoint: Checkpoint) -> None:
    sums = {}
    for name, tensors in ((MODEL, checkpoint.model), (OPTIMIZER, checkpoint.optimizer)):
        content = to_bytes({n: t.detach().cpu().contiguous() for n, t in tensors.items()})
        sums[name] = hashlib.sha256(content).hexdigest()
        _write(folder / name, content)
    state = State(checkpoint.step, sums, dict(checkpoint.info))
    _write(folder / STATE, json.dumps(asdict(state), indent=1).encode())
    _sync(folder)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_state(path: Path) -> State:
    """Read the state of a checkpoint."""
    try:
        return TypeAdapter(State).validate_json((path / STATE).read_bytes())
    except ValidationError as error:
        raise ValueError(f"{path / STATE} is damaged: {explain(error)}") from None


def load(path: Path) -> Checkpoint:
    """Read one checkpoint, after checking that it is whole.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged or cut short.
    """
    state, tensors = read_state(path), list[dict[str, Tensor]]()
    for name in (MODEL, OPTIMIZER):
        content = (path / name).read_bytes()
        if hashlib.sha256(content).hexdigest() != state.sha256.get(name):
            raise ValueError(f"{path / name} is damaged or cut short ({len(content):,} bytes).")
        tensors.append(from_bytes(content))
    model, optimizer = tensors
    return Checkpoint(state.step, model, optimizer, state.info)


def find(folder: Path) -> list[Path]:
    """List the checkpoints in a folder of checkpoints, oldest first."""
    return sorted(path for path in folder.glob("step-*") if path.is_dir())


def step_of(path: Path) -> int:
    """Return the step of a checkpoint that `find` found, by its name.

    Example:
        >>> step_of(Path("runs/a/checkpoints/step-00000390"))
        390
    """
    return int(path.name.removeprefix("step-"))


def load_latest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """Read the newest checkpoint that is whole; also a sentence for each newer one."""
    notes: list[str] = []
    for path in reversed(find(folder)):
        try:
            return load(path), notes
        except (ValueError, FileNotFoundError) as error:
            notes.append(f"{path.name} cannot be used: {str(error).rstrip('.')}.")
    return None, notes


def load_network(network: nn.Module, tensors: Mapping[str, Tensor], source: str) -> None:
    """Copy a checkpoint's tensors into a network, which must be the same as when it was saved."""
    try:
        network.load_state_dict(dict(tensors))
    except RuntimeError as error:
        reason = shorten(str(error).splitlines()[1], 120, placeholder=" …")
        raise ValueError(f"{source} belongs to another network: {reason}") from None


@dataclass(frozen=True)
class Place:
    """The place that a run has come to.

    Args:
        step: number of steps taken.
        spent: kind of work → seconds, over all starts.
        epoch_seconds: seconds of training in this epoch.
        interval_seconds: seconds of the device since the last line of the log.
        base: the sums at that line.
    """

    step: int
    spent: Mapping[str, float]
    epoch_seconds: float
    interval_seconds: float
    base: list[float]


def save_run(
    run: RunFolder, recipe: Recipe, parts: Parts, processes: Processes, place: Place
) -> Path:
    """Write everything that a resumed run needs. Collective: every process must call it."""
    step = parts.step
    share_averages(step, processes)
    info = {
        "model": recipe.model,
        "recipe": recipe.hash,
        "place": asdict(place),
        "augmenter": step.augment.state_dict(),
        "kept": _reduced(step.augment, processes, step.sums.device),
        "sums": processes.total(step.sums).tolist(),
    }
    tensors = {_MOMENTUM + name: tensor for name, tensor in step.optimizer.momentum.items()}
    if step.evaluated is not step.network:
        tensors |= {_TRAINED + name: t for name, t in step.network.state_dict().items()}
    if run.writes:
        model = step.evaluated.state_dict()
        save(run.checkpoints, Checkpoint(place.step, model, tensors, info))
    return run.checkpoints / f"step-{place.step:08d}"


def share_averages(step: TrainingStep, processes: Processes) -> None:
    """Broadcast the first process' BatchNorm statistics, trained and evaluated."""
    share_buffers(step.network, processes)
    if step.evaluated is not step.network:
        share_buffers(step.evaluated, processes)


def last_checkpoint(folder: Path, note: Callable[[str], None]) -> Checkpoint | None:
    """Read the last whole checkpoint of a run; None for a run that has written none.

    Raises:
        ValueError: the run has written checkpoints, and none is whole.
    """
    where = folder / "checkpoints"
    found, notes = load_latest(where)
    if found is None and (notes or read_result(folder).get("checkpoint")):
        # To start over would cut the run's record back to nothing.
        reason = " ".join(notes) or "they are gone"
        raise ValueError(
            f"no checkpoint in {where} is whole ({reason}) and the run is left as it is; bring one "
            "back, or move the folder away to start over."
        )
    for text in notes:
        note(f"{text} The one before is taken.")
    return found


def restore(
    folder: Path,
    found: Checkpoint,
    parts: Parts,
    processes: Processes,
    note: Callable[[str], None],
) -> tuple[Place, bool]:
    """Restore the parts of a run from a checkpoint.

    Returns:
        The run's place. False if it is at the end of an epoch that is still to be evaluated: the
        run's record has no line of it.
    """
    lines, step = read_metrics(folder, note), parts.step
    source = str(folder / "checkpoints" / f"step-{found.step:08d}")
    load_network(step.evaluated, found.model, source)
    if step.evaluated is not step.network:
        trained = [name for name in found.optimizer if name.startswith(_TRAINED)]
        tensors = {name.removeprefix(_TRAINED): found.optimizer[name] for name in trained}
        load_network(step.network, tensors, source)
    with torch.no_grad():
        for name, tensor in step.optimizer.momentum.items():
            tensor.copy_(found.optimizer[_MOMENTUM + name])
    step.augment.load_state_dict(dict(found.info["augmenter"]))
    step.augment.load_record_state(found.info["kept"])
    sums = torch.tensor(found.info["sums"], dtype=torch.float64)
    if not processes.first:  # all sums go on in the first process
        step.augment.reset_record()
        sums.zero_()
    step.sums.copy_(sums)
    step.optimizer.step_number.fill_(found.step)
    # At the end of an epoch the index is that epoch's: the next one sets its own.
    step.epoch.fill_((found.step - 1) // parts.feed.steps)
    told = any(line["kind"] == "epoch" and line["step"] == found.step for line in lines)
    place = Place(**found.info["place"])
    # The latest times, also of work that must be done again.
    times = [place.spent, read_result(folder).get("time"), *(line.get("time") for line in lines)]
    spent = max((one for one in times if one), key=lambda one: sum(one.values()))
    return replace(place, spent=spent), told or found.step % parts.feed.steps != 0


_NUMBERS = ("applied", "drawn", "probability", "diversity")


def _reduced(
    augment: Augmenter, processes: Processes, device: torch.device
) -> dict[str, Any] | None:
    """All-reduce an augmenter's record state. Collective: every process must call it."""
    mine = augment.record_state()
    if mine is None or not processes.shared:
        return mine
    # One message of doubles: counts stay exact up to 2⁵³.
    flat = [value for name in _NUMBERS for value in mine[name]] + [mine["images"]]
    total = processes.total(torch.tensor(flat, dtype=torch.float64, device=device)).tolist()
    both: dict[str, Any] = dict(mine)
    for name in _NUMBERS:
        kind, count = type(mine[name][0]), len(mine[name])
        both[name], total = [kind(value) for value in total[:count]], total[count:]
    return both | {"images": int(total[0])}


def record_of_all(augment: Augmenter, processes: Processes, device: torch.device) -> Record:
    """Return the record of all processes since the epoch began. Collective."""
    found = _reduced(augment, processes, device)
    if found is None:
        raise ValueError("nothing was augmented yet: there is no record.")
    return Sums.from_state(found).to_record()
