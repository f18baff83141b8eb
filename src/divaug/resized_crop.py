"""The further default augmentation of ImageNet: resized crop, colour jitter and lighting.

The crop is resized with Pillow's antialiased bilinear filter, to the bit: its fixed-point weights
are whole numbers, so two matrix products in float64 are exact. Rows are resized first and columns
second, each rounded to bytes, as Pillow does up to version 12; version 13 begins with the columns
where the height shrinks much more than the width, which moves some bytes by one.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import torch
from torch import Tensor

from divaug.operations.execution import CHUNK_PIXELS, transform_in_place
from divaug.operations.table import OPERATIONS, TABLE
from divaug.randomness import Purpose, Stream, below, uniform

__all__ = [
    "Jitter",
    "Photometric",
    "PhotometricDraws",
    "constant",
    "crop_and_resize",
    "draw_photometric",
    "jitter_in_groups",
    "photograph",
]

TRIES = 10
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
PRECISION = 22  # bits of Pillow's fixed-point weights


@dataclass(frozen=True)
class Photometric:
    """Settings of the steps that only ImageNet has.

    Args:
        size: side of the finished image.
        area: smallest and largest part of the image's area that a crop covers.
        ratio: smallest and largest aspect ratio (width over height).
        jitter: brightness, contrast and saturation factors lie in 1 ± jitter.
        lighting: standard deviation of the colour shift along the eigenvectors.
    """

    size: int = 224
    area: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    jitter: float = 0.4
    lighting: float = 0.1


@dataclass(frozen=True, eq=False)
class PhotometricDraws:
    """What was drawn for each candidate `[B,E]`.

    Args:
        box: int64 `[B,E,4]`: top, left, height and width of the crop.
        factor: float32 `[B,E,3]` of brightness, contrast and saturation.
        order: int64 `[B,E,3]`, in which order they are applied.
        shift: float32 `[B,E,3]`, the colour added to values in [0, 1].
    """

    box: Tensor
    factor: Tensor
    order: Tensor
    shift: Tensor

    def rows(self, start: int, stop: int) -> "PhotometricDraws":
        """The draws of images `start` to `stop`, with B and E as one axis."""
        parts = (self.box, self.factor, self.order, self.shift)
        return PhotometricDraws(*(part[start:stop].flatten(0, 1) for part in parts))


#: (images, operation `[n,3]`, factor `[n,3]`) → images, three operations in order.
Jitter: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]


@lru_cache(maxsize=64)
def constant(
    values: tuple[float, ...] | tuple[tuple[float, ...], ...], device: torch.device
) -> Tensor:
    """Numbers on a device, copied there once: a copy makes the host wait."""
    return torch.tensor(values, device=device)


@lru_cache(maxsize=16)
def _quantiles(device: torch.device) -> Tensor:
    middle = (torch.arange(TABLE_SIZE, dtype=torch.float64) + 0.5) / TABLE_SIZE
    quantiles: Tensor = torch.special.ndtri(middle)
    return quantiles.to(torch.float32).to(device)


@lru_cache(maxsize=16)
def _ratios(low: float, high: float, device: torch.device) -> Tensor:
    log = torch.linspace(math.log(low), math.log(high), TABLE_SIZE, dtype=torch.float64)
    return log.exp().to(device)


def draw_photometric(
    settings: Photometric, stream: Stream, candidates: int, size: tuple[int, int]
) -> PhotometricDraws:
    """Draw crop, jitter and lighting for every candidate."""
    device = stream.index.device
    jitter = stream.words(Purpose.JITTER, candidates, 1)
    spread = torch.stack([uniform(word[..., 0]) for word in jitter[:3]], -1)
    order = constant(ORDERS, device)[below(jitter[3][..., 0], len(ORDERS))]
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
    return PhotometricDraws(_boxes(settings, stream, candidates, size), factor, order, shift)


def _boxes(settings: Photometric, stream: Stream, candidates: int, size: tuple[int, int]) -> Tensor:
    """The first of ten tries that fits, else the largest centred crop of an allowed ratio."""
    height, width = size
    area_word, ratio_word, top_word, left_word = stream.words(
        Purpose.RESIZED_CROP, candidates, TRIES
    )
    low, high = settings.area
    area = (low + (high - low) * uniform(area_word).to(torch.float64)) * (height * width)
    ratios = _ratios(*settings.ratio, stream.index.device)
    ratio = ratios[below(ratio_word, TABLE_SIZE)]
    w = ((area * ratio).sqrt() + 0.5).floor().to(torch.int64)
    h = ((area / ratio).sqrt() + 0.5).floor().to(torch.int64)
    fits = (w >= 1) & (h >= 1) & (w <= width) & (h <= height)
    top = below(top_word, (height - h + 1).clamp(min=1))
    left = below(left_word, (width - w + 1).clamp(min=1))
    first = fits.to(torch.int64).argmax(-1, keepdim=True)
    box = torch.stack([part.gather(-1, first)[..., 0] for part in (top, left, h, w)], -1)
    centred = constant(_centred(settings.ratio, height, width), box.device)
    return torch.where(fits.any(-1, keepdim=True), box, centred)


def _centred(ratio: tuple[float, float], height: int, width: int) -> tuple[int, int, int, int]:
    w = min(width, max(1, int(height * ratio[1] + 0.5)))
    h = min(height, max(1, int(width / ratio[0] + 0.5)))
    return (height - h) // 2, (width - w) // 2, h, w


def _weights(start: Tensor, length: Tensor, inside: int, outside: int) -> Tensor:
    """Pillow's fixed-point bilinear weights of crops along one axis: `[n,outside,inside]`."""
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


def crop_and_resize(images: Tensor, box: Tensor, size: int) -> Tensor:
    """Crop uint8 `images` [n,C,H,W] to `box` [n,4] and resize as Pillow's BILINEAR does."""
    height, width = images.shape[2:]
    top, left, h, w = box.unbind(1)
    across = _weights(left, w, width, size)
    down = _weights(top, h, height, size)

    def to_byte(total: Tensor) -> Tensor:
        return (total * 2.0**-PRECISION + 0.5).floor().clamp(0, 255)

    rows = to_byte(images.to(torch.float64) @ across.transpose(1, 2)[:, None])
    return to_byte(down[:, None] @ rows).to(torch.uint8)


def photograph(
    images: Tensor, settings: Photometric, draws: PhotometricDraws, jitter: Jitter
) -> tuple[Tensor, Tensor]:
    """Crop, resize and jitter; returns uint8 images and the colour shift to add later."""
    chunk = max(1, 2 * CHUNK_PIXELS // max(1, images.shape[2] * images.shape[3]))
    parts = [
        crop_and_resize(images[i : i + chunk], draws.box[i : i + chunk], settings.size)
        for i in range(0, len(images), chunk)
    ]
    out = torch.cat(parts) if parts else images.new_empty((0, 3, settings.size, settings.size))
    if settings.jitter:
        ids = constant(tuple(OPERATIONS.index(name) for name in JITTERED), images.device)
        out = jitter(out, ids[draws.order], draws.factor.gather(1, draws.order))
    return out, draws.shift


def jitter_in_groups(images: Tensor, operation: Tensor, factor: Tensor) -> Tensor:
    """Apply three operations to every image, each in an order of its own."""
    out = images.clone()
    for turn in range(operation.shape[1]):
        ids, strength = operation[:, turn], factor[:, turn]
        transform_in_place(out, ids, strength, None, None, None, tuple(TABLE.values()))
    return out
