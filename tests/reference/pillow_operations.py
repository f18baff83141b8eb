"""The operations as Pillow computes them, one image at a time: the oracle of the tests.

Nothing here is fast or clever. Every function calls Pillow on one image and hands back its bytes,
so that a difference from the library is a difference from Pillow. Only Cutout, which Pillow does
not have, is written out: a numpy slice.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

NAMES = (
    "ShearX",
    "ShearY",
    "TranslateX",
    "TranslateY",
    "Rotate",
    "AutoContrast",
    "Invert",
    "Equalize",
    "Solarize",
    "Posterize",
    "Contrast",
    "Color",
    "Brightness",
    "Sharpness",
    "Cutout",
    "SamplePairing",
)
FURTHER = ("FlipLR", "FlipUD", "Blur", "Smooth", "CropBilinear", "SolarizeAdd")
WITHOUT_ARGUMENT = ("AutoContrast", "Invert", "Equalize", *FURTHER[:4])
CUTOUT_FILL = {"RGB": (125, 123, 114), "L": 121}

Center = Sequence[int] | None
Operation = Callable[[Image.Image, float | None, Center, Image.Image | None], Image.Image]


def _affine(matrix_of: Callable[[float], tuple[float, ...]]) -> Operation:
    def operation(image, argument, center, partner):
        matrix = matrix_of(argument)
        return image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST)

    return operation


def _alone(function: Callable[[Image.Image], Image.Image]) -> Operation:
    return lambda image, _argument, _center, _partner: function(image)


def _with_argument(function: Callable[[Image.Image, float], Image.Image]) -> Operation:
    return lambda image, argument, _center, _partner: function(image, argument)


def _enhance(enhancer: type) -> Operation:
    return _with_argument(lambda image, factor: enhancer(image).enhance(factor))


def _cutout(image, argument, center, partner):
    side = math.floor(argument + 0.5)
    top, left = center[0] - side // 2, center[1] - side // 2
    pixels = np.array(image)
    pixels[max(top, 0) : max(top + side, 0), max(left, 0) : max(left + side, 0)] = CUTOUT_FILL[
        image.mode
    ]
    return Image.fromarray(pixels)


def _solarize_add(image, argument, center, partner):
    raised = [min(255, value + int(argument)) if value < 128 else value for value in range(256)]
    return image.point(raised * len(image.getbands()))


def _crop_bilinear(image, argument, center, partner):
    width, height = image.size
    cut = argument
    if round(min(width, height) - cut) <= round(cut):  # Pillow's box would be empty
        cut = (min(width, height) - 1) // 2
    box = (cut, cut, width - cut, height - cut)
    return image.crop(box).resize(image.size, Image.Resampling.BILINEAR)


PILLOW: dict[str, Operation] = {
    "ShearX": _affine(lambda v: (1, v, 0, 0, 1, 0)),
    "ShearY": _affine(lambda v: (1, 0, 0, v, 1, 0)),
    "TranslateX": _affine(lambda v: (1, 0, v, 0, 1, 0)),
    "TranslateY": _affine(lambda v: (1, 0, 0, 0, 1, v)),
    "Rotate": _with_argument(Image.Image.rotate),
    "AutoContrast": _alone(ImageOps.autocontrast),
    "Invert": _alone(ImageOps.invert),
    "Equalize": _alone(ImageOps.equalize),
    "Solarize": _with_argument(ImageOps.solarize),
    "Posterize": _with_argument(lambda image, bits: ImageOps.posterize(image, int(bits))),
    "Contrast": _enhance(ImageEnhance.Contrast),
    "Color": _enhance(ImageEnhance.Color),
    "Brightness": _enhance(ImageEnhance.Brightness),
    "Sharpness": _enhance(ImageEnhance.Sharpness),
    "Cutout": _cutout,
    "SamplePairing": lambda image, weight, _center, partner: Image.blend(image, partner, weight),
    "FlipLR": _alone(ImageOps.mirror),
    "FlipUD": _alone(ImageOps.flip),
    "Blur": _alone(lambda image: image.filter(ImageFilter.BLUR)),
    "Smooth": _alone(lambda image: image.filter(ImageFilter.SMOOTH)),
    "CropBilinear": _crop_bilinear,
    "SolarizeAdd": _solarize_add,
}


def pillow_apply(
    image: np.ndarray,
    name: str,
    argument: float | None,
    center: Center = None,
    partner: np.ndarray | None = None,
) -> np.ndarray:
    """Apply the operation to one uint8 image, H×W (grey) or H×W×3, with Pillow."""
    other = None if partner is None else Image.fromarray(partner)
    return np.asarray(PILLOW[name](Image.fromarray(image), argument, center, other))


def to_pillow(image: torch.Tensor) -> np.ndarray:
    """Turn one uint8 tensor [C,H,W] into the array that Pillow reads."""
    pixels = np.ascontiguousarray(image.permute(1, 2, 0).numpy())
    return pixels[:, :, 0] if pixels.shape[2] == 1 else pixels


def from_pillow(pixels: np.ndarray) -> torch.Tensor:
    """Turn an array H×W or H×W×3 into a uint8 tensor [C,H,W]."""
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return torch.from_numpy(pixels.copy()).permute(2, 0, 1)


def pillow_batch(
    images: torch.Tensor,
    names: Sequence[str],
    arguments: Sequence[float | None],
    centers: torch.Tensor | None = None,
    partners: torch.Tensor | None = None,
) -> torch.Tensor:
    """Apply one operation per image to uint8 [B,C,H,W], image by image."""
    results = [
        pillow_apply(
            to_pillow(image),
            names[i],
            arguments[i],
            None if centers is None else centers[i].tolist(),
            None if partners is None else to_pillow(partners[i]),
        )
        for i, image in enumerate(images)
    ]
    return torch.stack([from_pillow(result) for result in results])
