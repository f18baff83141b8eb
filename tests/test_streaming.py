"""Streams: the same batches whatever the workers, processes or restarts."""

import multiprocessing
import os
import signal
from itertools import chain

import numpy as np
import pytest
import torch

from divaug.lab.datasets import ImageStream, decode, image_files, order
from tests.image_files import write_images


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    write_images(folder, {"ä cat": 7, "dog": 6}, size=(20, 30))
    write_images(folder / "tall", {"tower": 4}, size=(33, 18))
    return image_files(folder, test_fraction=0).train


def _indices(stream: ImageStream, epoch: int, **start) -> list[list[int]]:
    return [batch.indices.tolist() for batch in stream.epoch(epoch, **start)]


def test_batch_is_the_decoded_images_with_their_labels(files):
    for images, labels, indices in ImageStream(files, 4, size=16, seed=3).epoch(0):
        assert (images.dtype, images.shape) == (torch.uint8, (4, 3, 16, 16))
        assert torch.equal(labels, files.labels[indices])
        for image, i in zip(images, indices.tolist(), strict=True):
            assert torch.equal(image, decode(files.paths[i], size=16))


def test_order_is_that_of_seed_and_epoch(files):
    stream = ImageStream(files, 4, size=16, seed=3)
    for epoch in (0, 1, 0):
        expected = order(17, seed=3, epoch=epoch).tolist()
        assert _indices(stream, epoch) == [expected[i : i + 4] for i in range(0, 16, 4)]
    assert len(stream) == 4


@pytest.mark.parametrize("num_workers", [1, 2])
def test_workers_change_nothing(files, num_workers):
    alone = ImageStream(files, 4, size=16, seed=1)
    helped = ImageStream(files, 4, size=16, seed=1, num_workers=num_workers)
    for epoch in (0, 1):
        pairs = list(zip(alone.epoch(epoch), helped.epoch(epoch), strict=True))
        assert len(pairs) == 4
        for one, other in pairs:
            assert all(map(torch.equal, one, other))


def test_ctrl_c_is_not_for_workers(files):
    stream = ImageStream(files, 4, size=16, num_workers=2)
    first = _indices(stream, 0)
    for worker in multiprocessing.active_children():
        os.kill(worker.pid, signal.SIGINT)
        worker.join(0.5)
    assert _indices(stream, 0) == first


def test_start_resumes_in_the_middle_of_an_epoch(files):
    stream = ImageStream(files, 4, size=16)
    whole = _indices(stream, 5)
    assert _indices(stream, 5, start=2) == whole[2:]
    assert _indices(stream, 5) == whole


@pytest.mark.parametrize("drop_last", [True, False])
def test_processes_share_every_batch(files, drop_last):
    options = {"size": 16, "seed": 2, "drop_last": drop_last}
    whole = _indices(ImageStream(files, 6, **options), 0)
    parts = [_indices(ImageStream(files, 6, rank=r, num_ranks=3, **options), 0) for r in range(3)]
    assert [list(chain(*shares)) for shares in zip(*parts, strict=True)] == whole
    assert len(whole) == (2 if drop_last else 3)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_process_without_an_image_of_the_last_batch_gets_an_empty_one(files, channels):
    """17 images in batches of 4: two processes share one image, and no rank may stay behind."""
    options = {"size": 16, "drop_last": False, "num_ranks": 2}
    last = [
        list(ImageStream(files, 4, channels=channels, rank=rank, **options).epoch(0))[-1]
        for rank in range(2)
    ]
    assert [tuple(batch.images.shape) for batch in last] == [
        (1, channels, 16, 16),
        (0, channels, 16, 16),
    ]
    for full, empty in zip(*last, strict=True):
        assert empty.dtype == full.dtype


@pytest.mark.parametrize("num_workers", [0, 2])
def test_two_epochs_at_once_are_refused_and_one_that_was_left_is_not(files, num_workers):
    stream = ImageStream(files, 4, size=16, num_workers=num_workers)
    with pytest.raises(RuntimeError, match="epoch 0 cannot go on: another one of this stream"):
        list(zip(stream.epoch(0), stream.epoch(1), strict=False))
    assert _indices(stream, 1) == _indices(ImageStream(files, 4, size=16), 1)


def test_evaluation_sees_every_image_once_in_order(files):
    batches = _indices(ImageStream(files, 5, size=16, shuffle=False, drop_last=False), 0)
    assert list(chain(*batches)) == list(range(17))


def test_global_generators_are_left_alone(files):
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002 (the global generator is the subject)
    for workers in (0, 1):
        list(ImageStream(files, 8, size=16, num_workers=workers).epoch(0))
    assert torch.equal(torch.get_rng_state(), torch_before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002 (as above)


def _failure(stream: ImageStream) -> str:
    # Not pytest.raises: it would keep the traceback, and with it the workers, for later tests.
    try:
        list(stream.epoch(0))
    except ValueError as error:
        return str(error)
    raise AssertionError("the damaged image went unnoticed")


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_unreadable_image_is_named_in_one_line(tmp_path, num_workers, damage):
    write_images(tmp_path, {"a": 3, "b": 3})
    files = image_files(tmp_path, test_fraction=0).train
    bad = tmp_path / "b" / "01.png"
    bad.write_bytes(bad.read_bytes()[:200]) if damage == "cut" else bad.unlink()
    message = _failure(ImageStream(files, 3, size=16, num_workers=num_workers))
    assert str(bad) in message
    assert "\n" not in message


def test_grey_stream(files):
    (batch, *_) = ImageStream(files, 8, size=16, channels=1).epoch(0)
    assert batch.images.shape == (8, 1, 16, 16)


BAD = {
    "batch": ({"batch_size": 0}, "`batch_size` must be an int of at least 1, got 0"),
    "ranks": ({"batch_size": 5, "num_ranks": 2}, "must be a multiple of `num_ranks` = 2, got 5"),
    "no ranks": ({"num_ranks": 0}, "`num_ranks` must be an int of at least 1, got 0"),
    "rank": ({"rank": 2, "num_ranks": 2}, r"`rank` must be an int in \[0, 1\], got 2"),
    "size": ({"size": 0}, "`size` must be an int of at least 1, got 0"),
    "workers": ({"num_workers": -1}, "`num_workers` must be an int of at least 0, got -1"),
    "large batch": ({"batch_size": 18}, "17 images do not fill one batch of 18"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings_are_named(files, case):
    settings, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        ImageStream(files, **{"batch_size": 4, **settings})


@pytest.mark.gpu
def test_batches_are_pinned_where_there_is_a_gpu(files):
    (batch, *_) = ImageStream(files, 8, size=16, num_workers=1).epoch(0)
    assert all(part.is_pinned() for part in batch)
