"""Float images: quantised to 8 bits for the operation, untouched ones returned bit for bit."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from divaug.operations import OPERATIONS, apply
from tests.reference import samples

NAMES = tuple(OPERATIONS)
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
BITS = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}
COUNT, HEIGHT, WIDTH = 48, 13, 10

every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def floats(dtype, *key, channels=3):
    """Values of [0,1] that are no multiples of 1/255, with 0, 1 and the halves between bytes."""
    g = samples.generator("floats", *key)
    values = torch.rand(COUNT, channels, HEIGHT, WIDTH, generator=g)
    values[:, :, 0] = (torch.randint(0, 255, values[:, :, 0].shape, generator=g) + 0.5) / 255
    values[0, :, 1, :2] = torch.tensor([0.0, 1.0])
    return values.to(dtype)


def quantised(images):
    return (images.float() * 255 + 0.5).floor().to(torch.uint8)


def same_bits(left, right):
    return torch.equal(left.view(BITS[left.dtype]), right.view(BITS[right.dtype]))


def expected(images, operation, argument, centers, partners):
    """The rule, from the answer for bytes."""
    before = quantised(images)
    after = apply(before, operation, argument, center=centers, partner=quantised(partners))
    untouched = (after == before).flatten(1).all(1)
    result = (after.float() / 255).to(images.dtype)
    result[untouched] = images[untouched]
    return result, untouched


@every_dtype
@pytest.mark.parametrize("channels", [1, 3])
def test_float_images_follow_the_bytes(dtype, channels):
    g = samples.generator("mixed floats", channels)
    images = floats(dtype, "images", channels=channels)
    partners = floats(dtype, "partners", channels=channels)
    operation = torch.arange(COUNT) % len(NAMES)
    drawn = [samples.random_arguments(NAMES[i], 1, HEIGHT, WIDTH, g) for i in operation.tolist()]
    centers = samples.random_centers(COUNT, HEIGHT, WIDTH, g)
    answer = apply(images, operation, torch.cat(drawn), center=centers, partner=partners)
    wanted, untouched = expected(images, operation, torch.cat(drawn), centers, partners)
    assert answer.dtype == dtype
    assert 0 < untouched.sum() < COUNT
    assert same_bits(answer, wanted)


@every_dtype
def test_an_untouched_float_image_keeps_every_bit(dtype):
    images = floats(dtype, "untouched")
    assert not same_bits((quantised(images).float() / 255).to(dtype), images)
    answer = apply(images, "Brightness", torch.where(torch.arange(COUNT) % 2 == 0, 1.0, 0.5))
    assert same_bits(answer[::2], images[::2])
    assert not (answer[1::2] == images[1::2]).flatten(1).all(1).any()


@every_dtype
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("Invert", "Equalize")])
def test_the_argument_that_means_no_change_keeps_every_bit(dtype, name):
    neutral = {"Solarize": 256.0, "Posterize": 8.0}
    ones = dict.fromkeys(("Contrast", "Color", "Brightness", "Sharpness"), 1.0)
    images = floats(dtype, name)
    if name == "AutoContrast":
        images[:, :, 0, :2] = torch.tensor([0.0, 1.0], dtype=dtype)
    centers = torch.zeros(COUNT, 2, dtype=torch.int64)
    argument = (neutral | ones).get(name, 0.0)
    answer = apply(images, name, argument, center=centers, partner=images.flip(0))
    assert same_bits(answer, images)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_bytes_divided_by_255_survive_the_way_there_and_back(dtype):
    ramp = torch.arange(256, dtype=torch.uint8).reshape(1, 1, 16, 16)
    images = (ramp.float() / 255).to(dtype)
    answer = apply(apply(images, "Invert"), "Invert")
    assert same_bits(answer, images)


@every_dtype
def test_float_inputs_are_not_changed(dtype):
    images, partners = floats(dtype, "a"), floats(dtype, "b")
    before = images.clone(), partners.clone()
    versions = images._version, partners._version
    answer = apply(images, "SamplePairing", torch.linspace(0, 1, COUNT), partner=partners)
    answer.zero_()
    assert same_bits(images, before[0])
    assert same_bits(partners, before[1])
    assert (images._version, partners._version) == versions


@every_dtype
def test_an_empty_float_batch_comes_back_empty(dtype):
    images = torch.zeros(0, 3, 4, 5, dtype=dtype)
    answer = apply(images, "Equalize")
    assert answer.shape == images.shape
    assert answer.dtype == dtype


@every_dtype
def test_channels_last_floats(dtype):
    images = floats(dtype, "last")
    laid = images.to(memory_format=torch.channels_last)
    assert same_bits(apply(laid, "Rotate", 20).contiguous(), apply(images, "Rotate", 20))


@settings(derandomize=True, database=None, deadline=None, max_examples=200)
@given(st.floats(0, 1, width=32), st.sampled_from(DTYPES))
def test_any_value_is_rounded_to_the_nearest_byte(value, dtype):
    image = torch.full((1, 1, 1, 1), value).to(dtype)
    byte = int((image.float() * 255 + 0.5).floor().item())
    wanted = (torch.tensor(255 - byte).float() / 255).to(dtype)
    assert apply(image, "Invert").item() == wanted.item()


def test_no_gradient_flows_through_bytes():
    """That of images which an operation leaves as they are would pass for the operation's."""
    images = floats(torch.float32, "gradient")[:2].requires_grad_()
    names = [OPERATIONS.index("Invert"), OPERATIONS.index("Rotate")]
    assert not apply(images, torch.tensor(names), torch.zeros(2)).requires_grad
    assert images.requires_grad
