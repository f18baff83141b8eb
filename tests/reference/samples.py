"""Images and arguments on which the operations bite: what the tests feed to Pillow and to us."""

import torch

from tests.reference.pillow_operations import WITHOUT_ARGUMENT

KINDS = ("constant", "two-valued", "narrow", "full", "skewed", "gradient")


def generator(*key: object) -> torch.Generator:
    """A generator whose stream depends on the key alone, the same in every process."""
    seed = 0
    for byte in repr(key).encode():
        seed = (seed * 257 + byte) % (2**61 - 1)
    return torch.Generator().manual_seed(seed)


def _constant(shape, g):
    return torch.randint(0, 256, (shape[0], 1, 1), generator=g).expand(shape)


def _two_valued(shape, g):
    low, high = torch.randint(0, 256, (2, shape[0], 1, 1), generator=g)
    return torch.where(torch.rand(shape, generator=g) < 0.3, low, high)


def _narrow(shape, g):
    return torch.randint(100, 112, shape, generator=g)


def _full(shape, g):
    return torch.randint(0, 256, shape, generator=g)


def _skewed(shape, g):
    return (torch.rand(shape, generator=g) ** 4 * 256).floor()


def _gradient(shape, g):
    channels, height, width = shape
    ramp = torch.arange(height * width).reshape(height, width)
    return torch.stack([(ramp * (2 * c + 1) + 40 * c) % 256 for c in range(channels)])


_MAKERS = dict(
    zip(KINDS, (_constant, _two_valued, _narrow, _full, _skewed, _gradient), strict=True)
)


def image(kind: str, channels: int, height: int, width: int, *key: object) -> torch.Tensor:
    """One uint8 image [C,H,W] of the kind."""
    shape = (channels, height, width)
    return _MAKERS[kind](shape, generator(kind, shape, *key)).to(torch.uint8)


def images(channels: int, height: int, width: int, count: int, *key: object) -> torch.Tensor:
    """A batch that runs through the kinds in turn."""
    made = [image(KINDS[i % len(KINDS)], channels, height, width, i, *key) for i in range(count)]
    return torch.stack(made) if made else torch.zeros(0, channels, height, width, dtype=torch.uint8)


def smooth_images(count: int, channels: int = 3, side: int = 32) -> torch.Tensor:
    """Images that look like photographs to a statistic: large soft shapes over fine detail."""
    g = generator("smooth", count, channels, side)
    total = torch.zeros(count, channels, side, side)
    for coarse in (2, 4, 8, 16):
        noise = torch.randn(count, channels, coarse, coarse, generator=g)
        total += torch.nn.functional.interpolate(noise, (side, side), mode="bicubic") / coarse**0.5
    return (128 + 45 * total).clamp(0, 255).round().to(torch.uint8)


def _both_signs(*values: float) -> list[float]:
    return [sign * value for value in values for sign in (1.0, -1.0)]


def _translations(side: int) -> list[float]:
    halves = (0.0, 0.4, 0.49999, 0.5, 0.50001, 1.0, 1.5, 2.5, 3.3, 0.45 * side)
    beyond = (side - 1.0, side - 0.5, float(side), side + 0.5, side + 3.7, 16384.0)
    return _both_signs(*halves, *beyond)


def arguments(name: str, height: int, width: int) -> list[float | None]:
    """Both ends, the identity, fractions and both signs of the operation's argument.

    An operation without one gets a row of None, so that it too meets several images of a kind.
    """
    if name in WITHOUT_ARGUMENT:
        return [None] * 6
    shear = _both_signs(0.0, 1e-6, 0.03, 0.1234567, 0.3, 1 / 3, 0.5, 1.0, 1.77, 2.0)
    quarter = (30.0, 45.0, 89.9, 90.0, 135.0, 180.0, 270.0, 359.99, 360.0)
    factor = [0.0, 0.1, 1 / 3, 0.5, 0.55, 0.999, 1.0, 1.001, 1.37, 1.9, 4.2, 10.0]
    longer = max(height, width)
    sides = {0.0, 0.49, 0.5, 1.0, 1.5, 2.0, 2.4, 3.0, 4.5, 0.2 * longer, longer - 0.5, longer + 0.4}
    table = {
        "ShearX": shear,
        "ShearY": shear,
        "TranslateX": _translations(width),
        "TranslateY": _translations(height),
        "Rotate": _both_signs(0.0, 1e-13, 0.7, 3.0, 17.3, *quarter),
        "Solarize": [0.0, 0.5, 1.0, 99.9, 127.5, 128.0, 200.0, 254.5, 255.0, 255.5, 256.0],
        "Posterize": [float(bits) for bits in range(1, 9)],
        "SolarizeAdd": [0.0, 1.0, 64.0, 99.0, 127.0, 128.0, 200.0, 255.0],
        "Cutout": [side for side in sorted(sides | {2.0 * longer}) if side <= 2 * longer],
        "SamplePairing": [0.0, 0.1, 0.2, 1 / 3, 0.4, 0.5, 0.777, 0.999, 1.0],
        "CropBilinear": [0.0, 0.3, 0.5, 0.501, 1.0, 1.5, 2.5, 3.2, 0.1 * width, 7.5, 20.0, 100.0],
    }
    return list(table.get(name, factor))


_RANGES = {
    "CropBilinear": (0, 16),
    "Rotate": (-360, 360),
    "Solarize": (0, 256),
    "SamplePairing": (0, 1),
}


def random_arguments(
    name: str, count: int, height: int, width: int, g: torch.Generator
) -> torch.Tensor:
    """`count` arguments, float64, drawn evenly from the operation's range."""
    if name in WITHOUT_ARGUMENT:
        return torch.zeros(count, dtype=torch.float64)
    if name == "Posterize":
        return torch.randint(1, 9, (count,), generator=g).double()
    named = {
        "ShearX": (-2, 2),
        "ShearY": (-2, 2),
        "TranslateX": (-1.2 * width, 1.2 * width),
        "TranslateY": (-1.2 * height, 1.2 * height),
        "Cutout": (0, 2 * max(height, width)),
    }
    low, high = (named | _RANGES).get(name, (0, 3))
    return low + (high - low) * torch.rand(count, generator=g, dtype=torch.float64)


def random_centers(count: int, height: int, width: int, g: torch.Generator) -> torch.Tensor:
    """`count` positions (y, x) inside the image; the first four are its corners."""
    ys = torch.randint(0, height, (count,), generator=g)
    xs = torch.randint(0, width, (count,), generator=g)
    centers = torch.stack([ys, xs], dim=1)
    corners = torch.tensor(
        [[0, 0], [0, width - 1], [height - 1, 0], [height - 1, width - 1]], dtype=torch.int64
    )
    centers[: min(4, count)] = corners[:count]
    return centers
