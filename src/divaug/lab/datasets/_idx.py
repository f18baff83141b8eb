"""Read IDX files, the format of MNIST and Fashion-MNIST."""

import gzip
import struct
import zlib
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_UINT8 = 0x08
_MAX_BYTES = 1 << 30


def read_idx(path: Path, ndim: int) -> NDArray[np.uint8]:
    """Read a gzipped IDX file of bytes with a given number of axes.

    Raises:
        ValueError: If the file is damaged, or holds something else.
    """
    try:
        with gzip.open(path, "rb") as file:
            magic = file.read(4)
            if magic != bytes((0, 0, _UINT8, ndim)):
                raise ValueError(f"expected IDX bytes with {ndim} axes, got magic {magic.hex()}")
            shape = struct.unpack(f">{ndim}I", file.read(4 * ndim))
            size = prod(shape)
            if size > _MAX_BYTES:
                raise ValueError(f"its shape {shape} asks for {size} bytes")
            data = file.read(size + 1)
    except (OSError, EOFError, zlib.error, struct.error, ValueError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(_damaged(path, str(error))) from error
    if len(data) != size:
        raise ValueError(_damaged(path, f"shape {shape} needs {size} bytes, not {len(data)}"))
    return np.frombuffer(data, dtype=np.uint8).reshape(shape)


def _damaged(path: Path, why: str) -> str:
    return f"{path} is damaged or no IDX file ({why}); delete it and get it again"
