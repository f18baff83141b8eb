"""Whether a run may be written to a folder, seen before any work is done."""

import os
import tempfile
from pathlib import Path

from divaug.lab.recipes import Recipe
from divaug.lab.train.locks import LOCK, Lock
from divaug.lab.train.metrics import read_epochs
from divaug.lab.train.runs import read_recipe, read_result

__all__ = ["HARMLESS", "check_folder", "check_place", "is_empty", "lost_checkpoints"]

#: Fields of a recipe that a resumed run may change: they decide what is written and how fast, and
#: never what is trained.
HARMLESS = ("evaluate_every", "checkpoint_every", "log_every", "num_workers")


def check_folder(folder: Path, recipe: Recipe, resume: bool, lock: Lock | None = None) -> None:
    """See whether a run may be written there; nothing of a run is written.

    Args:
        folder: of the run.
        recipe: of the run.
        resume: whether a run that is there goes on.
        lock: taken before a run that is there is looked at; None in processes that do not write.

    Raises:
        BlockingIOError: another process writes there.
        FileExistsError: something is there, and nobody asked to resume it.
        NotADirectoryError: it lies below something that is no folder.
        PermissionError: nothing can be written there.
        ValueError: what is there is no run, a run of another recipe, or one whose checkpoints are
            lost.
    """
    if lock is not None:
        check_place(folder)
    if is_empty(folder):
        return
    if not resume:
        raise FileExistsError(
            f"{folder} exists and is not empty: resume the run in it (--resume), or write to "
            "another folder."
        )
    read_recipe(folder)  # a lock goes into runs alone
    if lock is not None:
        lock.take()
    known = read_recipe(folder)
    changed = known.differences(recipe)
    different = {name: both for name, both in changed.items() if name not in HARMLESS}
    if different:
        named = ", ".join(f"{n} was {a!r} and is {b!r}" for n, (a, b) in different.items())
        raise ValueError(
            f"the run in {folder} was started with another recipe: {named}; resume it with the "
            "same one (on the command line by leaving its name out), or write to another folder "
            f"(only {', '.join(HARMLESS)} may change)."
        )
    _check_checkpoints(folder, known)


def is_empty(folder: Path) -> bool:
    """Whether no run, nor anything else, is there."""
    if not folder.is_dir():
        return not folder.exists()
    return all(path.name == LOCK for path in folder.iterdir())


def check_place(folder: Path) -> None:
    """Notice before the work begins what would end it at its first line.

    Raises:
        FileExistsError: it is a file.
        NotADirectoryError: it lies below something that is no folder.
        PermissionError: nothing can be written there.
    """
    there = folder
    while not os.path.lexists(there) and there != there.parent:
        there = there.parent
    if not there.is_dir():
        kind = "a link to nothing" if there.is_symlink() else "a file"
        message = f"`out` must be a folder, and {there} is {kind}; write to another place."
        raise FileExistsError(message) if there == folder else NotADirectoryError(message)
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"`out` is {folder}, and you may not write to {there}.")
    if there == folder:
        return
    try:  # the system's word is not enough: nobody can make a folder in /proc
        with tempfile.TemporaryDirectory(prefix=".divaug-", dir=there):
            pass
    except OSError as error:
        raise PermissionError(
            f"`out` is {folder}, and no folder can be made in {there}: {error.strerror}."
        ) from None


def _check_checkpoints(folder: Path, recipe: Recipe) -> None:
    """Refuse a run that had saved and has lost it: to start over would cut back its record."""
    if lost_checkpoints(folder, recipe):
        raise ValueError(
            f"the checkpoints of the run in {folder} are gone, and the run is left as it is; bring "
            f"{folder / 'checkpoints'} back, or move the folder away to start over."
        )


def lost_checkpoints(folder: Path, recipe: Recipe) -> bool:
    """Whether a run had saved and has no checkpoint any more.

    A run that was ended before it came to save anything has nothing to lose.
    """
    where = folder / "checkpoints"
    if where.is_dir() and any(where.iterdir()):
        return False
    epochs = read_epochs(folder)
    due = any((line.get("epoch", 0) + 1) % recipe.checkpoint_every == 0 for line in epochs)
    return due or bool((read_result(folder) or {}).get("checkpoint"))
