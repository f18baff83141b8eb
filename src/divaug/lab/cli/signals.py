"""Ctrl-C and SIGTERM where nothing else listens: one line of text, the shell's exit code."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Stopped", "first_process", "left_to_the_first", "stopping"]

# Seconds that the first process gets to say what is wrong, before another one says it.
_GRACE = 10.0


class Stopped(BaseException):
    """A signal came. No `Exception`, so that nobody takes it for an error.

    Args:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        self.name = signal.Signals(number).name
        self.code = 128 + number
        super().__init__(self.name)


@contextmanager
def stopping() -> Iterator[None]:
    """For the block, SIGINT and SIGTERM raise `Stopped`; in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    mine = os.getpid()

    def handle(number: int, _frame: FrameType | None) -> None:
        if os.getpid() == mine:
            raise Stopped(number)
        if number == signal.SIGTERM:  # a forked worker; Ctrl-C is for its parent to decide
            os._exit(128 + number)

    before = {n: signal.signal(n, handle) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def first_process() -> bool:
    """Whether this is the one of torchrun's processes that speaks."""
    return os.environ.get("RANK", "0") == "0"


def left_to_the_first() -> bool:
    """Wait until the first process has told what this one was about to.

    Bad input is the same for all of torchrun's processes, and when one of them has failed torchrun
    ends the others: whoever leaves early would silence the first. False after a while: then the
    trouble is this process' own.
    """
    if first_process():
        return False
    try:
        time.sleep(_GRACE)
    except Stopped:
        return True
    return False
