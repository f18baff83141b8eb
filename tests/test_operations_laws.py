"""Laws of the operations that hold for every image: batching, identities, memory, layouts."""

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
@given(batches(), st.sampled_from([torch.int32, torch.int16, torch.uint8]))
def test_the_integer_type_of_the_operation_does_not_matter(batch, dtype):
    images, operation, *rest = batch
    assert torch.equal(run(images, operation.to(dtype), *rest), run(*batch))


@law
@given(batches())
def test_nothing_that_was_given_is_changed(batch):
    before = [part.clone() for part in batch]
    versions = [part._version for part in batch]
    answer = run(*batch)
    answer.add_(1)  # nor may the answer share memory with anything given
    for part, copy, version in zip(batch, before, versions, strict=True):
        assert torch.equal(part, copy)
        assert part._version == version


@law
@given(batches(least=0))
def test_shape_dtype_and_device_are_kept(batch):
    answer = run(*batch)
    assert answer.shape == batch[0].shape
    assert answer.dtype == torch.uint8
    assert answer.device == batch[0].device


@law
@given(batches())
def test_inverting_twice_is_the_identity(batch):
    images = batch[0]
    once = apply(images, "Invert")
    assert torch.equal(once, 255 - images)
    assert torch.equal(apply(once, "Invert"), images)


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


@pytest.mark.parametrize("name", ["AutoContrast", "Equalize"])
def test_a_constant_channel_has_no_contrast_to_stretch(name):
    images = samples.images(3, 20, 20, 12)
    images[:, 1] = 77
    answer = apply(images, name)
    assert (answer[:, 1] == 77).all()
    assert not torch.equal(answer, images)


@pytest.mark.parametrize("factor", [0.0, 0.3, 1.7, 10.0])
def test_color_leaves_grey_alone(factor):
    grey = samples.images(1, 9, 13, 12)
    assert torch.equal(apply(grey, "Color", factor), grey)
    as_rgb = grey.expand(-1, 3, -1, -1)
    assert torch.equal(apply(as_rgb, "Color", factor), as_rgb)


POINTWISE = ("Invert", "Solarize", "Posterize", "Brightness", "SamplePairing")
GEOMETRY = NAMES[:5]
CHANNELWISE = (*GEOMETRY, *POINTWISE, "AutoContrast", "Equalize", "Sharpness")


@pytest.mark.parametrize("name", CHANNELWISE)
def test_channels_do_not_mix(name):
    images, _, argument, centers, partners = example(name)
    answer = apply(images, name, argument, center=centers, partner=partners)
    for c in range(3):
        alone = run(images[:, c : c + 1], name, argument, centers, partners[:, c : c + 1])
        assert torch.equal(answer[:, c : c + 1], alone)


@pytest.mark.parametrize("name", POINTWISE)
def test_pixels_do_not_mix(name):
    images, _, argument, _, partners = example(name)
    turned = apply(images.flip(2), name, argument, partner=partners.flip(2))
    assert torch.equal(turned.flip(2), apply(images, name, argument, partner=partners))


@pytest.mark.parametrize("axis", ["X", "Y"])
@pytest.mark.parametrize("kind", ["Shear", "Translate"])
def test_the_two_axes_are_one_another_transposed(kind, axis):
    other = {"X": "Y", "Y": "X"}[axis]
    images, _, argument, *_ = example(kind + axis)
    turned = apply(images.transpose(2, 3), kind + other, argument)
    assert torch.equal(turned.transpose(2, 3), apply(images, kind + axis, argument))


@pytest.mark.parametrize("name", GEOMETRY)
def test_geometry_invents_no_values_but_black(name):
    images = samples.images(1, 20, 20, 24).clamp(min=1)
    argument = samples.random_arguments(name, 24, 20, 20, samples.generator(name))
    for before, after in zip(images, apply(images, name, argument), strict=True):
        assert set(after.unique().tolist()) <= {0, *before.unique().tolist()}


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


@law
@given(batches())
def test_no_global_random_number_is_drawn(batch):
    state = torch.random.get_rng_state()
    run(*batch)
    assert torch.equal(torch.random.get_rng_state(), state)
