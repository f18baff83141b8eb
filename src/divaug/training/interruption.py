"""Ctrl-C and SIGTERM as a wish that the loop grants between two steps."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Interruption"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """While the block runs, the first SIGINT or SIGTERM is noted instead of acted upon.

    A second one interrupts at once. Outside the main thread, where Python allows no handlers, it
    does nothing.

    Attributes:
        signal: the name of the signal that came; None so far.
    """

    def __init__(self) -> None:
        self.signal: str | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.getsignal(number) for number in _SIGNALS}
            for number in _SIGNALS:
                signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number).name
