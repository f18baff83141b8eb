"""Wide residual networks (Zagoruyko and Komodakis, 2016) for small images.

The network is the one of its own paper and of the code released with it:

- no convolution has a bias;
- a block is BN, ReLU, 3×3, BN, ReLU, 3×3 (pre-activation), with the stride on the *first* 3×3;
- where a block changes the shape, its shortcut is a 1×1 convolution of the *pre-activated* input.

Reading the raw input in the shortcut has the same number of parameters, so counts alone do not
tell the two apart; the tests check the position of shortcut and stride by value and by cost.
Some later implementations put the stride on the second 3×3 (5.951 instead of 5.243 billion
multiply-adds for 28-10) and give every convolution a bias; figures for those are not comparable.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from divaug.lab.models._init import init_weights

__all__ = ["WideBlock", "WideResNet", "wide_resnet_28_2", "wide_resnet_28_10", "wide_resnet_40_2"]


def _conv3x3(in_channels: int, out_channels: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)


class WideBlock(nn.Module):
    """A pre-activation block of two 3×3 convolutions.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        stride: stride of the first 3×3 and of the shortcut.
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(in_channels)
        self.conv1 = _conv3x3(in_channels, out_channels, stride)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.conv2 = _conv3x3(out_channels, out_channels)
        self.shortcut: nn.Conv2d | None = None
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, in_channels, H, W] to [B, out_channels, ⌈H/stride⌉, ⌈W/stride⌉]."""
        activated = F.relu(self.bn1(x))
        residual: Tensor = self.conv2(F.relu(self.bn2(self.conv1(activated))))
        return residual + (x if self.shortcut is None else self.shortcut(activated))


class WideResNet(nn.Module):
    """A wide residual network of three stages with widths 16k, 32k and 64k.

    Args:
        depth: number of layers, 6n + 4 with n blocks a stage.
        widen: the factor k on the widths.
        num_classes: number of outputs.
        in_channels: channels of the images, 1 for grey and 3 for colour.

    Raises:
        ValueError: ``depth`` is not 6n + 4 with n ≥ 1.
    """

    def __init__(self, depth: int, widen: int, num_classes: int, in_channels: int = 3) -> None:
        super().__init__()
        blocks_per_stage, rest = divmod(depth - 4, 6)
        if rest or blocks_per_stage < 1:
            raise ValueError(
                f"depth must be 6n + 4 with n ≥ 1 blocks a stage, got {depth}; try 10, 16, 28 or 40"
            )
        self.stem = _conv3x3(in_channels, 16)
        blocks = []
        width = 16
        for out, stride in ((16 * widen, 1), (32 * widen, 2), (64 * widen, 2)):
            for position in range(blocks_per_stage):
                blocks.append(WideBlock(width, out, stride if position == 0 else 1))
                width = out
        self.blocks = nn.Sequential(*blocks)
        self.bn = nn.BatchNorm2d(width)
        self.fc = nn.Linear(width, num_classes)
        init_weights(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits [B, num_classes] of normalised images [B, in_channels, H, W]."""
        features = F.relu(self.bn(self.blocks(self.stem(images))))
        logits: Tensor = self.fc(features.mean(dim=(2, 3)))
        return logits


def wide_resnet_40_2(num_classes: int, in_channels: int = 3) -> WideResNet:
    """Return Wide-ResNet-40-2: 2,243,546 parameters for 10 classes."""
    return WideResNet(40, 2, num_classes, in_channels)


def wide_resnet_28_10(num_classes: int, in_channels: int = 3) -> WideResNet:
    """Return Wide-ResNet-28-10: 36,479,194 parameters for 10 classes."""
    return WideResNet(28, 10, num_classes, in_channels)


def wide_resnet_28_2(num_classes: int, in_channels: int = 3) -> WideResNet:
    """Return Wide-ResNet-28-2: 1,467,610 parameters for 10 classes."""
    return WideResNet(28, 2, num_classes, in_channels)
