"""Datasets: every format is read as its own definition says, and bad input is named."""

import dataclasses
import gzip
import hashlib
import io
import os
import pickle
import struct
import zlib
from collections import Counter
from importlib.resources import files as package_files
from pathlib import Path, PureWindowsPath

import numpy as np
import pytest
import scipy.io
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from divaug.lab import datasets
from divaug.lab.datasets import Dataset, _image_files, order
from divaug.lab.datasets._decode import decode
from divaug.lab.datasets._idx import read_idx
from divaug.lab.datasets._matfile import read_mat
from divaug.lab.datasets._sources import FourFiles, TwoFiles
from divaug.lab.datasets._unpickle import unpickle
from tests.dataset_files import (
    cifar_batch,
    idx_gz,
    make_cifar,
    python2_pickle,
    remote,
    tar_gz,
    write_images,
)

RNG = np.random.default_rng(0)


def toy(**changes) -> Dataset:
    fields = {
        "name": "toy",
        "train_images": torch.zeros(6, 3, 4, 5, dtype=torch.uint8),
        "train_labels": torch.tensor([0, 1, 2, 0, 1, 2]),
        "test_images": torch.zeros(2, 3, 4, 5, dtype=torch.uint8),
        "test_labels": torch.tensor([0, 2]),
        "num_classes": 3,
        "class_names": ("a", "b", "c"),
        "mean": (0.5,) * 3,
        "std": (0.2,) * 3,
    }
    return Dataset(**{**fields, **changes})


# --- order ---------------------------------------------------------------------------------------


def splitmix_order(num: int, *key: int) -> list[int]:
    """The definition in Python's own integers."""
    mask = (1 << 64) - 1

    def finish(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    state = 0
    for word in key:
        state = finish(((state ^ (word & mask)) + 0x9E3779B97F4A7C15) & mask)
    keys = [finish((state + i * 0x9E3779B97F4A7C15) & mask) for i in range(num)]
    as_signed = [k - (1 << 64) if k >> 63 else k for k in keys]
    return sorted(range(num), key=as_signed.__getitem__)


@given(st.integers(0, 60), st.integers(-(2**70), 2**70), st.integers(0, 2**40))
@settings(max_examples=60, deadline=None)
def test_order_is_its_definition(num, seed, epoch):
    assert order(num, seed=seed, epoch=epoch).tolist() == splitmix_order(num, seed, epoch, 0)


def test_order_is_a_permutation_that_seed_and_epoch_change():
    orders = [order(5000, seed=s, epoch=e) for s, e in [(0, 0), (0, 1), (1, 0), (1, 1)]]
    for one in orders:
        assert torch.equal(one.sort().values, torch.arange(5000))
    # Two random permutations agree in Poisson(1) places; 12 or more has chance 1e-9.
    for i in range(4):
        for j in range(i):
            assert (orders[i] == orders[j]).sum() < 12


def test_order_puts_every_image_everywhere_equally_often():
    # 5 images, 6000 epochs: every (image, place) is binomial with mean 1200, deviation 31.
    counts = torch.zeros(5, 5)
    for epoch in range(6000):
        counts[torch.arange(5), order(5, seed=3, epoch=epoch)] += 1
    assert (counts - 1200).abs().max() < 5 * 31


def test_order_touches_no_generator():
    before = torch.get_rng_state()
    order(100, seed=0, epoch=0)
    toy().subset(3)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.gpu
def test_order_is_the_same_on_the_gpu():
    for seed in range(5):
        on_gpu = order(100_000, seed=seed, epoch=7, device="cuda")
        assert on_gpu.is_cuda
        assert torch.equal(on_gpu.cpu(), order(100_000, seed=seed, epoch=7))


@pytest.mark.parametrize("bad", [{"seed": 0.5}, {"seed": True}, {"epoch": "1"}])
def test_order_wants_integers(bad):
    with pytest.raises(TypeError, match="`seed` and `epoch` must be whole numbers, got"):
        order(3, **{"seed": 0, "epoch": 0, **bad})


def test_order_wants_a_count():
    for count in (-1, 2.0):
        with pytest.raises(ValueError, match=f"must be a whole number of at least 0, got {count}"):
            order(count, seed=0, epoch=0)


# --- Dataset -------------------------------------------------------------------------------------

BAD = {
    "one class": ({"num_classes": 1, "class_names": ("a",)}, ValueError, "at least 2, got 1"),
    "names": ({"class_names": ("a",)}, ValueError, "3 names, got 1"),
    "float images": ({"train_images": torch.zeros(6, 3, 4, 5)}, TypeError, "uint8.*float32"),
    "three axes": ({"test_images": torch.zeros(2, 4, 5).byte()}, ValueError, r"\[N,C,H,W\]"),
    "label type": ({"train_labels": torch.zeros(6).int()}, TypeError, "int64, got torch.int32"),
    "label count": ({"train_labels": torch.zeros(5).long()}, ValueError, r"\[6\], got \[5\]"),
    "label high": ({"test_labels": torch.tensor([0, 3])}, ValueError, "0 … 2, got .* 0 to 3"),
    "label low": ({"train_labels": torch.arange(6) - 1}, ValueError, "from -1"),
    "size": ({"test_images": torch.zeros(2, 3, 5, 5).byte()}, ValueError, "one size"),
    "mean": ({"mean": (0.5,)}, ValueError, "each of 3 channels, got 1 and 3"),
    "std": ({"std": (0.2, 0.0, 0.2)}, ValueError, "positive"),
    "empty": (
        {"train_images": torch.zeros(0, 3, 4, 5).byte(), "train_labels": torch.zeros(0).long()},
        ValueError,
        "no training images",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_dataset_refuses(case):
    changes, error, message = BAD[case]
    with pytest.raises(error, match=message) as raised:
        toy(**changes)
    assert "'toy'" in str(raised.value)


def test_dataset_cannot_be_changed_and_moves():
    data = toy()
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"
    assert torch.equal(data.to("cpu").train_images, data.train_images)


@pytest.mark.gpu
def test_dataset_moves_to_the_gpu_and_keeps_its_subset():
    data = datasets.shipped()
    moved = data.to("cuda")
    assert moved.train_images.is_cuda
    assert moved.test_labels.is_cuda
    here, there = data.subset(100, seed=5), moved.subset(100, seed=5)
    assert torch.equal(here.train_images, there.train_images.cpu())


@given(st.integers(1, 40), st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_subset_is_balanced(num, seed):
    labels = torch.arange(70) % 7
    kept = datasets.balanced_indices(labels, num, 7, seed=seed)
    counts = torch.bincount(labels[kept], minlength=7)
    assert counts.sum() == num
    assert counts.max() - counts.min() <= 1
    assert kept.unique().numel() == num


def test_subset_follows_the_seed_and_draws_evenly():
    labels = torch.arange(40) % 2
    draws = [datasets.balanced_indices(labels, 10, 2, seed=s) for s in range(800)]
    assert torch.equal(draws[3], datasets.balanced_indices(labels, 10, 2, seed=3))
    # Every image is kept with chance 1/4: mean 200, deviation 12.2 of 800.
    counts = torch.bincount(torch.cat(draws), minlength=40)
    assert (counts - 200).abs().max() < 5 * 12.3
    # With an odd count, the class that gets one more is not always the same.
    firsts = [labels[datasets.balanced_indices(labels, 1, 2, seed=s)].item() for s in range(40)]
    assert 5 < sum(firsts) < 35


def test_subset_keeps_images_with_their_labels():
    images = torch.arange(40, dtype=torch.uint8).reshape(40, 1, 1, 1).expand(40, 3, 4, 5)
    labels = torch.arange(40) % 3
    test = {"test_images": images, "test_labels": labels}
    data = toy(train_images=images, train_labels=labels, **test)
    part = data.subset(9, num_test=4, seed=1)
    assert part.test_labels.shape == (4,)
    assert torch.equal(part.test_images[:, 0, 0, 0].long() % 3, part.test_labels)
    assert torch.equal(part.train_images[:, 0, 0, 0].long() % 3, part.train_labels)
    assert (part.mean, part.name) == (data.mean, data.name)
    with pytest.raises(ValueError, match="needs 14 of class 1, which has 13"):
        data.subset(42)
    for count in (0, 4.5):
        with pytest.raises(ValueError, match=f"a whole number of images, at least 1, got {count}"):
            data.subset(count)


# --- statistics ----------------------------------------------------------------------------------


def test_statistics_are_numpys(monkeypatch):
    images = RNG.integers(0, 256, (50, 3, 7, 6), dtype=np.uint8) // np.uint8(
        [[[[1]], [[2]], [[5]]]]
    )
    images = images.astype(np.uint8)
    expected = (images / 255).mean((0, 2, 3)), (images / 255).std((0, 2, 3))
    for chunk_pixels in (1, 1000, 1 << 24):
        monkeypatch.setattr("divaug.lab.datasets._statistics._CHUNK_PIXELS", chunk_pixels)
        found = datasets.channel_statistics(torch.from_numpy(images))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_constant_channel_gets_deviation_one():
    images = torch.full((2, 1, 3, 3), 51, dtype=torch.uint8)
    mean, std = datasets.channel_statistics(images)
    assert (mean[0], std) == (pytest.approx(0.2), (1.0,))


# --- CIFAR ---------------------------------------------------------------------------------------


@pytest.fixture
def cifar_parts():
    batches = {
        "one": cifar_batch(RNG, [2, 0, 1], "labels"),
        "two": cifar_batch(RNG, [1, 1], "labels"),
        "test": cifar_batch(RNG, [0, 2], "labels"),
    }
    return batches, *make_cifar(batches, ["ant", "bee", "cat"], "labels")


def test_cifar10_from_its_archive_and_from_its_folder(cifar_parts, tmp_path):
    batches, archive, source = cifar_parts
    (tmp_path / "cifar.tar.gz").write_bytes(archive)
    data = datasets.cifar10(tmp_path, source=source)
    rows = np.concatenate([batches["one"]["data"], batches["two"]["data"]])
    # Row = 1024 red, 1024 green, 1024 blue, each 32 rows of 32.
    for i, c, y, x in [(0, 0, 0, 1), (1, 1, 2, 0), (4, 2, 31, 30)]:
        assert data.train_images[i, c, y, x] == rows[i, 1024 * c + 32 * y + x]
    assert data.train_images.shape == (5, 3, 32, 32)
    assert data.train_labels.tolist() == [2, 0, 1, 1, 1]
    assert data.test_labels.tolist() == [0, 2]
    assert data.class_names == ("ant", "bee", "cat")
    (tmp_path / "cifar.tar.gz").unlink()
    with torch.device("meta"):  # a program's default device is not where images are read to
        again = datasets.cifar10(tmp_path, source=source, download=False)
    assert torch.equal(again.train_images, data.train_images)


def test_cifar100_reads_fine_labels(tmp_path):
    train = cifar_batch(RNG, [0, 1], "fine_labels") | {"coarse_labels": [5, 5]}
    test = cifar_batch(RNG, [1], "fine_labels")
    archive, source = make_cifar({"train": train, "test": test}, ["x", "y"], "fine_labels")
    (tmp_path / "cifar.tar.gz").write_bytes(archive)
    data = datasets.cifar100(tmp_path, source=source)
    assert data.train_labels.tolist() == [0, 1]
    assert data.mean == datasets.STATISTICS["cifar100"].mean


def test_cifar_says_what_is_wrong(cifar_parts, tmp_path):
    _, archive, source = cifar_parts
    with pytest.raises(FileNotFoundError, match=r"cifar\.tar\.gz is missing.*put it into"):
        datasets.cifar10(tmp_path, source=source, download=False)
    (tmp_path / "cifar.tar.gz").write_bytes(archive[:-1])
    with pytest.raises(ValueError, match=r"cifar\.tar\.gz is damaged"):
        datasets.cifar10(tmp_path, source=source)
    assert not (tmp_path / "cifar").exists()
    (tmp_path / "cifar.tar.gz").write_bytes(archive)
    datasets.cifar10(tmp_path, source=source)
    (tmp_path / "cifar" / "two").write_bytes(b"hm")
    with pytest.raises(ValueError, match=r"two is damaged.*delete the folder"):
        datasets.cifar10(tmp_path, source=source)
    (tmp_path / "cifar" / "two").unlink()
    with pytest.raises(FileNotFoundError, match="two is missing; delete the folder"):
        datasets.cifar10(tmp_path, source=source)


def test_cifar_labels_out_of_range_are_refused(tmp_path):
    batches = {name: cifar_batch(RNG, [0, 7], "labels") for name in ("one", "test")}
    archive, source = make_cifar(batches, ["x", "y"], "labels")
    (tmp_path / "cifar.tar.gz").write_bytes(archive)
    with pytest.raises(ValueError, match="0 … 1, got values from 0 to 7"):
        datasets.cifar10(tmp_path, source=source)


# --- pickles -------------------------------------------------------------------------------------


class Exploit:
    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


def hostile_pickles(marker) -> dict[str, bytes]:
    good = python2_pickle({"data": np.zeros((1, 4), np.uint8)})
    return {
        "os.system": pickle.dumps({"data": Exploit(os.system, f"touch {marker}")}, 2),
        "eval": pickle.dumps(Exploit(eval, f"open({str(marker)!r}, 'w')"), 2),
        "getattr": pickle.dumps(Exploit(getattr, "x", "upper"), 2),
        "numpy.load": pickle.dumps({"data": Exploit(np.load, str(marker))}, 2),
        "protocol 4": pickle.dumps({"a": Exploit(os.system, f"touch {marker}")}, 4),
        "object array": pickle.dumps({"data": np.array([Exploit(os.mkdir, str(marker))])}, 2),
        "nested name": b"\x80\x04\x8c\x05numpy\x8c\x0cos.path.join\x93.",
        "int64 array": good.replace(b"u1", b"i8"),
        "wrong length": good.replace(b"U\x04\0\0\0\0", b"U\x03\0\0\0"),
        "not a dict": pickle.dumps([1, 2], 2),
        "number as key": pickle.dumps({1: 2}, 2),
        "array without content": b"\x80\x02}U\x01acnumpy\nndarray\n)Rs.",
        "truncated": good[:-20],
        "garbage": b"\xff\xfe no pickle",
        "empty": b"",
    }


@pytest.mark.parametrize("case", hostile_pickles("x"))
def test_hostile_pickle_is_refused_and_runs_nothing(case, tmp_path):
    marker = tmp_path / "ran"
    path = tmp_path / "file"
    path.write_bytes(hostile_pickles(marker)[case])
    with pytest.raises(ValueError, match="damaged or not safe to read") as error:
        unpickle(path)
    assert str(path) in str(error.value)
    assert not marker.exists()


def test_hostile_pickle_would_have_run(tmp_path):
    # The test above proves something only if these bytes do harm in the standard reader.
    marker = tmp_path / "ran"
    pickle.loads(hostile_pickles(marker)["os.system"])
    assert marker.exists()


def test_unpickle_agrees_with_the_standard_reader(tmp_path):
    content = {"data": RNG.integers(0, 256, (3, 5), dtype=np.uint8), "labels": [3, -4], "t": "txt"}
    data = python2_pickle(content)
    (tmp_path / "file").write_bytes(data)
    found = unpickle(tmp_path / "file")
    expected = {k.decode(): v for k, v in pickle.loads(data, encoding="bytes").items()}
    assert found.keys() == expected.keys()
    assert (found["labels"], found["t"]) == (expected["labels"], b"txt")
    np.testing.assert_array_equal(found["data"], expected["data"])
    np.testing.assert_array_equal(found["data"], content["data"])


def test_unpickle_reads_column_order_and_text_pickles(tmp_path):
    data = python2_pickle({"data": np.arange(6, dtype=np.uint8).reshape(2, 3)})
    (tmp_path / "file").write_bytes(data.replace(b"tb\x89", b"tb\x88"))
    expected = np.arange(6).reshape(2, 3, order="F")
    np.testing.assert_array_equal(unpickle(tmp_path / "file")["data"], expected)
    (tmp_path / "file").write_bytes(b"(dp1\nS'names'\np2\n(lp3\nS'cat'\np4\nas.")
    assert unpickle(tmp_path / "file") == {"names": [b"cat"]}


# --- SVHN ----------------------------------------------------------------------------------------


def mat(compress: bool = True, **variables) -> bytes:
    out = io.BytesIO()
    scipy.io.savemat(out, variables, do_compression=compress)
    return out.getvalue()


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "i8", "u8", "f4", "f8"])
def test_mat_reader_agrees_with_scipy(compress, dtype, tmp_path):
    arrays = {
        "X": RNG.integers(0, 100, (4, 3, 2, 5)).astype(dtype),
        "y": RNG.integers(0, 100, (3, 1)).astype(dtype),
        "a_rather_long_name": np.ones((1, 1), dtype),
    }
    path = tmp_path / "file.mat"
    path.write_bytes(mat(compress, text="words", cell=np.array([1, "a"], object), **arrays))
    found, expected = read_mat(path), scipy.io.loadmat(path)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], expected[name])
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("compress", [True, False])
def test_svhn_calls_the_digit_zero_class_zero(compress, tmp_path):
    pixels = RNG.integers(0, 256, (32, 32, 3, 4), dtype=np.uint8)
    train = mat(compress, X=pixels, y=np.uint8([[10], [1], [9], [10]]))
    test = mat(compress, X=pixels[..., :2], y=np.uint8([[5], [10]]))
    source = TwoFiles(remote(train, "train.mat"), remote(test, "test.mat"))
    (tmp_path / "svhn").mkdir()
    for folder in (tmp_path / "svhn", tmp_path):
        (folder / "train.mat").write_bytes(train)
        (folder / "test.mat").write_bytes(test)
        data = datasets.svhn(tmp_path, source=source, download=False)
        assert data.train_labels.tolist() == [0, 1, 9, 0]
        assert data.test_labels.tolist() == [5, 0]
        np.testing.assert_array_equal(data.train_images.numpy(), pixels.transpose(3, 2, 0, 1))
    with pytest.raises(FileNotFoundError, match=r"train\.mat is missing"):
        datasets.svhn(tmp_path / "elsewhere", source=source, download=False)


def damaged_mats() -> dict[str, bytes]:
    good = mat(False, X=np.zeros((2, 2, 3, 2), np.uint8), y=np.ones((2, 1), np.uint8))
    packed = mat(True, X=np.zeros((2, 2, 3, 2), np.uint8))
    bomb = zlib.compress(bytes(1000))
    array = zlib.compress(good[128:216])[:-2]
    return {
        "empty": b"",
        "version 4": good[:126] + b"MI" + good[128:],
        "truncated": good[:-9],
        "truncated compressed": packed[:-9],
        "bad stream": packed[:140] + b"\xff" * 20 + packed[160:],
        "stream of an empty array": good[:128] + struct.pack("<II", 15, 8) + zlib.compress(b""),
        "stream of nothing": good[:128] + struct.pack("<II", 15, len(bomb)) + bomb,
        "stream without its checksum": good[:128] + struct.pack("<II", 15, len(array)) + array,
        "shape": good.replace(struct.pack("<4i", 2, 2, 3, 2), struct.pack("<4i", 2, 2, 3, 9)),
        "negative": good.replace(struct.pack("<4i", 2, 2, 3, 2), struct.pack("<4i", -2, -2, 3, 2)),
    }


@pytest.mark.parametrize("case", damaged_mats())
def test_damaged_mat_is_named(case, tmp_path):
    path = tmp_path / "file.mat"
    path.write_bytes(damaged_mats()[case])
    with pytest.raises(ValueError, match=r"file\.mat is damaged or no MATLAB 5 file"):
        read_mat(path)


def test_mat_bomb_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file.mat").write_bytes(mat(True, X=np.zeros(100_000, np.uint8)))
    monkeypatch.setattr("divaug.lab.datasets._matfile._MAX_BYTES", 50_000)
    with pytest.raises(ValueError, match="more than 50000 bytes"):
        read_mat(tmp_path / "file.mat")


def test_svhn_without_the_variables_is_named(tmp_path):
    wrong = {"x": mat(Z=np.zeros(3)), "float": mat(X=np.zeros((2, 2, 3, 2)), y=np.ones((2, 1)))}
    for name, data in wrong.items():
        (tmp_path / f"{name}.mat").write_bytes(data)
        file = remote(data, f"{name}.mat")
        with pytest.raises(ValueError, match=rf"{name}\.mat.*must"):
            datasets.svhn(tmp_path, source=TwoFiles(file, file))


# --- Fashion-MNIST -------------------------------------------------------------------------------


def test_fashion_mnist_reads_idx_files(tmp_path):
    arrays = {
        "train-images": RNG.integers(0, 256, (4, 28, 28), dtype=np.uint8),
        "train-labels": np.uint8([9, 0, 3, 3]),
        "t10k-images": RNG.integers(0, 256, (2, 28, 28), dtype=np.uint8),
        "t10k-labels": np.uint8([1, 2]),
    }
    files = {name: idx_gz(array) for name, array in arrays.items()}
    source = FourFiles(*(remote(data, f"{name}.gz") for name, data in files.items()))
    for name, data in files.items():
        (tmp_path / f"{name}.gz").write_bytes(data)
    data = datasets.fashion_mnist(tmp_path, source=source, download=False)
    np.testing.assert_array_equal(data.train_images[:, 0].numpy(), arrays["train-images"])
    np.testing.assert_array_equal(data.test_images[:, 0].numpy(), arrays["t10k-images"])
    assert data.train_labels.tolist() == [9, 0, 3, 3]
    assert data.class_names[9] == "Ankle boot"


DAMAGED_IDX = {
    "not gzip": b"plain bytes",
    "truncated gzip": idx_gz(RNG.integers(0, 256, (99,), dtype=np.uint8))[:-30],
    "more axes": idx_gz(np.zeros((2, 2), np.uint8)),
    "short header": gzip.compress(bytes((0, 0, 8, 1, 0))),
    "too few": gzip.compress(bytes((0, 0, 8, 1, 0, 0, 0, 5, 1))),
    "too many": gzip.compress(bytes((0, 0, 8, 1, 0, 0, 0, 1, 1, 2))),
    "huge": gzip.compress(bytes((0, 0, 8, 1, 255, 0, 0, 1, 1, 2))),
}


@pytest.mark.parametrize("case", DAMAGED_IDX)
def test_damaged_idx_is_named(case, tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(DAMAGED_IDX[case])
    with pytest.raises(ValueError, match=r"file\.gz is damaged or no IDX file"):
        read_idx(path, 1)


def test_shipped_data_is_what_was_made():
    file = package_files("divaug.lab.datasets") / "data" / "fashion_mnist_small.npz"
    data = file.read_bytes()
    assert len(data) <= 3_000_000
    known = "a728675ad4414333c3ab069a5e0e80d65b63e4fe97247857568c4b6d1a3eb1fb"
    assert hashlib.sha256(data).hexdigest() == known
    licence = package_files("divaug.lab.datasets") / "data" / "LICENSE-fashion-mnist.txt"
    assert "Permission is hereby granted" in licence.read_text()


def test_shipped_data_is_balanced_and_like_the_whole():
    data = datasets.shipped()
    assert data.train_images.shape == (3000, 1, 28, 28)
    assert data.test_images.shape == (1500, 1, 28, 28)
    assert torch.bincount(data.train_labels).tolist() == [300] * 10
    assert torch.bincount(data.test_labels).tolist() == [150] * 10
    assert data.class_names[8] == "Bag"
    whole = datasets.STATISTICS["fashion_mnist"]
    assert data.mean == pytest.approx(whole.mean, abs=0.01)
    assert data.std == pytest.approx(whole.std, abs=0.01)
    distinct = {image.numpy().tobytes() for image in (*data.train_images, *data.test_images)}
    assert len(distinct) == 4500  # nothing of the test part is in the training part


def test_shipped_labels_belong_to_their_images():
    # The nearest class mean recognises Fashion-MNIST at about 68 %; wrong labels would give 10 %.
    data = datasets.shipped()
    train, test = data.train_images.flatten(1).double(), data.test_images.flatten(1).double()
    means = torch.stack([train[data.train_labels == k].mean(0) for k in range(10)])
    right = torch.cdist(test, means).argmin(1) == data.test_labels
    assert right.double().mean() > 0.6


# --- npz -----------------------------------------------------------------------------------------


def npz_file(tmp_path, **changes):
    arrays = {
        "x_train": RNG.integers(0, 256, (5, 8, 9, 3), dtype=np.uint8),
        "y_train": np.array([0, 1, 2, 1, 0]),
        "x_test": RNG.integers(0, 256, (2, 8, 9, 3), dtype=np.uint8),
        "y_test": np.array([2, 0]),
    }
    arrays = {k: v for k, v in {**arrays, **changes}.items() if v is not None}
    np.savez(tmp_path / "toy.npz", **arrays)
    return tmp_path / "toy.npz", arrays


def test_npz_layouts_give_the_same_images(tmp_path):
    path, arrays = npz_file(tmp_path)
    rows = datasets.npz(path)
    assert (rows.name, rows.num_classes, rows.class_names) == ("toy", 3, ("0", "1", "2"))
    np.testing.assert_array_equal(
        rows.train_images.numpy(), arrays["x_train"].transpose(0, 3, 1, 2)
    )
    planes = {k: np.moveaxis(arrays[k], 3, 1) for k in ("x_train", "x_test")}
    path, _ = npz_file(tmp_path, **planes, y_train=np.uint8([[0], [1], [2], [1], [0]]))
    again = datasets.npz(path)
    assert torch.equal(rows.train_images, again.train_images)
    assert torch.equal(rows.train_labels, again.train_labels)
    np.testing.assert_allclose(rows.mean, (arrays["x_train"] / 255).mean((0, 1, 2)))
    np.testing.assert_allclose(rows.std, (arrays["x_train"] / 255).std((0, 1, 2)))


def test_npz_of_grey_images_and_given_layout(tmp_path):
    grey = RNG.integers(0, 256, (5, 8, 9), dtype=np.uint8)
    path, _ = npz_file(tmp_path, x_train=grey, x_test=grey[:2])
    np.testing.assert_array_equal(datasets.npz(path).train_images[:, 0].numpy(), grey)
    cube = RNG.integers(0, 256, (5, 3, 3, 3), dtype=np.uint8)
    path, _ = npz_file(tmp_path, x_train=cube, x_test=cube[:2])
    with pytest.raises(ValueError, match="fits both"):
        datasets.npz(path)
    np.testing.assert_array_equal(datasets.npz(path, layout="NCHW").train_images.numpy(), cube)
    with pytest.raises(ValueError, match="layout must be one of"):
        datasets.npz(path, layout="HWC")
    wide = RNG.integers(0, 256, (5, 8, 9, 3), dtype=np.uint8)
    path, _ = npz_file(tmp_path, x_train=wide, x_test=wide[:2], layout=np.array("NCHW"))
    with pytest.raises(ValueError, match=r"x_train must have 1 or 3 channels, got 8 .*layout NCHW"):
        datasets.npz(path)
    assert datasets.npz(path, layout="NHWC").train_images.shape == (5, 3, 8, 9)


def test_npz_class_names_count(tmp_path):
    path, _ = npz_file(tmp_path, class_names=np.array(["a", "b", "c", "never seen"]))
    assert datasets.npz(path).class_names == ("a", "b", "c", "never seen")
    path, _ = npz_file(tmp_path, class_names=np.array([b"a", "bö".encode(), b"c", b"\xff"]))
    assert datasets.npz(path).class_names == ("a", "bö", "c", "�")


BAD_NPZ = {
    "missing array": ({"y_test": None}, ValueError, "y_test.* missing"),
    "16 bits": (
        {"x_train": np.full((5, 8, 9, 3), 65535, np.uint16)},
        ValueError,
        r"16 bits with \(x // 257\)",
    ),
    "bytes in 64 bits": (
        {"x_train": np.full((5, 8, 9, 3), 255)},
        ValueError,
        r"got int64; they are bytes already: x\.astype\('uint8'\)",
    ),
    "float images": ({"x_train": np.zeros((5, 8, 9, 3))}, ValueError, "x_train must be uint8"),
    "float labels": ({"y_train": np.zeros(5)}, ValueError, "y_train must be whole numbers"),
    "objects": ({"y_train": np.array([0, "a", None, 1, 1], object)}, ValueError, "allow_pickle"),
    "two axes": ({"x_test": np.zeros((2, 8), np.uint8)}, ValueError, "x_test must be"),
    "five channels": ({"x_test": np.zeros((2, 8, 9, 5), np.uint8)}, ValueError, "no axis"),
    "empty": ({"x_test": np.zeros((0, 8, 9, 3), np.uint8)}, ValueError, "x_test is empty"),
    "negative": ({"y_test": np.array([0, -1])}, ValueError, "from -1"),
    "class not trained": ({"y_test": np.array([0, 3])}, ValueError, "y_train has not: 3;"),
    "stray label": (
        {"y_train": np.array([0, 1, 100_000, 1, 2])},
        ValueError,
        r"no image of 99,997 of its 100,001 classes \(3, 4, 5, …\)",
    ),
    "huge label": ({"y_train": np.array([0, 1, 2, 1, 10**15])}, ValueError, "reach from 0 to 10+:"),
    "gap": ({"y_train": np.array([0, 1, 3, 1, 0])}, ValueError, r"1 of its 4 classes \(2\)"),
    "named but not trained": (
        {"class_names": np.array(list("abcd")), "y_test": np.array([0, 3])},
        ValueError,
        "y_train has not: 3;",
    ),
    "constant": (
        {"x_train": np.full((5, 8, 9, 3), (7, 8, 9), np.uint8)},
        ValueError,
        "training images is 7, 8, 9: their variance is zero",
    ),
    "count": ({"y_train": np.array([0, 1])}, ValueError, "one label an image"),
    "one class": ({"y_train": np.zeros(5, int), "y_test": np.zeros(2, int)}, ValueError, "least 2"),
    "sizes": ({"x_test": np.zeros((2, 8, 8, 3), np.uint8)}, ValueError, "one size"),
}


@pytest.mark.parametrize("case", BAD_NPZ)
def test_bad_npz_is_named(case, tmp_path):
    changes, error, message = BAD_NPZ[case]
    path, _ = npz_file(tmp_path, **changes)
    with pytest.raises(error, match=message) as raised:
        datasets.npz(path)
    assert "toy" in str(raised.value)


def image_bytes(kind):
    out = io.BytesIO()
    Image.new("RGB", (8, 8)).save(out, kind)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b"garbage", "it begins like no file of NumPy's"),
        (pickle.dumps({"x": 1}), "it looks like a pickle"),
        (None, "zip"),
        *((image_bytes(k), f"it looks like a {k} image") for k in ("JPEG", "PNG", "GIF", "BMP")),
        *((image_bytes(k), f"it looks like a {k} image") for k in ("WebP", "TIFF")),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value,
)
def test_damaged_npz_is_named(data, why, tmp_path):
    path, _ = npz_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-100] if data is None else data)
    with pytest.raises(ValueError, match=r"toy\.npz is damaged") as raised:
        datasets.npz(path)
    assert why in str(raised.value)
    assert "a folder for each class" in str(raised.value)
    assert "allow_pickle" not in str(raised.value)


def test_npz_with_flipped_bytes_or_one_array_is_named(tmp_path):
    path, _ = npz_file(tmp_path)
    raw = bytearray(path.read_bytes())
    raw[400] ^= 255  # inside the pixels: the zip file's own checksum tells
    path.write_bytes(raw)
    with pytest.raises(ValueError, match="damaged"):
        datasets.npz(path)
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(ValueError, match="one array"):
        datasets.npz(tmp_path / "one.npy")


# --- image folders -------------------------------------------------------------------------------


def test_image_folder_with_train_and_val(tmp_path):
    write_images(tmp_path / "train", {"cat": 2, "ant": 3})
    write_images(tmp_path / "val", {"cat": 2})
    data = datasets.image_folder(tmp_path)
    assert data.class_names == ("ant", "cat")
    assert data.train_labels.tolist() == [0, 0, 0, 1, 1]
    assert data.test_labels.tolist() == [1, 1]
    with Image.open(tmp_path / "train" / "cat" / "01.png") as image:
        expected = np.asarray(image).transpose(2, 0, 1)
    np.testing.assert_array_equal(data.train_images[4].numpy(), expected)
    pixels = data.train_images.double() / 255
    np.testing.assert_allclose(data.mean, pixels.mean((0, 2, 3)).numpy())
    np.testing.assert_allclose(data.std, pixels.std((0, 2, 3), correction=0).numpy())


class OnWindows(PureWindowsPath):
    """A folder as Windows has it: names that differ in capitals alone are equal, and sorted so."""

    def is_dir(self):
        return True


def test_classes_and_images_have_the_same_order_on_windows(monkeypatch, tmp_path):
    names, images = ["apple", "Banana"], ["x1.png", "x{}2.png", "X{}3.png"]
    monkeypatch.setattr(Path, "iterdir", lambda _: map(OnWindows, names))
    assert _image_files._class_names(tmp_path) == ("Banana", "apple")
    ordered = []
    for separator in "/\\":
        found = [image.format(separator) for image in images]
        monkeypatch.setattr(_image_files, "_images_below", lambda _, found=found: iter(found))
        monkeypatch.setattr(os, "sep", separator)
        ordered.append([found.index(path) for path in _image_files._list(tmp_path, "a").paths])
    assert ordered == [[2, 1, 0]] * 2


def test_image_folder_split_is_by_class_and_seed(tmp_path):
    write_images(tmp_path, {"a": 10, "b": 5, "c": 1})
    splits = [datasets.image_files(tmp_path, seed=seed) for seed in (0, 0, 1)]
    for files in splits:
        assert torch.bincount(files.test.labels, minlength=3).tolist() == [2, 1, 0]
        assert len(set(files.train.paths) | set(files.test.paths)) == 16
        assert not set(files.train.paths) & set(files.test.paths)
    assert splits[0].test.paths == splits[1].test.paths != splits[2].test.paths
    assert len(datasets.image_files(tmp_path, test_fraction=0).test) == 0
    assert datasets.image_folder(tmp_path, test_fraction=0).test_images.shape == (0, 3, 20, 30)
    with pytest.raises(ValueError, match="test_fraction"):
        datasets.image_files(tmp_path, test_fraction=1)


def test_image_folder_resizes_and_crops_the_centre(tmp_path):
    write_images(tmp_path, {"a": 2, "b": 2}, size=(40, 60))
    write_images(tmp_path / "more", {"c": 2}, size=(90, 40))
    with pytest.raises(ValueError, match="give size"):
        datasets.image_folder(tmp_path)
    data = datasets.image_folder(tmp_path, size=20, test_fraction=0)
    assert data.train_images.shape == (6, 3, 20, 20)
    with Image.open(tmp_path / "a" / "00.png") as image:
        small = image.resize((30, 20), Image.Resampling.BILINEAR).crop((5, 0, 25, 20))
    np.testing.assert_array_equal(
        data.train_images[0].numpy(), np.asarray(small).transpose(2, 0, 1)
    )
    with Image.open(tmp_path / "more" / "c" / "00.png") as image:
        small = image.resize((20, 45), Image.Resampling.BILINEAR).crop((0, 12, 20, 32))
    np.testing.assert_array_equal(
        data.train_images[4].numpy(), np.asarray(small).transpose(2, 0, 1)
    )


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1", "CMYK"])
def test_images_of_every_mode_become_colour_or_grey(mode, tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        for i in range(2):
            image = Image.fromarray(RNG.integers(0, 256, (8, 8, 3), dtype=np.uint8)).convert(mode)
            image.save(tmp_path / name / f"{i}.tif")
    assert datasets.image_folder(tmp_path).train_images.shape == (2, 3, 8, 8)
    assert datasets.image_folder(tmp_path, channels=1).train_images.shape == (2, 1, 8, 8)


def test_palette_with_transparency_is_read(tmp_path):
    write_images(tmp_path, {"a": 2, "b": 2}, size=(8, 8))
    image = Image.fromarray(RNG.integers(0, 4, (8, 8), dtype=np.uint8)).convert("P")
    image.save(tmp_path / "a" / "00.png", transparency=bytes(range(4)))
    assert datasets.image_folder(tmp_path).num_classes == 2


def test_bad_folders_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere is missing"):
        datasets.image_folder(tmp_path / "nowhere")
    write_images(tmp_path / "one", {"a": 2})
    with pytest.raises(ValueError, match=r"one must have .* at least 2, got 1"):
        datasets.image_folder(tmp_path / "one")
    with pytest.raises(ValueError, match="got 0; 2 images lie in it directly"):
        datasets.image_folder(tmp_path / "one" / "a")
    write_images(tmp_path / "gap", {"a": 2, "b": 0})
    with pytest.raises(ValueError, match="b has no images"):
        datasets.image_folder(tmp_path / "gap")
    write_images(tmp_path / "half" / "train", {"a": 1, "b": 1})
    with pytest.raises(FileNotFoundError, match=r"no folder of test images \(val or test\)"):
        datasets.image_folder(tmp_path / "half")
    write_images(tmp_path / "half" / "test", {"a": 1, "zebra": 1})
    with pytest.raises(ValueError, match="zebra"):
        datasets.image_folder(tmp_path / "half")
    write_images(tmp_path / "few", {"a": 1, "b": 1})
    with pytest.raises(ValueError, match=r"no class of .*few has two images.*val/<class>/"):
        datasets.image_folder(tmp_path / "few")
    with pytest.raises(ValueError, match="GiB, more than"):
        datasets.image_folder(tmp_path / "few", test_fraction=0, max_bytes=100)


def unreadable() -> dict[str, bytes]:
    out = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (30, 30, 3), dtype=np.uint8)).save(out, "png")
    return {"text": b"no image", "empty": b"", "truncated": out.getvalue()[:1000]}


@pytest.mark.parametrize("case", unreadable())
def test_unreadable_image_is_named(case, tmp_path):
    write_images(tmp_path, {"a": 2, "b": 2})
    (tmp_path / "b" / "bad.png").write_bytes(unreadable()[case])
    for read in (datasets.image_folder, datasets.image_files):
        with pytest.raises(ValueError, match=r"bad\.png is not a readable image"):
            read(tmp_path, test_fraction=0)


@pytest.mark.parametrize("case", unreadable())
@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_an_unreadable_test_image_is_found_on_listing(case, kind, tmp_path):
    """Before any training: the statistics, which are known here, decode none of these files."""
    write_images(tmp_path / "train", {"a": 2, "b": 2})
    write_images(tmp_path / "val", {"a": 2, "b": 2})
    bad = tmp_path / "val" / "b" / f"bad.{kind}"
    out = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (30, 30, 3), dtype=np.uint8)).save(out, kind)
    bad.write_bytes(unreadable()[case] if case != "truncated" else out.getvalue()[:-100])
    with pytest.raises(ValueError, match=rf"val/b/bad\.{kind} is not a readable image"):
        datasets.image_files(tmp_path, statistics=datasets.STATISTICS["imagenet"])
    bad.write_bytes(out.getvalue() + b"\0" * 200)  # what follows the end does no harm
    assert len(datasets.image_files(tmp_path).test) == 5


def test_a_folder_of_one_colour_is_refused(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for i in range(3):
            Image.new("RGB", (8, 8), (1, 2, 3)).save(tmp_path / name / f"{i}.png")
    for read in (datasets.image_folder, datasets.image_files):
        with pytest.raises(ValueError, match="is 1, 2, 3: their variance is zero"):
            read(tmp_path)


def test_a_part_of_a_folder_is_that_of_the_same_images_in_memory(tmp_path):
    write_images(tmp_path, {"a": 9, "b": 6, "c": 8}, size=(8, 8))
    files, loaded = datasets.image_files(tmp_path), datasets.image_folder(tmp_path)
    part, expected = (data.subset(7, num_test=3, seed=4) for data in (files, loaded))
    for listed, images, labels in (
        (part.train, expected.train_images, expected.train_labels),
        (part.test, expected.test_images, expected.test_labels),
    ):
        assert torch.equal(listed.labels, labels)
        assert torch.equal(torch.stack([decode(path) for path in listed.paths]), images)


# --- identity ------------------------------------------------------------------------------------


def test_a_fingerprint_follows_the_content_and_nothing_else():
    one = datasets.identify(toy())
    assert one == datasets.identify(toy())
    assert datasets.identify(toy(name="other")).fingerprint == one.fingerprint
    assert (one.num_train, one.num_test, one.num_classes) == (6, 2, 3)
    pixel = torch.zeros(6, 3, 4, 5, dtype=torch.uint8)
    pixel[5, 2, 3, 4] = 1
    changed = [
        {"train_images": pixel},
        {"train_labels": torch.tensor([0, 0, 1, 1, 2, 1])},
        {"test_labels": torch.tensor([1, 0])},
        {
            "train_images": torch.zeros(6, 3, 5, 4).byte(),
            "test_images": torch.zeros(2, 3, 5, 4).byte(),
        },
    ]
    prints = {datasets.identify(toy(**change)).fingerprint for change in changed}
    assert len(prints | {one.fingerprint}) == len(changed) + 1
    assert datasets.DataIdentity.from_dict(one.to_dict()) == one


def test_a_folder_keeps_its_fingerprint_where_it_is_moved(tmp_path):
    write_images(tmp_path / "here", {"a": 3, "b": 3})
    one = datasets.identify(datasets.image_files(tmp_path / "here"))
    (tmp_path / "here").rename(tmp_path / "there")
    moved = datasets.image_files(tmp_path / "there")
    assert datasets.identify(moved).fingerprint == one.fingerprint
    assert datasets.identify(datasets.image_files(tmp_path / "there", seed=1)) != one
    Image.new("RGB", (30, 20)).save(moved.train.paths[0])
    assert datasets.identify(moved).fingerprint != one.fingerprint


def test_folders_of_images_are_told_from_folders_of_datasets(tmp_path):
    write_images(tmp_path / "root" / "imagenet" / "train", {"a": 1, "b": 1})
    (tmp_path / "root" / "cifar-10-batches-py").mkdir()
    (tmp_path / "root" / "cifar-10-batches-py" / "data_batch_1").touch()
    write_images(tmp_path / "photos" / "a" / "2020", {"may": 1})
    write_images(tmp_path / "loose", {"a": 1})
    (tmp_path / "odd" / "Train").mkdir(parents=True)
    (tmp_path / "odd" / "Train" / "x.parquet").touch()  # to be refused, not passed over
    for folder in ("root/imagenet", "photos", "loose", "loose/a", "odd"):
        assert datasets.is_image_folder(tmp_path / folder)
    for folder in ("root", "root/cifar-10-batches-py", "nowhere", "loose/a/00.png"):
        assert not datasets.is_image_folder(tmp_path / folder)


@pytest.mark.parametrize(
    ("train", "test"),
    [
        ("Train", "Test"),
        ("TRAIN", "val"),
        ("training_set", "test_set"),
        ("train-images", "Validation"),
        ("traindata", "testset"),
    ],
)
def test_parts_are_known_by_other_names_too(train, test, tmp_path):
    write_images(tmp_path / train, {"a": 4, "b": 3})
    write_images(tmp_path / test, {"a": 2, "b": 1})
    assert datasets.is_image_folder(tmp_path)
    files = datasets.image_files(tmp_path)
    assert files.class_names == ("a", "b")
    assert (len(files.train), len(files.test), files.held_out) == (7, 3, 0.0)


def test_of_several_test_parts_one_is_taken_and_always_the_same(tmp_path):
    parts = ["train", "testing", "Validation", "valid", "test", "Val"]  # each before the last
    for count, part in enumerate(parts, 1):
        write_images(tmp_path / part, {"a": count, "b": count})
        if count > 1:
            assert len(datasets.image_files(tmp_path).test) == 2 * count


def test_an_exact_name_comes_first(tmp_path):
    for count, part in enumerate(("train", "Train_Images", "test", "testset"), 1):
        write_images(tmp_path / part, {"a": count, "b": count})
    (tmp_path / ".training").mkdir()
    files = datasets.image_files(tmp_path)
    assert (len(files.train), len(files.test)) == (2, 6)


def test_trains_are_a_class_among_others(tmp_path):
    write_images(tmp_path, {"bus": 5, "train": 5})
    files = datasets.image_files(tmp_path)
    assert files.class_names == ("bus", "train")
    assert files.held_out == 0.2
    write_images(tmp_path, {"testing": 5})
    assert datasets.image_files(tmp_path).class_names == ("bus", "testing", "train")
    (tmp_path / "bus").rename(tmp_path / ".bus")  # which leaves nothing but parts
    with pytest.raises(ValueError, match="train must have a sub-folder for each class"):
        datasets.image_files(tmp_path)


def test_parts_that_are_not_clear_are_refused(tmp_path):
    write_images(tmp_path / "test", {"a": 2, "b": 2})
    write_images(tmp_path / "val", {"a": 2, "b": 2})
    with pytest.raises(FileNotFoundError, match=r"folder val but no folder of training images"):
        datasets.image_files(tmp_path)
    write_images(tmp_path / "Train", {"a": 2, "b": 2})
    write_images(tmp_path / "train_set", {"a": 2, "b": 2})
    with pytest.raises(ValueError, match="has Train and train_set, which mean the same"):
        datasets.image_files(tmp_path)


def test_a_link_upwards_brings_no_images_of_other_classes(tmp_path):
    write_images(tmp_path / "train", {"a": 4, "b": 4})
    write_images(tmp_path / "val", {"a": 2, "b": 2})
    for above in ("train", "."):
        (tmp_path / "train" / "a" / f"to {above}").symlink_to(tmp_path / above)
    files = datasets.image_files(tmp_path)
    assert torch.bincount(files.train.labels).tolist() == [4, 4]


def test_links_to_folders_are_followed_and_never_in_circles(tmp_path):
    write_images(tmp_path / "elsewhere", {"more": 3, "c": 2})
    write_images(tmp_path / "photos", {"a": 2, "b": 2})
    (tmp_path / "photos" / "a" / "more").symlink_to(tmp_path / "elsewhere" / "more")
    (tmp_path / "photos" / "c").symlink_to(tmp_path / "elsewhere" / "c")
    (tmp_path / "photos" / "a" / "again").symlink_to(tmp_path / "photos" / "a")
    (tmp_path / "elsewhere" / "more" / "back").symlink_to(tmp_path / "photos" / "a")
    (tmp_path / "photos" / "a" / "twice").symlink_to(tmp_path / "elsewhere" / "more")
    files = datasets.image_files(tmp_path / "photos", test_fraction=0)
    assert torch.bincount(files.train.labels).tolist() == [5, 2, 2]
    assert len({Path(path).resolve() for path in files.train.paths}) == 9


def test_images_that_are_not_read_are_named(tmp_path):
    write_images(tmp_path, {"a": 2, "b": 0})
    (tmp_path / "b" / "one.HEIC").write_bytes(b"ftyp")
    with pytest.raises(ValueError, match=r"b has no images; convert .heic, which is not read"):
        datasets.image_files(tmp_path)
    assert datasets.unread_extension(tmp_path) == ".heic"
    (tmp_path / "a" / ".hidden.heic").touch()
    (tmp_path / "b").rename(tmp_path / "imagenet")
    assert datasets.unread_extension(tmp_path) is None
    assert datasets.unread_extension(tmp_path / "imagenet") == ".heic"


def test_jpegs_by_their_rarer_names(tmp_path):
    write_images(tmp_path, {"a": 2, "b": 2})
    for i, path in enumerate(sorted(tmp_path.rglob("*.png"))):
        Image.open(path).save(path.with_suffix(".jfif" if i % 2 else ".jpe"), "jpeg")
        path.unlink()
    assert len(datasets.image_files(tmp_path, test_fraction=0).train) == 4


def test_hidden_and_other_files_are_passed_over(tmp_path):
    write_images(tmp_path, {"a": 2, "b": 2})
    for name in ("a/.hidden.png", "a/notes.txt", "loose.csv"):
        (tmp_path / name).write_bytes(b"no image")
    (tmp_path / ".cache").mkdir()
    assert len(datasets.image_files(tmp_path, test_fraction=0).train) == 4


def test_imagenet_is_a_thousand_classes(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"train is missing; get ImageNet at https"):
        datasets.imagenet(tmp_path)
    out = io.BytesIO()
    Image.new("RGB", (4, 4)).save(out, "jpeg")
    for part in ("train", "val"):
        for k in range(1000):
            folder = tmp_path / "imagenet" / part / f"n{k:08}"
            folder.mkdir(parents=True)
            (folder / "x.JPEG").write_bytes(out.getvalue())
    files = datasets.imagenet(tmp_path)
    assert (files.num_classes, len(files.train), len(files.test)) == (1000, 1000, 1000)
    assert files.mean == (0.485, 0.456, 0.406)
    (tmp_path / "imagenet" / "train" / "n1").mkdir()
    (tmp_path / "imagenet" / "train" / "n1" / "x.JPEG").write_bytes(out.getvalue())
    with pytest.raises(ValueError, match="1000 classes to be ImageNet, got 1001"):
        datasets.imagenet(tmp_path)


# --- by name -------------------------------------------------------------------------------------


def test_load_knows_every_name_in_any_spelling(tmp_path):
    for name in datasets.DATASETS:
        for spelling in (name, name.upper(), name.replace("_", "-")):
            if name == "fashion_mnist_small":
                assert datasets.load(spelling).name == name
                continue
            with pytest.raises(FileNotFoundError) as error:
                datasets.load(spelling, root=tmp_path / "none")
            assert str(tmp_path / "none") in str(error.value)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Loaders meet a network that is off, wherever the tests run."""

    def offline(*args, **kwargs):
        raise OSError("the network is off in tests")

    monkeypatch.setattr("urllib.request.urlopen", offline)


def test_load_takes_paths(tmp_path):
    path, _ = npz_file(tmp_path)
    assert datasets.load(path).name == "toy"
    write_images(tmp_path / "photos", {"a": 2, "b": 2})
    assert isinstance(datasets.load(tmp_path / "photos"), datasets.ImageFiles)
    assert datasets.load(str(tmp_path / "photos"), size=8).train_images.shape == (2, 3, 8, 8)
    for missing in ("toys.npz", "some/folder"):
        with pytest.raises(FileNotFoundError, match=f"{missing} is missing"):
            datasets.load(missing)


def test_load_of_a_typo_names_the_nearest():
    with pytest.raises(ValueError, match=r"'fashon_mnist'\. Did you mean 'fashion_mnist'\? Known"):
        datasets.load("fashon_mnist")
    with pytest.raises(ValueError, match=r"unknown dataset 'zzz'\. Known"):
        datasets.load("zzz")


def test_default_root_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("DIVAUG_DATA", raising=False)
    assert datasets.default_root() == tmp_path / "divaug"
    monkeypatch.setenv("DIVAUG_DATA", str(tmp_path / "mine"))
    assert datasets.default_root() == tmp_path / "mine"
    with pytest.raises(FileNotFoundError, match="mine"):
        datasets.load("cifar10")


def test_a_user_without_a_home_is_told_what_to_do(monkeypatch):
    def nowhere(_cls):
        raise RuntimeError("Could not determine home directory.")

    for variable in ("XDG_CACHE_HOME", "DIVAUG_DATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", classmethod(nowhere))
    with pytest.raises(FileNotFoundError, match="--data, `root` or the variable DIVAUG_DATA"):
        datasets.load("cifar10")


def test_archive_without_the_folder_is_named(tmp_path):
    data = tar_gz({"other/file": b"x"})
    _, source = make_cifar({"a": {}, "test": {}}, ["x"], "labels")
    source = dataclasses.replace(source, archive=remote(data, "cifar.tar.gz"))
    (tmp_path / "cifar.tar.gz").write_bytes(data)
    with pytest.raises(ValueError, match="holds no folder 'cifar'"):
        datasets.cifar10(tmp_path, source=source)


def test_public_names_are_what_they_say():
    assert Counter(datasets.__all__) == Counter(set(datasets.__all__))
    assert all(hasattr(datasets, name) for name in datasets.__all__)
