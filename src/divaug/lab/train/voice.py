"""Standard output that falls silent when nobody reads it any more."""

import errno
import os
import sys
from typing import Any

__all__ = ["Voice"]

# What a system says when the reader of a pipe, or a terminal, is gone; the last is Windows' word.
_GONE = (errno.EPIPE, errno.EIO, errno.EINVAL)


class Voice:
    """Standard output for long work, which goes on when its reader goes away.

    `divaug train … | head` ends the reader after some lines; the run is worth more than the rest of
    them. All else is standard output's own.
    """

    def __init__(self) -> None:
        # Kept: while a bar is shown, another file stands in its place, which leads back to here.
        self._stream = sys.stdout

    def write(self, text: str) -> int:
        """Write, or fall silent."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._fall_silent(error)
            return len(text)

    def flush(self) -> None:
        """Flush, or fall silent."""
        try:
            self._stream.flush()
        except OSError as error:
            self._fall_silent(error)

    def __getattr__(self, name: str) -> Any:
        """What else a file has: whether it is a terminal, its encoding."""
        return getattr(self._stream, name)

    def _fall_silent(self, error: OSError) -> None:
        """From now on standard output goes nowhere, for whoever else writes to it too."""
        if error.errno not in _GONE:
            raise error
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
