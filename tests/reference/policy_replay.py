"""What each published policy says an operation's argument is, and its replay with Pillow.

Written from the publications, one `if` an operation, and independent of the library's tables: the
level of the published entry goes in, the argument (without its sign) comes out. The replay then
works image by image, operation by operation.
"""

import numpy as np

from tests.reference.pillow_operations import from_pillow, pillow_apply, to_pillow

GEOMETRIC = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate")
ENHANCE = ("Contrast", "Color", "Brightness", "Sharpness")
NO_LEVEL = ("AutoContrast", "Invert", "Equalize", "FlipLR", "FlipUD", "Blur", "Smooth")


def autoaugment_cifar(name, level, height, width):
    """AutoAugment's CIFAR code (also PBA's and, up to level 30, RandAugment's), at 32 px.

    Pixels scale with the image; 0 bits, which Pillow no longer accepts, becomes 1.
    """
    if name in NO_LEVEL:
        return None
    if name in ("ShearX", "ShearY"):
        return level * 0.3 / 10
    if name == "TranslateX":
        return int(level * 10 / 10) * width / 32
    if name == "TranslateY":
        return int(level * 10 / 10) * height / 32
    if name == "Rotate":
        return int(level * 30 / 10)
    if name == "Solarize":
        return max(256 - int(level * 256 / 10), 0)
    if name == "Posterize":
        return max(4 - int(level * 4 / 10), 1)
    if name == "Cutout":
        return int(level * 20 / 10) * min(height, width) / 32
    assert name in ENHANCE
    return 0.1 + level * 1.8 / 10


def autoaugment_imagenet(name, level, height, width):
    """AutoAugment's table of ranges: lengths of 331 px, bits from 8 down to 4, no rounding."""
    if name == "TranslateX":
        return 150 * width / 331 * level / 10
    if name == "TranslateY":
        return 150 * height / 331 * level / 10
    if name == "Rotate":
        return 30 * level / 10
    if name == "Posterize":
        return 8 - int(level * 4 / 10)
    if name == "Cutout":
        return 60 * min(height, width) / 331 * level / 10
    return autoaugment_cifar(name, level, height, width)


def fast_autoaugment(name, level, height, width):
    """Fast AutoAugment: low + level·(high − low) of its own table."""
    low, high = {
        "ShearX": (-0.3, 0.3), "ShearY": (-0.3, 0.3), "TranslateX": (-0.45, 0.45),
        "TranslateY": (-0.45, 0.45), "Rotate": (-30, 30), "AutoContrast": (0, 1),
        "Invert": (0, 1), "Equalize": (0, 1), "Solarize": (0, 256), "Posterize": (4, 8),
        "Contrast": (0.1, 1.9), "Color": (0.1, 1.9), "Brightness": (0.1, 1.9),
        "Sharpness": (0.1, 1.9), "Cutout": (0, 0.2),
    }[name]  # fmt: skip
    value = level * (high - low) + low
    if name in NO_LEVEL:
        return None
    if name == "Posterize":
        return int(value)
    if name == "TranslateX":
        return value * width
    if name == "TranslateY":
        return value * height
    if name == "Cutout":
        return int(value * width) + 1
    return value


def trivial_augment(name, level, _height, _width):
    """The wide space: level is one of 31 steps from 0 to 1."""
    if name in NO_LEVEL:
        return None
    if name in ("ShearX", "ShearY"):
        return 0.99 * level
    if name in ("TranslateX", "TranslateY"):
        return int(32 * level)
    if name == "Rotate":
        return 135 * level
    if name == "Solarize":
        return 255 - 255 * level
    if name == "Posterize":
        return 8 - round(6 * level)
    return 0.99 * level  # of an enhance operation: how far the factor is from 1


def universal(space):
    """DivAug's spaces: m in [0, 1], 1 strongest."""

    def argument(name, m, height, width):
        if name in NO_LEVEL:
            return None
        if name == "ShearY" and space == "released":
            return 0.3
        if name in ("ShearX", "ShearY"):
            return 0.3 * m
        if name == "TranslateX":
            return 0.45 * m * width
        if name == "TranslateY":
            return 0.45 * m * (width if space == "released" else height)
        if name == "Rotate":
            return 30 * m
        if name == "Solarize":
            return 256 * (1 - m)
        if name == "Posterize" and space == "released":
            return max(1, int(4 * (1 - m)))
        if name == "Posterize":
            return 8 - round(4 * m)
        if name == "Cutout":
            return 0.2 * m * (min(height, width) if space == "paper" else width)
        if name == "CropBilinear":
            return 0.1 * m * width
        if name == "SamplePairing":
            return m if space == "released" else 0.4 * m
        return 0.9 * m  # of an enhance operation: how far the factor is from 1

    return argument


def strength(name, argument, about_one):
    """The drawn argument without its sign: what the functions above give."""
    if name in GEOMETRIC:
        return abs(argument)
    if name in ENHANCE and about_one:
        return abs(argument - 1)
    return argument


def close(found, expected):
    """Equal but for rounding to float32 in the few steps that lead to an argument near 256."""
    return abs(found - expected) <= 4 * np.spacing(np.float32(max(abs(expected), 1.0)))


def replay(original, subpolicy, pool):
    """Apply one drawn sub-policy to one image [C,H,W] with Pillow, operation by operation."""
    pixels = to_pillow(original)
    for name, applied, argument, center, partner in subpolicy:
        if applied:
            pixels = pillow_apply(pixels, name, argument, center, to_pillow(pool[partner]))
    return from_pillow(pixels)


def entries(subpolicies, i, j):
    """(name, applied, argument, center, partner) of the operations of candidate j of image i."""
    this = subpolicies[i, j]
    return [
        (
            subpolicies.operations[int(this.operation[k])].name,
            bool(this.applied[k]),
            float(this.argument[k]),
            this.center[k].tolist(),
            int(this.partner[k]),
        )
        for k in range(this.shape[-1])
        if int(this.operation[k]) >= 0
    ]
