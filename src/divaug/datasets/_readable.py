"""Finding unreadable image files before the work begins, without decoding all of them.

Every header is read. Damaged files mostly are cut short, so JPEG and PNG files must also end as
such files do; one that does not is decoded, which settles the matter.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from divaug.datasets._decode import decode, read_header

#: The most files of a part that are looked at, evenly spaced; ImageNet's validation part is whole.
MAX_FILES = 50_000

_THREADS = 8
_TAIL_BYTES = 64
# What the last bytes of a whole file contain.
_ENDINGS: Mapping[str, bytes] = {"JPEG": b"\xff\xd9", "PNG": b"IEND"}


def require_readable(paths: Sequence[str], max_files: int = MAX_FILES) -> None:
    """Look at the headers and ends of image files.

    Args:
        paths: The files.
        max_files: The most to look at; of more, that many are taken, evenly spaced.

    Raises:
        ValueError: If a file is no readable image; the message names the first one.
    """
    step = max(1, -(-len(paths) // max_files))
    with ThreadPoolExecutor(_THREADS) as pool:
        for problem in pool.map(_problem, paths[::step], chunksize=64):
            if problem is not None:
                pool.shutdown(wait=False, cancel_futures=True)
                raise problem


def _problem(path: str) -> Exception | None:
    try:
        kind = read_header(path)
        if not _is_whole(path, kind):
            decode(path)
    except (ValueError, OSError) as error:
        return error
    return None


def _is_whole(path: str, kind: str) -> bool:
    ending = _ENDINGS.get(kind)
    if ending is None:
        return True
    with Path(path).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        return ending in file.read()
