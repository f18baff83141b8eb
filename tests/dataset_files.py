"""Tiny datasets in the very formats of the official files, for tests of the loading code."""

import gzip
import hashlib
import io
import struct
import tarfile
from pathlib import Path

import numpy as np

from divaug.lab.datasets._download import RemoteFile
from divaug.lab.datasets._sources import CifarSource


def checksum(data: bytes, algorithm: str = "md5") -> str:
    return f"{algorithm}:{hashlib.new(algorithm, data).hexdigest()}"


def remote(data: bytes, name: str, base: str = "http://127.0.0.1:9/") -> RemoteFile:
    """A file with the true checksum of its bytes; port 9 discards, so nothing can be got there."""
    return RemoteFile(name, base + name, (checksum(data),))


def _string(text: bytes) -> bytes:
    if len(text) < 256:
        return b"U" + bytes((len(text),)) + text
    return b"T" + struct.pack("<i", len(text)) + text


def _integer(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def _array(array: np.ndarray) -> bytes:
    """Opcode by opcode what Python 2 and the NumPy of 2009 wrote for a uint8 array."""
    return (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
        + _integer(0) + b"\x85" + _string(b"b") + b"\x87R"
        + b"(" + _integer(1) + _integer(array.shape[0]) + _integer(array.shape[1]) + b"\x86"
        + b"cnumpy\ndtype\n" + _string(b"u1") + _integer(0) + _integer(1) + b"\x87R"
        + b"(" + _integer(3) + _string(b"|") + b"NNN" + _integer(-1) + _integer(-1) + _integer(0)
        + b"tb" + b"\x89" + _string(array.tobytes()) + b"tb"
    )  # fmt: skip


def python2_pickle(content: dict[str, object]) -> bytes:
    """A protocol-2 pickle as Python 2 writes it: text as byte strings."""
    body = b""
    for key, value in content.items():
        body += _string(key.encode())
        if isinstance(value, np.ndarray):
            body += _array(value)
        elif isinstance(value, list):
            items = (_integer(v) if isinstance(v, int) else _string(v.encode()) for v in value)
            body += b"](" + b"".join(items) + b"e"
        else:
            body += _string(str(value).encode())
    return b"\x80\x02}(" + body + b"u."


def tar_gz(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def cifar_batch(rng: np.random.Generator, labels: list[int], key: str) -> dict[str, object]:
    data = rng.integers(0, 256, (len(labels), 3072), dtype=np.uint8)
    return {"batch_label": "a batch", key: labels, "data": data}


def make_cifar(batches: dict[str, dict[str, object]], names: list[str], labels_key: str):
    """Return the archive's bytes and the source that describes it; the last batch is the test."""
    names_key = labels_key.replace("labels", "label_names")
    files = {name: python2_pickle(content) for name, content in batches.items()}
    files["meta"] = python2_pickle({names_key: names})
    archive = tar_gz({f"cifar/{name}": data for name, data in files.items()})
    sums = [(name, checksum(data)) for name, data in files.items()]
    source = CifarSource(
        archive=remote(archive, "cifar.tar.gz"),
        folder="cifar",
        train=tuple(sums[:-2]),
        test=sums[-2],
        meta=sums[-1],
        labels_key=labels_key,
        names_key=names_key,
    )
    return archive, source


def idx_gz(array: np.ndarray) -> bytes:
    header = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(header + array.tobytes())


def write_images(folder: Path, classes: dict[str, int], size: tuple[int, int] = (20, 30)) -> None:
    """Write PNG images, every one different, `size` being height and width."""
    from PIL import Image

    for c, (name, count) in enumerate(classes.items()):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            rng = np.random.default_rng([c, i])
            pixels = rng.integers(0, 256, (*size, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{i:02}.png")
