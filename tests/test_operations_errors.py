"""Bad input to `apply`: each error names the argument, its requirement and its value."""

import math
import re

import pytest
import torch

from divaug.operations import OPERATIONS, Operation, apply
from divaug.operations.table import EVERY
from tests.reference.pillow_operations import WITHOUT_ARGUMENT

SHAPE = (4, 3, 6, 8)
IMAGES = torch.zeros(SHAPE, dtype=torch.uint8)
CENTERS = torch.zeros(4, 2, dtype=torch.int64)
GIVEN = {"center": CENTERS, "partner": IMAGES}
LAST = IMAGES.permute(0, 2, 3, 1)


def zeros(*shape, dtype=torch.uint8):
    return torch.zeros(shape, dtype=dtype)


def refused(kind, words, *args, **kwargs):
    """Check that apply raises an error of the kind whose message has all the words."""
    with pytest.raises(kind) as caught:
        apply(*args, **kwargs)
    assert type(caught.value) is kind
    for word in words:
        assert str(word).lower() in str(caught.value).lower()


@pytest.mark.parametrize(("kind", "images", "words"), [
    (TypeError, IMAGES.numpy(), ["ndarray", "torch.from_numpy"]),
    (TypeError, [IMAGES[0], IMAGES[0, :, :4]], ["list", "one size", "torch.stack"]),
    (TypeError, None, ["NoneType"]),
    *((TypeError, IMAGES.to(dtype), ["uint8", dtype]) for dtype in (
        torch.int64, torch.int8, torch.uint16, torch.float64, torch.bool, torch.complex64)),
    (ValueError, zeros(6, 8), ["four axes", "[B,C,H,W]", (6, 8)]),
    (ValueError, zeros(3, 6, 8), ["images[None]", (3, 6, 8)]),
    (ValueError, zeros(1, 4, 3, 6, 8), ["flatten", (1, 4, 3, 6, 8)]),
    (ValueError, zeros(4, 0, 6, 8), ["C=0", "grey or RGB"]),
    (ValueError, zeros(4, 4, 6, 8), ["C=4", "images[:, :3]"]),
    (ValueError, LAST, ["images.permute(0, 3, 1, 2)"]),
    (ValueError, zeros(2, 3, 0, 8), ["8192"]),
    (ValueError, zeros(1, 1, 8193, 1), ["8192"]),
    *((ValueError, torch.full(SHAPE, value, dtype=dtype), ["[0, 1]", "Normalize", "after"])
      for dtype in (torch.float32, torch.float16, torch.bfloat16)
      for value in (-0.01, 1.01, math.nan, math.inf)),
])  # fmt: skip
def test_images(kind, images, words):
    refused(kind, ["images", *words], images, "Invert")


@pytest.mark.parametrize(("kind", "operation", "words"), [
    (ValueError, "Shearx", ["Did you mean 'ShearX'", *EVERY]),
    (ValueError, "qqqqq", ["qqqqq", *EVERY]),
    (TypeError, None, ["NoneType"]),
    (TypeError, ["Invert"] * 4, ["list"]),
    (TypeError, torch.ones(4), ["integer", "float32"]),
    (TypeError, torch.ones(4, dtype=torch.bool), ["integer", "bool"]),
    *((ValueError, torch.tensor([6, wrong, 6, 6]), [wrong, "15"]) for wrong in (-1, 16)),
    *((ValueError, torch.full(shape, 6), [shape, "4"]) for shape in ((), (5,), (4, 1))),
])  # fmt: skip
def test_operation(kind, operation, words):
    refused(kind, ["operation", *words], IMAGES, operation)


def test_only_a_near_name_is_suggested():
    """Half of the letters of 'Foo' are in 'Color': that is not what was meant."""
    with pytest.raises(ValueError, match="unknown operation 'Foo'") as caught:
        apply(IMAGES, "Foo", 0.1)
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize(("kind", "argument", "words"), [
    *((ValueError, torch.zeros(shape), [shape, "4"]) for shape in ((3,), (4, 1), (1,))),
    (TypeError, "3", ["str"]),
    (TypeError, 1j, ["complex"]),
    (TypeError, torch.ones(4, dtype=torch.bool), ["bool"]),
    (TypeError, torch.ones(4, dtype=torch.complex64), ["complex64"]),
])  # fmt: skip
def test_argument(kind, argument, words):
    refused(kind, ["argument", *words], IMAGES, "Rotate", argument)


@pytest.mark.parametrize("name", [name for name in EVERY if name not in WITHOUT_ARGUMENT])
def test_every_range_is_closed_and_nothing_is_clamped(name):
    refused(ValueError, ["argument", name], IMAGES, name, **GIVEN)
    low, high = EVERY[name].low, 16.0 if name == "Cutout" else EVERY[name].high
    for value in (low, high):
        assert apply(IMAGES, name, value, **GIVEN).shape == SHAPE
    for value in (low - 0.25, high + 0.25, math.nan, math.inf, -math.inf):
        refused(ValueError, ["argument", name, f"{value:g}"], IMAGES, name, value, **GIVEN)
        if name in OPERATIONS:
            ids = torch.tensor([6, 6, 6, OPERATIONS.index(name)])
            many = torch.tensor([0.0, 0.0, 0.0, value], dtype=torch.float64)
            refused(ValueError, ["argument", name, f"{value:g}"], IMAGES, ids, many, **GIVEN)


@pytest.mark.parametrize("name", ["Posterize", "SolarizeAdd"])
def test_fractions_where_the_argument_is_an_integer(name):
    refused(ValueError, ["argument", name, "integer", 3.5], IMAGES, name, 3.5)


@pytest.mark.parametrize(("kind", "center", "words"), [
    (ValueError, None, ["missing", "Cutout"]),
    *((ValueError, torch.zeros(shape).long(), [shape]) for shape in ((2,), (3, 2), (4, 3))),
    (TypeError, CENTERS.float(), ["integer"]),
    (TypeError, (0, 0), ["integer"]),
    *((ValueError, CENTERS + torch.tensor(yx), [yx]) for yx in ((-1, 0), (0, -1), (6, 0), (0, 8))),
])  # fmt: skip
def test_center(kind, center, words):
    refused(kind, ["center", *words], IMAGES, "Cutout", 3.0, center=center)


@pytest.mark.parametrize(("kind", "partner", "words"), [
    (ValueError, None, ["missing", "SamplePairing"]),
    (ValueError, zeros(3, 3, 6, 8), [(3, 3, 6, 8), SHAPE]),
    (ValueError, zeros(4, 1, 6, 8), [(4, 1, 6, 8), SHAPE]),
    (ValueError, IMAGES[0], ["[B,C,H,W]", (3, 6, 8)]),
    (ValueError, IMAGES.float(), ["float32"]),
    (ValueError, LAST, ["partner.permute(0, 3, 1, 2)"]),
    (TypeError, IMAGES.long(), ["int64"]),
    (TypeError, IMAGES.numpy(), ["ndarray"]),
])  # fmt: skip
def test_partner(kind, partner, words):
    refused(kind, ["partner", *words], IMAGES, "SamplePairing", 0.3, partner=partner)


def test_a_float_partner_outside_zero_to_one():
    images = torch.full(SHAPE, 0.5)
    refused(ValueError, ["partner", "Normalize"], images, "SamplePairing", 0.1, partner=images * 3)


SAME = EVERY["Invert"].transform


@pytest.mark.parametrize(("arguments", "error", "message"), [
    (("", SAME), ValueError, "`name` must be a text"),
    ((None, SAME), ValueError, "`name` must be a text"),
    (("X", None), TypeError, "`transform` of X must be a function (images, argument, center"),
    (("X", SAME, "value", "a", 1.0), TypeError, "`low` of X must be a number, got 'a'"),
    (("X", SAME, "value", 2, 1), ValueError, "`low` of X must not be above `high`, got 2 and 1"),
    (("X", SAME, "value", math.nan, 1), ValueError, "got nan and 1"),
])  # fmt: skip
def test_an_operation_of_your_own(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        Operation(*arguments)
