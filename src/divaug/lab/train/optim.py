"""The optimiser: learning rates, SGD and an average of the weights, entirely on the device.

The learning rate of every step is decided in `rates`.
"""

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from divaug.lab.recipes import Recipe

__all__ = ["SGD", "Average", "rate_at", "rates", "warmup_steps"]

# Name → from the share of the steps that is over to the share of the learning rate.
_CURVES: Mapping[str, Callable[[Tensor], Tensor]] = {
    "cosine": lambda u: 0.5 * (1.0 + (u * math.pi).cos()),
    # UDA's and FixMatch's: ends at a fifth of the peak.
    "cosine-7/16": lambda u: (u * (7.0 * math.pi / 16.0)).cos(),
}


def warmup_steps(recipe: Recipe, total_steps: int) -> int:
    """Return the number of steps in which the learning rate rises."""
    return round(recipe.warmup * total_steps)


def rates(recipe: Recipe, step: Tensor, total_steps: int) -> Tensor:
    """Compute the learning rate of steps, counted from 0: a warm-up, then a curve.

    The result is float64, by operations on the device alone.
    """
    rise = warmup_steps(recipe, total_steps)
    now = step.double()
    left = (now - rise).clamp(min=0) / max(1, total_steps - rise)
    curve = recipe.learning_rate * _CURVES[recipe.schedule](left)
    if not rise:
        return curve
    climb = (recipe.learning_rate - recipe.warmup_rate) / rise
    return torch.where(now < rise, recipe.warmup_rate + climb * now, curve)


def rate_at(recipe: Recipe, step: int, total_steps: int) -> float:
    """Return the learning rate of a step, counted from 0.

    Example:
        >>> from divaug.lab.recipes import recipe
        >>> [round(rate_at(recipe("demo-default"), step, 4), 6) for step in (0, 2, 4)]
        [0.1, 0.05, 0.0]
    """
    return float(rates(recipe, torch.tensor(step, device="cpu"), total_steps))


@dataclass
class SGD:
    """SGD with Nesterov momentum on a schedule: parameters, momentum, number of steps.

    torch's SGD reads a learning rate that is a tensor back to the host at every step; this one
    never does, so that a CUDA graph can hold it. On the same gradients it computes what torch's
    does.
    """

    network: nn.Module
    recipe: Recipe
    total_steps: int

    def __post_init__(self) -> None:
        named = [(n, p) for n, p in self.network.named_parameters() if p.requires_grad]
        self.parameters: list[Tensor] = [parameter for _, parameter in named]
        self.momentum = {name: torch.zeros_like(parameter) for name, parameter in named}
        device = self.parameters[0].device
        self.step_number = torch.zeros((), dtype=torch.int64, device=device)

    def rate(self) -> Tensor:
        """Return the learning rate of the coming step, on the device."""
        return rates(self.recipe, self.step_number, self.total_steps).to(torch.float32)

    @torch.no_grad()
    def step(self) -> None:
        """Clip the gradients and update the parameters; the gradients are used up."""
        recipe = self.recipe
        if recipe.grad_clip:
            nn.utils.clip_grad_norm_(self.parameters, recipe.grad_clip)
        grads = [p.grad for p in self.parameters if p.grad is not None]
        if len(grads) != len(self.parameters):
            raise ValueError("some parameters of the network got no gradient.")
        velocity = list(self.momentum.values())
        torch._foreach_add_(grads, self.parameters, alpha=recipe.weight_decay)
        torch._foreach_mul_(velocity, recipe.momentum)
        torch._foreach_add_(velocity, grads)
        if recipe.nesterov:
            torch._foreach_add_(grads, velocity, alpha=recipe.momentum)
        else:
            torch._foreach_copy_(grads, velocity)
        torch._foreach_mul_(grads, self.rate())
        torch._foreach_sub_(self.parameters, grads)
        self.step_number += 1

    def zero_grad(self) -> None:
        """Drop the gradients."""
        for parameter in self.parameters:
            parameter.grad = None


class Average:
    """A second network whose weights are a moving average of the first one's, for evaluation.

    Weights move by `average ← decay·average + (1 − decay)·weight`; buffers such as BatchNorm's
    statistics, which are averages already, are copied.

    Args:
        network: network that is trained.
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
        self.decay = decay
        self.network = copy.deepcopy(network).requires_grad_(False)
        self._weights = list(zip(self.network.parameters(), network.parameters(), strict=True))
        self._buffers = list(zip(self.network.buffers(), network.buffers(), strict=True))

    @torch.no_grad()
    def update(self) -> None:
        """Move the average by one step."""
        averages, weights = zip(*self._weights, strict=True)
        torch._foreach_lerp_(list(averages), list(weights), 1.0 - self.decay)
        for mine, theirs in self._buffers:
            mine.copy_(theirs)
