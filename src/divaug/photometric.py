"""The further default augmentation of ImageNet: resized crop, colour jitter and lighting."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import torch
from torch import Tensor

from divaug.checks import check_number, check_range, check_whole
from divaug.constants import constant
from divaug.operations.execution import transform_in_place
from divaug.operations.table import OPERATIONS, TABLE
from divaug.random_crop import crop_and_resize, draw_boxes
from divaug.randomness import Purpose, Stream, below, uniform

__all__ = [
    "Jitter",
    "Photometric",
    "PhotometricDraws",
    "draw_photometric",
    "jitter_in_groups",
    "photograph",
]

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
# Every device must draw the same numbers, and `erfinv` differs in its last bits between devices:
# normal numbers are looked up in a table made once on the host.
TABLE_SIZE = 4096


@dataclass(frozen=True)
class Photometric:
    """Settings of the steps that only ImageNet has.

    Args:
        size: side of the finished image, in pixels; at least 1.
        area: smallest and largest part of the image's area that a crop covers, in (0, 1].
        ratio: smallest and largest aspect ratio (width over height), above 0.
        jitter: brightness, contrast and saturation factors lie in 1 ± jitter; in [0, 1].
        lighting: standard deviation of the colour shift along the eigenvectors, in [0, 1].
    """

    size: int = 224
    area: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    jitter: float = 0.4
    lighting: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_whole("size", self.size, 1))
        object.__setattr__(self, "area", check_range("area", self.area, 1.0))
        object.__setattr__(self, "ratio", check_range("ratio", self.ratio))
        object.__setattr__(self, "jitter", check_number("`jitter`", self.jitter, 0, 1))
        object.__setattr__(self, "lighting", check_number("`lighting`", self.lighting, 0, 1))


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


#: (images, operation `[n,3]`, factor `[n,3]`) → images, three operations in order.
Jitter: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]


@lru_cache(maxsize=16)
def _quantiles(device: torch.device) -> Tensor:
    # On the CPU, whatever torch's default is: another device may round otherwise.
    middle = (torch.arange(TABLE_SIZE, dtype=torch.float64, device="cpu") + 0.5) / TABLE_SIZE
    quantiles: Tensor = torch.special.ndtri(middle)
    return quantiles.to(torch.float32).to(device)


def draw_photometric(
    settings: Photometric, stream: Stream, candidates: int, size: tuple[int, int]
) -> PhotometricDraws:
    """Draw crop, jitter and lighting for every candidate."""
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
    return PhotometricDraws(box, factor, order, shift)


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
