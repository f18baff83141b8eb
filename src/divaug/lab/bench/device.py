"""What a GPU can do and what work asks of it: bandwidth, memory, and no waiting."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from divaug.lab.bench.clocks import gpu_milliseconds

__all__ = ["copy_bandwidth", "no_waits", "peak_memory", "require_cuda", "waits_forbidden"]


def require_cuda() -> torch.device:
    """The CUDA device, or an error that says what to do."""
    if not torch.cuda.is_available():
        raise ValueError("this benchmark needs a CUDA device, and torch finds none here.")
    return torch.device("cuda")


def copy_bandwidth(num_bytes: int) -> float:
    """Bytes a second, read plus written, of a device-to-device copy that moves `num_bytes`."""
    source = torch.randint(0, 256, (num_bytes // 2,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / (gpu_milliseconds(lambda: target.copy_(source)) / 1000)


@contextmanager
def waits_forbidden() -> Iterator[None]:
    """Within the block, what makes the host wait for the device raises RuntimeError."""
    before = torch.cuda.get_sync_debug_mode()
    try:
        with warnings.catch_warnings():
            # torch says, once in a process, that this mode does not notice every way of waiting.
            warnings.filterwarnings("ignore", "Synchronization debug mode is a prototype")
            torch.cuda.set_sync_debug_mode("error")
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def no_waits(run: Callable[[], object]) -> None:
    """Raise if the call makes the host wait for the device."""
    run()
    torch.cuda.synchronize()
    with waits_forbidden():
        run()


def peak_memory(run: Callable[[], object]) -> int:
    """Most bytes of the device that the call held at once beyond what was there."""
    run()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before
