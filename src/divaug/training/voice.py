"""Standard output that falls silent when nobody reads it, and spells what it has no code for."""

import errno
import io
import os
import sys
from typing import Any

__all__ = ["Voice", "spell_unknown"]

# What a system says when the reader of a pipe, or a terminal, is gone; the last is Windows' word.
_GONE = (errno.EPIPE, errno.EIO, errno.EINVAL)


def spell_unknown() -> None:
    """Print what standard output's encoding has no code for as an escape, as standard error does.

    In a pipe or a file that encoding is often not UTF-8, on Windows above all: a name of a file, or
    a × in a table, would end the command.
    """
    # The second is Python's choice in the C locale: it writes names of files as they are, no more.
    refusing = ("strict", "surrogateescape")
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in refusing:
        sys.stdout.reconfigure(errors="backslashreplace")


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
