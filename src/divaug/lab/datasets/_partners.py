"""The images that SamplePairing draws from where a dataset is too large to be held."""

import torch
from torch import Tensor

from divaug.lab.datasets._image_files import Files
from divaug.lab.datasets._order import PARTNERS, permutation
from divaug.lab.datasets.streaming import ImageStream

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
