"""The operations image by image with torchvision's v2 functions on uint8 tensors.

Where torchvision has no such operation (SamplePairing), two lines of torch stand in for it. Its
shear, rotation, blends and equalize do not give Pillow's bytes; this loop is about time.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from divaug.lab.bench.pillow_loop import Step
from divaug.operations.cutout import FILL_GREY, FILL_RGB

__all__ = ["batch_loop", "twins"]

Twin = Callable[[Tensor, Step, Sequence[Tensor]], Tensor]


def _cutout(erase: Callable[..., Tensor]) -> Twin:
    def twin(image: Tensor, step: Step, _pool: Sequence[Tensor]) -> Tensor:
        side = int(step.argument + 0.5)
        top, left = (max(0, c - side // 2) for c in step.center)
        fill = FILL_GREY if len(image) == 1 else FILL_RGB
        color = torch.tensor(fill, dtype=torch.uint8).view(-1, 1, 1)
        return erase(image, top, left, side, side, color) if side else image

    return twin


def _pair(image: Tensor, step: Step, pool: Sequence[Tensor]) -> Tensor:
    weight = step.argument
    return (image * (1 - weight) + pool[step.partner] * weight).to(torch.uint8)


def twins() -> dict[str, Twin]:
    """Operation → the same with torchvision; importing it is left to who wants the comparison."""
    from torchvision.transforms.v2 import functional as V

    def affine(degrees: tuple[float, float], shift: tuple[float, float]) -> Twin:
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
        "Cutout": _cutout(V.erase),
        "SamplePairing": _pair,
    }


def batch_loop(images: Tensor, steps: Sequence[Sequence[Step]], table: dict[str, Twin]) -> Tensor:
    """The whole job, one image after the other: a uint8 batch `[B,C,H,W]` to a batch."""
    results, pool = [], images.unbind(0)
    for image, todo in zip(pool, steps, strict=True):
        result = image
        for step in todo:
            result = table[step.operation](result, step, pool)
        results.append(result)
    return torch.stack(results)
