"""Ctrl-C and SIGTERM as a wish that the loop grants between two steps."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, NoReturn

__all__ = ["Interruption", "exit_code", "pass_on"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def exit_code(name: str | None) -> int:
    """What a shell reports of a process that a signal ended.

    Example:
        >>> exit_code("SIGINT"), exit_code("SIGTERM")
        (130, 143)
    """
    return 128 + signal.Signals[name or "SIGTERM"].value


def pass_on(name: str | None) -> NoReturn:
    """Do with a signal that was noted what would have happened without the note."""
    signal.raise_signal(signal.Signals[name or "SIGTERM"])
    raise KeyboardInterrupt  # where somebody ignores signals: the work is undone all the same


class Interruption:
    """From `listen` to the end of the block, the first SIGINT or SIGTERM is noted, not obeyed.

    Until `listen` signals do what they always do: while a run starts there is nothing to save. A
    second signal does so again. Outside the main thread, where Python allows no handlers, nothing
    changes.

    Attributes:
        signal: the name of the signal that came; None so far.
    """

    def __init__(self) -> None:
        self.signal: str | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        return self

    def listen(self) -> None:
        """Note signals from now on."""
        if self._before or threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._note)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = signal.Signals(number).name
            return
        self._restore()
        signal.raise_signal(number)
