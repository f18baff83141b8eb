"""Shared parts of Shake-Shake and ShakeDrop: replayable noise, and a two-faced scaling.

Both regularisers multiply a branch by one random number in the forward pass and by another one in
the backward pass, per image. The numbers come from :class:`ShakeNoise`, a pure function of
(seed, step, layer, position of the image in the batch) in integer arithmetic. So a run that is
resumed from a checkpoint draws what the uninterrupted run would have drawn, CPU and GPU draw the
same bits, no generator is read, and nothing waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["ShakeNoise", "scale", "seed_noise"]

_MASK = 0xFFFFFFFF
_WEYL = 0x9E3779B9  # keeps the mixer away from its fixed point at zero


def _mix(x: Tensor) -> Tensor:
    """Permute 32-bit words held in int64 by two rounds of xor-shift and multiply.

    Both multipliers are below 2³¹, so no product leaves int64 and every backend agrees.
    """
    x = x ^ (x >> 16)
    x = (x * 0x21F0AAAD) & _MASK
    x = x ^ (x >> 15)
    x = (x * 0x735A2D97) & _MASK
    return x ^ (x >> 15)


def _hash(*words: Tensor) -> Tensor:
    """Hash words below 2³² that broadcast against one another to words below 2³²."""
    state = torch.zeros_like(words[0])
    for word in words:
        state = _mix((state + word + _WEYL) & _MASK)
    return state


class ShakeNoise(nn.Module):
    """A replayable source of uniform numbers, one for every layer, draw and image.

    The seed and the step are buffers and travel with ``state_dict``. Each call in training mode
    advances the step by one; in evaluation nothing is drawn and nothing advances. A forward pass
    that is recomputed (activation checkpointing) is a call like any other and would draw anew.

    Args:
        layers: number of layers that draw.
        draws: numbers that each layer needs for an image.

    Attributes:
        noise_seed: int64, zero-dimensional; see :func:`seed_noise`.
        noise_step: int64, zero-dimensional; training passes so far.
        rank: which process this is; see :func:`seed_noise`. It belongs to the process and not to
            the run, so it is no buffer.
        num_ranks: of how many.
        kinds: how many images of each kind this process has in a batch that mixes some.

    Example:
        >>> noise = ShakeNoise(layers=2, draws=3)
        >>> first, second = noise(4)
        >>> first.shape, int(noise.noise_step)
        (torch.Size([3, 4]), 1)
        >>> noise.eval()(4)
        [None, None]
    """

    noise_seed: Tensor
    noise_step: Tensor

    def __init__(self, layers: int, draws: int) -> None:
        super().__init__()
        self.layers = layers
        self.draws = draws
        self.rank, self.num_ranks = 0, 1
        self.kinds: tuple[int, ...] = ()
        self.register_buffer("noise_seed", torch.zeros((), dtype=torch.int64))
        self.register_buffer("noise_step", torch.zeros((), dtype=torch.int64))

    def forward(self, batch_size: int) -> list[Tensor | None]:
        """Return for every layer float32 [draws, batch_size] in [0, 1), or None in evaluation."""
        if not self.training:
            return [None] * self.layers
        uniform = self._draw(batch_size)
        self.noise_step.add_(1)
        return list(uniform.unbind(0))

    def _draw(self, batch_size: int) -> Tensor:
        device = self.noise_seed.device
        stream = torch.arange(self.layers * self.draws, device=device)
        position = self._positions(batch_size, device)
        words = _hash(
            self.noise_seed & _MASK,
            self.noise_seed >> 32,
            self.noise_step & _MASK,
            self.noise_step >> 32,
            stream.view(self.layers, self.draws, 1),
            position,
        )
        # 24 bits are what float32 holds exactly, so the result never rounds up to one.
        return (words >> 8).to(torch.float32) * 2.0**-24

    def _positions(self, batch_size: int, device: torch.device) -> Tensor:
        """Return each image's position in the batch of all processes, which have equal parts."""
        kinds = self.kinds if sum(self.kinds) == batch_size else (batch_size,)
        places, before = [], 0
        for size in kinds:
            places.append(torch.arange(size, device=device) + (before + self.rank * size))
            before += self.num_ranks * size
        return torch.cat(places)


def seed_noise(
    network: nn.Module,
    seed: int,
    *,
    rank: int = 0,
    num_ranks: int = 1,
    kinds: tuple[int, ...] = (),
) -> None:
    """Seed the shaking noise of a network and set it back to step zero.

    Networks without shaking are left as they are, so a training loop may always call this.

    Args:
        network: any network; every :class:`ShakeNoise` inside it is seeded.
        seed: a number from 0 to 2⁶³ − 1.
        rank: which process this is. Each must hold as many images of a batch, the first process
            the first ones; then the noise of an image does not depend on how many share it.
        num_ranks: how many processes there are.
        kinds: where images of several kinds are passed as one batch, one kind after the other,
            how many this process has of each; batches of another size are of one kind.

    Raises:
        ValueError: ``seed`` or ``rank`` is out of range.
    """
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed must lie between 0 and 2**63 - 1, got {seed}")
    if not 0 <= rank < num_ranks:
        raise ValueError(f"rank must lie in 0 … {num_ranks - 1}, got {rank}")
    for module in network.modules():
        if isinstance(module, ShakeNoise):
            module.noise_seed.fill_(seed)
            module.noise_step.zero_()
            module.rank, module.num_ranks, module.kinds = rank, num_ranks, kinds


def _times(x: Tensor, factor: Tensor) -> Tensor:
    """Multiply in the finer type of the two, round to that of ``x``."""
    product = x * factor
    # A conversion that converts nothing returns its argument, and where a Function returns an alias
    # of what it made, torch.compile of torch 2.11 gives zero for the gradient
    # (https://github.com/pytorch/pytorch/issues/180642).
    return product if product.dtype == x.dtype else product.to(x.dtype)


class _Scale(torch.autograd.Function):
    """Multiply by one factor going forward and by another one going backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, forward_factor: Tensor, backward_factor: Tensor) -> Tensor:
        ctx.save_for_backward(backward_factor)
        return _times(x, forward_factor)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None]:
        (grad,) = grad_outputs
        (backward_factor,) = ctx.saved_tensors
        return _times(grad, backward_factor), None, None


def scale(x: Tensor, forward_factor: Tensor, backward_factor: Tensor) -> Tensor:
    """Scale each image by ``forward_factor``, and its gradient by ``backward_factor`` instead.

    Args:
        x: [B, C, H, W] of any floating type; the result has the same type.
        forward_factor: float32 [B].
        backward_factor: float32 [B].

    Example:
        >>> x = torch.ones(1, 1, 1, 1, requires_grad=True)
        >>> y = scale(x, torch.tensor([0.25]), torch.tensor([3.0]))
        >>> y.sum().backward()
        >>> y.item(), x.grad.item()
        (0.25, 3.0)
    """
    apply: Callable[..., Tensor] = _Scale.apply
    return apply(x, forward_factor.view(-1, 1, 1, 1), backward_factor.view(-1, 1, 1, 1))
