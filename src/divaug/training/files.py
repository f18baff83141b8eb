"""Writing files whole or not at all, and saying which one could not be written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["WriteError", "replace_text", "writing"]


class WriteError(OSError):
    """A file of a run could not be written: a full disk, no permission.

    Args:
        path: the file.
        reason: what the system said.
        number: its number for that.
    """

    def __init__(self, path: str | Path, reason: str, number: int | None = None) -> None:
        super().__init__(f"cannot write {path}: {reason}.")
        self.path, self.reason, self.errno = Path(path), reason, number


@contextmanager
def writing(path: Path, aside: Path | None = None) -> Iterator[None]:
    """Errors of the system in the block become a `WriteError` that names the file.

    Args:
        path: the file; where the system names another one, that.
        aside: what is written in its place so far, which nobody has asked for.
    """
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        # A full disk is noticed while writing, and then the system names no file.
        reason = error.strerror or str(error)
        named = error.filename if error.filename and error.filename != str(aside) else path
        raise WriteError(named, reason, error.errno) from error


def replace_text(path: Path, text: str) -> None:
    """Write a file whole or not at all; a pipe or a device is written to as it is."""
    if path.exists() and not path.is_file():
        with writing(path):
            path.write_text(text, encoding="utf-8")
        return
    aside = path.with_name(path.name + ".unfinished")
    with writing(path, aside):
        try:
            with aside.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
