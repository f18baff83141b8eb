"""What a published policy means by a level: AutoAugment's scale, whose maximum is 10.

Each entry turns a level into the range of one certain argument; only its sign is still drawn.
"""

from collections.abc import Callable, Mapping

from divaug.operations.magnitude import NO_MAGNITUDE, Range, Rounding, Side

__all__ = ["CIFAR_LEVELS", "FAST_LEVELS", "IMAGENET_LEVELS"]

LevelMap = Callable[[float], Range]


def _fixed(source: str, value: Callable[[float], float]) -> LevelMap:
    return lambda level: Range(value(level), 0.0, source)


def _signed(source: str, value: Callable[[float], float], side: Side = Side.NONE) -> LevelMap:
    return lambda level: Range(0.0, 0.0, source, offset=value(level), signed=True, side=side)


def _square(source: str, value: Callable[[float], float], side: Side) -> LevelMap:
    return lambda level: Range(0.0, 0.0, source, offset=value(level), side=side)


def _square_with_both_ends(level: float) -> Range:
    """Pillow's rectangle from 0 to v covers 0, 1, ... and the whole part of v."""
    offset, down = 0.2 * level, Rounding.DOWN
    return Range(1.0, 0.0, _FAST, offset=offset, side=Side.WIDTH, rounding=down)


def _nothing(_level: float) -> Range:
    return NO_MAGNITUDE


_CIFAR = "AutoAugment's CIFAR code"
_IMAGENET = "AutoAugment, table of ranges, level/10 of the maximum"
_FAST = "Fast AutoAugment's code"

_SHARED: dict[str, LevelMap] = {
    "ShearX": _signed(_CIFAR, lambda level: 0.3 * level / 10),
    "ShearY": _signed(_CIFAR, lambda level: 0.3 * level / 10),
    "AutoContrast": _nothing,
    "Invert": _nothing,
    "Equalize": _nothing,
    # A level above 10 (RandAugment) would ask for a threshold under 0.
    "Solarize": _fixed(_CIFAR, lambda level: max(0, 256 - int(256 * level / 10))),
    "Contrast": _fixed(_CIFAR, lambda level: 0.1 + 1.8 * level / 10),
    "Color": _fixed(_CIFAR, lambda level: 0.1 + 1.8 * level / 10),
    "Brightness": _fixed(_CIFAR, lambda level: 0.1 + 1.8 * level / 10),
    "Sharpness": _fixed(_CIFAR, lambda level: 0.1 + 1.8 * level / 10),
}

#: The maps of AutoAugment's CIFAR and SVHN code. Pixels are of 32, so other sizes are scaled.
CIFAR_LEVELS: Mapping[str, LevelMap] = {
    **_SHARED,
    "TranslateX": _signed(_CIFAR, lambda level: int(level) / 32, Side.WIDTH),
    "TranslateY": _signed(_CIFAR, lambda level: int(level) / 32, Side.HEIGHT),
    "Rotate": _signed(_CIFAR, lambda level: int(3 * level)),
    # Level 10 asks for 0 bits, which Pillow refuses from version 13 on; 1 bit is the fewest.
    "Posterize": _fixed(_CIFAR, lambda level: max(1, 4 - int(4 * level / 10))),
    "Cutout": _square(_CIFAR, lambda level: int(2 * level) / 32, Side.SHORTER),
}

#: The maps of AutoAugment's paper for ImageNet: relative lengths, 8 to 4 bits, nothing rounded.
IMAGENET_LEVELS: Mapping[str, LevelMap] = {
    **_SHARED,
    "TranslateX": _signed(_IMAGENET, lambda level: 150 / 331 * level / 10, Side.WIDTH),
    "TranslateY": _signed(_IMAGENET, lambda level: 150 / 331 * level / 10, Side.HEIGHT),
    "Rotate": _signed(_IMAGENET, lambda level: 3.0 * level),
    "Posterize": _fixed(_IMAGENET, lambda level: max(4, 8 - int(4 * level / 10))),
    "Cutout": _square(_IMAGENET, lambda level: 60 / 331 * level / 10, Side.SHORTER),
}

#: Fast AutoAugment: value = low + level·(high − low), level in [0, 1], ranges symmetric about 0.
FAST_LEVELS: Mapping[str, LevelMap] = {
    "ShearX": _signed(_FAST, lambda level: -0.3 + 0.6 * level),
    "ShearY": _signed(_FAST, lambda level: -0.3 + 0.6 * level),
    "TranslateX": _signed(_FAST, lambda level: -0.45 + 0.9 * level, Side.WIDTH),
    "TranslateY": _signed(_FAST, lambda level: -0.45 + 0.9 * level, Side.HEIGHT),
    "Rotate": _signed(_FAST, lambda level: -30 + 60 * level),
    "AutoContrast": _nothing,
    "Invert": _nothing,
    "Equalize": _nothing,
    "Solarize": _fixed(_FAST, lambda level: 256 * level),
    "Posterize": _fixed(_FAST, lambda level: int(4 + 4 * level)),
    "Contrast": _fixed(_FAST, lambda level: 0.1 + 1.8 * level),
    "Color": _fixed(_FAST, lambda level: 0.1 + 1.8 * level),
    "Brightness": _fixed(_FAST, lambda level: 0.1 + 1.8 * level),
    "Sharpness": _fixed(_FAST, lambda level: 0.1 + 1.8 * level),
    "Cutout": _square_with_both_ends,
}
