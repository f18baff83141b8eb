"""Laws of the operations: batching, identities, memory layouts, float images."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from divaug.operations import OPERATIONS, apply
from tests.reference import samples

NAMES = tuple(OPERATIONS)
law = settings(derandomize=True, database=None, deadline=None, max_examples=40)
sizes = st.tuples(st.integers(1, 24), st.integers(1, 24))
channels = st.sampled_from([1, 3])


@st.composite
def batches(draw, least=1, most=12):
    """A batch, an operation per image, and everything any of them may need."""
    height, width = draw(sizes)
    count = draw(st.integers(least, most))
    g = samples.generator("law", draw(st.integers(0, 2**32 - 1)))
    operation = torch.randint(0, len(NAMES), (count,), generator=g)
    shape = (count, draw(channels), height, width)
    images, partners = torch.randint(0, 256, (2, *shape), generator=g, dtype=torch.uint8)
    drawn = [samples.random_arguments(NAMES[i], 1, height, width, g) for i in operation.tolist()]
    argument = torch.cat(drawn) if drawn else torch.zeros(0, dtype=torch.float64)
    centers = samples.random_centers(count, height, width, g)
    return images, operation, argument, centers, partners


def run(images, operation, argument, centers, partners):
    return apply(images, operation, argument, center=centers, partner=partners)


def example(name, count=12, channels=3, height=17, width=11):
    """Images with the arguments of one operation, for the tests without hypothesis."""
    g = samples.generator("example", name, count, channels)
    images = samples.images(channels, height, width, count, "example")
    argument = samples.random_arguments(name, count, height, width, g)
    return images, name, argument, samples.random_centers(count, height, width, g), images.flip(0)


@law
@given(batches())
def test_a_batch_is_its_images_one_by_one(batch):
    whole = run(*batch)
    for i in range(len(whole)):
        images, operation, argument, centers, partners = (part[i : i + 1] for part in batch)
        name = NAMES[operation.item()]
        alone = run(images, name, argument.item(), centers, partners)
        assert torch.equal(alone[0], whole[i]), name


@law
@given(batches(most=24), st.randoms(use_true_random=False))
def test_permuting_the_batch_permutes_the_answer(batch, random):
    order = list(range(len(batch[0])))
    random.shuffle(order)
    assert torch.equal(run(*(part[order] for part in batch)), run(*batch)[order])


@law
@given(batches())
def test_nothing_that_was_given_is_changed(batch):
    before = [part.clone() for part in batch]
    versions = [part._version for part in batch]
    state = torch.random.get_rng_state()
    answer = run(*batch)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert (answer.shape, answer.dtype) == (batch[0].shape, torch.uint8)
    answer.add_(1)  # nor may the answer share memory with anything given
    for part, copy, version in zip(batch, before, versions, strict=True):
        assert torch.equal(part, copy)
        assert part._version == version


IDENTITIES = [
    *[(name, 0.0) for name in NAMES[:5]],
    ("TranslateX", 0.49),
    ("TranslateY", -0.5),
    ("Rotate", 360.0),
    ("Rotate", -360.0),
    ("Solarize", 256.0),
    ("Solarize", 255.5),
    ("Posterize", 8),
    *[(name, 1.0) for name in ("Contrast", "Color", "Brightness", "Sharpness")],
    ("Cutout", 0.0),
    ("Cutout", 0.49),
    ("SamplePairing", 0.0),
]


@pytest.mark.parametrize(("name", "argument"), IDENTITIES)
@pytest.mark.parametrize("channels", [1, 3])
def test_the_argument_that_means_no_change(name, argument, channels):
    images, _, _, centers, partners = example(name, channels=channels)
    answer = apply(images, name, argument, center=centers, partner=partners)
    assert torch.equal(answer, images)


def test_positive_translation_moves_content_left_and_up():
    images = samples.images(3, 8, 9, 6)
    left, up = apply(images, "TranslateX", 2), apply(images, "TranslateY", 3.0)
    assert torch.equal(left[..., :-2], images[..., 2:])
    assert (left[..., -2:] == 0).all()
    assert torch.equal(up[..., :-3, :], images[..., 3:, :])
    assert (up[..., -3:, :] == 0).all()


def test_rotation_is_counter_clockwise():
    images = samples.images(3, 12, 12, 6)
    assert torch.equal(apply(images, "Rotate", 90), torch.rot90(images, 1, (2, 3)))
    assert torch.equal(apply(images, "Rotate", -90), torch.rot90(images, -1, (2, 3)))


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_batch_comes_back_empty(name):
    images = torch.zeros(0, 3, 5, 6, dtype=torch.uint8)
    centers, nothing = torch.zeros(0, 2, dtype=torch.int64), torch.zeros(0)
    argument = samples.arguments(name, 5, 6)[0]
    for operation, value in ((name, argument), (name, nothing), (nothing.long(), nothing)):
        answer = apply(images, operation, value, center=centers, partner=images)
        assert answer.shape == images.shape
        assert answer.dtype == torch.uint8


def test_entries_that_an_operation_does_not_use_are_ignored():
    """No argument for three of them, no centre outside Cutout."""
    images = samples.images(3, 6, 7, 3)
    operation = torch.tensor([OPERATIONS.index(n) for n in ("Invert", "Cutout", "Equalize")])
    centers = torch.tensor([[-1, 99], [2, 3], [99, -1]])
    answer = apply(images, operation, torch.tensor([1e9, 3.0, -1e9]), center=centers)
    assert torch.equal(answer[0], 255 - images[0])
    assert torch.equal(answer[1:2], apply(images[1:2], "Cutout", 3, center=centers[1:2]))
    assert torch.equal(answer[2:], apply(images[2:], "Equalize"))


# --- layouts ----------------------------------------------------------------------------------


def _sliced(images):
    wide = images.repeat_interleave(2, dim=2).repeat_interleave(3, dim=3)
    return wide[:, :, 1::2, 1::3]


LAYOUTS = {
    "channels-last": lambda images: images.to(memory_format=torch.channels_last),
    "sliced": _sliced,
    "transposed": lambda images: images.transpose(2, 3).contiguous().transpose(2, 3),
    "batch inside": lambda images: images.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2),
    "every second": lambda images: images.repeat_interleave(2, dim=0)[::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [1, 3])
def test_the_layout_in_memory_does_not_matter(layout, channels):
    lay = LAYOUTS[layout]
    for name in NAMES:
        images, _, argument, centers, partners = example(name, channels=channels)
        laid = lay(images)
        assert torch.equal(laid, images)
        answer = run(laid, name, argument, centers.T.contiguous().T, lay(partners))
        assert torch.equal(answer, run(images, name, argument, centers, partners)), name


def test_a_number_a_whole_tensor_and_a_float_tensor_say_the_same():
    images = samples.images(3, 9, 9, 6)
    answer = apply(images, "Posterize", 3)
    for value in (3.0, torch.full((6,), 3), torch.full((6,), 3.0), torch.full((6,), 3.0).double()):
        assert torch.equal(apply(images, "Posterize", value), answer)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16], ids=str)
def test_channels_last_in_channels_last_out(dtype):
    images = samples.images(3, 9, 7, 6).clamp(max=1).to(dtype)
    laid = images.to(memory_format=torch.channels_last)
    for name, argument in (("Invert", None), ("Brightness", 1.0), ("Rotate", 30.0)):
        answer = apply(laid, name, argument)
        assert answer.is_contiguous(memory_format=torch.channels_last)
        assert apply(images, name, argument).is_contiguous()


# --- float images -----------------------------------------------------------------------------

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
def test_channels_last_floats(dtype):
    images = floats(dtype, "last")
    laid = images.to(memory_format=torch.channels_last)
    assert same_bits(apply(laid, "Rotate", 20).contiguous(), apply(images, "Rotate", 20))


def test_no_gradient_flows_through_bytes():
    """That of images which an operation leaves as they are would pass for the operation's."""
    images = floats(torch.float32, "gradient")[:2].requires_grad_()
    names = [OPERATIONS.index("Invert"), OPERATIONS.index("Rotate")]
    assert not apply(images, torch.tensor(names), torch.zeros(2)).requires_grad
    assert images.requires_grad
