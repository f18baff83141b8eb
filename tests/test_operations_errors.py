"""Bad input: each message names the argument, the rule and what came. Nothing is clamped."""

import math

import pytest
import torch

from divaug.operations import OPERATIONS, apply

NAMES = tuple(OPERATIONS)
SHAPE = (4, 3, 6, 8)
IMAGES = torch.zeros(SHAPE, dtype=torch.uint8)
CENTERS = torch.zeros(4, 2, dtype=torch.int64)


def refused(kind, words, *args, **kwargs):
    """Check that apply refuses with an error of the kind whose message has all the words."""
    with pytest.raises(kind) as caught:
        apply(*args, **kwargs)
    assert type(caught.value) is kind
    message = str(caught.value)
    for word in words:
        assert str(word).lower() in message.lower(), f"{word!r} is missing in: {message}"


@pytest.mark.parametrize(
    "images", [IMAGES.numpy(), IMAGES.tolist(), None, "image"], ids=["array", "list", "none", "str"]
)
def test_images_that_are_no_tensor(images):
    refused(TypeError, ["images", type(images).__name__], images, "Invert")


def test_images_of_several_sizes():
    images = [IMAGES[0], IMAGES[0, :, :4]]
    refused(TypeError, ["images", "list", "one size", "torch.stack"], images, "Invert")


def test_images_within_something_else():
    refused(TypeError, ["images", "dict", "pick the images out"], {"image": IMAGES}, "Invert")


@pytest.mark.parametrize(
    ("dtype", "remedy"),
    [(torch.int64, " .to(torch.uint8)."), (torch.int8, "with .to(torch.uint8)."),
     (torch.uint16, " .float().div(65535) if"), (torch.int16, " .float().div(65535) if"),
     (torch.float64, " .float()."), (torch.bool, " .mul(255).to(torch.uint8)."),
     (torch.complex64, " .to(torch.uint8).")],
    ids=str,
)  # fmt: skip
def test_images_of_another_type(dtype, remedy):
    refused(TypeError, ["images", "uint8", dtype, remedy], IMAGES.to(dtype), "Invert")


@pytest.mark.parametrize("shape", [(), (6,), (6, 8), (3, 6, 8), (1, 4, 3, 6, 8)], ids=str)
def test_images_of_another_rank(shape):
    images = torch.zeros(shape, dtype=torch.uint8)
    refused(ValueError, ["images", "[B,C,H,W]", shape], images, "Invert")


@pytest.mark.parametrize("channels", [0, 2, 4])
def test_images_of_another_channel_count(channels):
    images = torch.zeros(4, channels, 6, 8, dtype=torch.uint8)
    refused(ValueError, ["images", "1", "3", channels, "grey or RGB"], images, "Invert")


def test_the_remedy_names_the_argument_it_is_for():
    last = IMAGES.permute(0, 2, 3, 1)
    refused(ValueError, ["images.permute(0, 3, 1, 2)"], last, "Invert")
    rgba = torch.zeros(4, 6, 8, 4, dtype=torch.uint8)
    refused(ValueError, ["images.permute(0, 3, 1, 2)[:, :3]", "alpha"], rgba, "Invert")
    words = ["partner.permute(0, 3, 1, 2)"]
    refused(ValueError, words, IMAGES, "SamplePairing", 0.3, partner=last)


@pytest.mark.parametrize("shape", [(2, 3, 0, 8), (2, 3, 6, 0), (1, 1, 8193, 1), (1, 1, 1, 8193)])
def test_images_without_pixels_or_with_too_many(shape):
    refused(ValueError, ["images", "8192"], torch.zeros(shape, dtype=torch.uint8), "Invert")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("value", [-0.01, 1.01, 2.0, math.nan, math.inf, -math.inf])
def test_float_images_outside_zero_to_one(dtype, value):
    images = torch.full(SHAPE, 0.5, dtype=dtype)
    images[2, 1, 3, 4] = value
    refused(ValueError, ["images", "[0, 1]", "Normalize", "after"], images, "Invert")


def test_partner_outside_zero_to_one():
    images = torch.full(SHAPE, 0.5)
    refused(ValueError, ["partner", "Normalize"], images, "SamplePairing", 0.1, partner=images * 3)


@pytest.mark.parametrize(("typed", "meant"), [("Shearx", "ShearX"), ("Brightnes", "Brightness")])
def test_an_unknown_name_lists_the_sixteen_and_the_nearest(typed, meant):
    with pytest.raises(ValueError, match="operation") as caught:
        apply(IMAGES, typed, 0.1)
    message = str(caught.value)
    assert typed in message
    for name in NAMES:
        assert name in message
    assert message.count(meant) == 2, "once in the list, once as the suggestion"


def test_a_name_near_to_nothing():
    refused(ValueError, ["operation", "qqqqq", *NAMES], IMAGES, "qqqqq", 0.1)


def test_only_a_near_name_is_suggested():
    """Half of the letters of 'Foo' are in 'Color': that is not what was meant."""
    with pytest.raises(ValueError, match="unknown operation 'Foo'") as caught:
        apply(IMAGES, "Foo", 0.1)
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("operation", [None, 3.5, ["Invert"] * 4], ids=str)
def test_an_operation_that_is_neither_name_nor_tensor(operation):
    refused(TypeError, ["operation", type(operation).__name__], IMAGES, operation)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool], ids=str)
def test_an_operation_tensor_that_is_not_of_integers(dtype):
    refused(TypeError, ["operation", "integer", dtype], IMAGES, torch.ones(4, dtype=dtype))


@pytest.mark.parametrize("wrong", [-1, 16, 1000])
def test_an_operation_number_outside_the_table(wrong):
    refused(ValueError, ["operation", wrong, "15"], IMAGES, torch.tensor([6, wrong, 6, 6]))


@pytest.mark.parametrize("shape", [(), (3,), (5,), (4, 1)], ids=str)
def test_operations_that_do_not_match_the_batch(shape):
    refused(ValueError, ["operation", shape, "4"], IMAGES, torch.full(shape, 6))


@pytest.mark.parametrize("shape", [(3,), (5,), (4, 1), (1,)], ids=str)
def test_arguments_that_do_not_match_the_batch(shape):
    refused(ValueError, ["argument", shape, "4"], IMAGES, "Rotate", torch.zeros(shape))


@pytest.mark.parametrize("argument", ["3", [1.0] * 4, 1j], ids=str)
def test_an_argument_that_is_no_number(argument):
    refused(TypeError, ["argument", type(argument).__name__], IMAGES, "Rotate", argument)


@pytest.mark.parametrize("dtype", [torch.bool, torch.complex64], ids=str)
def test_an_argument_tensor_of_no_numbers(dtype):
    refused(TypeError, ["argument", dtype], IMAGES, "Rotate", torch.ones(4, dtype=dtype))


ONE_OF_EACH = [name for name in NAMES if name not in ("AutoContrast", "Invert", "Equalize")]


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_missing_argument(name):
    given = {"center": CENTERS, "partner": IMAGES}
    refused(ValueError, ["argument", name], IMAGES, name, **given)
    ids = torch.tensor([6, 6, NAMES.index(name), 6])
    refused(ValueError, ["argument", name], IMAGES, ids, **given)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_an_argument_that_is_not_finite(name, value):
    given = {"center": CENTERS, "partner": IMAGES}
    refused(ValueError, ["argument", name, value], IMAGES, name, value, **given)
    good = 1.0 if name == "Posterize" else 0.5
    many = torch.tensor([good, good, value, good])
    refused(ValueError, ["argument", name, value], IMAGES, name, many, **given)


OUTSIDE = [
    *[(name, value) for name in ("ShearX", "ShearY") for value in (-2.01, 2.01)],
    *[(name, value) for name in ("TranslateX", "TranslateY") for value in (-16385.0, 16385.0)],
    ("Rotate", -360.5),
    ("Rotate", 360.5),
    ("Solarize", -0.5),
    ("Solarize", 256.5),
    ("Posterize", 0.0),
    ("Posterize", 9.0),
    ("Posterize", -1.0),
    *[(name, v) for name in ("Contrast", "Color", "Brightness", "Sharpness") for v in (-0.5, 10.5)],
    ("Cutout", -0.25),
    ("Cutout", 16.25),
    ("SamplePairing", -0.25),
    ("SamplePairing", 1.25),
]


@pytest.mark.parametrize(("name", "value"), OUTSIDE)
def test_an_argument_outside_its_range(name, value):
    given = {"center": CENTERS, "partner": IMAGES}
    refused(ValueError, ["argument", name, f"{value:g}"], IMAGES, name, value, **given)
    ids = torch.tensor([6, 6, 6, NAMES.index(name)])
    many = torch.tensor([0.0, 0.0, 0.0, value], dtype=torch.float64)
    refused(ValueError, ["argument", name, f"{value:g}"], IMAGES, ids, many, **given)


@pytest.mark.parametrize("value", [3.5, 7.999])
def test_a_fraction_of_a_bit(value):
    refused(ValueError, ["argument", "Posterize", "whole", value], IMAGES, "Posterize", value)


def test_the_ends_of_every_range_are_allowed():
    ends = {name: [] for name, _ in OUTSIDE}
    for name, limits in (
        ("ShearX", (-2, 2)),
        ("ShearY", (-2, 2)),
        ("TranslateX", (-16384, 16384)),
        ("TranslateY", (-16384, 16384)),
        ("Rotate", (-360, 360)),
        ("Solarize", (0, 256)),
        ("Posterize", (1, 8)),
        *[(name, (0, 10)) for name in ("Contrast", "Color", "Brightness", "Sharpness")],
        ("Cutout", (0, 16)),
        ("SamplePairing", (0, 1)),
    ):
        ends[name].extend(limits)
        for value in limits:
            answer = apply(IMAGES, name, value, center=CENTERS, partner=IMAGES)
            assert answer.shape == IMAGES.shape
    assert all(ends.values())


def test_a_missing_center():
    refused(ValueError, ["center", "Cutout"], IMAGES, "Cutout", 3.0)
    ids = torch.tensor([6, 6, NAMES.index("Cutout"), 6])
    refused(ValueError, ["center", "Cutout"], IMAGES, ids, torch.ones(4))


@pytest.mark.parametrize("shape", [(2,), (4,), (3, 2), (4, 3), (4, 2, 1)], ids=str)
def test_centers_that_do_not_match_the_batch(shape):
    center = torch.zeros(shape, dtype=torch.int64)
    refused(ValueError, ["center", shape], IMAGES, "Cutout", 3.0, center=center)


@pytest.mark.parametrize("center", [CENTERS.float(), CENTERS.tolist(), (0, 0)], ids=str)
def test_centers_that_are_no_integer_tensor(center):
    refused(TypeError, ["center", "integer"], IMAGES, "Cutout", 3.0, center=center)


@pytest.mark.parametrize("outside", [(-1, 0), (0, -1), (6, 0), (0, 8)], ids=str)
def test_a_center_outside_the_image(outside):
    center = CENTERS.clone()
    center[1] = torch.tensor(outside)
    wrong = next(value for value in outside if value != 0)
    refused(ValueError, ["center", wrong], IMAGES, "Cutout", 3.0, center=center)


def test_a_missing_partner():
    refused(ValueError, ["partner", "SamplePairing"], IMAGES, "SamplePairing", 0.3)
    ids = torch.tensor([6, 6, NAMES.index("SamplePairing"), 6])
    refused(ValueError, ["partner", "SamplePairing"], IMAGES, ids, torch.full((4,), 0.3))


@pytest.mark.parametrize("shape", [(3, 3, 6, 8), (4, 1, 6, 8), (4, 3, 8, 6)], ids=str)
def test_a_partner_of_another_shape(shape):
    partner = torch.zeros(shape, dtype=torch.uint8)
    refused(ValueError, ["partner", shape, SHAPE], IMAGES, "SamplePairing", 0.3, partner=partner)


def test_a_partner_of_another_rank():
    partner = IMAGES[0]
    words = ["partner", "[B,C,H,W]", (3, 6, 8)]
    refused(ValueError, words, IMAGES, "SamplePairing", 0.3, partner=partner)


def test_a_partner_of_another_type():
    """A type that images may have is a mismatch; one that they may not is a wrong type."""
    for kind, dtype in ((ValueError, torch.float32), (TypeError, torch.int64)):
        partner = IMAGES.to(dtype)
        refused(kind, ["partner", dtype], IMAGES, "SamplePairing", 0.3, partner=partner)


def test_a_partner_that_is_no_tensor():
    refused(TypeError, ["partner"], IMAGES, "SamplePairing", 0.3, partner=IMAGES.numpy())


@pytest.mark.parametrize(
    ("shape", "remedy", "follow"),
    [
        ((3, 8, 8), "images[None]", lambda images: images[None]),
        ((2, 4, 3, 8, 8), "images.flatten(0, 1)", lambda images: images.flatten(0, 1)),
        ((2, 2, 4, 3, 8, 8), "images.flatten(0, 2)", lambda images: images.flatten(0, 2)),
    ],
    ids=["3 axes", "5 axes", "6 axes"],
)
def test_the_remedy_for_another_number_of_axes_leads_to_a_batch(shape, remedy, follow):
    images = torch.zeros(shape, dtype=torch.uint8)
    refused(ValueError, ["four axes", remedy], images, "Invert")
    assert apply(follow(images), "Invert").shape[-3:] == (3, 8, 8)


def test_images_without_axes_for_a_batch_are_given_no_false_remedy():
    with pytest.raises(ValueError, match="four axes") as told:
        apply(torch.zeros(8, 8, dtype=torch.uint8), "Invert")
    assert "[None]" not in str(told.value)
