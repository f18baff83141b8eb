"""From a recipe and a dataset to the parts of a run: network, augmenter, feed and step."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from divaug._base import Augmenter
from divaug.default_augmentation import DefaultAugmentation
from divaug.lab import methods, models
from divaug.lab.datasets import Dataset, ImageFiles, plain_name
from divaug.lab.methods import Settings
from divaug.lab.recipes import Recipe
from divaug.lab.train.batches import Epochs, Part, Resident, Streamed, parts_in_order
from divaug.lab.train.data import Split, default_of, draw_split, fingerprint
from divaug.lab.train.device import Hardware
from divaug.lab.train.evaluation import CHUNK_SIZE
from divaug.lab.train.optim import SGD, Average
from divaug.lab.train.processes import Processes, share_statistics
from divaug.lab.train.semi import SemiStep, mix
from divaug.lab.train.step import Step, TrainingStep
from divaug.objectives import OBJECTIVES

__all__ = ["Parts", "assemble", "build_augmenter", "build_network", "compiled"]

# DDP's name of the switch: newer releases of torch warn of the old name.
_SHARES_BUFFERS = next(
    name
    for name in ("forward_sync_buffers", "broadcast_buffers")
    if name in inspect.signature(DistributedDataParallel.__init__).parameters
)


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a run.

    Args:
        network: the bare network.
        default: the default augmentation.
        augment: the augmenter; it scores with `called`.
        feed: source of the batches.
        step: the training step.
        test: the test images.
        called: the network as it is evaluated: the average of the weights if there is one, else
            compiled if the hardware compiles.
        chunk_size: test images in one pass of it.
        split: the labelled images, if not all are.
    """

    network: nn.Module
    default: DefaultAugmentation
    augment: Augmenter
    feed: Epochs
    step: TrainingStep
    test: Part
    called: nn.Module
    chunk_size: int
    split: Split | None = None


def assemble(
    recipe: Recipe,
    data: Dataset | ImageFiles,
    hardware: Hardware,
    processes: Processes,
    *,
    split: Split | None = None,
    unlabelled: Tensor | None = None,
) -> Parts:
    """Build everything that a run needs; nothing is written anywhere.

    For objectives with unlabelled images, the split is drawn if it is None, and all training images
    are taken if `unlabelled`, uint8 `[U,C,H,W]`, is None.
    """
    processes.part_of(recipe.batch_size)
    if OBJECTIVES[recipe.objective].unlabelled is not None:
        return _semi_supervised(recipe, data, hardware, processes, split, unlabelled)
    if split is not None or unlabelled is not None:
        raise ValueError(
            "`split` and `unlabelled` need an objective with unlabelled images, such as uda, got "
            f"{recipe.objective!r}; set the objective, or leave them out."
        )
    default = default_of(recipe.dataset, data)
    feed = _feed(recipe, data, hardware, processes)
    network, called, forward = _networks(recipe, data, hardware, processes)
    augment = build_augmenter(recipe, called, default, hardware, feed.pool)
    # The noise of a shaking network depends on the place in the whole batch of trained images.
    models.seed_noise(network, recipe.seed, rank=processes.rank, num_ranks=processes.count)
    step = Step(
        gather=feed.gather,
        augment=augment,
        network=network,
        forward=forward,
        optimizer=SGD(network, recipe, recipe.epochs * feed.steps),
        hardware=hardware,
        processes=processes,
    )
    _, test = parts_in_order(data, hardware.device, num_workers=recipe.num_workers)
    chunk_size = _chunk_size(recipe, data, hardware, processes)
    return Parts(network, default, augment, feed, step, test, called, chunk_size)


def _semi_supervised(
    recipe: Recipe,
    data: Dataset | ImageFiles,
    hardware: Hardware,
    processes: Processes,
    split: Split | None,
    unlabelled: Tensor | None,
) -> Parts:
    if not isinstance(data, Dataset):
        raise ValueError(
            f"objective {recipe.objective!r} needs a dataset in memory, and {data.name!r} is a "
            "folder of images; write its images to an .npz file."
        )
    processes.part_of(recipe.unlabelled_batch_size, "unlabelled_batch_size")
    drawn = split or draw_split(data, recipe.labels, recipe.seed)
    if recipe.labels not in (0, len(drawn.labelled)):
        raise ValueError(
            f"the split has {len(drawn.labelled)} labelled images and the recipe's `labels` is "
            f"{recipe.labels}; set it to their number (--labels {len(drawn.labelled)})."
        )
    chosen = replace(drawn, unlabelled=fingerprint(unlabelled))
    default = default_of(recipe.dataset, data)
    feed = mix(data, chosen, unlabelled, recipe, processes, hardware.device)
    network, called, forward = _networks(recipe, data, hardware, processes)
    augment = build_augmenter(recipe, called, default, hardware, feed.pool)
    # As `SemiStep.predict` puts them together.
    sizes = (recipe.batch_size, recipe.unlabelled_batch_size)
    num_labelled, num_originals = (size // processes.count for size in sizes)
    together = (num_labelled, num_originals, num_originals * augment.views)
    models.seed_noise(
        network,
        recipe.seed,
        rank=processes.rank,
        num_ranks=processes.count,
        kinds=together if recipe.joint_forward else (),
    )
    average = Average(network, recipe.ema_decay) if recipe.ema_decay else None
    step = SemiStep(
        gather=feed.gather,
        augment=augment,
        network=network,
        forward=forward,
        optimizer=SGD(network, recipe, recipe.epochs * feed.steps),
        hardware=hardware,
        processes=processes,
        weak=replace(default, cutout=0),
        recipe=recipe,
        average=average,
    )
    _, test = parts_in_order(data, hardware.device)
    evaluated = average.network if average else called
    chunk_size = _chunk_size(recipe, data, hardware, processes)
    return Parts(network, default, augment, feed, step, test, evaluated, chunk_size, chosen)


def _feed(
    recipe: Recipe, data: Dataset | ImageFiles, hardware: Hardware, processes: Processes
) -> Resident | Streamed:
    device = hardware.device
    if isinstance(data, ImageFiles):
        return Streamed(data, recipe, processes, device)
    images, labels = data.train_images, data.train_labels
    return Resident(images.to(device).contiguous(), labels.to(device), recipe, processes)


def _chunk_size(
    recipe: Recipe, data: Dataset | ImageFiles, hardware: Hardware, processes: Processes
) -> int:
    """Return the test images in one pass: if compiled, as many as candidates are scored in one."""
    if not hardware.compiled or isinstance(data, ImageFiles):
        return CHUNK_SIZE
    return recipe.originals_per_step // processes.count * recipe.num_candidates


def build_network(recipe: Recipe, data: Dataset | ImageFiles, hardware: Hardware) -> nn.Module:
    """Build the network of a recipe for a dataset, on its device."""
    network = models.build(recipe.model, data.num_classes, len(data.mean), seed=recipe.seed)
    layout = torch.channels_last if hardware.channels_last else torch.contiguous_format
    # torch's types know `to` with a device or with a layout, not with both.
    return network.to(device=hardware.device, memory_format=layout)  # type: ignore[call-overload, no-any-return]


def _networks(
    recipe: Recipe, data: Dataset | ImageFiles, hardware: Hardware, processes: Processes
) -> tuple[nn.Module, nn.Module, Callable[[Tensor], object]]:
    """Build the bare network, the one to call, and the one that the training pass calls."""
    network = build_network(recipe, data, hardware)
    if recipe.sync_batchnorm and processes.shared:
        share_statistics(network)
    called = compiled(network) if hardware.compiled else network
    if not processes.shared:
        return network, called, called
    # Statistics are shared by `share_buffers`, before scoring, and not by DDP, after it.
    devices = [hardware.device.index] if hardware.device.type == "cuda" else None
    arguments: dict[str, Any] = {"device_ids": devices, _SHARES_BUFFERS: False}
    return network, called, DistributedDataParallel(called, **arguments)


def compiled(network: nn.Module) -> nn.Module:
    """Compile a network for each shape that it meets."""
    # Shapes never change between steps: kernels made for them alone are the fastest.
    made: object = torch.compile(network, dynamic=False)
    assert isinstance(made, nn.Module)
    return made


def build_augmenter(
    recipe: Recipe,
    model: nn.Module,
    default: DefaultAugmentation,
    hardware: Hardware,
    pool: Tensor | None,
) -> Augmenter:
    """Build the augmenter of a recipe."""
    return methods.build(
        recipe.augmenter,
        Settings(
            model=model,
            default=default,
            dataset=plain_name(recipe.dataset),
            num_candidates=recipe.num_candidates,
            num_selected=recipe.num_selected,
            space=recipe.space,
            randaugment_n=recipe.randaugment_n,
            randaugment_m=recipe.randaugment_m,
            total_epochs=recipe.epochs,
            seed=recipe.seed,
            pool=pool,
            dtype=hardware.dtype,
            channels_last=hardware.channels_last,
        ),
    )
