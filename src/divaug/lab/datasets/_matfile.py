"""Read numeric variables from a MATLAB 5 file, the format of SVHN.

Only what SVHN needs: real numeric arrays at the top level, plain or zlib-compressed, little endian.
Layout from "MAT-File Format" (The MathWorks), chapter "MAT-File Level 5".
"""

import struct
import zlib
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
_MAX_BYTES = 1 << 31

# Data type of an element → NumPy's name for it.
_DTYPES = {
    1: "<i1", 2: "<u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4",
    7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8",
}  # fmt: skip
# Classes of array that hold plain numbers: double, single, and the integers from int8 to uint64.
_NUMERIC_CLASSES = range(6, 16)
_COMPLEX = 0x08


class _Element(NamedTuple):
    kind: int
    data: memoryview


def read_mat(path: Path) -> dict[str, NDArray[np.generic]]:
    """Read all numeric arrays of a MATLAB 5 file, by name.

    Returns:
        Arrays in MATLAB's axis order (Fortran layout), as stored.

    Raises:
        ValueError: If the file is damaged, or not of this format.
    """
    content = memoryview(path.read_bytes())
    try:
        if len(content) < _HEADER or bytes(content[126:128]) != b"IM":
            raise ValueError("the header is not that of a little-endian MATLAB 5 file")
        return dict(_variables(content[_HEADER:]))
    except (ValueError, struct.error, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is damaged or no MATLAB 5 file ({error}); delete it and get it again"
        ) from error


def _variables(content: memoryview) -> Iterator[tuple[str, NDArray[np.generic]]]:
    for element in _elements(content):
        if element.kind == _COMPRESSED:
            element = _only_matrix(_inflate(element.data))
        if element.kind == _MATRIX:
            yield from _matrix(element.data)


def _only_matrix(content: memoryview) -> _Element:
    elements = list(_elements(content))
    if [element.kind for element in elements] != [_MATRIX]:
        raise ValueError("a compressed element must hold one array")
    return elements[0]


def _matrix(content: memoryview) -> Iterator[tuple[str, NDArray[np.generic]]]:
    """Yield the array, or nothing where it is not a real numeric one."""
    parts = list(_elements(content))
    if len(parts) < 4:
        raise ValueError("an array lacks its flags, shape, name or values")
    flags, shape_part, name, values = parts[:4]
    (flag_word,) = struct.unpack_from("<I", flags.data)
    if flag_word & 0xFF not in _NUMERIC_CLASSES or (flag_word >> 8) & _COMPLEX:
        return
    if values.kind not in _DTYPES:
        raise ValueError(f"values of the unknown type {values.kind}")
    shape = tuple(np.frombuffer(shape_part.data, "<i4").tolist())
    array = np.frombuffer(values.data, _DTYPES[values.kind])
    if min(shape) < 0 or prod(shape) != array.size:
        raise ValueError(f"shape {shape} does not fit {array.size} values")
    yield bytes(name.data).decode("ascii"), array.reshape(shape, order="F")


def _elements(content: memoryview) -> Iterator[_Element]:
    at = 0
    while at < len(content):
        kind, size = struct.unpack_from("<II", content, at)
        start = at + 8
        if kind >> 16:  # small form: size and up to four bytes of data inside the tag
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
        end = start + size
        if end > len(content) or (start == at + 4 and size > 4):
            raise ValueError(f"an element of {size} bytes reaches past the end")
        yield _Element(kind, content[start:end])
        # Elements start at multiples of eight; compressed ones are not padded.
        at = end if kind == _COMPRESSED else at + 8 if start == at + 4 else end + (-size) % 8


def _inflate(data: memoryview) -> memoryview:
    inflater = zlib.decompressobj()
    content = inflater.decompress(data, _MAX_BYTES)
    if inflater.unconsumed_tail:
        raise ValueError(f"a variable unpacks to more than {_MAX_BYTES} bytes")
    if not inflater.eof:
        raise ValueError("a compressed variable ends too early")
    return memoryview(content)
