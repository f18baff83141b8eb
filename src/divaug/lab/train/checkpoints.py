"""Checkpoints that survive: written aside, synced, renamed; the last two are kept.

A checkpoint is a folder: `model.safetensors` (the network), `optimizer.safetensors` (momentum) and
`state.json` (numbers, the SHA-256 of the other two, and that of all it says itself). Nothing is
pickled or unpickled.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from divaug._names import require
from divaug.lab.train.checkpoint_states import (
    MODEL,
    OPTIMIZER,
    STATE,
    read_state,
    state_text,
    step_of,
)
from divaug.lab.train.files import writing

__all__ = [
    "KEPT",
    "Checkpoint",
    "find",
    "load",
    "load_latest",
    "load_network",
    "save",
    "step_of",
]

#: How many checkpoints of a run are kept.
KEPT = 2

_ASIDE = ".unfinished-"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A training run at one step.

    Args:
        step: steps taken.
        model: the network's tensors by name.
        optimizer: the optimiser's tensors by name.
        info: everything else, as JSON can hold it.
    """

    step: int
    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    info: Mapping[str, Any]


def save(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint into a folder of checkpoints and drop the oldest ones.

    Until the new one is whole nothing old is touched: when the disk is full or the process dies
    the older checkpoints stay as they are.

    Returns:
        The checkpoint's own folder.

    Raises:
        WriteError: the disk is full, or the folder may not be written to; it names the file.
    """
    target = folder / f"step-{checkpoint.step:08d}"
    with writing(target):
        folder.mkdir(parents=True, exist_ok=True)
        _clean(folder)
        aside = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=folder))
        _fill(aside, target, checkpoint)
        for old in _all(folder)[:-KEPT]:
            shutil.rmtree(old)
    return target


def _fill(aside: Path, target: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint into a folder aside and give that its name."""
    try:
        sums = {
            MODEL: _write(aside / MODEL, _to_bytes(checkpoint.model)),
            OPTIMIZER: _write(aside / OPTIMIZER, _to_bytes(checkpoint.optimizer)),
        }
        state = state_text(checkpoint.step, sums, checkpoint.info)
        _write(aside / STATE, state.encode())
        _sync(aside)
        if target.exists():
            shutil.rmtree(target)
        aside.rename(target)
        _sync(target.parent)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def load(path: Path) -> Checkpoint:
    """Read one checkpoint, after checking that it is whole.

    Raises:
        FileNotFoundError: a file is missing.
        ImportError: safetensors is not installed.
        ValueError: a file is damaged or cut short, or the state is another step's than the
            folder's name says.
    """
    require("safetensors", "reading a checkpoint")
    state = read_state(path)
    tensors = {name: _read_tensors(path / name, sum_) for name, sum_ in state["sha256"].items()}
    return Checkpoint(state["step"], tensors[MODEL], tensors[OPTIMIZER], state["info"])


def _read_tensors(path: Path, expected: object) -> dict[str, Tensor]:
    """The tensors of a file whose SHA-256 is known."""
    from safetensors import SafetensorError
    from safetensors.torch import load as from_bytes

    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != expected:
        raise ValueError(f"{path} is damaged or cut short ({len(content):,} bytes).")
    try:
        return from_bytes(content)
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged: it holds no tensors ({error}).") from None


def find(folder: Path) -> list[Path]:
    """The checkpoints in a folder of checkpoints, oldest first."""
    return _all(folder)


def load_latest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that is whole, and a sentence for each that is not."""
    notes: list[str] = []
    for path in reversed(_all(folder)):
        try:
            return load(path), notes
        except (ValueError, KeyError, FileNotFoundError) as error:
            notes.append(f"{path.name} cannot be used: {str(error).rstrip('.')}.")
    return None, notes


def load_network(network: nn.Module, tensors: Mapping[str, Tensor], source: str) -> None:
    """Put a checkpoint's tensors into a network, if they are that network's.

    Raises:
        ValueError: the tensors belong to another network.
    """
    own = network.state_dict()
    missing, extra = own.keys() - tensors.keys(), tensors.keys() - own.keys()
    if missing or extra:
        odd = sorted(missing or extra)[0]
        raise ValueError(
            f"{source} belongs to another network: {len(missing)} tensors are missing and "
            f"{len(extra)} are unknown, for example {odd!r}."
        )
    for name, tensor in own.items():
        if tensor.shape != tensors[name].shape:
            raise ValueError(
                f"{source} belongs to another network: {name!r} has shape "
                f"{tuple(tensors[name].shape)}, and this network's {tuple(tensor.shape)}."
            )
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensors[name])


def _all(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("step-*") if path.is_dir())


def _clean(folder: Path) -> None:
    """Remove what a process that died while writing has left."""
    for path in folder.glob(f"{_ASIDE}*"):
        shutil.rmtree(path, ignore_errors=True)


def _to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    from safetensors.torch import save as to_bytes

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return to_bytes(plain)


def _write(path: Path, content: bytes) -> str:
    """Write a file through to the disk; returns its SHA-256."""
    with writing(path), path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return hashlib.sha256(content).hexdigest()


def _sync(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
