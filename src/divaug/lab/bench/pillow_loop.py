"""The operations image by image with Pillow: what our batches are compared with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from PIL import Image, ImageDraw, ImageEnhance, ImageOps
from torch import Tensor

from divaug._subpolicies import SubPolicies
from divaug.lab.figures.canvas import to_picture, to_tensor
from divaug.operations.cutout import FILL_GREY, FILL_RGB

__all__ = ["PILLOW", "Step", "apply_loop", "batch_loop", "steps_of"]


@dataclass(frozen=True)
class Step:
    """One applied operation of one image, in plain numbers."""

    operation: str
    argument: float
    center: tuple[int, int]
    partner: int


Twin = Callable[[Image.Image, Step, Sequence[Image.Image]], Image.Image]


def _affine(row: Callable[[float], tuple[float, ...]]) -> Twin:
    def twin(image: Image.Image, step: Step, _pool: Sequence[Image.Image]) -> Image.Image:
        return image.transform(image.size, Image.Transform.AFFINE, row(step.argument))

    return twin


def _plain(function: Callable[[Image.Image], Image.Image]) -> Twin:
    return lambda image, _step, _pool: function(image)


def _enhance(kind: Callable[[Image.Image], ImageEnhance._Enhance]) -> Twin:
    return lambda image, step, _pool: kind(image).enhance(step.argument)


@lru_cache(maxsize=65536)
def _solarized(threshold: float) -> list[int]:
    return [v if v < threshold else 255 - v for v in range(256)]


def _solarize(image: Image.Image, step: Step, _pool: Sequence[Image.Image]) -> Image.Image:
    return image.point(_solarized(step.argument) * len(image.getbands()))


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
PILLOW: dict[str, Twin] = {
    "ShearX": _affine(lambda v: (1, v, 0, 0, 1, 0)),
    "ShearY": _affine(lambda v: (1, 0, 0, v, 1, 0)),
    "TranslateX": _affine(lambda v: (1, 0, v, 0, 1, 0)),
    "TranslateY": _affine(lambda v: (1, 0, 0, 0, 1, v)),
    "Rotate": lambda image, step, _pool: image.rotate(step.argument),
    "AutoContrast": _plain(ImageOps.autocontrast),
    "Invert": _plain(ImageOps.invert),
    "Equalize": _plain(ImageOps.equalize),
    "Solarize": _solarize,
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


def steps_of(subpolicies: SubPolicies) -> list[list[Step]]:
    """The applied operations of sub-policies `[N,K]`, in order."""
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


def apply_loop(images: Sequence[Image.Image], steps: Sequence[Sequence[Step]]) -> list[Image.Image]:
    """Apply each image's operations to it, one image after the other."""
    results = []
    for image, todo in zip(images, steps, strict=True):
        result = image
        for step in todo:
            result = PILLOW[step.operation](result, step, images)
        results.append(result)
    return results


def batch_loop(images: Tensor, steps: Sequence[Sequence[Step]]) -> Tensor:
    """The whole job: a uint8 batch `[B,C,H,W]` to Pillow images, the loop, and back to a batch."""
    results = apply_loop([to_picture(image) for image in images], steps)
    return torch.stack([to_tensor(result) for result in results])
