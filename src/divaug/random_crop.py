"""Crops of random area and shape, resized to a square.

A crop is resized with Pillow's antialiased bilinear filter, to the bit. Rows are resized first and
columns second, each rounded to bytes, as Pillow does up to version 12; version 13 begins with the
columns where the height shrinks much more than the width, which moves some bytes by one.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor

from divaug.constants import constant
from divaug.operations.resample import PRECISION, pick, resample
from divaug.randomness import Purpose, Stream, below, uniform

__all__ = ["crop_and_pick", "crop_and_resize", "draw_boxes"]

TRIES = 10
# Every device must draw the same numbers, and `exp` differs in its last bits between devices:
# aspect ratios are looked up in a table made once on the host.
TABLE_SIZE = 4096


@lru_cache(maxsize=16)
def _ratios(low: float, high: float, device: torch.device) -> Tensor:
    ends = (math.log(low), math.log(high))
    # On the CPU, whatever torch's default is: another device may round otherwise.
    log = torch.linspace(*ends, TABLE_SIZE, dtype=torch.float64, device="cpu")
    return log.exp().to(device)


def draw_boxes(
    area: tuple[float, float],
    ratio: tuple[float, float],
    stream: Stream,
    candidates: int,
    size: tuple[int, int],
) -> Tensor:
    """Draw a crop for every candidate.

    It is the first of ten tries that fits, else the largest centred crop of an allowed ratio.

    Args:
        area: smallest and largest part of the image's area.
        ratio: smallest and largest aspect ratio (width over height).
        stream: seed, step and samples.
        candidates: E, how many are drawn for each sample.
        size: height and width of the images.

    Returns:
        int64 `[B,E,4]`: top, left, height and width.
    """
    height, width = size
    area_word, ratio_word, top_word, left_word = stream.words(
        Purpose.RESIZED_CROP, candidates, TRIES
    )
    low, high = area
    pixels = (low + (high - low) * uniform(area_word).to(torch.float64)) * (height * width)
    shape = _ratios(*ratio, stream.index.device)[below(ratio_word, TABLE_SIZE)]
    w = ((pixels * shape).sqrt() + 0.5).floor().to(torch.int64)
    h = ((pixels / shape).sqrt() + 0.5).floor().to(torch.int64)
    fits = (w >= 1) & (h >= 1) & (w <= width) & (h <= height)
    top = below(top_word, (height - h + 1).clamp(min=1))
    left = below(left_word, (width - w + 1).clamp(min=1))
    first = fits.to(torch.int64).argmax(-1, keepdim=True)
    box = torch.stack([part.gather(-1, first)[..., 0] for part in (top, left, h, w)], -1)
    centred = constant(_centred(ratio, height, width), box.device, torch.int64)
    return torch.where(fits.any(-1, keepdim=True), box, centred)


def _centred(ratio: tuple[float, float], height: int, width: int) -> tuple[int, int, int, int]:
    w = min(width, max(1, int(height * ratio[1] + 0.5)))
    h = min(height, max(1, int(width / ratio[0] + 0.5)))
    return (height - h) // 2, (width - w) // 2, h, w


def crop_and_resize(images: Tensor, box: Tensor, size: int) -> Tensor:
    """Crop uint8 `images` [n,C,H,W] to `box` [n,4] and resize as Pillow's BILINEAR does."""
    # Few pixels make one: a core adds them up line by line. A GPU has products for nothing, and
    # every step of such sums costs it a launch.
    run = _by_taps if images.device.type == "cpu" else _by_products
    return run(images, box, size)


def crop_and_pick(images: Tensor, box: Tensor, size: int) -> Tensor:
    """Crop `images` [n,C,H,W] to `box` [n,4] and resize: every pixel is the nearest one."""
    top, left, h, w = box.unbind(1)
    return pick(pick(images, 3, left, w, size), 2, top, h, size)


def _by_taps(images: Tensor, box: Tensor, size: int) -> Tensor:
    top, left, h, w = box.unbind(1)
    return resample(resample(images, 3, left, w, size), 2, top, h, size)


def _by_products(images: Tensor, box: Tensor, size: int) -> Tensor:
    """The same by two matrix products in float64, exact since all numbers in them are whole."""
    height, width = images.shape[2:]
    top, left, h, w = box.unbind(1)
    across = _weights(left, w, width, size)
    down = _weights(top, h, height, size)

    def to_byte(total: Tensor) -> Tensor:
        return (total * 2.0**-PRECISION + 0.5).floor().clamp(0, 255)

    rows = to_byte(images.to(torch.float64) @ across.transpose(1, 2)[:, None])
    return to_byte(down[:, None] @ rows).to(torch.uint8)


def _weights(start: Tensor, length: Tensor, inside: int, outside: int) -> Tensor:
    """Those of `taps`, of all pixels along one axis and in few steps: `[n,outside,inside]`."""
    # A tensor as divisor: division by a number is a product with its reciprocal on some devices.
    scale = length.to(torch.float64)[:, None, None] / length.new_full((), outside).double()
    reach = scale.clamp(min=1.0)
    out = torch.arange(outside, device=start.device, dtype=torch.float64)[:, None]
    center = (out + 0.5) * scale
    position = torch.arange(inside, device=start.device) - start[:, None, None]
    first = (center - reach + 0.5).trunc().clamp(min=0)
    last = torch.minimum((center + reach + 0.5).trunc(), length.to(torch.float64)[:, None, None])
    weight = (1.0 - ((position - center + 0.5) / reach).abs()).clamp(min=0.0)
    weight = weight * ((position >= first) & (position < last))
    weight = weight / weight.sum(-1, keepdim=True)
    return (weight * (1 << PRECISION) + 0.5).floor()
