"""Learning rates: a warm-up, then a curve; a number for people, a tensor for the step."""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from divaug.lab.recipes import Recipe

__all__ = ["rate_at", "rates", "warmup_steps"]

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
    """Compute the learning rate of steps, float64, by operations on the device alone."""
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
