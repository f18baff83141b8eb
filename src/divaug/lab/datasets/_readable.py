"""Finding unreadable image files before the work begins.

Of few files every one is decoded. Of many, PNG files have the checksums compared that they carry,
and JPEG files, which mostly are damaged by being cut short, must end as such files do; one that
fails is decoded, which settles the matter. Files of all other formats are decoded.
"""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from divaug.lab.datasets._decode import check_sums, decode, read_header

#: The most files of a part that are looked at, evenly spaced; ImageNet's validation part is whole.
MAX_FILES = 50_000
#: The most files of a part that are all decoded, whatever their format.
MAX_DECODED = 5_000

_THREADS = 8
_TAIL_BYTES = 64
_SIZE = 16  # small: what is decoded is thrown away


def require_readable(
    paths: Sequence[str], max_files: int = MAX_FILES, max_decoded: int = MAX_DECODED
) -> None:
    """Look whether image files can be read.

    Args:
        paths: The files.
        max_files: The most to look at; of more, that many are taken, evenly spaced.
        max_decoded: The most files that are all decoded; of more, some formats get a quicker test.

    Raises:
        ValueError: If a file is no readable image; the message names the first one.
        OSError: If a file must not be read.
    """
    step = max(1, -(-len(paths) // max_files))
    check = _decode if len(paths) <= max_decoded else _check
    # Pillow warns of damage that it then reports or passes over. The filters are those of all
    # threads, so they are set around them.
    with warnings.catch_warnings(), ThreadPoolExecutor(_THREADS) as pool:
        warnings.filterwarnings("ignore", module=r"PIL\.")
        for found in pool.map(partial(_problem, check), paths[::step]):
            if found is not None:
                pool.shutdown(wait=False, cancel_futures=True)
                raise found


def _problem(check: Callable[[str], object], path: str) -> Exception | None:
    try:
        check(path)
    except (ValueError, OSError) as error:
        return error
    return None


def _decode(path: str) -> None:
    decode(path, size=_SIZE)


def _check(path: str) -> None:
    _CHECKS.get(read_header(path), _decode)(path)


def _check_end(path: str) -> None:
    with Path(path).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        whole = b"\xff\xd9" in file.read()
    if not whole:
        _decode(path)


def _check_sums(path: str) -> None:
    try:
        check_sums(path)
    except ValueError:
        _decode(path)


# Format → a test that is quicker than decoding.
_CHECKS: Mapping[str, Callable[[str], None]] = {"JPEG": _check_end, "PNG": _check_sums}
