"""Moments of the device's work: taken without waiting, compared when it has come there."""

import time

import torch

__all__ = ["Moment"]


class Moment:
    """Now, in the order of the device's work.

    A host that does not wait runs ahead of a GPU: it has launched an interval of steps long before
    the GPU has done them, so that its own clock says nothing about their time. On a GPU a moment
    is therefore a mark between what was launched before and after it. Elsewhere the host does the
    work itself, and its clock is right.

    Args:
        device: that works.

    Example:
        >>> first = Moment(torch.device("cpu"))
        >>> second = Moment(torch.device("cpu"))
        >>> 0.0 <= second.since(first) < 1.0
        True
    """

    def __init__(self, device: torch.device) -> None:
        self._host = time.perf_counter()
        self._event: torch.cuda.Event | None = None
        if device.type == "cuda":
            self._event = torch.cuda.Event(enable_timing=True)
            self._event.record()

    def wait(self) -> None:
        """Until the device has come here."""
        if self._event is not None:
            self._event.synchronize()

    def since(self, earlier: "Moment") -> float:
        """Seconds from an earlier moment to this one; both must have been waited for."""
        if self._event is None or earlier._event is None:
            return self._host - earlier._host
        return float(earlier._event.elapsed_time(self._event)) / 1e3
