"""Unpack an archive that may be hostile.

Every member is checked as it comes: a regular file or a folder, a relative path that stays inside,
no name twice, and limits on the number of members and on the bytes they unpack to. Members are
written to a temporary folder that takes its final name only when all is well, so a refused archive
leaves nothing behind.
"""

import gzip
import io
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

_CHUNK = 1 << 20
_TAR_OVERHEAD = 4096  # header, padding and an extended header of one member
_TAR_END = 1 << 16  # zeros that fill the last record

MAX_BYTES = 1 << 30
MAX_MEMBERS = 10_000


class _Member(NamedTuple):
    """One entry of an archive: a file where `content` is given, a folder where it is not."""

    name: str
    content: IO[bytes] | None


def extract(
    archive: Path,
    folder: Path,
    *,
    top: str = ".",
    max_bytes: int = MAX_BYTES,
    max_members: int = MAX_MEMBERS,
) -> None:
    """Unpack a ``.tar``, ``.tar.gz`` or ``.zip`` file into a new folder.

    Args:
        archive: The file to unpack.
        folder: Where its members go; must not exist yet.
        top: The folder inside the archive that becomes `folder`; all of the archive by default.
        max_bytes: The most bytes all members together may unpack to.
        max_members: The most members the archive may have.

    Raises:
        ValueError: If the archive is damaged, breaks a limit, or holds a path that leaves the
            folder, a link, a device or a name twice. Nothing is left behind.
        FileExistsError: If the folder is there already.
    """
    if folder.exists():
        raise FileExistsError(f"{folder} exists already; remove it to unpack {archive} again")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary:
        inside = Path(temporary) / "unpacked"
        inside.mkdir()
        with _damage_named(archive):
            _write_members(archive, inside, max_bytes, max_members)
        if not (inside / top).is_dir():
            raise ValueError(f"{archive} holds no folder {top!r}; delete it and get it again")
        _rename(inside / top, folder)


def _rename(source: Path, folder: Path) -> None:
    try:
        source.rename(folder)
    except OSError:
        # Another process may have unpacked the same archive in the meantime; its folder is as good.
        if not folder.is_dir():
            raise


def _write_members(archive: Path, folder: Path, max_bytes: int, max_members: int) -> None:
    read = _read_zip if zipfile.is_zipfile(archive) else _read_tar
    left = max_bytes
    for count, member in enumerate(
        read(archive, max_bytes + max_members * _TAR_OVERHEAD + _TAR_END), 1
    ):
        if count > max_members:
            raise ValueError(f"{archive} has more than {max_members} members: refused")
        target = folder / _safe_path(archive, member.name)
        if member.content is None:
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        # A header may lie about the size, so the bytes themselves are counted.
        written = _copy(member.content, target, left)
        if written > left:
            raise ValueError(f"{archive} unpacks to more than {max_bytes} bytes: refused")
        left -= written


def _copy(source: IO[bytes], target: Path, limit: int) -> int:
    """Copy until the end or one byte past the limit; the file must be new."""
    written = 0
    with target.open("xb") as out:
        while written <= limit and (chunk := source.read(min(_CHUNK, limit + 1 - written))):
            written += out.write(chunk)
    return written


def _safe_path(archive: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    # Backslash and colon separate folders and drives on Windows.
    if path.is_absolute() or ".." in path.parts or any(c in name for c in "\\:\0"):
        raise ValueError(f"{archive} holds the path {name!r}, which may leave its folder: refused")
    return path


def _read_tar(archive: Path, limit: int) -> Iterator[_Member]:
    with (
        _opened(archive) as raw,
        tarfile.open(fileobj=_Limited(raw, limit, archive), mode="r|") as tar,
    ):
        for info in tar:
            if info.isdir():
                yield _Member(info.name, None)
                continue
            if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.issparse():
                raise ValueError(
                    f"{archive} holds {info.name!r}, which is a link, a device or another special "
                    "file: refused"
                )
            content = tar.extractfile(info)
            assert content is not None
            yield _Member(info.name, content)


def _read_zip(archive: Path, limit: int) -> Iterator[_Member]:
    del limit  # names are not compressed in a zip file, so its own size bounds them
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise ValueError(
                    f"{archive} holds {info.filename!r}, which is a link, a device or another "
                    "special file: refused"
                )
            if info.is_dir():
                yield _Member(info.filename, None)
                continue
            with opened.open(info) as content:
                yield _Member(info.filename, content)


@contextmanager
def _opened(archive: Path) -> Iterator[IO[bytes]]:
    with archive.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not compressed:
            yield file
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield unpacked  # type: ignore[misc]  # GzipFile is a binary stream in all but name


class _Limited(io.RawIOBase):
    """A stream that refuses to deliver more than its limit.

    The tar reader takes long names and extended headers into memory whole, before anybody can look
    at them; this bounds that too.
    """

    def __init__(self, source: IO[bytes], limit: int, archive: Path) -> None:
        self._source = source
        self._left = limit
        self._archive = archive

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(self._left + 1 if size < 0 else min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise ValueError(f"{self._archive} unpacks to more bytes than allowed: refused")
        return data


@contextmanager
def _damage_named(archive: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(
            f"{archive} is damaged or no archive ({error}); delete it and get it again"
        ) from error
    except (FileExistsError, NotADirectoryError) as error:
        name = Path(error.filename).name
        raise ValueError(f"{archive} holds {name!r} twice: refused") from error
    except RuntimeError as error:  # a password; an unknown compression, which is a kind of it
        raise ValueError(f"{archive} cannot be unpacked ({error}): refused") from error
