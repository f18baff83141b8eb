"""One writer for a run: a lock on a file in its folder, which ends with the process."""

import contextlib
import importlib.util
from pathlib import Path
from types import TracebackType
from typing import IO

__all__ = ["LOCK", "Lock"]

#: The file in a run's folder; it is empty and stays.
LOCK = ".lock"


class Lock:
    """The right to write into a folder; given back at the end of the block, or of the process.

    Where the system or the file system knows no locks, everybody has the right.

    Args:
        folder: that is written into.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with Lock(folder) as mine:
        ...     mine.take()
        ...     mine.taken
        True
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self.taken = False

    def __enter__(self) -> "Lock":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            _unlock(self._file)
            self._file.close()
        self._file, self.taken = None, False

    def take(self) -> None:
        """Take the right, if this one has not done so before; the folder must be there.

        Raises:
            BlockingIOError: another process has it.
        """
        if self.taken:
            return
        self.taken = True
        if importlib.util.find_spec("fcntl") is None:
            return
        import fcntl

        with contextlib.suppress(OSError):
            self._file = (self._folder / LOCK).open("ab")
        if self._file is None:  # what cannot be written is named by whoever needs it
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            self._file, self.taken = None, False
            raise BlockingIOError(
                f"{self._folder} is being written by another process; wait until it has ended, or "
                "write to another folder."
            ) from None
        except OSError:
            return


def _unlock(file: IO[bytes]) -> None:
    """Also for forked workers that are still there: they hold the file open."""
    import fcntl

    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_UN)
