"""The one place that decides which implementation runs: batched PyTorch or Triton kernels."""

import importlib.util
import os
from collections.abc import Sequence
from functools import lru_cache

import torch

from divaug.operations.table import OPERATIONS

__all__ = [
    "BACKENDS",
    "KERNEL_OPERATIONS",
    "check_backend",
    "has_shared_atomics",
    "use_triton",
    "without_kernel",
]

BACKENDS = ("torch", "triton")
#: The operations that have a kernel, in the order of their ids there.
KERNEL_OPERATIONS = OPERATIONS


def without_kernel(names: Sequence[str]) -> str | None:
    """Return the reason why the kernels cannot run a table of operations; None if they can."""
    if tuple(names) == KERNEL_OPERATIONS:
        return None
    own = [name for name in names if name not in KERNEL_OPERATIONS]
    which = f" ({', '.join(own)})" if own else ""
    return f"the sub-policies hold operations of your own{which}, which have no kernel"


@lru_cache(maxsize=1)
def _installed() -> bool:
    return importlib.util.find_spec("triton") is not None


def _interpreting() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"


def has_shared_atomics(device: torch.device) -> bool:
    """Return whether kernels on a device may count with atomic additions in shared memory.

    They are NVIDIA's assembly (`divaug.kernels.histogram`). AMD's devices, which torch also calls
    "cuda", and Triton's interpreter use Triton's histogram.
    """
    return device.type == "cuda" and torch.version.hip is None and not _interpreting()


def _obstacle(device: torch.device) -> str | None:
    """Return the reason why Triton cannot run on a device; None if it can."""
    if not _installed():
        return "Triton is not installed"
    if device.type != "cuda" and not _interpreting():
        return f"the tensors are on {device}, and Triton needs a CUDA device"
    return None


def check_backend(backend: object) -> None:
    """Refuse an unknown backend; whether a known one can run depends on the tensors."""
    if backend is not None and backend not in BACKENDS:
        raise ValueError(
            f"`backend` must be one of {BACKENDS} or None, got {backend!r}; the device is that of "
            "the images."
        )


def use_triton(backend: str | None, device: torch.device, lacking: str | None = None) -> bool:
    """Return whether to use the Triton kernel.

    Args:
        backend: "torch" or "triton" to force one; None for Triton on CUDA wherever it can run.
        device: device of the tensors.
        lacking: reason why the kernel cannot serve this call; None if it can.

    Raises:
        ValueError: for an unknown name, or a forced "triton" that cannot run, with the reason.
    """
    check_backend(backend)
    if backend == "torch":
        return False
    reason = lacking or _obstacle(device)
    if backend == "triton" and reason:
        raise ValueError(f'backend="triton" cannot run here: {reason}. Leave `backend` out.')
    return reason is None and (backend == "triton" or device.type == "cuda")
