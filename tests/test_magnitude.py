"""Magnitudes: m = 0 hardly changes an image, m = 1 changes it most; the ranges are agreed."""

import math
from itertools import pairwise

import pytest
import torch

from divaug.operations import OPERATIONS, apply
from divaug.operations.magnitude import argument, spaces
from tests.reference import samples

NAMES = tuple(OPERATIONS)
ENHANCE = ("Contrast", "Color", "Brightness", "Sharpness")
HEIGHT, WIDTH = 40, 100

# operation: (argument at m = 0, at m = 1), sign +1, for an image of 40 rows and 100 columns
PAPER = {
    "ShearX": (0.0, 0.3),
    "ShearY": (0.0, 0.3),
    "TranslateX": (0.0, 45.0),
    "TranslateY": (0.0, 18.0),
    "Rotate": (0.0, 30.0),
    "Solarize": (256.0, 0.0),
    "Posterize": (8.0, 4.0),
    **dict.fromkeys(ENHANCE, (1.0, 1.9)),
    "Cutout": (0.0, 8.0),
    "SamplePairing": (0.0, 0.4),
}
RELEASED = PAPER | {
    "ShearY": (0.3, 0.3),
    "TranslateY": (0.0, 45.0),
    "Posterize": (4.0, 1.0),
    "Cutout": (0.0, 20.0),
    "SamplePairing": (0.0, 1.0),
}
UDA = {name: ends for name, ends in PAPER.items() if name != "SamplePairing"} | {
    "Cutout": (0.0, 20.0),
    "CropBilinear": (0.0, 10.0),
}
ENDS = {"paper": PAPER, "released": RELEASED, "uda": UDA}
CASES = [(space, name) for space, ends in ENDS.items() for name in ends]

every_case = pytest.mark.parametrize(("space", "name"), CASES)


def at(space, name, m, sign=1, height=HEIGHT, width=WIDTH):
    return argument(name, m, space=space, sign=sign, height=height, width=width)


def test_the_spaces_and_their_operations():
    assert set(spaces()) == set(ENDS)
    assert tuple(spaces()["paper"]) == NAMES
    assert tuple(spaces()["released"]) == NAMES
    further = ("FlipLR", "FlipUD", "Blur", "Smooth", "CropBilinear")
    assert tuple(spaces()["uda"]) == (*(n for n in NAMES if n != "SamplePairing"), *further)
    assert all(argument(name, 0.5) is None for name in ("AutoContrast", "Invert", "Equalize"))


@every_case
def test_the_ends_of_the_range(space, name):
    ends = ENDS[space][name]
    assert (at(space, name, 0.0), at(space, name, 1.0)) == pytest.approx(ends, abs=1e-12)


@every_case
def test_apply_takes_every_argument_of_the_space(space, name):
    for height, width in ((32, 32), (40, 30), (1, 1)):
        images = samples.images(3, height, width, 11)
        center = samples.random_centers(11, height, width, samples.generator(name))
        for sign in (1, -1):
            values = [at(space, name, i / 10, sign, height, width) for i in range(11)]
            given = torch.tensor(values, dtype=torch.float64)
            answer = apply(images, name, given, center=center, partner=images.flip(0))
            assert answer.shape == images.shape


def _strength(space, name, sign, steps=21):
    """Mean change of 64 smooth images at m = 0 … 1, per step."""
    images = samples.smooth_images(64)
    center = samples.random_centers(64, 32, 32, samples.generator("strength"))[4:].repeat(2, 1)[:64]
    given = {"center": center, "partner": images.roll(1, 0)}
    changes = []
    for i in range(steps):
        value = at(space, name, i / (steps - 1), sign, 32, 32)
        changed = apply(images, name, value, **given).double()
        changes.append((changed - images.double()).abs().mean().item())
    return changes


# Where the operation moves pixels, one image may come to look more like itself as it moves further,
# and nearest sampling moves it in whole pixels: the law holds for the mean over images, up to the
# noise of 64 of them. Everything else changes each pixel ever more, so there the law is exact.
MOVING = NAMES[:5]
NOISE = 0.25


@every_case
@pytest.mark.parametrize("sign", [1, -1])
def test_strength_does_not_fall_as_the_magnitude_rises(space, name, sign):
    changes = _strength(space, name, sign)
    slack = NOISE if name in MOVING else 0.0
    for weaker, stronger in pairwise(changes):
        assert stronger >= weaker - slack
    if (space, name) != ("released", "ShearY"):
        assert changes[-1] > changes[0] + 1


@pytest.mark.parametrize("space", ["paper", "uda"])
def test_magnitude_zero_is_the_identity(space):
    images = samples.smooth_images(8)
    center = torch.full((8, 2), 16)
    for name in ENDS[space]:
        for sign in (1, -1):
            given = {"center": center, "partner": images.flip(0)}
            assert torch.equal(apply(images, name, at(space, name, 0.0, sign), **given), images)


@pytest.mark.parametrize(("arguments", "more", "message"), [
    (("Rotate", -0.01), {}, r"`magnitude` must lie in \[0, 1\], got -0.01"),
    (("Rotate", math.nan), {}, "got nan"),
    (("Rotate", 0.5), {"sign": 0}, "`sign` must be 1 or -1, got 0"),
    (("Rotate", 0.5), {"height": 0}, "`height` and `width`"),
    (("Rotate", 0.5), {"space": "papr"}, "space 'papr'.*paper, released, uda"),
    (("Rotat", 0.5), {}, "Did you mean 'Rotate'"),
    (("SamplePairing", 0.5), {"space": "uda"}, "operation of space 'uda': 'SamplePairing'"),
])  # fmt: skip
def test_what_has_no_argument_is_refused(arguments, more, message):
    with pytest.raises(ValueError, match=message):
        argument(*arguments, **more)
