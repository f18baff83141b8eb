"""Several processes, started by torchrun: who is who, and what they share."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

__all__ = ["Processes", "joined", "share_buffers", "wanted"]


# Seconds for gloo's threads to let go of the last message, which they do after it has arrived, and
# for which they need the interpreter. Before torch 2.14 a group that is destroyed meanwhile waits
# for them without giving it up: for ever (https://github.com/pytorch/pytorch/issues/56297).
_LETTING_GO = 0.1


@dataclass(frozen=True)
class Processes:
    """This process among those that share the work.

    Args:
        rank: which one this is.
        count: how many there are.
        local_rank: which one on this machine; the number of its GPU.
    """

    rank: int = 0
    count: int = 1
    local_rank: int = 0

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.rank == 0

    @property
    def shared(self) -> bool:
        """Whether there are others."""
        return self.count > 1

    def part_of(self, batch_size: int, field: str = "batch_size") -> slice:
        """This process' consecutive part of a batch.

        Args:
            batch_size: images of all processes.
            field: what the recipe calls that number.

        Raises:
            ValueError: the batch cannot be cut into equal parts.

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
        """The sum over all processes, as a new tensor."""
        summed = sums.clone()
        if self.shared:
            dist.all_reduce(summed)
        return summed

    def least(self, number: Tensor) -> Tensor:
        """The smallest over all processes, as a new tensor."""
        smallest = number.clone()
        if self.shared:
            dist.all_reduce(smallest, dist.ReduceOp.MIN)
        return smallest

    def any(self, flag: bool, device: torch.device) -> bool:
        """Whether any process says so; all must ask."""
        if not self.shared:
            return flag
        said = torch.tensor([float(flag)], device=device)
        dist.all_reduce(said)
        return bool(said.item() > 0)

    def wait(self) -> None:
        """Until all have come here."""
        if self.shared:
            dist.barrier()


def wanted() -> Processes:
    """What torchrun's environment says; one process where there is none.

    Raises:
        ValueError: an environment that makes no sense.
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return Processes()
    try:
        rank, count, local = (int(os.environ.get(name, "0")) for name in names)
    except ValueError:
        found = ", ".join(f"{name}={os.environ.get(name)}" for name in names)
        raise ValueError(f"torchrun's environment must hold whole numbers, got {found}.") from None
    if not 0 <= rank < count:
        raise ValueError(f"RANK must lie in [0, WORLD_SIZE={count}), got {rank}.")
    return Processes(rank, count, local)


@contextmanager
def joined(processes: Processes, device: torch.device) -> Iterator[None]:
    """Join the others for the block: gloo on CPUs, NCCL on GPUs.

    A process group that is there already is used and left alone.

    Raises:
        OSError: the address for the meeting is taken, or nobody answers there.
    """
    if not processes.shared or dist.is_initialized():
        yield
        return
    backend = {"cuda": "nccl", "cpu": "gloo"}[device.type]
    where = f"{os.environ.get('MASTER_ADDR', '?')}:{os.environ.get('MASTER_PORT', '?')}"
    try:
        dist.init_process_group(
            backend,
            rank=processes.rank,
            world_size=processes.count,
            device_id=device if device.type == "cuda" else None,
        )
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise OSError(
            f"the {processes.count} processes could not meet at {where}: {reason}; if the port is "
            "in use, give torchrun another one with --master-port."
        ) from None
    try:
        yield
    finally:
        if backend == "gloo":
            time.sleep(_LETTING_GO)
        dist.destroy_process_group()


def share_buffers(network: nn.Module, processes: Processes) -> None:
    """Give all processes the first one's BatchNorm statistics, in one message.

    Without `sync_batchnorm` each process normalises with the statistics of its own part of the
    batch; the running averages, which scoring and evaluation go by, must be the same everywhere and
    in the checkpoint.
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
