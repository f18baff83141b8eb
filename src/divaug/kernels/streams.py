"""Work beside the work: further streams, forked off and joined again."""

from functools import lru_cache
from types import TracebackType

import torch

__all__ = ["Aside"]


@lru_cache(maxsize=64)
def _stream(device: torch.device, lane: int) -> torch.cuda.Stream:
    # The first of high priority: what is done there is what the rest will wait for.
    return torch.cuda.Stream(device, priority=-1 if lane == 0 else 0)


class Aside:
    """What is launched inside `with` runs beside what follows, until `join`; also in a CUDA graph.

    Where the device is no GPU everything runs in order.

    Args:
        device: where. All tensors used inside must live until after `join`.
        lane: which of the further streams.
    """

    def __init__(self, device: torch.device, lane: int = 0) -> None:
        self._device = device if device.type == "cuda" else None
        self._lane = lane
        self._context: torch.cuda.StreamContext | None = None

    def __enter__(self) -> "Aside":
        """Let the further stream begin where this one is now."""
        if self._device is not None:
            stream = _stream(self._device, self._lane)
            stream.wait_stream(torch.cuda.current_stream(self._device))
            self._context = torch.cuda.stream(stream)
            self._context.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Go back to the stream that was current."""
        if self._context is not None:
            self._context.__exit__(kind, error, trace)

    def mark(self) -> torch.cuda.Event | None:
        """Mark how far the further stream has come."""
        if self._device is None:
            return None
        mark: torch.cuda.Event = _stream(self._device, self._lane).record_event()
        return mark

    def wait_for(self, mark: torch.cuda.Event | None) -> None:
        """Let the current stream wait until the further one has come to a mark."""
        if mark is not None:
            torch.cuda.current_stream(self._device).wait_event(mark)

    def join(self) -> None:
        """Let the current stream wait for what was launched aside; the host does not."""
        if self._device is not None:
            torch.cuda.current_stream(self._device).wait_stream(_stream(self._device, self._lane))
