"""PyramidNet (Han et al., 2017) with bottleneck blocks and ShakeDrop (Yamada et al., 2018).

The width grows by the same amount, α / units, from each unit to the next. ShakeDrop disturbs the
residual branch of a unit: with the unit's drop probability p the branch is multiplied by a number
from [−1, 1) going forward and its gradient by a number from [0, 1); otherwise it passes unchanged.
p grows linearly with depth, from ½ / units to ½. In evaluation the branch has weight 1 − p, the
mean of the training factor.

Gate and coefficients are drawn for each image, as in the TensorFlow code with which AutoAugment's
results were made. Some PyTorch ports draw one gate for a whole batch; that has the same mean and a
noisier gradient.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from divaug.lab.models._init import init_weights
from divaug.lab.models.shaking import ShakeNoise, scale

__all__ = ["PyramidNet", "PyramidUnit", "pyramidnet_272", "shake_drop"]

_EXPANSION = 4  # output channels of a bottleneck over its inner width


def shake_drop(x: Tensor, drop_probability: float, noise: Tensor | None) -> Tensor:
    """Disturb a residual branch, image by image.

    Args:
        x: [B, C, H, W], output of the branch.
        drop_probability: the chance p that an image's branch is disturbed.
        noise: float32 [3, B] in [0, 1): rows gate (disturbed where it is below p), forward
            factor and backward factor; None in evaluation, which takes the mean factor.

    Returns:
        [B, C, H, W].
    """
    if noise is None:
        return x * (1 - drop_probability)
    gate, alpha, beta = noise.unbind(0)
    dropped = gate < drop_probability
    one = torch.ones_like(gate)
    return scale(x, torch.where(dropped, 2 * alpha - 1, one), torch.where(dropped, beta, one))


class PyramidUnit(nn.Module):
    """BN, 1×1, BN, ReLU, 3×3, BN, ReLU, 1×1, BN, ShakeDrop; a shortcut without parameters.

    The shortcut averages 2×2 pixels where the unit halves the resolution and fills the channels
    that it lacks with zeros.

    Args:
        in_channels: channels of the input.
        width: inner channels; the unit has four times as many outputs.
        stride: stride of the 3×3.
        drop_probability: ShakeDrop's p for this unit.
    """

    def __init__(self, in_channels: int, width: int, stride: int, drop_probability: float) -> None:
        super().__init__()
        out_channels = width * _EXPANSION
        self.stride = stride
        self.new_channels = out_channels - in_channels
        self.drop_probability = drop_probability
        self.branch = nn.Sequential(
            nn.BatchNorm2d(in_channels),
            nn.Conv2d(in_channels, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, out_channels, 1, bias=False),
            nn.BatchNorm2d(out_channels),
        )

    def forward(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        """Map [B, in_channels, H, W] to the unit's output; ``noise`` as in `shake_drop`."""
        shortcut = x
        if self.stride == 2:
            # ceil_mode keeps the last row and column of an odd image, as the padded 3×3 does.
            shortcut = F.avg_pool2d(x, 2, ceil_mode=True)
        shortcut = F.pad(shortcut, (0, 0, 0, 0, 0, self.new_channels))
        return shortcut + shake_drop(self.branch(x), self.drop_probability, noise)


class PyramidNet(nn.Module):
    """A bottleneck PyramidNet of three stages with ShakeDrop.

    Args:
        depth: number of layers, 9n + 2 with n units a stage.
        alpha: total growth of the inner width, from 16 to 16 + ``alpha``.
        num_classes: number of outputs.
        in_channels: channels of the images.
        final_drop_probability: ShakeDrop's p at the last unit.

    Raises:
        ValueError: ``depth`` is not 9n + 2 with n ≥ 1.
    """

    def __init__(
        self,
        depth: int,
        alpha: int,
        num_classes: int,
        in_channels: int = 3,
        final_drop_probability: float = 0.5,
    ) -> None:
        super().__init__()
        units_per_stage, rest = divmod(depth - 2, 9)
        if rest or units_per_stage < 1:
            raise ValueError(f"depth must be 9n + 2 with n ≥ 1, got {depth}; try 11, 29 or 272")
        units = 3 * units_per_stage
        self.stem = nn.Sequential(
            nn.Conv2d(in_channels, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        )
        self.units = nn.ModuleList()
        channels = 16
        for index in range(units):
            width = round(16 + alpha * (index + 1) / units)
            stride = 2 if index in (units_per_stage, 2 * units_per_stage) else 1
            drop = final_drop_probability * (index + 1) / units
            self.units.append(PyramidUnit(channels, width, stride, drop))
            channels = width * _EXPANSION
        self.noise = ShakeNoise(layers=units, draws=3)
        self.bn = nn.BatchNorm2d(channels)
        self.fc = nn.Linear(channels, num_classes)
        init_weights(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits [B, num_classes] of normalised images [B, in_channels, H, W]."""
        features = self.stem(images)
        for unit, noise in zip(self.units, self.noise(len(images)), strict=True):
            features = unit(features, noise)
        logits: Tensor = self.fc(F.relu(self.bn(features)).mean(dim=(2, 3)))
        return logits


def pyramidnet_272(num_classes: int, in_channels: int = 3) -> PyramidNet:
    """Return PyramidNet-272 (α = 200) with ShakeDrop: 26,210,842 parameters for 10 classes."""
    return PyramidNet(272, 200, num_classes, in_channels)
