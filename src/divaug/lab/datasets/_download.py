"""Get a file of a dataset: from its folder, or from the dataset's own site.

A download goes to a temporary name, its checksum is compared, and only then does it get its real
name. So a file that has its name is whole, and nothing reads bytes that were not checked.
"""

import contextlib
import hashlib
import http.client
import os
import secrets
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from divaug.lab.datasets._progress import Progress, console_progress

_CHUNK = 1 << 20
_SCHEMES = ("https://", "http://")


@dataclass(frozen=True)
class RemoteFile:
    """A file that can be downloaded.

    Attributes:
        name: Its name on the disk.
        url: Where it comes from.
        checksums: Accepted checksums, each as ``"md5:…"`` or ``"sha256:…"``. The first belongs to
            the file at `url`; further ones to the same content packed differently.
        max_bytes: The largest size accepted.
    """

    name: str
    url: str
    checksums: tuple[str, ...]
    max_bytes: int = 1 << 30


def fetch(
    remote: RemoteFile,
    folder: Path,
    *,
    download: bool = True,
    progress: Progress | None = None,
    timeout: float = 30.0,
) -> Path:
    """Return the path of a file that is there and whole, downloading it where needed.

    Args:
        remote: Which file.
        folder: Where it is, or goes.
        download: Whether a missing file may be downloaded.
        progress: Called with (bytes so far, bytes in all or None); by default a progress bar, or
            plain lines where the error stream is no terminal.
        timeout: Seconds without an answer after which the site counts as not reachable.

    Raises:
        FileNotFoundError: If the file is missing and cannot be downloaded.
        ValueError: If its checksum is wrong.
    """
    path = folder / remote.name
    if path.is_file():
        verify(path, remote.checksums)
        return path
    if not download:
        raise FileNotFoundError(f"{path} is missing; {_by_hand(remote, folder)}")
    folder.mkdir(parents=True, exist_ok=True)
    with _temporary(path) as part:
        if progress is None:
            with console_progress(remote.name) as report:
                _save(remote, folder, part, report, timeout)
        else:
            _save(remote, folder, part, progress, timeout)
        verify(part, remote.checksums[:1], what=f"what {remote.url} sent", remedy="try again later")
        part.replace(path)
    return path


def verify(
    path: Path,
    checksums: tuple[str, ...],
    *,
    what: str | None = None,
    remedy: str = "delete it to have it downloaded again",
) -> None:
    """Compare a file with its accepted checksums.

    Args:
        path: The file.
        checksums: Accepted values, ``"algorithm:hex"``.
        what: What the message calls the file; its path by default.
        remedy: What the message advises.

    Raises:
        ValueError: If it matches none.
    """
    found = []
    for checksum in checksums:
        algorithm, _, _ = checksum.partition(":")
        found.append(f"{algorithm}:{_digest(path, algorithm)}")
        if found[-1] == checksum:
            return
    raise ValueError(
        f"{what or path} is damaged or another file: checksum {found[0]}, "
        f"expected {checksums[0]}; {remedy}"
    )


def _digest(path: Path, algorithm: str) -> str:
    # MD5 here tells a damaged file from a whole one; it is what the dataset sites publish.
    with path.open("rb") as file:
        return hashlib.file_digest(
            file, lambda: hashlib.new(algorithm, usedforsecurity=False)
        ).hexdigest()


def _save(remote: RemoteFile, folder: Path, part: Path, progress: Progress, timeout: float) -> None:
    done = 0
    with part.open("xb") as out:
        with contextlib.closing(_receive(remote, folder, timeout)) as chunks:
            for chunk, total in chunks:
                done += out.write(chunk)
                progress(done, total)
        out.flush()
        os.fsync(out.fileno())


def _receive(
    remote: RemoteFile, folder: Path, timeout: float
) -> Generator[tuple[bytes, int | None], None, None]:
    """Yield the bytes of a file, each time with the bytes in all where the site says so."""
    if not remote.url.startswith(_SCHEMES):
        raise ValueError(f"url must start with http:// or https://, got {remote.url!r}")
    request = urllib.request.Request(remote.url, headers={"User-Agent": "divaug"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            total = _length(answer)
            yield b"", total
            done = 0
            while chunk := answer.read(_CHUNK):
                done += len(chunk)
                if done > remote.max_bytes:
                    raise ValueError(f"{remote.url} sends over {remote.max_bytes} bytes: refused")
                yield chunk, total
            if total is not None and done < total:
                raise ConnectionError(f"the connection ended after {done} of {total} bytes")
    except (OSError, http.client.HTTPException) as error:
        raise FileNotFoundError(
            f"{folder / remote.name} is missing and could not be downloaded "
            f"({_reason(error)}); {_by_hand(remote, folder)}"
        ) from error


def _length(answer: http.client.HTTPResponse) -> int | None:
    text = answer.headers.get("Content-Length")
    return int(text) if text and text.isdecimal() else None


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        error.close()  # it holds the connection
        return f"the site answered {error.code}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__


def _by_hand(remote: RemoteFile, folder: Path) -> str:
    return f"get {remote.url} by other means and put it into {folder.absolute()}"


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """Name a new file beside the path; whatever is left of it in the end is removed."""
    # Several processes may download the same file at once, each to a name of its own.
    part = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)
