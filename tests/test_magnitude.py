"""Magnitudes: m = 0 hardly changes an image, m = 1 changes it most; the ranges are agreed."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from divaug.operations import FURTHER, OPERATIONS, apply
from divaug.operations.magnitude import argument, spaces
from tests.reference import samples

NAMES = tuple(OPERATIONS)
WITHOUT = ("AutoContrast", "Invert", "Equalize")
ENHANCE = ("Contrast", "Color", "Brightness", "Sharpness")
SIGNED = (*NAMES[:5], *ENHANCE)
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

law = settings(derandomize=True, database=None, deadline=None, max_examples=50)
magnitudes = st.floats(0, 1)
every_case = pytest.mark.parametrize(("space", "name"), CASES)


def at(space, name, m, sign=1, height=HEIGHT, width=WIDTH):
    return argument(name, m, space=space, sign=sign, height=height, width=width)


def test_the_spaces_and_their_operations():
    assert set(spaces()) == set(ENDS)
    assert tuple(spaces()["paper"]) == NAMES
    assert tuple(spaces()["released"]) == NAMES
    further = ("FlipLR", "FlipUD", "Blur", "Smooth", "CropBilinear")
    assert tuple(spaces()["uda"]) == (*(n for n in NAMES if n != "SamplePairing"), *further)
    assert tuple(FURTHER) == (*further, "SolarizeAdd")


@every_case
def test_the_ends_of_the_range(space, name):
    ends = ENDS[space][name]
    assert (at(space, name, 0.0), at(space, name, 1.0)) == pytest.approx(ends, abs=1e-12)


@pytest.mark.parametrize("space", ENDS)
@pytest.mark.parametrize("name", WITHOUT)
def test_operations_without_an_argument(space, name):
    assert at(space, name, 0.5) is None


def test_the_default_is_the_paper_at_32_by_32():
    for name in NAMES:
        assert argument(name, 0.7) == at("paper", name, 0.7, height=32, width=32)


@law
@given(m=magnitudes)
def test_between_the_ends_the_argument_is_linear(m):
    for space, name in CASES:
        if name != "Posterize":
            low, high = ENDS[space][name]
            assert at(space, name, m) == pytest.approx(low + (high - low) * m, abs=1e-9)


@law
@given(m=magnitudes)
@example(m=0.125)
@example(m=0.375)
@example(m=0.875)
def test_posterize_keeps_whole_bits(m):
    assert at("paper", "Posterize", m) == 8 - math.floor(4 * m + 0.5)
    assert at("uda", "Posterize", m) == 8 - math.floor(4 * m + 0.5)
    assert at("released", "Posterize", m) == max(1, math.floor(4 * (1 - m)))


@law
@given(m=magnitudes)
def test_the_sign_mirrors_signed_operations_and_no_others(m):
    for space, name in CASES:
        plus, minus = at(space, name, m, sign=1), at(space, name, m, sign=-1)
        centre = 1.0 if name in ENHANCE else 0.0
        if name in SIGNED:
            assert plus - centre == pytest.approx(centre - minus, abs=1e-12)
        else:
            assert plus == minus


@pytest.mark.parametrize("space", ENDS)
def test_no_range_is_constant_but_the_one_that_was_released_so(space):
    """ShearY of the released code was typed as (0.3, 0.3)."""
    constant = {name for name in ENDS[space] if at(space, name, 0.0) == at(space, name, 1.0)}
    assert constant == ({"ShearY"} if space == "released" else set())


@law
@given(m=magnitudes, height=st.integers(1, 300), width=st.integers(1, 300))
def test_which_side_of_the_image_scales_the_argument(m, height, width):
    sides = {
        "paper": {"TranslateX": width, "TranslateY": height, "Cutout": min(height, width)},
        "released": {"TranslateX": width, "TranslateY": width, "Cutout": width},
        "uda": {
            "TranslateX": width,
            "TranslateY": height,
            "Cutout": width,
            "CropBilinear": width,
        },
    }
    part = {"TranslateX": 0.45, "TranslateY": 0.45, "Cutout": 0.2, "CropBilinear": 0.1}
    for space, name in CASES:
        value = at(space, name, m, height=height, width=width)
        if name in part:
            assert value == pytest.approx(part[name] * m * sides[space][name], abs=1e-9)
        else:
            assert value == at(space, name, m)


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


@pytest.mark.parametrize("m", [-0.01, 1.01, math.nan, math.inf])
def test_a_magnitude_outside_zero_to_one(m):
    with pytest.raises(ValueError, match=rf"magnitude.*{m}"):
        argument("Rotate", m)


@pytest.mark.parametrize("sign", [0, 2, 0.5])
def test_a_sign_that_is_none(sign):
    with pytest.raises(ValueError, match=rf"sign.*{sign}"):
        argument("Rotate", 0.5, sign=sign)


def test_an_unknown_space_lists_the_three():
    with pytest.raises(ValueError, match="space") as caught:
        argument("Rotate", 0.5, space="papr")
    assert all(space in str(caught.value) for space in ("papr", *ENDS))


def test_an_unknown_operation():
    with pytest.raises(ValueError, match=r"operation.*Rotat"):
        argument("Rotat", 0.5)


def test_an_operation_that_the_space_does_not_have():
    with pytest.raises(ValueError, match=r"SamplePairing.*uda|uda.*SamplePairing"):
        argument("SamplePairing", 0.5, space="uda")
