"""The weight initialisation that all networks here share."""

from __future__ import annotations

from torch import nn

__all__ = ["init_weights"]


def init_weights(network: nn.Module) -> None:
    """Initialise a network in place: He normal, fan-out, for convolutions; zero classifier bias.

    The standard deviation of a k×k convolution with C outputs is sqrt(2 / (k·k·C)), as in the
    first releases of Wide-ResNet, Shake-Shake and PyramidNet. BatchNorm keeps weight 1 and bias 0,
    classifier weights and the bias of a convolution that has one keep PyTorch's default.

    Args:
        network: any module; its convolutions and linear layers are overwritten.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
