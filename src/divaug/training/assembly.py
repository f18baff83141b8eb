"""From a recipe and a dataset to the parts of a run."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from divaug import augmenters, models
from divaug.augmenters import Augmenter, Settings
from divaug.datasets import Dataset, ImageFiles
from divaug.default_augmentation import DefaultAugmentation
from divaug.recipes import Recipe
from divaug.training.batchnorm import share_statistics
from divaug.training.data import default_of, plain_name
from divaug.training.distributed import Processes
from divaug.training.evaluation import TestFiles, TestImages, TestSet
from divaug.training.feeds import Feed, Resident, Streamed
from divaug.training.hardware import Hardware, workers
from divaug.training.optimization import SGD
from divaug.training.step import Step

__all__ = ["STREAMED_SIZE", "Parts", "assemble", "build_augmenter", "build_network", "test_set_of"]

#: Side of the squares that streamed images are cut to before anything else; ImageNet's custom.
STREAMED_SIZE = 256

# What DDP calls the switch: newer releases of torch warn of the old name.
_SHARES_BUFFERS = next(
    name
    for name in ("forward_sync_buffers", "broadcast_buffers")
    if name in inspect.signature(DistributedDataParallel.__init__).parameters
)


@dataclass(frozen=True, eq=False)
class Parts:
    """What a run is made of.

    Args:
        network: the bare network.
        default: the default augmentation.
        augment: the augmenter, which asks `called`.
        feed: where batches come from.
        step: the training step.
        test: the test images.
        called: the network as it is asked, compiled where the hardware compiles.
    """

    network: nn.Module
    default: DefaultAugmentation
    augment: Augmenter
    feed: Feed
    step: Step
    test: TestSet
    called: nn.Module


def build_network(recipe: Recipe, data: Dataset | ImageFiles, hardware: Hardware) -> nn.Module:
    """The network of a recipe for a dataset, on its device."""
    network = models.build(recipe.model, data.num_classes, len(data.mean), seed=recipe.seed)
    layout = torch.channels_last if hardware.channels_last else torch.contiguous_format
    return network.to(device=hardware.device, memory_format=layout)  # type: ignore[call-overload, no-any-return]


def build_augmenter(
    recipe: Recipe,
    model: nn.Module,
    default: DefaultAugmentation,
    hardware: Hardware,
    pool: Tensor | None,
) -> Augmenter:
    """The augmenter of a recipe."""
    return augmenters.build(
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


def test_set_of(
    recipe: Recipe, data: Dataset | ImageFiles, hardware: Hardware, processes: Processes
) -> TestSet:
    """The test images of a dataset."""
    device = hardware.device
    if isinstance(data, Dataset):
        images, labels = data.test_images.to(device), data.test_labels.to(device)
        return TestImages(images, labels, processes, _chunk_size(recipe, hardware, processes))
    decoding = workers(recipe.num_workers)
    return TestFiles(data.test, STREAMED_SIZE, len(data.mean), device, decoding, processes)


def _chunk_size(recipe: Recipe, hardware: Hardware, processes: Processes) -> int:
    """Test images in one pass: where it is compiled, as many as candidates are scored in one."""
    if not hardware.compiled:
        return 1000
    return recipe.batch_size // processes.count * recipe.num_candidates


test_set_of.__test__ = False  # type: ignore[attr-defined]


def assemble(
    recipe: Recipe, data: Dataset | ImageFiles, hardware: Hardware, processes: Processes
) -> Parts:
    """Build everything that a run needs; nothing is written anywhere."""
    processes.part_of(recipe.batch_size)
    default = default_of(recipe.dataset, data)
    feed = _feed(recipe, data, hardware, processes)
    network = build_network(recipe, data, hardware)
    if recipe.sync_batchnorm and processes.shared:
        share_statistics(network)
    called = _compiled(network) if hardware.compiled else network
    augment = build_augmenter(recipe, called, default, hardware, feed.pool)
    # The noise of a shaking network hangs on the place in the whole batch of trained images.
    first = processes.part_of(recipe.batch_size).start * augment.views
    models.seed_noise(network, recipe.seed, first)
    step = Step(
        feed.gather,
        augment,
        network,
        _forward(called, hardware, processes),
        SGD(network, recipe, recipe.epochs * feed.steps),
        hardware,
        processes,
    )
    test = test_set_of(recipe, data, hardware, processes)
    return Parts(network, default, augment, feed, step, test, called)


def _feed(
    recipe: Recipe, data: Dataset | ImageFiles, hardware: Hardware, processes: Processes
) -> Feed:
    if isinstance(data, ImageFiles):
        return Streamed(data, recipe, processes, hardware.device, STREAMED_SIZE)
    images, labels = data.train_images, data.train_labels
    device = hardware.device
    return Resident(images.to(device).contiguous(), labels.to(device), recipe, processes)


def _compiled(network: nn.Module) -> nn.Module:
    # Shapes never change between steps: kernels made for them alone are the fastest.
    compiled: object = torch.compile(network, dynamic=False)
    assert isinstance(compiled, nn.Module)
    return compiled


def _forward(
    called: nn.Module, hardware: Hardware, processes: Processes
) -> Callable[[Tensor], object]:
    if not processes.shared:
        return called
    # Statistics are shared by `share_buffers`, before scoring, and not by DDP, after it.
    devices = [hardware.device.index] if hardware.device.type == "cuda" else None
    arguments: dict[str, Any] = {"device_ids": devices, _SHARES_BUFFERS: False}
    return DistributedDataParallel(called, **arguments)
