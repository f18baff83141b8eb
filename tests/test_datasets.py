"""Datasets: every format is read as its own definition says, and bad input is named."""

import dataclasses
import gzip
import hashlib
import pickle
import struct
from importlib.resources import files as package_files

import numpy as np
import pytest
import scipy.io
import torch
import torchvision
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from divaug.lab import datasets
from divaug.lab.datasets import Dataset, decode, order
from tests.image_files import write_images

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
    with pytest.raises(TypeError, match="`seed` and `epoch` must be ints, got"):
        order(3, **{"seed": 0, "epoch": 0, **bad})


# --- Dataset -------------------------------------------------------------------------------------

BAD = {
    "one class": ({"num_classes": 1, "class_names": ("a",)}, "lie in"),
    "names": ({"class_names": ("a",)}, "a name each, got 3 and 1"),
    "float images": ({"train_images": torch.zeros(6, 3, 4, 5)}, "uint8.*float32"),
    "three axes": ({"test_images": torch.zeros(2, 4, 5).byte()}, r"\[N,C,H,W\]"),
    "label type": ({"train_labels": torch.zeros(6).int()}, "int64 .*got torch.int32"),
    "label count": ({"train_labels": torch.zeros(5).long()}, r"\[6\], got .*\[5\]"),
    "label high": ({"test_labels": torch.tensor([0, 3])}, r"\[0, 2\], got 0 to 3"),
    "label low": ({"train_labels": torch.arange(6) - 1}, "got -1 to"),
    "size": ({"test_images": torch.zeros(2, 3, 5, 5).byte()}, "one size"),
    "std": ({"std": (0.2, 0.0, 0.2)}, "positive"),
    "empty": (
        {"train_images": torch.zeros(0, 3, 4, 5).byte(), "train_labels": torch.zeros(0).long()},
        "not be empty",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_dataset_refuses(case):
    changes, message = BAD[case]
    with pytest.raises(ValueError, match=f"'toy'.*{message}"):
        toy(**changes)


def test_dataset_cannot_be_changed_and_moves():
    data = toy()
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"
    assert torch.equal(data.to("cpu").train_images, data.train_images)


@pytest.mark.gpu
def test_dataset_moves_to_the_gpu_and_keeps_its_subset():
    data = datasets.load("fashion_mnist_small")
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
    with pytest.raises(ValueError, match="needs 14 of class 1, got 13"):
        data.subset(42)
    for count in (0, 4.5):
        with pytest.raises(ValueError, match=f"num_images.*got {count}"):
            data.subset(count)


# --- statistics ----------------------------------------------------------------------------------


def test_statistics_are_numpys():
    images = (RNG.integers(0, 256, (50, 3, 7, 6)) // [[[[1]], [[2]], [[5]]]]).astype(np.uint8)
    expected = (images / 255).mean((0, 2, 3)), (images / 255).std((0, 2, 3))
    found = datasets.channel_statistics(torch.from_numpy(images))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_constant_channel_gets_deviation_one():
    images = torch.full((2, 1, 3, 3), 51, dtype=torch.uint8)
    mean, std = datasets.channel_statistics(images)
    assert (mean[0], std) == (pytest.approx(0.2), (1.0,))


# --- named datasets, through torchvision ---------------------------------------------------------


def write_cifar(folder, labels_key, names_key, batches, meta):
    folder.mkdir()
    pixels = {}
    for name in batches:
        data = RNG.integers(0, 256, (3, 3072), dtype=np.uint8)
        content = {"data": data, labels_key: [0, 1, 2]}
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
        pixels[name] = data.reshape(3, 3, 32, 32)
    names = [str(k) for k in range(100 if labels_key == "fine_labels" else 10)]
    (folder / meta).write_bytes(pickle.dumps({names_key: names}, protocol=2))
    return pixels


@pytest.mark.parametrize(
    ("name", "kind", "labels_key", "names_key", "meta"),
    [
        ("cifar10", torchvision.datasets.CIFAR10, "labels", "label_names", "batches.meta"),
        ("cifar100", torchvision.datasets.CIFAR100, "fine_labels", "fine_label_names", "meta"),
    ],
)
def test_cifar_is_read_from_its_batches(
    name, kind, labels_key, names_key, meta, monkeypatch, tmp_path
):
    train, test = ([file for file, _ in part] for part in (kind.train_list, kind.test_list))
    folder = tmp_path / kind.base_folder
    pixels = write_cifar(folder, labels_key, names_key, [*train, *test], meta)
    with pytest.raises(FileNotFoundError, match="damaged"):  # by its checksums
        datasets.load(name, tmp_path, download=False)
    monkeypatch.setattr(kind, "_check_integrity", lambda _: True)
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda *_: True)
    found = datasets.load(name, tmp_path, download=False)
    images = np.concatenate([pixels[file] for file in train])
    np.testing.assert_array_equal(found.train_images.numpy(), images)
    np.testing.assert_array_equal(found.test_images.numpy(), pixels[test[0]])
    assert found.train_labels.tolist() == [0, 1, 2] * len(train)
    assert found.mean == datasets.DATASETS[name].statistics.mean


@pytest.mark.parametrize("below", ["", "svhn"])
def test_svhn_calls_the_digit_zero_class_zero(below, monkeypatch, tmp_path):
    (tmp_path / below).mkdir(exist_ok=True)
    pixels = RNG.integers(0, 256, (32, 32, 3, 4), dtype=np.uint8)
    for part in ("train", "test"):
        digits = np.uint8([[1], [10], [9], [10]])
        scipy.io.savemat(tmp_path / below / f"{part}_32x32.mat", {"X": pixels, "y": digits})
    monkeypatch.setattr(torchvision.datasets.SVHN, "_check_integrity", lambda _: True)
    found = datasets.load("svhn", tmp_path, download=False)
    np.testing.assert_array_equal(found.train_images.numpy(), pixels.transpose(3, 2, 0, 1))
    assert found.test_labels.tolist() == [1, 0, 9, 0]
    assert found.class_names[9] == "9"


def test_fashion_mnist_reads_idx_files(tmp_path):
    raw = tmp_path / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    images = {}
    for part, count in (("train", 5), ("t10k", 3)):
        images[part] = RNG.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = np.arange(count, dtype=np.uint8)
        for name, array in ((f"{part}-images", images[part]), (f"{part}-labels", labels)):
            header = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
            content = header + array.tobytes()
            (raw / f"{name}-idx{array.ndim}-ubyte").write_bytes(content)
            (raw / f"{name}-idx{array.ndim}-ubyte.gz").write_bytes(gzip.compress(content))
    found = datasets.load("fashion_mnist", tmp_path, download=False)
    np.testing.assert_array_equal(found.train_images[:, 0].numpy(), images["train"])
    assert found.test_labels.tolist() == [0, 1, 2]
    assert found.class_names[8] == "Bag"


def test_shipped_data_is_what_was_made():
    file = package_files("divaug.lab.datasets") / "data" / "fashion_mnist_small.npz"
    data = file.read_bytes()
    assert len(data) <= 3_000_000
    known = "a728675ad4414333c3ab069a5e0e80d65b63e4fe97247857568c4b6d1a3eb1fb"
    assert hashlib.sha256(data).hexdigest() == known
    licence = package_files("divaug.lab.datasets") / "data" / "LICENSE-fashion-mnist.txt"
    assert "Permission is hereby granted" in licence.read_text()


def test_shipped_data_is_balanced_and_like_the_whole():
    data = datasets.load("fashion_mnist_small")
    assert data.train_images.shape == (3000, 1, 28, 28)
    assert data.test_images.shape == (1500, 1, 28, 28)
    assert torch.bincount(data.train_labels).tolist() == [300] * 10
    assert torch.bincount(data.test_labels).tolist() == [150] * 10
    assert data.class_names[8] == "Bag"
    whole = datasets.DATASETS["fashion_mnist"].statistics
    assert data.mean == pytest.approx(whole.mean, abs=0.01)
    assert data.std == pytest.approx(whole.std, abs=0.01)
    distinct = {image.numpy().tobytes() for image in (*data.train_images, *data.test_images)}
    assert len(distinct) == 4500  # nothing of the test part is in the training part


def test_shipped_labels_belong_to_their_images():
    # The nearest class mean recognises Fashion-MNIST at about 68 %; wrong labels would give 10 %.
    data = datasets.load("fashion_mnist_small")
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
    grey = {k: arrays[k][..., 0] for k in ("x_train", "x_test")}
    assert datasets.npz(npz_file(tmp_path, **grey)[0]).test_images.shape == (2, 1, 8, 9)


def test_npz_class_names_count(tmp_path):
    names = np.array(["a", "b", "c", "never seen"])
    found = datasets.npz(npz_file(tmp_path, class_names=names)[0])
    assert (found.num_classes, found.class_names) == (4, ("a", "b", "c", "never seen"))


BAD_NPZ = {
    "floats": ({"x_train": np.zeros((5, 8, 9, 3))}, "`x_train` must be uint8.*float64.*convert"),
    "channels": ({"x_test": np.zeros((2, 8, 9, 4), np.uint8)}, "1 or 3 channels, got"),
    "axes": ({"x_train": np.zeros((5, 8), np.uint8)}, r"\[N,H,W\].*got uint8 \[5, 8\]"),
    "float labels": ({"y_train": np.zeros(5)}, "`y_train` must be integers.*float64"),
    "one-hot labels": ({"y_test": np.eye(2, 3, dtype=int)}, r"`y_test` must be .*\[2, 3\]"),
    "label count": ({"y_train": np.arange(4) % 3}, "train_labels` must be"),
    "a stray label": ({"y_train": np.array([0, 1, 2, 9, 0])}, "got none of class 3"),
    "no test": ({"x_test": None}, "x_test is missing"),
    "objects": ({"x_train": np.array([None])}, "got an error|Object arrays"),
}


@pytest.mark.parametrize("case", BAD_NPZ)
def test_bad_npz_is_named(case, tmp_path):
    changes, message = BAD_NPZ[case]
    path, _ = npz_file(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        datasets.npz(path)


@pytest.mark.parametrize("content", [b"", b"text", b"\x80\x02}", b"PK\x03\x04cut short"])
def test_damaged_npz_is_named(content, tmp_path):
    (tmp_path / "bad.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.npz must be an \.npz file"):
        datasets.npz(tmp_path / "bad.npz")


# --- folders of images ---------------------------------------------------------------------------


def test_image_folder_with_train_and_val(tmp_path):
    write_images(tmp_path / "train", {"dog": 3, "cat": 2})
    write_images(tmp_path / "val", {"dog": 1})
    found = datasets.image_files(tmp_path)
    assert (found.class_names, found.held_out) == (("cat", "dog"), 0.0)
    assert found.train.labels.tolist() == [0, 0, 1, 1, 1]
    assert found.test.labels.tolist() == [1]
    images = torch.stack([decode(path, size=256) for path in found.train.paths])
    mean, std = datasets.channel_statistics(images)
    assert found.mean == pytest.approx(mean)
    assert found.std == pytest.approx(std)


def test_image_folder_split_is_by_class_and_seed(tmp_path):
    write_images(tmp_path, {"a": 10, "b": 5, "c": 1}, size=(8, 8))
    splits = [datasets.image_files(tmp_path, seed=seed) for seed in (0, 0, 1)]
    for one in splits:
        assert torch.bincount(one.test.labels, minlength=3).tolist() == [2, 1, 0]
        assert not set(one.train.paths) & set(one.test.paths)
    assert splits[0].test.paths == splits[1].test.paths != splits[2].test.paths
    assert len(datasets.image_files(tmp_path, test_fraction=0).test) == 0


def test_links_to_folders_are_followed_and_other_files_are_passed_over(tmp_path):
    write_images(tmp_path / "elsewhere", {"a": 3})
    write_images(tmp_path / "photos", {"b": 2})
    (tmp_path / "photos" / "a").symlink_to(tmp_path / "elsewhere" / "a")
    for name in ("b/.hidden.png", "b/notes.txt", "loose.csv"):
        (tmp_path / "photos" / name).write_bytes(b"no image")
    assert len(datasets.image_files(tmp_path / "photos", test_fraction=0).train) == 5


def test_bad_folders_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere is missing"):
        datasets.image_files(tmp_path / "nowhere")
    write_images(tmp_path / "one", {"a": 1})
    with pytest.raises(ValueError, match="at least 2, got 1"):
        datasets.image_files(tmp_path / "one")
    write_images(tmp_path / "two" / "train", {"a": 1, "b": 1})
    with pytest.raises(FileNotFoundError, match="no folder of test images"):
        datasets.image_files(tmp_path / "two")
    write_images(tmp_path / "two" / "val", {"a": 1, "c": 1})
    with pytest.raises(ValueError, match="classes that train has not: c"):
        datasets.image_files(tmp_path / "two")
    (tmp_path / "one" / "b").mkdir()
    with pytest.raises(ValueError, match="b has no images"):
        datasets.image_files(tmp_path / "one")


def test_decoding_resizes_the_shorter_side_and_crops_the_centre(tmp_path):
    image = Image.fromarray(RNG.integers(0, 256, (40, 61, 3), dtype=np.uint8))
    image.save(tmp_path / "x.png")
    assert torch.equal(decode(tmp_path / "x.png"), torch.tensor(np.array(image)).permute(2, 0, 1))
    small = image.resize((30, 20), resample=Image.Resampling.BILINEAR).crop((5, 0, 25, 20))
    expected = torch.tensor(np.array(small)).permute(2, 0, 1)
    assert torch.equal(decode(tmp_path / "x.png", size=20), expected)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1", "CMYK", "LA"])
def test_images_of_every_mode_become_colour_or_grey(mode, tmp_path):
    image = Image.new("L", (8, 6), 255).convert(mode)
    image.save(tmp_path / "x.tiff")
    for channels in (1, 3):
        found = decode(tmp_path / "x.tiff", channels=channels)
        assert found.shape == (channels, 6, 8)
        assert found.float().mean() == 255


def test_sixteen_bits_are_scaled(tmp_path):
    deep = np.uint16([[0, 257 * 100, 65535]])
    Image.fromarray(deep).save(tmp_path / "x.png")
    assert decode(tmp_path / "x.png", channels=1).tolist() == [[[0, 100, 255]]]


def test_unreadable_image_is_named(tmp_path):
    (tmp_path / "text.png").write_bytes(b"no image")
    Image.new("RGB", (90, 90)).save(tmp_path / "cut.jpg")
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "cut.jpg").read_bytes()[:400])
    for name in ("text.png", "cut.jpg"):
        with pytest.raises(ValueError, match=f"{name} must be a readable image"):
            decode(tmp_path / name)


def test_imagenet_is_a_thousand_classes(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"train is missing; get ImageNet at https"):
        datasets.load("imagenet", tmp_path)
    for part in ("train", "val"):
        for k in range(1000):
            folder = tmp_path / "imagenet" / part / f"n{k:08}"
            folder.mkdir(parents=True)
            (folder / "x.JPEG").touch()
    files = datasets.load("imagenet", tmp_path)
    assert (files.num_classes, len(files.train), len(files.test)) == (1000, 1000, 1000)
    assert files.mean == (0.485, 0.456, 0.406)
    (tmp_path / "imagenet" / "train" / "n1").mkdir()
    (tmp_path / "imagenet" / "train" / "n1" / "x.JPEG").touch()
    with pytest.raises(ValueError, match="1000 classes to be ImageNet, got 1001"):
        datasets.load("imagenet", tmp_path)


def test_folders_of_images_are_told_from_folders_of_datasets(tmp_path):
    write_images(tmp_path / "root" / "imagenet" / "train", {"a": 1, "b": 1})
    (tmp_path / "root" / "cifar-10-batches-py").mkdir()
    (tmp_path / "root" / "cifar-10-batches-py" / "data_batch_1").touch()
    write_images(tmp_path / "photos" / "a" / "2020", {"may": 1})
    for folder in ("root/imagenet", "photos"):
        assert datasets.is_image_folder(tmp_path / folder)
    for folder in ("root", "root/cifar-10-batches-py", "nowhere"):
        assert not datasets.is_image_folder(tmp_path / folder)


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


# --- by name -------------------------------------------------------------------------------------


def test_load_knows_every_name_in_any_spelling(tmp_path):
    for name in datasets.DATASETS:
        for spelling in (name, name.upper(), name.replace("_", "-")):
            if name == "fashion_mnist_small":
                assert datasets.load(spelling).name == name
                continue
            with pytest.raises(FileNotFoundError) as error:
                datasets.load(spelling, tmp_path / "none", download=False)
            assert str(tmp_path / "none") in str(error.value)


def test_load_takes_paths(tmp_path):
    path, _ = npz_file(tmp_path)
    assert datasets.load(path).name == "toy"
    write_images(tmp_path / "photos", {"a": 2, "b": 2})
    assert isinstance(datasets.load(tmp_path / "photos"), datasets.ImageFiles)
    for missing in ("toys.npz", "some/folder"):
        with pytest.raises(FileNotFoundError, match=missing):
            datasets.load(missing)


def test_load_of_a_typo_names_the_nearest():
    with pytest.raises(ValueError, match=r"'fashon_mnist'\. Did you mean 'fashion_mnist'\? Known"):
        datasets.load("fashon_mnist")


def test_default_root_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("DIVAUG_DATA", raising=False)
    assert datasets.default_root() == tmp_path / "divaug"
    monkeypatch.setenv("DIVAUG_DATA", str(tmp_path / "mine"))
    assert datasets.default_root() == tmp_path / "mine"
