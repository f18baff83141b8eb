"""What can be wrong with a file of NumPy's, said in one line."""

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

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

# How NumPy's files begin, archives among them.
_NUMPY = (b"PK", b"\x93NUMPY")
# How other files begin that people give in their place → what they are.
_OTHERS = {
    b"\xff\xd8\xff": "a JPEG image",
    b"\x89PNG": "a PNG image",
    b"GIF8": "a GIF image",
    b"BM": "a BMP image",
    b"RIFF": "a WebP image",
    b"II*\0": "a TIFF image",
    b"MM\0*": "a TIFF image",
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b": "a gzip archive",
    b"\x80": "a pickle",
}


def check_start(file: BinaryIO) -> None:
    """See whether a file begins as NumPy's do: of others NumPy says that they hold pickles.

    Raises:
        ValueError: If it does not; the message says what it looks like.
    """
    start = file.read(max(map(len, (*_NUMPY, *_OTHERS))))
    file.seek(0)
    if start.startswith(_NUMPY):
        return
    if not start:
        raise ValueError("it is empty")
    found = [kind for beginning, kind in _OTHERS.items() if start.startswith(beginning)]
    raise ValueError(f"it looks like {found[0]}" if found else "it begins like no file of NumPy's")


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
