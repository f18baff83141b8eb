"""Residual networks (He et al., 2015): ResNet-18 and a tiny one for small images, ResNet-50.

ResNet-18 for 32 px differs from the one for ImageNet in its stem only: a 3×3 convolution without
stride, and no max pooling. The tiny network halves the resolution in its stem instead and has one
block a stage; it trains on a processor.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from divaug._names import INSTALL
from divaug.lab.models._init import init_weights

__all__ = ["BasicBlock", "ResNet", "resnet_18", "resnet_50", "tiny_resnet_8"]


class BasicBlock(nn.Module):
    """3×3, BN, ReLU, 3×3, BN, plus the shortcut, then ReLU.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        stride: stride of the first 3×3 and of the shortcut, which is a 1×1 with BN where the
            shape changes.
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.shortcut: nn.Sequential | None = None
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, in_channels, H, W] to [B, out_channels, ⌈H/stride⌉, ⌈W/stride⌉]."""
        residual = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(residual + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nn.Module):
    """A residual network of basic blocks with a 3×3 stem and no max pooling.

    Args:
        widths: channels of each stage; each stage but the first halves the resolution.
        blocks_per_stage: basic blocks in each stage.
        num_classes: number of outputs.
        in_channels: channels of the images.
        stem_stride: stride of the stem.
    """

    def __init__(
        self,
        widths: Sequence[int],
        blocks_per_stage: int,
        num_classes: int,
        in_channels: int = 3,
        stem_stride: int = 1,
    ) -> None:
        super().__init__()
        channels = widths[0]
        self.stem = nn.Conv2d(in_channels, channels, 3, stem_stride, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(channels)
        blocks = []
        for stage, width in enumerate(widths):
            for position in range(blocks_per_stage):
                halve = stage > 0 and position == 0
                blocks.append(BasicBlock(channels, width, stride=2 if halve else 1))
                channels = width
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(channels, num_classes)
        init_weights(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits [B, num_classes] of normalised images [B, in_channels, H, W]."""
        features = self.blocks(F.relu(self.bn(self.stem(images))))
        logits: Tensor = self.fc(features.mean(dim=(2, 3)))
        return logits


def resnet_18(num_classes: int, in_channels: int = 3) -> ResNet:
    """Return ResNet-18 for small images: 11,173,962 parameters for 10 classes."""
    return ResNet((64, 128, 256, 512), 2, num_classes, in_channels)


def tiny_resnet_8(num_classes: int, in_channels: int = 3) -> ResNet:
    """Eight layers for demonstrations on a processor: 78,042 parameters for 10 classes."""
    return ResNet((16, 32, 64), 1, num_classes, in_channels, stem_stride=2)


def resnet_50(num_classes: int, in_channels: int = 3) -> nn.Module:
    """Return ResNet-50 for ImageNet, from torchvision, without trained weights.

    The stride of a bottleneck is on its 3×3; the last BatchNorm of a block starts at weight 1.

    Raises:
        ImportError: torchvision is not installed.
    """
    try:
        from torchvision.models import resnet50
    except ImportError as error:
        raise ImportError(
            f"resnet-50 comes from torchvision, which is not installed; run: {INSTALL}"
        ) from error
    network: nn.Module = resnet50(weights=None, num_classes=num_classes)
    if in_channels != 3:
        network.conv1 = nn.Conv2d(in_channels, 64, 7, stride=2, padding=3, bias=False)
        init_weights(network.conv1)
    return network
