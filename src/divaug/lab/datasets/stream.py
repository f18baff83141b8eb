"""Stream a folder of large images: workers decode and resize, everything else is the device's.

The order is `divaug.lab.datasets.order` of (seed, epoch): it depends neither on the number of
workers nor on the number of processes, and no global generator is read or advanced.
"""

import os
import signal
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from divaug._checks import check_whole
from divaug.lab.datasets.dataset import Files
from divaug.lab.datasets.folder import decode
from divaug.lab.datasets.order import PARTNERS, order, permutation

__all__ = ["MAX_PARTNERS", "ImageStream", "StreamBatch", "partners"]


class StreamBatch(NamedTuple):
    """One batch: uint8 images ``[B,C,size,size]``, int64 labels ``[B]``, int64 indices ``[B]``.

    An index is the image's place in the files, the same in every epoch; random draws depend on it.
    """

    images: Tensor
    labels: Tensor
    indices: Tensor


class ImageStream:
    """Batches of a folder's images, epoch by epoch.

    Every image is resized so that its shorter side is `size` and cut to the square in its centre,
    so that a batch stacks; random crops are taken from that square on the device.

    Args:
        files: Which images.
        batch_size: Images a step, over all processes together.
        size: Side of the square.
        channels: 3 for colour, 1 for grey.
        shuffle: Whether each epoch has an order of its own; otherwise the order of the files.
        seed: What the orders follow.
        drop_last: Whether to leave out the images that do not fill a batch.
        num_workers: Processes that decode; 0 decodes in this one. They live as long as the stream.
        pin_memory: Page-locked batches, for fast copies to a GPU; by default where there is one.
        rank: Which process this is.
        num_ranks: Of how many; each gets its own consecutive part of every batch.

    Example:
        Train on a folder::

            files = divaug.lab.datasets.image_files("photos")
            stream = ImageStream(files.train, batch_size=256, num_workers=8)
            for epoch in range(90):
                for images, labels, indices in stream.epoch(epoch):
                    ...
    """

    def __init__(
        self,
        files: Files,
        batch_size: int,
        *,
        size: int = 256,
        channels: int = 3,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = True,
        num_workers: int = 0,
        pin_memory: bool | None = None,
        rank: int = 0,
        num_ranks: int = 1,
    ) -> None:
        check_whole("size", size, 1)
        check_whole("num_workers", num_workers, 0)
        self._batches = _Batches(len(files), batch_size, shuffle, seed, drop_last, rank, num_ranks)
        self._loader: DataLoader[_Sample | _Unreadable] = DataLoader(
            _Decoded(files, size, channels),
            batch_sampler=self._batches,
            num_workers=num_workers,
            persistent_workers=num_workers > 0,
            collate_fn=partial(_collate, (channels, size, size)),
            worker_init_fn=_leave_ctrl_c,
            pin_memory=torch.cuda.is_available() if pin_memory is None else pin_memory,
            # Without a generator of its own the loader advances the global one at every epoch.
            generator=torch.Generator("cpu").manual_seed(0),
        )
        self._newest: object = None

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""
        return self._batches.num_batches

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[StreamBatch]:
        """Yield the batches of an epoch, from batch `start` on.

        Raises:
            RuntimeError: If another epoch was begun meanwhile: a stream has one set of workers.
            ValueError: If an image cannot be read; the message names it.
        """
        self._batches.epoch, self._batches.start = epoch, start
        mine = self._newest = object()
        # Or torch draws a seed for its workers on the default device. They keep this one for life.
        with torch.device("cpu"):
            batches = iter(self._loader)
        for batch in batches:
            if isinstance(batch, _Unreadable):
                raise ValueError(batch.message)
            yield StreamBatch(*batch)
            if self._newest is not mine:  # the workers are at that one now
                raise RuntimeError(
                    f"epoch {epoch} cannot go on: another one of this stream was begun meanwhile; "
                    "finish one before the next, or make a stream for each."
                )


class _Sample(NamedTuple):
    image: Tensor
    label: int
    place: int


class _Unreadable(NamedTuple):
    """An error as data: an exception from a worker would carry the worker's traceback as text."""

    message: str


class _Decoded(TorchDataset[_Sample | _Unreadable]):
    """The decoding that workers do."""

    def __init__(self, files: Files, size: int, channels: int) -> None:
        # One array instead of many strings: workers share its memory, where counting references to
        # strings would copy them page by page.
        self._paths = np.array([os.fsencode(path) for path in files.paths], dtype=np.bytes_)
        self._labels = files.labels.cpu()
        self._size = size
        self._channels = channels

    def __getitem__(self, index: int) -> _Sample | _Unreadable:
        path = os.fsdecode(bytes(self._paths[index]))
        try:
            image = decode(path, size=self._size, channels=self._channels)
        except (ValueError, OSError) as error:
            return _Unreadable(str(error))
        return _Sample(image, int(self._labels[index]), index)


def _leave_ctrl_c(_worker: int) -> None:
    """In a worker: a terminal sends Ctrl-C to all processes, and it is for the first to decide.

    A worker that was not forked has none of its parent's handlers. It would end, and with it a run
    that waits for its images, before anything is saved.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class _Batches:
    """The indices of each batch: the sampler, in the main process only."""

    def __init__(
        self,
        num_images: int,
        batch_size: int,
        shuffle: bool,
        seed: int,
        drop_last: bool,
        rank: int,
        num_ranks: int,
    ) -> None:
        check_whole("num_ranks", num_ranks, 1)
        check_whole("rank", rank, 0, num_ranks - 1)
        if check_whole("batch_size", batch_size, 1) % num_ranks:
            raise ValueError(
                f"`batch_size` must be a multiple of `num_ranks` = {num_ranks}, got {batch_size}."
            )
        if drop_last and num_images < batch_size:
            raise ValueError(
                f"{num_images} images do not fill one batch of {batch_size}; "
                "give a smaller batch_size, or drop_last=False"
            )
        self.num_batches = num_images // batch_size if drop_last else -(-num_images // batch_size)
        self.epoch, self.start = 0, 0
        self._num_images, self._batch_size = num_images, batch_size
        self._shuffle, self._seed = shuffle, seed
        self._rank, self._num_ranks = rank, num_ranks

    def __len__(self) -> int:
        return self.num_batches - self.start

    def __iter__(self) -> Iterator[list[int]]:
        visit = torch.arange(self._num_images, device="cpu")
        if self._shuffle:
            visit = order(self._num_images, seed=self._seed, epoch=self.epoch)
        for batch in torch.split(visit, self._batch_size)[self.start : self.num_batches]:
            yield batch.tensor_split(self._num_ranks)[self._rank].tolist()


def _collate(
    shape: tuple[int, int, int], samples: Sequence[_Sample | _Unreadable]
) -> StreamBatch | _Unreadable:
    images, labels, indices = [], [], []
    for sample in samples:
        if isinstance(sample, _Unreadable):
            return sample
        images.append(sample.image)
        labels.append(sample.label)
        indices.append(sample.place)
    # Of a last batch with fewer images than processes, some get none.
    nothing = torch.empty((0, *shape), dtype=torch.uint8, device="cpu")
    stacked = torch.stack(images) if images else nothing
    numbers = (torch.tensor(each, dtype=torch.int64, device="cpu") for each in (labels, indices))
    return StreamBatch(stacked, *numbers)


#: The most images that are kept; 512 of 256 pixels a side take 96 MiB.
MAX_PARTNERS = 512


def partners(
    files: Files, *, size: int = 256, channels: int = 3, seed: int = 0, num_workers: int = 0
) -> Tensor:
    """Decode the images that stand for all others as second images.

    They follow from the files and the seed alone, so that every process has the same ones, and a
    sample the same partner whoever augments it. Of at most `MAX_PARTNERS` files all are taken, in
    their order; of more, that many, drawn without replacement.

    Args:
        files: What to draw from.
        size: Side of the square, as for `ImageStream`.
        channels: 3 for colour, 1 for grey.
        seed: Which images.
        num_workers: Processes that decode.

    Returns:
        uint8 ``[P,C,size,size]``.
    """
    drawn = permutation(len(files), seed, PARTNERS)[:MAX_PARTNERS].sort().values
    stream = ImageStream(
        files.take(drawn),
        min(64, len(drawn)),
        size=size,
        channels=channels,
        shuffle=False,
        drop_last=False,
        num_workers=num_workers,
        pin_memory=False,
    )
    return torch.cat([batch.images for batch in stream.epoch(0)])
