"""What can be wrong with a file of NumPy's, said in one line."""

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What NumPy and the readers of zip files raise for damaged content; a byte of a zip file's header
# decides over its compression, encryption and version, which some of these are about.
_DAMAGE = (
    ValueError,
    OSError,
    EOFError,
    LookupError,
    ArithmeticError,
    RuntimeError,
    SyntaxError,
    TypeError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)


@contextmanager
def reading(path: Path, kind: str, remedy: str) -> Iterator[None]:
    """Name the file in whatever goes wrong in the block that reads it.

    Args:
        path: The file.
        kind: What it should be, like "an .npy file".
        remedy: What to do about one that is not.

    Raises:
        ValueError: If it is something else, damaged, or larger than the memory.
        OSError: If it is not there or must not be read.
    """
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise  # they name the file, and nothing is wrong with its content
    except MemoryError as error:
        raise ValueError(
            f"{path} asks for more memory than there is ({_text(error)}); its header is damaged, "
            f"or it is too large: {remedy}, or keep fewer images in it"
        ) from error
    except _DAMAGE as error:
        raise ValueError(f"{path} is damaged or not {kind} ({_text(error)}); {remedy}") from error


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
