"""Between a run in progress and its checkpoints.

A checkpoint's model is the network that a run evaluates. Where that is an average, the weights that
are trained go with the optimiser's tensors.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from divaug.lab.recipes import Recipe
from divaug.lab.train import checkpoints
from divaug.lab.train.assembly import Parts
from divaug.lab.train.checkpoints import Checkpoint
from divaug.lab.train.distributed import Processes, share_buffers
from divaug.lab.train.kept import load_kept, total_state
from divaug.lab.train.metrics import METRICS
from divaug.lab.train.runs import Run, read_metrics, read_result
from divaug.lab.train.step import TrainingStep

__all__ = ["Place", "checkpoint_of", "find", "load", "path_of", "save", "share_averages"]

_MOMENTUM, _TRAINED = "momentum.", "trained."


@dataclass(frozen=True)
class Place:
    """Where a run is.

    Args:
        step: steps taken.
        spent: kind of work → seconds, over all starts.
        epoch_seconds: of training in this epoch.
        interval_seconds: of the device since the last line of the log.
        base: the sums at that line.
    """

    step: int
    spent: Mapping[str, float]
    epoch_seconds: float
    interval_seconds: float
    base: list[float]


def checkpoint_of(recipe: Recipe, parts: Parts, processes: Processes, place: Place) -> Checkpoint:
    """Everything that a resumed run needs; all processes must ask."""
    step = parts.step
    share_averages(step, processes)
    info = {
        "model": recipe.model,
        "recipe": recipe.hash,
        "place": asdict(place),
        "augmenter": step.augment.state_dict(),
        "kept": total_state(step.augment, processes, step.sums.device),
        "sums": processes.total(step.sums).tolist(),
    }
    tensors = {_MOMENTUM + name: tensor for name, tensor in step.optimizer.momentum.items()}
    if step.evaluated is not step.network:
        tensors |= {_TRAINED + name: t for name, t in step.network.state_dict().items()}
    return Checkpoint(place.step, step.evaluated.state_dict(), tensors, info)


def share_averages(step: TrainingStep, processes: Processes) -> None:
    """Give all processes the first one's BatchNorm statistics, trained and evaluated."""
    share_buffers(step.network, processes)
    if step.evaluated is not step.network:
        share_buffers(step.evaluated, processes)


def save(run: Run, checkpoint: Checkpoint) -> Path | None:
    """Write a checkpoint, where this process writes; returns its folder."""
    if run.checkpoints is None:
        return None
    return checkpoints.save(run.checkpoints, checkpoint)


def path_of(folder: Path, checkpoint: Checkpoint) -> Path:
    """The folder of a run's checkpoint."""
    return folder / "checkpoints" / f"step-{checkpoint.step:08d}"


def find(folder: Path, note: Callable[[str], None]) -> Checkpoint | None:
    """The last whole checkpoint of a run; None for a run that has written none.

    Raises:
        ValueError: there are checkpoints, and none is whole.
    """
    where = folder / "checkpoints"
    found, notes = checkpoints.load_latest(where)
    if found is None and notes:
        # To start over would cut the run's record back to nothing.
        raise ValueError(
            f"no checkpoint in {where} is whole ({' '.join(notes)}) and the run is left as it "
            "is; bring one back, or move the folder away to start over."
        )
    for text in notes:
        note(f"{text} The one before is taken.")
    read_metrics(folder, note)
    return found


def load(folder: Path, found: Checkpoint, parts: Parts, processes: Processes) -> tuple[Place, bool]:
    """Put a checkpoint into the parts of a run.

    Returns:
        Where the run is, and whether its record has the line of the epoch that ends there, if one
        does.

    Raises:
        ValueError: the checkpoint is another network's, or lacks something, or the run's record
            lacks epochs before it.
    """
    lines = read_metrics(folder)
    _check_record(folder, lines, found.step, parts.feed.steps)
    path = path_of(folder, found)
    step = parts.step
    checkpoints.load_network(step.evaluated, found.model, str(path))
    if step.evaluated is not step.network:
        trained = [name for name in found.optimizer if name.startswith(_TRAINED)]
        tensors = {name.removeprefix(_TRAINED): found.optimizer[name] for name in trained}
        checkpoints.load_network(step.network, tensors, str(path))
    try:
        with torch.no_grad():
            for name, tensor in step.optimizer.momentum.items():
                tensor.copy_(found.optimizer[_MOMENTUM + name])
        sums = torch.tensor(found.info["sums"], dtype=torch.float64)
        step.augment.load_state_dict(dict(found.info["augmenter"]))
        load_kept(step.augment, found.info["kept"], processes)
        place = Place(**found.info["place"])
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{path} cannot be continued: its state lacks {error}; it was written by another "
            "release."
        ) from None
    except ValueError as error:
        reason = str(error).rstrip(".")
        raise ValueError(
            f"{path} cannot be continued: {reason}; move the run's folder away to start over."
        ) from None
    step.optimizer.step_number.fill_(found.step)
    # At the end of an epoch the number is that epoch's: the next one sets its own.
    step.epoch.fill_((found.step - 1) // parts.feed.steps)
    step.sums.copy_(sums if processes.first else torch.zeros_like(sums))
    told = any(line["kind"] == "epoch" and line["step"] == found.step for line in lines)
    ended = told or found.step % parts.feed.steps != 0
    return Place(**(asdict(place) | {"spent": _spent(folder, place, lines)})), ended


def _check_record(folder: Path, lines: list[dict[str, Any]], step: int, steps: int) -> None:
    """Refuse to go on where epochs would be missing from the record for ever.

    A run that is stopped while it evaluates has its checkpoint before the line of that epoch.
    """
    told = {line["step"] for line in lines if line["kind"] == "epoch"}
    lost = [epoch for epoch in range(1, (step - 1) // steps + 1) if epoch * steps not in told]
    if lost:
        which = f"{len(lost)} of the epochs" if len(lost) > 1 else "an epoch"
        raise ValueError(
            f"{folder / METRICS} lacks {which} before the checkpoint of step {step} (epoch "
            f"{lost[0]} is the first), and the run is left as it is; bring that file back whole, "
            "or move the folder away to start over."
        )


def _spent(folder: Path, place: Place, lines: list[dict[str, Any]]) -> Mapping[str, float]:
    """The latest word on the time that was spent, also on work that must be done again."""
    result = read_result(folder) or {}
    said = [place.spent, result.get("time"), *(line.get("time") for line in lines)]
    known = [one for one in said if isinstance(one, dict) and _numbers(one)]
    return max(known, key=lambda one: sum(one.values()))


def _numbers(spent: Mapping[str, Any]) -> bool:
    return all(isinstance(value, int | float) for value in spent.values())
