"""The default augmentation of each candidate: drawn, and applied to its pixels.

A resized crop uses Pillow's antialiased bilinear filter, to the bit. Rows are resized first and
columns second, each rounded to bytes, as Pillow does up to version 12; version 13 begins with the
columns where the height shrinks much more than the width, which moves some bytes by one.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeAlias

import torch
from torch import Tensor

from divaug._checks import constant
from divaug._random import Purpose, Stream, below, uniform
from divaug._subpolicies import Placement
from divaug.default_augmentation import DefaultAugmentation, Photometric
from divaug.operations.application import transform_in_place
from divaug.operations.cutout import square_mask
from divaug.operations.resample import PRECISION, pick, resample
from divaug.operations.table import OPERATIONS, TABLE

__all__ = ["Jitter", "crop_and_resize", "draw_placement", "finish", "jitter_in_groups", "place"]


#: Pixels that are resized at a time.
CHUNK_PIXELS = 1 << 18
# Eigenvalues and eigenvectors of ImageNet's colours (Krizhevsky et al., NeurIPS 2012).
EIGENVALUES = (0.2175, 0.0188, 0.0045)
EIGENVECTORS = (
    (-0.5675, 0.7192, 0.4009),
    (-0.5808, -0.0045, -0.8140),
    (-0.5836, -0.6948, 0.4203),
)
JITTERED = ("Brightness", "Contrast", "Color")
ORDERS = tuple(itertools.permutations(range(3)))
# Every device must draw the same numbers, and `exp` and `erfinv` differ in their last bits between
# devices: aspect ratios and normal numbers are looked up in tables made once on the host.
TABLE_SIZE = 4096


#: (images, operation `[n,3]`, factor `[n,3]`) → images, three operations in order.
Jitter: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]


@lru_cache(maxsize=16)
def _quantiles(device: torch.device) -> Tensor:
    # On the CPU, whatever torch's default is: another device may round otherwise.
    middle = (torch.arange(TABLE_SIZE, dtype=torch.float64, device="cpu") + 0.5) / TABLE_SIZE
    quantiles: Tensor = torch.special.ndtri(middle)
    return quantiles.to(torch.float32).to(device)


def draw_placement(
    default: DefaultAugmentation, stream: Stream, candidates: int, size: tuple[int, int]
) -> Placement:
    """Draw crop, flip and Cutout for every candidate of images of that size."""
    offset_y, offset_x, coin, _ = (
        word[..., 0] for word in stream.words(Purpose.CROP, candidates, 1)
    )
    center_y, center_x, _, _ = (
        word[..., 0] for word in stream.words(Purpose.CUTOUT, candidates, 1)
    )
    height, width = default.output_size(*size)
    crops = 2 * default.padding + 1
    further = default.photometric
    return Placement(
        default,
        torch.stack([below(offset_y, crops), below(offset_x, crops)], -1).to(torch.int32),
        uniform(coin) < default.flip,
        torch.stack([below(center_y, height), below(center_x, width)], -1).to(torch.int32),
        **(_draw_photometric(further, stream, candidates, size) if further else {}),
    )


def _draw_photometric(
    settings: Photometric, stream: Stream, candidates: int, size: tuple[int, int]
) -> dict[str, Tensor]:
    """Draw resized crop, jitter and lighting for every candidate."""
    device = stream.index.device
    jitter = stream.words(Purpose.JITTER, candidates, 1)
    spread = torch.stack([uniform(word[..., 0]) for word in jitter[:3]], -1)
    order = constant(ORDERS, device, torch.int64)[below(jitter[3][..., 0], len(ORDERS))]
    normal = torch.stack(
        [
            _quantiles(device)[below(word[..., 0], TABLE_SIZE)]
            for word in stream.words(Purpose.LIGHTING, candidates, 1)[:3]
        ],
        -1,
    )
    weights = normal * constant(EIGENVALUES, device) * settings.lighting
    vectors = constant(EIGENVECTORS, device)
    # A sum of three terms in a fixed order, not a matrix product: the same bits everywhere.
    shift = weights[..., :1] * vectors[:, 0]
    shift = shift + weights[..., 1:2] * vectors[:, 1]
    shift = shift + weights[..., 2:] * vectors[:, 2]
    factor = (1.0 - settings.jitter) + spread * (2.0 * settings.jitter)
    box = draw_boxes(settings.area, settings.ratio, stream, candidates, size)
    return {"box": box, "factor": factor, "order": order, "shift": shift}


def photograph(
    images: Tensor, settings: Photometric, drawn: Mapping[str, Tensor], jitter: Jitter
) -> Tensor:
    """Crop, resize and jitter uint8 images by the `box`, `factor` and `order` drawn for each."""
    chunk = max(1, CHUNK_PIXELS // max(1, images.shape[2] * images.shape[3]))
    parts = [
        crop_and_resize(images[i : i + chunk], drawn["box"][i : i + chunk], settings.size)
        for i in range(0, len(images), chunk)
    ]
    out = torch.cat(parts) if parts else images.new_empty((0, 3, settings.size, settings.size))
    if settings.jitter:
        numbers = tuple(OPERATIONS.index(name) for name in JITTERED)
        ids = constant(numbers, images.device, torch.int64)
        out = jitter(out, ids[drawn["order"]], drawn["factor"].gather(1, drawn["order"]))
    return out


def jitter_in_groups(images: Tensor, operation: Tensor, factor: Tensor) -> Tensor:
    """Apply three operations to every image, each in an order of its own."""
    out = images.clone()
    for turn in range(operation.shape[1]):
        ids, strength = operation[:, turn], factor[:, turn]
        transform_in_place(out, ids, strength, None, None, None, tuple(TABLE.values()))
    return out


TRIES = 10


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
    """Do the same by two matrix products in float64, exact since all numbers are integers."""
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


def finish(
    images: Tensor, placement: Placement, out: Tensor, jitter: Jitter = jitter_in_groups
) -> None:
    """Crop, flip, normalise and cut uint8 `images` [n,C,H,W] into `out`, in its dtype."""
    default, drawn = placement.default, placement.tensors()
    if default.photometric:
        images = photograph(images, default.photometric, drawn, jitter)
    if default.padding or default.flip:
        images = _crop_and_flip(images, placement.offset, placement.flip, default.padding)
    scale, bias = (
        constant(values, images.device).view(1, -1, 1, 1) for values in default.scale_and_bias()
    )
    value = images.to(torch.float32).mul_(scale).add_(bias)
    if default.photometric:
        value += (drawn["shift"] / constant(default.std, images.device))[:, :, None, None]
    if default.cutout:
        side = torch.full((len(images),), default.cutout, device=images.device)
        mask = square_mask(placement.center.to(torch.int64), side, *images.shape[2:])
        value.masked_fill_(mask[:, None], 0.0)
    out.copy_(value)


def place(images: Tensor, placement: Placement) -> Tensor:
    """Put the pixels of uint8 `images` [n,C,H,W] where `finish` puts them, none changed or mixed.

    Where the padding comes in it is black.
    """
    default = placement.default
    if default.photometric:
        images = crop_and_pick(images, placement.tensors()["box"], default.photometric.size)
    if default.padding or default.flip:
        images = _crop_and_flip(images, placement.offset, placement.flip, default.padding)
    return images


def _crop_and_flip(images: Tensor, offset: Tensor, flip: Tensor, padding: int) -> Tensor:
    n, channels, height, width = images.shape
    x = torch.arange(width, device=images.device)
    x = torch.where(flip[:, None], width - 1 - x, x) + (offset[:, 1:] - padding)
    y = torch.arange(height, device=images.device) + (offset[:, :1] - padding)
    inside = ((y >= 0) & (y < height))[:, :, None] & ((x >= 0) & (x < width))[:, None, :]
    flat = (y[:, :, None] * width + x[:, None, :]).mul_(inside).view(n, 1, -1)
    source = images.reshape(n, channels, height * width)
    cropped = source.gather(2, flat.expand(n, channels, height * width))
    return cropped.view(images.shape).mul_(inside[:, None])
