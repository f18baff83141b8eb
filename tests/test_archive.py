"""Hostile archives are refused and leave nothing behind; honest ones unpack."""

import io
import os
import stat
import tarfile
import zipfile

import pytest

from divaug.lab.datasets._archive import extract
from tests.dataset_files import tar_gz


def _tar_with(info: tarfile.TarInfo, data: bytes = b"") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        good = tarfile.TarInfo("good.txt")
        good.size = 2
        tar.addfile(good, io.BytesIO(b"ok"))
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _special(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def _commented(name: str, length: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.pax_headers = {"comment": "c" * length}
    return info


def _sparse(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": "1000000"}
    return info


def _zip_with(*entries: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("good.txt", b"ok")
        for name, data in entries:
            archive.writestr(name, data)
    return out.getvalue()


def _zip_special(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (mode | 0o644) << 16
    return info


PATHS = ["../out", "a/../../out", "/tmp/divaug-out", "..", "a\\..\\out", "C:out"]

HOSTILE = {
    **{f"tar path {path}": (_tar_with(tarfile.TarInfo(path), b"x"), "leave") for path in PATHS},
    **{f"zip path {path}": (_zip_with((path, b"x")), "leave") for path in PATHS},
    "tar folder ..": (_tar_with(_special("../d", tarfile.DIRTYPE)), "leave"),
    "zip folder ..": (_zip_with(("../d/", b"")), "leave"),
    "tar symlink": (_tar_with(_special("l", tarfile.SYMTYPE, "/etc")), "link"),
    "tar symlink inside": (_tar_with(_special("l", tarfile.SYMTYPE, "good.txt")), "link"),
    "tar hardlink": (_tar_with(_special("l", tarfile.LNKTYPE, "good.txt")), "link"),
    "tar char device": (_tar_with(_special("d", tarfile.CHRTYPE)), "device"),
    "tar block device": (_tar_with(_special("d", tarfile.BLKTYPE)), "device"),
    "tar fifo": (_tar_with(_special("d", tarfile.FIFOTYPE)), "special"),
    "tar sparse": (_tar_with(_sparse("s"), b"x"), "special"),
    "zip symlink": (_zip_with((_zip_special("l", stat.S_IFLNK), b"/etc")), "link"),
    "zip device": (_zip_with((_zip_special("d", stat.S_IFCHR), b"")), "device"),
    "tar twice": (_tar_with(tarfile.TarInfo("good.txt"), b"other"), "twice"),
    "tar file as folder": (_tar_with(tarfile.TarInfo("good.txt/x"), b"x"), "twice"),
    "tar bomb": (_tar_with(tarfile.TarInfo("b"), bytes(200_000)), "more than 100000 bytes"),
    "zip bomb": (_zip_with(("b", bytes(200_000))), "more than 100000 bytes"),
    "tar bomb in parts": (
        tar_gz({str(i): bytes(30_000) for i in range(4)}),
        "more than 100000 bytes",
    ),
    "tar long name bomb": (_tar_with(tarfile.TarInfo("n" * 500_000)), "more bytes than allowed"),
    "tar header bomb": (_tar_with(_commented("n", 500_000)), "more bytes than allowed"),
    "tar members": (tar_gz({str(i): b"" for i in range(12)}), "more than 10 members"),
    "zip members": (_zip_with(*((str(i), b"") for i in range(12))), "more than 10 members"),
    "truncated tar": (tar_gz({"a": os.urandom(5000)})[:3000], "damaged"),
    "garbage": (b"no archive at all" * 100, "damaged"),
    "empty": (b"", "damaged"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_archive_is_refused_and_leaves_nothing(case, tmp_path):
    data, reason = HOSTILE[case]
    inner = tmp_path / "inner"
    inner.mkdir()
    archive = inner / "archive"
    archive.write_bytes(data)
    with pytest.raises(ValueError, match=reason) as error:
        extract(archive, inner / "folder", max_bytes=100_000, max_members=10)
    assert str(archive) in str(error.value)
    assert sorted(tmp_path.rglob("*")) == [inner, archive]


def test_zip_whose_header_understates_the_size_is_refused(tmp_path):
    data = bytearray(_zip_with(("b", bytes(200_000))))
    # Write 10 over the true size in both headers; the stored stream still unpacks to 200,000.
    true_size, lie = (200_000).to_bytes(4, "little"), (10).to_bytes(4, "little")
    assert data.count(true_size) == 2
    archive = tmp_path / "archive.zip"
    archive.write_bytes(bytes(data).replace(true_size, lie))
    with pytest.raises(ValueError, match=r"archive\.zip"):
        extract(archive, tmp_path / "folder", max_bytes=100_000)
    assert list(tmp_path.iterdir()) == [archive]


@pytest.mark.parametrize("pack", [tar_gz, lambda m: _zip_with(*m.items())])
def test_honest_archive_unpacks_to_the_same_bytes(pack, tmp_path):
    members = {"top/a.bin": os.urandom(3000), "top/sub/b.txt": b"hello", "top/empty": b""}
    archive = tmp_path / "archive"
    archive.write_bytes(pack(members))
    extract(archive, tmp_path / "whole")
    extract(archive, tmp_path / "part", top="top")
    for name, data in members.items():
        assert (tmp_path / "whole" / name).read_bytes() == data
        assert (tmp_path / "part" / name.removeprefix("top/")).read_bytes() == data
    assert len(list(tmp_path.iterdir())) == 3  # no temporary folder stays


def test_limits_are_exact(tmp_path):
    archive = tmp_path / "archive"
    archive.write_bytes(tar_gz({"a": bytes(600), "b": bytes(400)}))
    extract(archive, tmp_path / "fits", max_bytes=1000, max_members=2)
    with pytest.raises(ValueError, match="999 bytes"):
        extract(archive, tmp_path / "no", max_bytes=999, max_members=2)
    with pytest.raises(ValueError, match="1 members"):
        extract(archive, tmp_path / "no", max_bytes=1000, max_members=1)


def test_existing_folder_and_missing_top_are_errors(tmp_path):
    archive = tmp_path / "archive"
    archive.write_bytes(tar_gz({"a/x": b"1"}))
    with pytest.raises(FileExistsError, match="exists already"):
        extract(archive, tmp_path)
    with pytest.raises(ValueError, match="holds no folder 'b'"):
        extract(archive, tmp_path / "folder", top="b")
    assert not (tmp_path / "folder").exists()
