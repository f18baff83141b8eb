"""Work beside the work: further streams, forked off the current one and joined again."""

from functools import lru_cache

import torch

__all__ = ["Lane", "fork", "wait_for"]


@lru_cache(maxsize=64)
def _stream(device: torch.device, number: int) -> torch.cuda.Stream:
    # The first of high priority: what is done there is what the rest will wait for.
    return torch.cuda.Stream(device, priority=-1 if number == 0 else 0)


class Lane:
    """A further stream; `fork` makes it, and it must be joined. Also in a CUDA graph.

    All tensors used there must live until after `join`.

    Args:
        device: where.
        stream: itself; None where the device is no GPU and everything runs in order.
    """

    def __init__(self, device: torch.device, stream: torch.cuda.Stream | None) -> None:
        self.stream = stream
        self._device = device

    def mark(self) -> torch.cuda.Event | None:
        """Mark how far this lane has come."""
        return None if self.stream is None else self.stream.record_event()

    def wait_for(self, mark: torch.cuda.Event | None) -> None:
        """Let this lane wait until another has come to a mark."""
        if self.stream is not None and mark is not None:
            self.stream.wait_event(mark)

    def join(self) -> None:
        """Let the current stream wait for all that was launched here; the host does not."""
        wait_for(self.mark(), self._device)


def fork(device: torch.device, lanes: int) -> list[Lane]:
    """So many streams that begin where the current one is now."""
    if device.type != "cuda":
        return [Lane(device, None) for _ in range(lanes)]
    begin = torch.cuda.current_stream(device).record_event()
    streams = [_stream(device, number) for number in range(lanes)]
    for stream in streams:
        stream.wait_event(begin)
    return [Lane(device, stream) for stream in streams]


def wait_for(mark: torch.cuda.Event | None, device: torch.device) -> None:
    """Let the current stream wait until a lane has come to a mark."""
    if mark is not None:
        torch.cuda.current_stream(device).wait_event(mark)
