"""Damaged files: named before the work begins, whatever the damage and whatever the format."""

import io
import warnings
import zipfile

import numpy as np
import pytest
from PIL import Image

from divaug.lab import datasets
from divaug.lab.datasets import STATISTICS
from divaug.lab.datasets import _decode as decoding
from divaug.lab.datasets._decode import decode
from divaug.lab.datasets._readable import require_readable
from divaug.lab.train.data import unlabelled_images
from tests.dataset_files import write_images

RNG = np.random.default_rng(5)
#: Formats whose damaged files are cut in half here; a PNG file loses bytes in its middle.
HALF = ("bmp", "tiff", "gif", "webp", "ppm", "jpeg")


def picture(kind: str, size: tuple[int, int] = (30, 30)) -> bytes:
    out = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (*size, 3), dtype=np.uint8)).save(out, kind)
    return out.getvalue()


def zeroed(raw: bytes) -> bytes:
    """Thirty bytes lost in the middle."""
    middle = len(raw) // 2
    return raw[:middle] + bytes(30) + raw[middle + 30 :]


def damaged(kind: str) -> bytes:
    raw = picture(kind)
    return zeroed(raw) if kind == "png" else raw[: len(raw) // 2]


# --- image folders -------------------------------------------------------------------------------


@pytest.mark.parametrize("max_decoded", [0, 5_000])
@pytest.mark.parametrize("kind", ["png", *HALF])
def test_a_damaged_image_is_named_whatever_its_format(kind, max_decoded, tmp_path):
    write_images(tmp_path, {"a": 3})
    bad, whole = tmp_path / f"bad.{kind}", tmp_path / f"whole.{kind}"
    bad.write_bytes(damaged(kind))
    whole.write_bytes(picture(kind))
    paths = [str(path) for path in sorted(tmp_path.rglob("*.*"))]
    with pytest.raises(ValueError, match=rf"bad\.{kind} is not a readable image but damaged"):
        require_readable(paths, max_decoded=max_decoded)
    require_readable([path for path in paths if path != str(bad)], max_decoded=max_decoded)


@pytest.mark.parametrize("kind", ["png", "bmp", "tiff"])
def test_listing_a_folder_finds_damage_in_its_middle(kind, tmp_path):
    """With statistics given, listing has no other reason to decode a file."""
    write_images(tmp_path, {"a": 4, "b": 4})
    (tmp_path / "b" / f"bad.{kind}").write_bytes(damaged(kind))
    with pytest.raises(ValueError, match=rf"b/bad\.{kind} is not a readable image"):
        datasets.image_files(tmp_path, statistics=STATISTICS["imagenet"])


def test_of_many_files_jpeg_and_png_are_not_decoded(tmp_path, monkeypatch):
    for kind in ("png", "jpeg", "bmp"):
        (tmp_path / f"one.{kind}").write_bytes(picture(kind))
    decoded = []
    monkeypatch.setattr(
        "divaug.lab.datasets._readable.decode", lambda path, **_: decoded.append(path)
    )
    paths = [str(path) for path in sorted(tmp_path.iterdir())]
    require_readable(paths, max_decoded=2)
    assert decoded == [str(tmp_path / "one.bmp")]
    require_readable(paths, max_decoded=3)
    assert sorted(decoded[1:]) == paths


def test_warnings_of_the_reader_go_no_further(tmp_path):
    path = tmp_path / "cut.tiff"
    path.write_bytes(picture("tiff")[:-20])  # the table of contents is at the end
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        with pytest.raises(ValueError, match="not a readable image"):
            require_readable([str(path)])
        assert raised == []
        warnings.warn("others do", stacklevel=1)
        assert len(raised) == 1


@pytest.mark.parametrize("kind", ["png", *HALF])
def test_any_flipped_byte_of_an_image_is_read_or_named(kind, tmp_path):
    raw = picture(kind, (12, 12))
    path, said = tmp_path / f"flipped.{kind}", []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place in range(0, len(raw), max(1, len(raw) // 150)):
            for bits in (1, 8, 128, 255):
                changed = bytearray(raw)
                changed[place] ^= bits
                path.write_bytes(changed)
                try:
                    decode(path, size=8)
                except ValueError as error:
                    said.append(str(error))
    assert said
    assert all(str(path) in line for line in said)


def test_an_image_that_must_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    (tmp_path / "one.png").write_bytes(picture("png"))

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied", str(tmp_path / "one.png"))

    monkeypatch.setattr(Image, "open", forbidden)
    with pytest.raises(PermissionError, match="Permission denied"):
        require_readable([str(tmp_path / "one.png")])


def test_an_image_larger_than_the_memory_is_named(tmp_path, monkeypatch):
    (tmp_path / "one.png").write_bytes(picture("png"))

    def full(*_):
        raise MemoryError

    monkeypatch.setattr(Image.Image, "convert", full)
    with pytest.raises(ValueError, match=r"one\.png needs more memory than there is; make it"):
        decode(tmp_path / "one.png")


# --- long images ---------------------------------------------------------------------------------


def strip(width: int, height: int) -> Image.Image:
    return Image.fromarray(RNG.integers(0, 256, (height, width, 3), dtype=np.uint8))


def resized_whole(image: Image.Image, size: int) -> np.ndarray:
    """The definition: resize all of it, then cut."""
    width, height = (max(size, side * size // min(image.size)) for side in image.size)
    whole = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - size) // 2, (height - size) // 2
    return np.asarray(whole.crop((left, top, left + size, top + size))).astype(int)


@pytest.mark.parametrize("shape", [(30, 20), (20, 33), (500, 375), (640, 20), (7, 224), (16, 16)])
@pytest.mark.parametrize("size", [16, 64, 256])
def test_ordinary_images_are_resized_whole_to_the_bit(shape, size):
    image = strip(*shape)
    found = np.asarray(decoding._centre_square(image, size))
    np.testing.assert_array_equal(found, resized_whole(image, size))


@pytest.mark.parametrize("shape", [(700, 1), (1, 701), (2, 900), (997, 7), (5000, 100), (33, 1)])
@pytest.mark.parametrize("size", [16, 64, 256])
def test_long_images_are_the_same_but_for_roundings(shape, size):
    image = strip(*shape)
    found = np.asarray(decoding._centre_square(image, size))
    assert np.abs(found - resized_whole(image, size)).max() <= 1


def test_a_long_line_is_not_enlarged_whole(tmp_path, monkeypatch):
    sizes = []
    resize = Image.Image.resize

    def watched(self, size, *rest, **named):
        sizes.append(size)
        return resize(self, size, *rest, **named)

    strip(60_000, 1).save(tmp_path / "line.png")
    monkeypatch.setattr(Image.Image, "resize", watched)
    assert decode(tmp_path / "line.png", size=256).shape == (3, 256, 256)
    assert sizes == [(256, 256)]


# --- files of NumPy's ----------------------------------------------------------------------------


def small_npz(save=np.savez) -> bytes:
    out = io.BytesIO()
    save(
        out,
        x_train=RNG.integers(0, 256, (3, 4, 5), dtype=np.uint8),
        y_train=np.array([0, 1, 1]),
        x_test=RNG.integers(0, 256, (2, 4, 5), dtype=np.uint8),
        y_test=np.array([0, 1]),
        class_names=np.array(["a", "b"]),
    )
    return out.getvalue()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_any_flipped_byte_of_an_npz_file_is_read_or_named(save, tmp_path):
    raw, path = small_npz(save), tmp_path / "flipped.npz"
    said = []
    for place in range(len(raw)):
        changed = bytearray(raw)
        changed[place] ^= int(RNG.integers(1, 256))
        path.write_bytes(changed)
        try:
            datasets.npz(path)
        except ValueError as error:
            said.append(str(error))
    assert len(said) > len(raw) / 3
    assert all("flipped" in line for line in said)


def huge_header(claimed: int) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        out, {"descr": "|u1", "fortran_order": False, "shape": (claimed,)}
    )
    return out.getvalue()


def test_a_header_that_claims_more_than_the_memory_is_named(tmp_path):
    header = huge_header(10**15)
    (tmp_path / "huge.npy").write_bytes(header)
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as archive:
        archive.writestr("x_train.npy", header)
    said = "asks for more memory than there is .*Unable to allocate"
    with pytest.raises(ValueError, match=rf"huge\.npy {said}"):
        unlabelled_images(tmp_path / "huge.npy")
    with pytest.raises(ValueError, match=rf"huge\.npz {said}"):
        datasets.npz(tmp_path / "huge.npz")


@pytest.mark.parametrize(
    "raw", [b"", b"PK\x03\x04", b"PK\x03\x04 no archive", b"\x93NUMPY\x01\x00"]
)
def test_an_npy_file_that_is_none_is_named(raw, tmp_path):
    (tmp_path / "pk.npy").write_bytes(raw)
    with pytest.raises(ValueError, match=r"pk\.npy is damaged or not an \.npy file"):
        unlabelled_images(tmp_path / "pk.npy")


def test_an_entry_that_is_no_array_is_named(tmp_path):
    path = tmp_path / "text.npz"
    path.write_bytes(small_npz())
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (entries | {"x_test.npy": b"text"}).items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match=r"text\.npz is damaged .*x_test is no array"):
        datasets.npz(path)


def test_an_npz_file_that_must_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    path = tmp_path / "mine.npz"
    path.write_bytes(small_npz())

    def forbidden(self, *_, **__):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.open", forbidden)
    with pytest.raises(PermissionError, match=r"Permission denied: .*mine\.npz"):
        datasets.npz(path)


def test_a_file_can_say_its_layout(tmp_path):
    cube = RNG.integers(0, 256, (4, 3, 3, 3), dtype=np.uint8)
    arrays = {"x_train": cube, "x_test": cube, "y_train": np.array([0, 1, 0, 1])}
    arrays["y_test"] = arrays["y_train"]
    path = tmp_path / "cube.npz"
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r'fits both .*numpy\.savez\(\.\.\., layout="NHWC"\)'):
        datasets.npz(path)
    for layout, expected in (("NCHW", cube), ("NHWC", cube.transpose(0, 3, 1, 2))):
        np.savez(path, **arrays, layout=layout)
        np.testing.assert_array_equal(datasets.npz(path).train_images.numpy(), expected)
    np.testing.assert_array_equal(datasets.npz(path, layout="NCHW").train_images.numpy(), cube)
    for wrong in ("HWC", ["NHWC", "NCHW"], 4):
        np.savez(path, **arrays, layout=wrong)
        with pytest.raises(ValueError, match=r"cube\.npz: layout must be one of"):
            datasets.npz(path)
