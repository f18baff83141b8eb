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
#: The operations that the kernels know, in the order of the ids they know them by.
KERNEL_OPERATIONS = OPERATIONS


def without_kernel(names: Sequence[str]) -> str | None:
    """Why a table of operations is beyond the kernels; None where it is theirs."""
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
    """Whether kernels there may count with atomic additions in shared memory.

    Those are written in NVIDIA's assembly (`divaug.kernels.histogram`), which neither AMD's devices
    (torch calls them "cuda" too) nor Triton's interpreter understand. Both count as Triton does.
    """
    return device.type == "cuda" and torch.version.hip is None and not _interpreting()


def _obstacle(device: torch.device) -> str | None:
    """Why Triton cannot run there; None where it can."""
    if not _installed():
        return "Triton is not installed"
    if device.type != "cuda" and not _interpreting():
        return f"the tensors are on {device}, and Triton needs a CUDA device"
    return None


def check_backend(backend: object) -> None:
    """Refuse what is no backend; whether a known one can run depends on the tensors."""
    if backend is not None and backend not in BACKENDS:
        raise ValueError(
            f"`backend` must be one of {BACKENDS} or None, got {backend!r}; the device is that of "
            "the images."
        )


def use_triton(backend: str | None, device: torch.device, lacking: str | None = None) -> bool:
    """Whether the Triton kernel is to be used.

    Args:
        backend: "torch" or "triton" to force one; None for Triton on CUDA wherever it can run.
        device: where the tensors are.
        lacking: why this call is beyond the kernel; None where it is not.

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
