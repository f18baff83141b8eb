"""Read the pickles of CIFAR without running anything that is in them.

A pickle names functions to call. Here the few names that a NumPy array of bytes needs lead to
stand-ins that only collect the parts and check them; every other name is refused. NumPy itself
sees no more than a buffer of the right length.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class _Dtype:
    """Stands for a NumPy dtype: only ``uint8`` is known."""

    def __init__(self, code: object = None, *_: object) -> None:
        if code not in ("u1", b"u1"):
            raise pickle.UnpicklingError(f"arrays must be uint8, got dtype {code!r}")

    def __setstate__(self, state: object) -> None:
        """Ignore the byte order and the rest: a byte has none."""


class _Array:
    """Stands for a NumPy array, and for the function that makes an empty one."""

    values: NDArray[np.uint8]

    def __init__(self, *_: object) -> None:
        """Ignore what the empty array would have been; the state brings everything."""

    def __setstate__(self, state: tuple[object, ...]) -> None:
        _, shape, dtype, fortran, data = state
        if not (isinstance(dtype, _Dtype) and isinstance(data, bytes)):
            raise pickle.UnpicklingError("an array must be plain uint8 bytes")
        if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
            raise pickle.UnpicklingError(f"an array's shape must be whole numbers, got {shape!r}")
        flat = np.frombuffer(data, dtype=np.uint8)
        self.values = flat.reshape(shape, order="F" if fortran else "C")


# Classes only: a pickle may set attributes on a function, but not on a class with __setstate__.
_KNOWN: dict[tuple[str, str], type] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
}


class _Restricted(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        try:
            return _KNOWN[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"the pickle asks for {module}.{name}") from None


# What the standard library's reader raises on bytes that are no pickle, or a damaged one.
_DAMAGE = (
    pickle.UnpicklingError,
    EOFError,
    ImportError,
    AttributeError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    MemoryError,
    OverflowError,
)


def unpickle(path: Path) -> dict[str, Any]:
    """Read a dictionary of uint8 arrays, lists, numbers and text from a pickle.

    Args:
        path: The file.

    Returns:
        The dictionary, with text keys; arrays are NumPy arrays.

    Raises:
        ValueError: If the file is damaged or asks for anything else.
    """
    try:
        with path.open("rb") as file:
            content = _Restricted(file, encoding="bytes").load()
        if not isinstance(content, dict):
            raise pickle.UnpicklingError(f"expected a dictionary, got {type(content).__name__}")
        return {_text(key): _plain(value) for key, value in content.items()}
    except _DAMAGE as error:
        raise ValueError(
            f"{path} is damaged or not safe to read ({error}); delete it and get it again"
        ) from error


def _plain(value: object) -> object:
    return value.values if isinstance(value, _Array) else value


def _text(key: object) -> str:
    if not isinstance(key, bytes | str):
        raise pickle.UnpicklingError(f"keys must be text, got {type(key).__name__}")
    return key.decode("ascii") if isinstance(key, bytes) else key
