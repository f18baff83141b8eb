"""`train`: from a recipe to a finished run in a folder."""

from dataclasses import replace
from os import PathLike
from pathlib import Path

import torch
from torch import Tensor

from divaug.datasets import Dataset, ImageFiles
from divaug.extras import require
from divaug.recipes import Recipe
from divaug.training.assembly import assemble
from divaug.training.clock import Clock
from divaug.training.data import describe, unlabelled_images
from divaug.training.distributed import joined, wanted
from divaug.training.hardware import Hardware, fast_settings
from divaug.training.interruption import Interruption
from divaug.training.locks import Lock
from divaug.training.loop import Loop
from divaug.training.places import check_folder
from divaug.training.progress import Reporter, reporter_for
from divaug.training.provenance import resumed_data
from divaug.training.results import RunResult
from divaug.training.runs import Run
from divaug.training.splits import Split, choose_split

__all__ = ["RunResult", "train"]


def train(
    recipe: Recipe,
    out: str | Path,
    *,
    data: str | Path | Dataset | ImageFiles | None = None,
    resume: bool = False,
    device: str | torch.device | None = None,
    eager: bool = False,
    reporter: Reporter | None = None,
    split: Split | str | Path | None = None,
    unlabelled: Tensor | Dataset | str | Path | None = None,
    tensorboard: bool = False,
) -> RunResult:
    """Train a network as a recipe says, and write the run into a folder.

    Under torchrun each process calls this; the first one writes.

    Args:
        recipe: every hyper-parameter.
        out: the run's folder; must not exist unless resumed.
        data: a dataset, or where to find it, see `load_data`; None for the usual place, or for
            that of a run that is resumed.
        resume: whether to continue the run in that folder.
        device: "cpu" or "cuda"; None for a GPU where there is one.
        eager: whether to do without compilation and CUDA graphs.
        reporter: told how it goes; None for bars or lines on standard output.
        split: which training images are labelled, or a file such as a run's `split.json`, for
            objectives with unlabelled images; None to draw as many as the recipe says.
        unlabelled: uint8 `[U,C,H,W]`, an `.npy` file of that, or a dataset or `.npz` file whose
            training images are taken;
            None for all training images, labelled ones included. No label of theirs is read.
        tensorboard: whether to write the curves for TensorBoard too.

    Raises:
        FileExistsError: the folder is not empty.
        ImportError: safetensors, which checkpoints are written with, or TensorBoard, where it is
            to be written for, is not installed.
        OSError: something cannot be read or written; it is named.
        TypeError: `recipe` is no recipe, or `out` no path.
        ValueError: bad input, or a loss that is not finite.
    """
    clock = Clock()
    _check(recipe, out)
    require("safetensors", "training")  # the first checkpoint would, after minutes or hours
    if tensorboard:
        require("tensorboard", "writing for TensorBoard", "tensorboard")
    processes = wanted()
    if processes.shared and device in (None, "cuda") and torch.cuda.is_available():
        device = f"cuda:{processes.local_rank}"
    hardware = Hardware.choose(device, recipe.precision, eager=eager)
    if processes.shared:  # the exchange of gradients is not recorded
        hardware = replace(hardware, graphed=False)
    folder = Path(out)
    with Lock(folder) as lock:
        check_folder(folder, recipe, resume, lock if processes.first else None)
        found, record = resumed_data(recipe, data, folder, resume=resume)
        others = unlabelled_images(unlabelled)
        chosen = choose_split(folder, split, others)
        with fast_settings(hardware), joined(processes, hardware.device), Interruption() as stop:
            parts = assemble(recipe, found, hardware, processes, split=chosen, unlabelled=others)
            processes.wait()  # until all have seen the folder as it was
            told = reporter if reporter is not None and processes.first else reporter_for(processes)
            run = Run(folder if processes.first else None, record.to_json(), lock, tensorboard)
            loop = Loop(recipe, folder, parts, hardware, processes, run, told, stop, clock)
            try:
                told.note(describe(recipe, found, record.identity))
                return loop.go()
            finally:
                told.close()
                run.close()


def _check(recipe: object, out: object) -> None:
    if not isinstance(recipe, Recipe):
        known = f"recipes.recipe({recipe!r})" if isinstance(recipe, str) else "recipes.recipe(name)"
        raise TypeError(
            f"`recipe` must be a Recipe, got {type(recipe).__name__}; look one up with {known}."
        )
    if not isinstance(out, str | PathLike):
        raise TypeError(
            f"`out` must be the path of the run's folder, such as 'runs/first', got {out!r}."
        )
