"""Several processes, started by torchrun: their ranks, their sums and their BatchNorm.

torch's `SyncBatchNorm` runs on GPUs only and synchronises with the host in every layer. All our
processes have equal parts of the batch, so that one all-reduce does, on any device.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

# Seconds for gloo's threads to let go of the last message, which they do after it has arrived, and
# for which they need the interpreter. Before torch 2.14 a group that is destroyed meanwhile waits
# for them without giving it up: for ever (https://github.com/pytorch/pytorch/issues/56297).
_LETTING_GO = 0.1


@dataclass(frozen=True)
class Processes:
    """This process among those that share the work.

    Args:
        rank: index of this process; the first one writes and prints.
        count: number of processes.
        local_rank: index of this process on its machine, and of its GPU.
    """

    rank: int = 0
    count: int = 1
    local_rank: int = 0

    @property
    def first(self) -> bool:
        """True in the process that writes and prints."""
        return self.rank == 0

    @property
    def shared(self) -> bool:
        """True if there are several processes."""
        return self.count > 1

    def part_of(self, batch_size: int, field: str = "batch_size") -> slice:
        """Return this process' consecutive part of a batch; `field` names it in a recipe.

        Example:
            >>> Processes(rank=1, count=4).part_of(128)
            slice(32, 64, None)
        """
        if batch_size % self.count:
            raise ValueError(
                f"`{field}` must be a multiple of the {self.count} processes, got {batch_size}; "
                "change it, or start another number of processes."
            )
        part = batch_size // self.count
        return slice(self.rank * part, (self.rank + 1) * part)

    def total(self, sums: Tensor) -> Tensor:
        """Sum a tensor over all processes into a new one."""
        summed = sums.clone()
        if self.shared:
            dist.all_reduce(summed)
        return summed

    def least(self, number: Tensor) -> Tensor:
        """Return the smallest value of all processes as a new tensor."""
        smallest = number.clone()
        if self.shared:
            dist.all_reduce(smallest, dist.ReduceOp.MIN)
        return smallest

    def any(self, flag: bool, device: torch.device) -> bool:
        """Return True if the flag is set in any process. Collective."""
        if not self.shared:
            return flag
        said = torch.tensor([float(flag)], device=device)
        dist.all_reduce(said)
        return bool(said.item() > 0)

    def wait(self) -> None:
        """Wait for all processes."""
        if self.shared:
            dist.barrier()


def wanted() -> Processes:
    """Read torchrun's environment; a single process without it."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return Processes()
    return Processes(*(int(os.environ.get(name, "0")) for name in names))


@contextmanager
def joined(processes: Processes, device: torch.device) -> Iterator[None]:
    """Join the others for the block: gloo on CPUs, NCCL on GPUs.

    An existing process group is used and left alone.
    """
    if not processes.shared or dist.is_initialized():
        yield
        return
    backend = {"cuda": "nccl", "cpu": "gloo"}[device.type]
    dist.init_process_group(
        backend,
        rank=processes.rank,
        world_size=processes.count,
        device_id=device if device.type == "cuda" else None,
    )
    try:
        yield
    finally:
        if backend == "gloo":
            time.sleep(_LETTING_GO)
        dist.destroy_process_group()


def share_buffers(network: nn.Module, processes: Processes) -> None:
    """Broadcast the first process' BatchNorm statistics, in one message.

    Without `sync_batchnorm` each process normalises with the statistics of its own part of the
    batch. The running averages, which scoring and evaluation use, must be the same everywhere.
    """
    if not processes.shared:
        return
    buffers = [b for b in network.buffers() if b.is_floating_point()]
    if not buffers:
        return
    flat = torch.cat([buffer.flatten() for buffer in buffers])
    dist.broadcast(flat, 0)
    parts = torch.split(flat, [buffer.numel() for buffer in buffers])
    for buffer, part in zip(buffers, parts, strict=True):
        buffer.copy_(part.view_as(buffer))


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
