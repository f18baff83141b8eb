"""The same work image by image with Pillow and with torchvision, to compare batches with."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import torch
from PIL import Image, ImageDraw, ImageEnhance, ImageOps
from torch import Tensor

from divaug._subpolicies import Placement, SubPolicies
from divaug.lab.figures.canvas import to_picture, to_tensor
from divaug.operations.cutout import FILL_GREY, FILL_RGB

__all__ = [
    "PILLOW",
    "Step",
    "apply_loop",
    "finished_by_pillow",
    "pillow_loop",
    "steps_of",
    "torchvision_loop",
    "torchvision_twins",
]

T = TypeVar("T")


@dataclass(frozen=True)
class Step:
    """One applied operation of one image, in plain numbers."""

    operation: str
    argument: float
    center: tuple[int, int]
    partner: int


def steps_of(subpolicies: SubPolicies) -> list[list[Step]]:
    """Return the applied operations of sub-policies `[N,K]`, in order."""
    columns = {name: tensor.tolist() for name, tensor in subpolicies.tensors().items()}
    names = [operation.name for operation in subpolicies.operations]

    def step(n: int, k: int) -> Step:
        return Step(
            names[columns["operation"][n][k]],
            columns["argument"][n][k],
            (columns["center"][n][k][0], columns["center"][n][k][1]),
            columns["partner"][n][k],
        )

    N, K = subpolicies.shape
    applied = columns["applied"]
    return [[step(n, k) for k in range(K) if applied[n][k]] for n in range(N)]


def apply_loop(
    images: Sequence[T],
    steps: Sequence[Sequence[Step]],
    twins: dict[str, Callable[[T, Step, Sequence[T]], T]],
) -> list[T]:
    """Apply each image's operations to it, one image after the other."""
    results = []
    for image, todo in zip(images, steps, strict=True):
        result = image
        for step in todo:
            result = twins[step.operation](result, step, images)
        results.append(result)
    return results


PillowTwin = Callable[[Image.Image, Step, Sequence[Image.Image]], Image.Image]


def _affine(row: Callable[[float], tuple[float, ...]]) -> PillowTwin:
    return lambda image, step, _pool: image.transform(
        image.size, Image.Transform.AFFINE, row(step.argument)
    )


def _plain(function: Callable[[Image.Image], Image.Image]) -> PillowTwin:
    return lambda image, _step, _pool: function(image)


def _enhance(kind: Callable[[Image.Image], ImageEnhance._Enhance]) -> PillowTwin:
    return lambda image, step, _pool: kind(image).enhance(step.argument)


@lru_cache(maxsize=65536)
def _solarized(threshold: float) -> list[int]:
    return [v if v < threshold else 255 - v for v in range(256)]


def _cutout(image: Image.Image, step: Step, _pool: Sequence[Image.Image]) -> Image.Image:
    side = int(step.argument + 0.5)
    image = image.copy()
    if side:
        top, left = (c - side // 2 for c in step.center)
        fill = FILL_GREY[0] if image.mode == "L" else FILL_RGB
        box = (left, top, left + side - 1, top + side - 1)
        ImageDraw.Draw(image).rectangle(box, fill=fill)
    return image


#: Operation → the same with Pillow.
PILLOW: dict[str, PillowTwin] = {
    "ShearX": _affine(lambda v: (1, v, 0, 0, 1, 0)),
    "ShearY": _affine(lambda v: (1, 0, 0, v, 1, 0)),
    "TranslateX": _affine(lambda v: (1, 0, v, 0, 1, 0)),
    "TranslateY": _affine(lambda v: (1, 0, 0, 0, 1, v)),
    "Rotate": lambda image, step, _pool: image.rotate(step.argument),
    "AutoContrast": _plain(ImageOps.autocontrast),
    "Invert": _plain(ImageOps.invert),
    "Equalize": _plain(ImageOps.equalize),
    "Solarize": lambda image, step, _pool: image.point(
        _solarized(step.argument) * len(image.getbands())
    ),
    "Posterize": lambda image, step, _pool: ImageOps.posterize(image, int(step.argument)),
    "Contrast": _enhance(ImageEnhance.Contrast),
    "Color": _enhance(ImageEnhance.Color),
    "Brightness": _enhance(ImageEnhance.Brightness),
    "Sharpness": _enhance(ImageEnhance.Sharpness),
    "Cutout": _cutout,
    "SamplePairing": lambda image, step, pool: Image.blend(
        image, pool[step.partner], step.argument
    ),
}


def pillow_loop(images: Tensor, steps: Sequence[Sequence[Step]]) -> Tensor:
    """Convert a uint8 batch `[B,C,H,W]` to Pillow images, run the loop, and convert back."""
    results = apply_loop([to_picture(image) for image in images], steps, PILLOW)
    return torch.stack([to_tensor(result) for result in results])


def finished_by_pillow(
    images: Tensor, steps: Sequence[Sequence[Step]], placement: Placement, dtype: torch.dtype
) -> Tensor:
    """Return all that `expand` does but the draws, as a loader's worker does it.

    Args:
        images: uint8 `[B,C,H,W]`.
        steps: of each image.
        placement: the default augmentation drawn for one candidate of each, `[B,1]`.
        dtype: of the normalised candidates `[B,C,H,W]`.
    """
    default = placement.default
    scale, bias = (torch.tensor(values)[:, None, None] for values in default.scale_and_bias())
    offsets, flips, centers = (
        drawn[:, 0].tolist() for drawn in (placement.offset, placement.flip, placement.center)
    )
    done = []
    pictures = apply_loop([to_picture(image) for image in images], steps, PILLOW)
    for i, picture in enumerate(pictures):
        (top, left), (width, height) = offsets[i], picture.size
        padded = ImageOps.expand(picture, default.padding) if default.padding else picture
        placed = padded.crop((left, top, left + width, top + height))
        placed = placed.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if flips[i] else placed
        value = to_tensor(placed).to(torch.float32).mul_(scale).add_(bias)
        if side := default.cutout:
            y, x = (c - side // 2 for c in centers[i])
            value[:, max(y, 0) : max(y + side, 0), max(x, 0) : max(x + side, 0)] = 0.0
        done.append(value.to(dtype))
    return torch.stack(done)


TorchvisionTwin = Callable[[Tensor, Step, Sequence[Tensor]], Tensor]


def torchvision_twins() -> dict[str, TorchvisionTwin]:
    """Operation → the same with torchvision's v2 functions on uint8 tensors.

    Where torchvision has no such operation (SamplePairing), two lines of torch stand in for it. Its
    shear, rotation, blends and equalize do not give Pillow's bytes: they are here to be timed.
    """
    from torchvision.transforms.v2 import functional as V

    def affine(degrees: tuple[float, float], shift: tuple[float, float]) -> TorchvisionTwin:
        def twin(image: Tensor, step: Step, _pool: Sequence[Tensor]) -> Tensor:
            angle = math.degrees(math.atan(step.argument))
            moved: Tensor = V.affine(
                image,
                angle=0.0,
                translate=[-shift[0] * step.argument, -shift[1] * step.argument],
                scale=1.0,
                shear=[degrees[0] * angle, degrees[1] * angle],
                center=[0.0, 0.0],
            )
            return moved

        return twin

    def cutout(image: Tensor, step: Step, _pool: Sequence[Tensor]) -> Tensor:
        side = int(step.argument + 0.5)
        top, left = (max(0, c - side // 2) for c in step.center)
        fill = FILL_GREY if len(image) == 1 else FILL_RGB
        color = torch.tensor(fill, dtype=torch.uint8).view(-1, 1, 1)
        erased: Tensor = V.erase(image, top, left, side, side, color) if side else image
        return erased

    def pair(image: Tensor, step: Step, pool: Sequence[Tensor]) -> Tensor:
        weight = step.argument
        return (image * (1 - weight) + pool[step.partner] * weight).to(torch.uint8)

    return {
        "ShearX": affine((1, 0), (0, 0)),
        "ShearY": affine((0, 1), (0, 0)),
        "TranslateX": affine((0, 0), (1, 0)),
        "TranslateY": affine((0, 0), (0, 1)),
        "Rotate": lambda image, step, _pool: V.rotate(image, step.argument),
        "AutoContrast": lambda image, _step, _pool: V.autocontrast(image),
        "Invert": lambda image, _step, _pool: V.invert(image),
        "Equalize": lambda image, _step, _pool: V.equalize(image),
        "Solarize": lambda image, step, _pool: V.solarize(image, min(255.0, step.argument)),
        "Posterize": lambda image, step, _pool: V.posterize(image, int(step.argument)),
        "Contrast": lambda image, step, _pool: V.adjust_contrast(image, step.argument),
        "Color": lambda image, step, _pool: V.adjust_saturation(image, step.argument),
        "Brightness": lambda image, step, _pool: V.adjust_brightness(image, step.argument),
        "Sharpness": lambda image, step, _pool: V.adjust_sharpness(image, step.argument),
        "Cutout": cutout,
        "SamplePairing": pair,
    }


def torchvision_loop(
    images: Tensor, steps: Sequence[Sequence[Step]], twins: dict[str, TorchvisionTwin]
) -> Tensor:
    """Return the whole job, one image after the other: a uint8 batch `[B,C,H,W]` to a batch."""
    return torch.stack(apply_loop(images.unbind(0), steps, twins))
