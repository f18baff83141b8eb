"""An exponential moving average of a network's weights, for evaluation."""

import copy

import torch
from torch import nn

__all__ = ["Average"]


class Average:
    """A second network whose weights follow those of the first, smoothed over steps.

    Weights move by `average ← decay·average + (1 − decay)·weight`; buffers such as BatchNorm's
    statistics, which are averages already, are copied.

    Args:
        network: the one that is trained.
        decay: the part of the average that a step keeps, from 0 to 1.

    Example:
        >>> network = nn.Linear(1, 1, bias=False)
        >>> _ = network.weight.data.fill_(1.0)
        >>> average = Average(network, decay=0.9)
        >>> _ = network.weight.data.fill_(2.0)
        >>> average.update()
        >>> round(average.network.weight.item(), 6)
        1.1
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"`decay` must lie in [0, 1), got {decay}.")
        self.decay = decay
        self.network = copy.deepcopy(network).requires_grad_(False)
        self._weights = list(zip(self.network.parameters(), network.parameters(), strict=True))
        self._buffers = list(zip(self.network.buffers(), network.buffers(), strict=True))

    @torch.no_grad()
    def update(self) -> None:
        """Follow the trained network by one step."""
        if self._weights:
            averages, weights = zip(*self._weights, strict=True)
            torch._foreach_lerp_(list(averages), list(weights), 1.0 - self.decay)
        for mine, theirs in self._buffers:
            mine.copy_(theirs)
