"""Device, precision and the settings of torch for a run."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import torch

__all__ = ["Hardware", "choose_device", "fast_settings", "workers"]


@dataclass(frozen=True)
class Hardware:
    """Device and precision that a network runs in.

    Args:
        device: device of all tensors.
        dtype: precision of the network: float32 or bfloat16.
        compiled: True to compile the network.
        graphed: True to replay the whole step as one CUDA graph.
    """

    device: torch.device
    dtype: torch.dtype = torch.float32
    compiled: bool = False
    graphed: bool = False

    @staticmethod
    def choose(
        device: str | torch.device | None, precision: str = "auto", *, eager: bool = False
    ) -> "Hardware":
        """Choose the fastest way to run on a device.

        Args:
            device: "cpu", "cuda", "cuda:1"; None for a GPU if there is one.
            precision: "auto", "float32" or "bfloat16", as in a recipe.
            eager: True to do without compilation and graphs.
        """
        where = choose_device(device)
        automatic = "bfloat16" if where.type == "cuda" else "float32"
        name = automatic if precision == "auto" else precision
        dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]
        fast = where.type == "cuda" and not eager
        return Hardware(where, dtype, compiled=fast, graphed=fast)

    @property
    def channels_last(self) -> bool:
        """True on a GPU: images and weights have their channels last."""
        return self.device.type == "cuda"

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context that the network runs in.

        The cache of cast weights is off: a graph may not hold it, and weights that scoring cast
        without gradients would be found again by the training pass.
        """
        return torch.autocast(
            self.device.type,
            self.dtype,
            enabled=self.dtype != torch.float32,
            cache_enabled=False,
        )


def choose_device(device: str | torch.device | None) -> torch.device:
    """Return a device that exists; the GPU, if there is one, for None.

    Raises:
        ValueError: no such device, or fewer GPUs.
    """
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
    except RuntimeError:
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        raise ValueError(f'`device` must be "cpu", "cuda" or "cuda:N", got {str(device)!r}.')
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if found.type == "cuda" and (found.index or 0) >= count:
        raise ValueError(
            f"`device` must be one of the {count} GPUs that torch sees, got {str(found)!r}; use "
            '"cpu", or install a torch that fits your driver.'
        )
    return found


def workers(wanted: int) -> int:
    """Return the number of decoding processes: as many as wanted, at most one for each core."""
    if hasattr(os, "sched_getaffinity"):
        return min(wanted, len(os.sched_getaffinity(0)))
    return min(wanted, os.cpu_count() or 1)


@contextmanager
def fast_settings(hardware: Hardware) -> Iterator[None]:
    """On a GPU, make it the current one and allow TF32 and cuDNN's search, for the block.

    Streams and kernels of Triton go to the current GPU, whatever the device of their tensors.
    """
    if hardware.device.type != "cuda":
        yield
        return
    precision, search = torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark
    try:
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.benchmark = True
        with torch.cuda.device(hardware.device):
            yield
    finally:
        torch.set_float32_matmul_precision(precision)
        torch.backends.cudnn.benchmark = search
