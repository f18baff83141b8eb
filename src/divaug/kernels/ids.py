"""The numbers by which kernels know the operations."""

import triton.language as tl

from divaug.operations.table import OPERATIONS

__all__ = [
    "AUTOCONTRAST",
    "BRIGHTNESS",
    "COLOR",
    "CONTRAST",
    "CUTOUT",
    "EQUALIZE",
    "INVERT",
    "POSTERIZE",
    "ROTATE",
    "SAMPLE_PAIRING",
    "SHARPNESS",
    "SHEAR_X",
    "SHEAR_Y",
    "SOLARIZE",
    "TRANSLATE_X",
    "TRANSLATE_Y",
]


def _id(name: str) -> tl.constexpr:
    return tl.constexpr(OPERATIONS.index(name))


SHEAR_X, SHEAR_Y = _id("ShearX"), _id("ShearY")
TRANSLATE_X, TRANSLATE_Y, ROTATE = _id("TranslateX"), _id("TranslateY"), _id("Rotate")
AUTOCONTRAST, INVERT, EQUALIZE = _id("AutoContrast"), _id("Invert"), _id("Equalize")
SOLARIZE, POSTERIZE = _id("Solarize"), _id("Posterize")
CONTRAST, COLOR = _id("Contrast"), _id("Color")
BRIGHTNESS, SHARPNESS = _id("Brightness"), _id("Sharpness")
CUTOUT, SAMPLE_PAIRING = _id("Cutout"), _id("SamplePairing")
