"""Shake-Shake networks (Gastaldi, 2017) for small images.

A block adds two residual branches with random weights α and 1 − α. The gradient is split between
the branches by an independent β and 1 − β. Both are uniform in [0, 1) and drawn for each image
(the paper's "image-level" S-S-I variant). In evaluation each branch has weight ½, the mean of α.

The stem is a 3×3 convolution with a bias and without BatchNorm, the variant that the published
parameter counts of augmentation papers in PyTorch belong to.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from divaug.lab.models._init import init_weights
from divaug.lab.models.shaking import ShakeNoise, scale

__all__ = ["ShakeBlock", "ShakeShake", "ShiftedShortcut", "shake_shake", "shake_shake_26_2x96d"]


def shake_shake(first: Tensor, second: Tensor, noise: Tensor | None) -> Tensor:
    """Mix two branches: α·first + (1 − α)·second, with β in α's place in the gradient.

    Args:
        first: [B, C, H, W], output of one branch.
        second: [B, C, H, W], output of the other branch.
        noise: float32 [2, B], rows α and β; None in evaluation, which takes the plain mean.

    Returns:
        [B, C, H, W].
    """
    if noise is None:
        return 0.5 * (first + second)
    alpha, beta = noise.unbind(0)
    return scale(first, alpha, beta) + scale(second, 1 - alpha, 1 - beta)


def _branch(in_channels: int, out_channels: int, stride: int) -> nn.Sequential:
    # The ReLU in front of the first convolution is shared by both branches and the shortcut.
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
        nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False),
        nn.BatchNorm2d(out_channels),
    )


class ShiftedShortcut(nn.Module):
    """Two 1×1 paths of half the width, the second one pixel further right and down, then BN.

    With stride 2 the two paths see different pixels, so the shortcut loses less than one path
    would.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output, an even number.
        stride: step between the pixels that are kept.
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels // 2, 1, stride, bias=False)
        self.conv2 = nn.Conv2d(in_channels, out_channels // 2, 1, stride, bias=False)
        self.bn = nn.BatchNorm2d(out_channels)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, in_channels, H, W] to [B, out_channels, ⌈H/stride⌉, ⌈W/stride⌉]."""
        shifted = F.pad(x[:, :, 1:, 1:], (0, 1, 0, 1))
        joined: Tensor = self.bn(torch.cat([self.conv1(x), self.conv2(shifted)], dim=1))
        return joined


class ShakeBlock(nn.Module):
    """Two shaken branches around a shortcut.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        stride: stride of the first 3×3 of each branch and of the shortcut.
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1) -> None:
        super().__init__()
        self.branch1 = _branch(in_channels, out_channels, stride)
        self.branch2 = _branch(in_channels, out_channels, stride)
        self.shortcut: ShiftedShortcut | None = None
        if stride != 1 or in_channels != out_channels:
            self.shortcut = ShiftedShortcut(in_channels, out_channels, stride)

    def forward(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        """Map [B, in_channels, H, W] to the block's output; ``noise`` as in `shake_shake`."""
        activated = F.relu(x)
        residual = shake_shake(self.branch1(activated), self.branch2(activated), noise)
        return residual + (x if self.shortcut is None else self.shortcut(activated))


class ShakeShake(nn.Module):
    """A Shake-Shake network of three stages with widths w, 2w and 4w.

    Args:
        depth: number of layers, 6n + 2 with n blocks a stage.
        width: channels of the first stage, an even number.
        num_classes: number of outputs.
        in_channels: channels of the images.

    Raises:
        ValueError: ``depth`` is not 6n + 2 with n ≥ 1, or ``width`` is odd.
    """

    def __init__(self, depth: int, width: int, num_classes: int, in_channels: int = 3) -> None:
        super().__init__()
        blocks_per_stage, rest = divmod(depth - 2, 6)
        if rest or blocks_per_stage < 1:
            raise ValueError(f"depth must be 6n + 2 with n ≥ 1, got {depth}; try 8, 14 or 26")
        if width < 2 or width % 2:
            raise ValueError(f"width must be even (shortcuts have two halves), got {width}")
        self.stem = nn.Conv2d(in_channels, 16, 3, padding=1)
        self.blocks = nn.ModuleList()
        channels = 16
        for out, stride in ((width, 1), (2 * width, 2), (4 * width, 2)):
            for position in range(blocks_per_stage):
                self.blocks.append(ShakeBlock(channels, out, stride if position == 0 else 1))
                channels = out
        self.noise = ShakeNoise(layers=len(self.blocks), draws=2)
        self.fc = nn.Linear(channels, num_classes)
        init_weights(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits [B, num_classes] of normalised images [B, in_channels, H, W]."""
        features = self.stem(images)
        for block, noise in zip(self.blocks, self.noise(len(images)), strict=True):
            features = block(features, noise)
        logits: Tensor = self.fc(F.relu(features).mean(dim=(2, 3)))
        return logits


def shake_shake_26_2x96d(num_classes: int, in_channels: int = 3) -> ShakeShake:
    """Shake-Shake (26 2×96d): 26,192,906 parameters for 10 classes."""
    return ShakeShake(26, 96, num_classes, in_channels)
