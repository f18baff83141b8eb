"""Standard output that falls silent when nobody reads it any more."""

import errno
import os
import sys
from typing import Any

__all__ = ["Voice"]

# What a system says when the reader of a pipe, or a terminal, is gone.
_GONE = (errno.EPIPE, errno.EIO)


class Voice:
    """Standard output for long work, which goes on when its reader goes away.

    `divaug train … | head` ends the reader after some lines; the run is worth more than the rest of
    them. All else is standard output's own.
    """

    def write(self, text: str) -> int:
        """Write, or fall silent."""
        try:
            return sys.stdout.write(text)
        except OSError as error:
            return _nobody(error, len(text))

    def flush(self) -> None:
        """Flush, or fall silent."""
        try:
            sys.stdout.flush()
        except OSError as error:
            _nobody(error, 0)

    def __getattr__(self, name: str) -> Any:
        """What else a file has: whether it is a terminal, its encoding."""
        return getattr(sys.stdout, name)


def _nobody(error: OSError, written: int) -> int:
    """From now on standard output goes nowhere, for whoever else writes to it too."""
    if error.errno not in _GONE:
        raise error
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return written
