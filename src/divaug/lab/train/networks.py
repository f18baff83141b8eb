"""The network of a run: built, compiled and wrapped."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from divaug.lab import models
from divaug.lab.datasets import Dataset, ImageFiles
from divaug.lab.recipes import Recipe
from divaug.lab.train.distributed import Processes
from divaug.lab.train.hardware import Hardware

__all__ = ["build_network", "compiled", "forward_of"]

# What DDP calls the switch: newer releases of torch warn of the old name.
_SHARES_BUFFERS = next(
    name
    for name in ("forward_sync_buffers", "broadcast_buffers")
    if name in inspect.signature(DistributedDataParallel.__init__).parameters
)


def build_network(recipe: Recipe, data: Dataset | ImageFiles, hardware: Hardware) -> nn.Module:
    """The network of a recipe for a dataset, on its device."""
    network = models.build(recipe.model, data.num_classes, len(data.mean), seed=recipe.seed)
    layout = torch.channels_last if hardware.channels_last else torch.contiguous_format
    # torch's types know `to` with a device or with a layout, not with both.
    return network.to(device=hardware.device, memory_format=layout)  # type: ignore[call-overload, no-any-return]


def compiled(network: nn.Module) -> nn.Module:
    """The network, compiled for each shape that it meets."""
    # Shapes never change between steps: kernels made for them alone are the fastest.
    made: object = torch.compile(network, dynamic=False)
    assert isinstance(made, nn.Module)
    return made


def forward_of(
    called: nn.Module, hardware: Hardware, processes: Processes
) -> Callable[[Tensor], object]:
    """What the training pass calls: the network itself, or wrapped for several processes."""
    if not processes.shared:
        return called
    # Statistics are shared by `share_buffers`, before scoring, and not by DDP, after it.
    devices = [hardware.device.index] if hardware.device.type == "cuda" else None
    arguments: dict[str, Any] = {"device_ids": devices, _SHARES_BUFFERS: False}
    return DistributedDataParallel(called, **arguments)
