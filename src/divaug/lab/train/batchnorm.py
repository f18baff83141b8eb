"""BatchNorm over the whole batch that several processes share.

torch's `SyncBatchNorm` runs on GPUs only and makes the host wait in every layer. All our processes
have equal parts of the batch, so that one sum over processes does, on any device, without a wait.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

__all__ = ["SharedBatchNorm", "share_statistics"]


class _Total(torch.autograd.Function):
    """The sum over all processes; gradients are summed as well."""

    @staticmethod
    def forward(_context: Any, part: Tensor) -> Tensor:
        total = part.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(_context: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].clone()
        dist.all_reduce(total)
        return total


class SharedBatchNorm(nn.BatchNorm2d):
    """BatchNorm whose training statistics are those of all processes' images together.

    In evaluation mode, and where there is no process group, it is plain BatchNorm.
    """

    def forward(self, images: Tensor) -> Tensor:
        """Normalise `[N,C,H,W]`; in training all processes must come here together."""
        if not self.training or not dist.is_initialized():
            return super().forward(images)
        normalised: Tensor = _normalised(self, images)
        return normalised


# torch.compile cannot trace the exchange; what lies between two of these layers it compiles.
@torch.compiler.disable  # type: ignore[untyped-decorator]  # torch gives it no types
def _normalised(norm: SharedBatchNorm, images: Tensor) -> Tensor:
    value = images.float()
    count = dist.get_world_size()
    own_var, own_mean = torch.var_mean(value, (0, 2, 3), correction=0)
    # In double precision a variance survives being written as a difference of squares.
    mean, var = own_mean.double(), own_var.double()
    mean, square = _Total.apply(torch.stack([mean, var + mean.square()])) / count
    var = square - mean.square()
    _average(norm, mean.detach(), var.detach(), count * value.numel() // value.shape[1])
    scale = norm.weight * (var + norm.eps).rsqrt().float()
    shift = norm.bias - mean.float() * scale
    shape = (1, -1, 1, 1)
    normalised: Tensor = value * scale.view(shape) + shift.view(shape)
    return normalised.to(images.dtype)


@torch.no_grad()
def _average(norm: SharedBatchNorm, mean: Tensor, var: Tensor, images: int) -> None:
    """Move the running averages, as BatchNorm does."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    assert norm.momentum is not None
    unbiased = var * (images / max(images - 1, 1))
    norm.running_mean.lerp_(mean.to(norm.running_mean.dtype), norm.momentum)
    norm.running_var.lerp_(unbiased.to(norm.running_var.dtype), norm.momentum)
    norm.num_batches_tracked += 1


def share_statistics(network: nn.Module) -> None:
    """Replace every BatchNorm of a network by one that shares its statistics, tensors kept."""
    for parent in list(network.modules()):
        for name, child in parent.named_children():
            if type(child) is nn.BatchNorm2d:
                setattr(parent, name, _shared(child))


def _shared(norm: nn.BatchNorm2d) -> SharedBatchNorm:
    shared = SharedBatchNorm(norm.num_features, norm.eps, norm.momentum)
    shared.weight, shared.bias = norm.weight, norm.bias
    for name, buffer in norm.named_buffers():
        setattr(shared, name, buffer)
    return shared.train(norm.training)
