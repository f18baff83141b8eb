"""SGD with Nesterov's momentum on a schedule, entirely on the device.

torch's SGD reads a learning rate that is a tensor back to the host at every step; this one never
does, so that a CUDA graph can hold it. On the same gradients it computes what torch's does.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from divaug.lab.recipes import Recipe
from divaug.lab.train.schedules import rates

__all__ = ["SGD"]


@dataclass
class SGD:
    """The optimiser: parameters, their momentum, and the number of steps taken.

    Args:
        network: whose parameters are trained.
        recipe: learning rate, momentum, weight decay and gradient clipping.
        total_steps: length of the schedule.
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
        """The learning rate of the coming step, on the device."""
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
