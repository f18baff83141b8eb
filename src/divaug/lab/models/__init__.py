"""Networks by name.

The table :data:`MODELS` holds a constructor for every network; :func:`build` looks a name up,
checks the arguments and draws the weights from a seed. All networks take normalised images
[B, C, H, W] of 16 pixels or more a side and return logits [B, num_classes].
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import nn

from divaug._checks import check_whole
from divaug._names import unknown_name
from divaug.lab.models.pyramidnet import pyramidnet_272
from divaug.lab.models.resnet import resnet_18, resnet_50, tiny_resnet_8
from divaug.lab.models.shake_shake import shake_shake_26_2x96d
from divaug.lab.models.shaking import seed_noise
from divaug.lab.models.wide_resnet import wide_resnet_28_2, wide_resnet_28_10, wide_resnet_40_2

__all__ = ["MODELS", "Constructor", "build", "seed_noise"]


class Constructor(Protocol):
    """Makes a network for a number of classes and of image channels."""

    def __call__(self, num_classes: int, in_channels: int = 3) -> nn.Module:
        """Return a new network, its weights drawn from torch's default generator."""


MODELS: dict[str, Constructor] = {
    "wide-resnet-40-2": wide_resnet_40_2,
    "wide-resnet-28-10": wide_resnet_28_10,
    "wide-resnet-28-2": wide_resnet_28_2,
    "shake-shake-26-2x96d": shake_shake_26_2x96d,
    "pyramidnet-272": pyramidnet_272,
    "resnet-18": resnet_18,
    "resnet-50": resnet_50,
    "tiny-resnet-8": tiny_resnet_8,
}


def build(name: str, num_classes: int, in_channels: int = 3, *, seed: int = 0) -> nn.Module:
    """Build a network by name, with weights and shaking noise that follow from ``seed``.

    Torch's default generator is left as it was. The network is on the default device; weights
    drawn elsewhere than on a CPU (inside ``with torch.device("cuda")``) do not follow ``seed``.

    Args:
        name: a key of :data:`MODELS`.
        num_classes: number of outputs, at least 1.
        in_channels: channels of the images, 1 for grey and 3 for colour.
        seed: a number from 0 to 2⁶³ − 1.

    Returns:
        A network in training mode.

    Raises:
        ValueError: an unknown name, or a number that is not a whole one or out of range.

    Example:
        >>> network = build("tiny-resnet-8", num_classes=10, in_channels=1)
        >>> network(torch.zeros(2, 1, 28, 28)).shape
        torch.Size([2, 10])
    """
    constructor = _find(name)
    num_classes = check_whole("num_classes", num_classes, 1)
    in_channels = check_whole("in_channels", in_channels, 1)
    seed = check_whole("seed", seed, 0, 2**63 - 1)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        network = constructor(num_classes, in_channels)
    seed_noise(network, seed)
    return network


def _find(name: str) -> Constructor:
    if isinstance(name, str) and name in MODELS:
        return MODELS[name]
    raise ValueError(unknown_name("network", name, tuple(MODELS)))
