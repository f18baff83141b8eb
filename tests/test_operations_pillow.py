"""Zero differing bytes: every operation against Pillow, over sizes, values and arguments."""

import pytest
import torch

from divaug.operations import FURTHER, OPERATIONS, apply
from tests.reference import samples
from tests.reference.pillow_operations import NAMES, WITHOUT_ARGUMENT, pillow_batch

SIZES = [(1, 1), (1, 7), (7, 1), (17, 11), (32, 32), (224, 160)]
BLENDS = ("Contrast", "Color", "Brightness", "Sharpness")


def assert_same_bytes(ours, theirs, describe):
    """Fail with the image, its operation and the first differing pixel."""
    assert ours.dtype == torch.uint8
    assert ours.shape == theirs.shape
    wrong = (ours != theirs).flatten(1).any(1).nonzero().flatten().tolist()
    if wrong:
        first = wrong[0]
        c, y, x = (ours[first] != theirs[first]).nonzero()[0].tolist()
        pytest.fail(
            f"{len(wrong)} of {len(ours)} images differ from Pillow; first {describe(first)}: "
            f"channel {c}, y {y}, x {x}: {ours[first, c, y, x]} instead of "
            f"{theirs[first, c, y, x]}; {(ours[first] != theirs[first]).sum()} bytes in all"
        )


def check(images, names, arguments, centers, partners, dtype=torch.float64):
    """Compare one apply call with Pillow; `names` is one name, or one name per image."""
    count = len(images)
    if isinstance(names, str):
        operation, names = names, [names] * count
    else:
        operation = torch.tensor([OPERATIONS.index(name) for name in names])
    values = torch.tensor([0.0 if a is None else a for a in arguments], dtype=dtype)
    ours = apply(images, operation, values, center=centers, partner=partners)
    theirs = pillow_batch(images, names, values.tolist(), centers, partners)
    assert_same_bytes(
        ours,
        theirs,
        lambda i: f"is number {i}, {names[i]} {values[i].item()!r}, size {tuple(images.shape[1:])}",
    )
    return ours


def test_the_table_is_the_agreed_one_in_the_agreed_order():
    assert (*OPERATIONS, *FURTHER) == NAMES


@pytest.mark.parametrize("channels", [1, 3], ids=["grey", "rgb"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", NAMES)
def test_equal_to_pillow(name, size, channels):
    arguments = samples.arguments(name, *size)
    if size == (224, 160):  # enough pixels in one image that every second argument will do
        arguments = arguments[::2] if len(arguments) < 16 else arguments[::3]
    repeated = arguments * len(samples.KINDS)
    images = torch.stack(
        [
            samples.image(kind, channels, *size, i)
            for kind in samples.KINDS
            for i, _ in enumerate(arguments)
        ]
    )
    count = len(images)
    centers = samples.random_centers(count, *size, samples.generator(name, size))
    partners = (
        samples.images(channels, *size, count, "partner") if name == "SamplePairing" else None
    )
    check(images, name, repeated, centers, partners)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_ARGUMENT])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_equal_to_pillow_at_random_arguments(name, dtype):
    for size, count in [((17, 11), 128), ((32, 32), 64), ((33, 48), 32)]:
        g = samples.generator("random", name, size, str(dtype))
        images = samples.images(3, *size, count, "random")
        partners = images.flip(0)
        centers = samples.random_centers(count, *size, g)
        arguments = samples.random_arguments(name, count, *size, g).to(dtype).tolist()
        check(images, name, arguments, centers, partners, dtype)


@pytest.mark.parametrize("channels", [1, 3], ids=["grey", "rgb"])
@pytest.mark.parametrize("size", [(1, 1), (17, 11), (32, 32)], ids=str)
def test_mixed_batch_is_equal_to_pillow_image_by_image(size, channels):
    count = 8 * len(OPERATIONS)
    g = samples.generator("mixed", size, channels)
    order = torch.randperm(count, generator=g)
    names = [OPERATIONS[i % len(OPERATIONS)] for i in order.tolist()]
    assert set(names) == set(OPERATIONS)
    images = samples.images(channels, *size, count, "mixed")[order]
    partners = samples.images(channels, *size, count, "mixed partner")
    centers = samples.random_centers(count, *size, g)
    arguments = [samples.random_arguments(name, 1, *size, g).item() for name in names]
    check(images, names, arguments, centers, partners)


@pytest.mark.parametrize("shape", [(1, 8192), (8192, 1), (3, 8192), (8192, 2)], ids=str)
@pytest.mark.parametrize("name", ["ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate"])
def test_geometry_on_the_longest_images(name, shape):
    arguments = [a for a in samples.arguments(name, *shape) if a is not None]
    images = samples.images(1, *shape, len(arguments), "long")
    check(images, name, arguments, None, None)


@pytest.mark.parametrize("name", ["ShearX", "ShearY"])
def test_shear_at_the_halves_of_the_fixed_point(name):
    """Coefficients exactly between two steps of 1/65536 are rounded up."""
    steps = torch.arange(-9, 10, dtype=torch.float64) / 2
    factors = torch.cat([(base + steps) / 65536 for base in (0, 4096, 21845, -21845, 65536)])
    image = samples.image("full", 1, 64, 64, "shear")
    check(image.expand(len(factors), -1, -1, -1), name, factors.tolist(), None, None)


@pytest.mark.parametrize("side", [1, 7, 32, 100, 1025, 8192])
@pytest.mark.parametrize("axis", ["X", "Y"])
def test_translation_just_beside_a_half(axis, side):
    """Pillow adds 1 from pixel to pixel in floating point, which may round to the next pixel."""
    halves = [0.5, 1.5, 2.5, 10.5, 62.5, 63.5, 500.5, -0.5, -1.5, -2.5, -10.5, -500.5]
    steps = [0.0, 1e-16, 2e-16, 1e-15, 3e-15, 7e-15, 1e-14, 1e-13, 3e-13, 1e-12, 1e-11]
    pixels = [half + sign * step for half in halves for step in steps for sign in (1, -1)]
    pixels += [sign * 0.45 * side * level / 30 for level in range(31) for sign in (1, -1)]
    row = samples.image("full", 1, 1, side, "half")
    image = row if axis == "X" else row.transpose(1, 2)
    check(image.expand(len(pixels), -1, -1, -1), f"Translate{axis}", pixels, None, None)


@pytest.mark.parametrize("size", [(90, 90), (61, 61), (61, 90), (12, 13)], ids=str)
def test_whole_degrees(size):
    """Right angles of square images are copies in Pillow, of others an affine map."""
    angles = [float(angle) for angle in range(-360, 361, 5)]
    images = samples.image("full", 1, *size).expand(len(angles), -1, -1, -1)
    check(images, "Rotate", angles, None, None)


def test_blend_of_every_pair_of_bytes():
    """The weights include ones where a fused multiply-add gives another byte."""
    rows = torch.arange(256, dtype=torch.uint8)[:, None].expand(256, 256)
    weights = [i / 40 for i in range(41)] + [0.4 * 0.123, 1 / 3, 0.7, 0.1234567, 1e-7, 1 - 1e-7]
    images = rows.expand(len(weights), 1, 256, 256)
    partners = rows.T.expand(len(weights), 1, 256, 256)
    check(images, "SamplePairing", weights, None, partners)


@pytest.mark.parametrize("name", BLENDS)
def test_enhancement_beyond_both_ends_of_the_byte(name):
    factors = [1 + sign * 0.9 * i / 25 for i in range(26) for sign in (1, -1)] + [2.5, 7.7, 10]
    image = samples.image("full", 3, 48, 48, "enhance")
    image[:, :8] = samples.image("gradient", 3, 8, 48)
    check(image.expand(len(factors), -1, -1, -1), name, factors, None, None)


def test_grey_value_of_many_colours():
    """Color at factor 0 shows Pillow's luma: 256 × 256 pairs of red and green, 18 blues."""
    red = torch.arange(256)[:, None].expand(256, 256)
    blues = [*range(0, 256, 16), 254, 255]
    images = torch.stack([torch.stack([red, red.T, torch.full_like(red, b)]) for b in blues])
    check(images.to(torch.uint8), "Color", [0.0] * len(blues), None, None)


def test_contrast_rounds_the_mean_half_up():
    """Means that end in .5 exactly: 2k bytes of value v and v + 1."""
    ones = torch.tensor([[0, 1], [1, 0]])
    values = torch.arange(0, 255)
    images = (ones[None, None] + values[:, None, None, None]).to(torch.uint8)
    check(images, "Contrast", [0.0] * len(values), None, None)
    tens = torch.tensor([0] * 10 + [1] * 9)[None, None, None]
    check((tens + values[:, None, None, None]).to(torch.uint8), "Contrast", [0.0] * 255, None, None)


def test_autocontrast_between_every_second_pair_of_ends():
    pairs = [(lo, hi) for lo in range(0, 256, 2) for hi in range(lo, 256, 3)]
    lows, highs = torch.tensor(pairs).T[:, :, None]
    ramp = torch.arange(256)[None].clamp(lows, highs).to(torch.uint8)
    check(ramp[:, None, None], "AutoContrast", [None] * len(pairs), None, None)


def test_equalize_where_the_step_is_zero_one_and_large():
    """The step counts all pixels but those of the brightest value, divided by 255 in integers."""
    for pixels in (254, 255, 256, 300, 509, 510, 511, 766, 5000):
        g = samples.generator("equalize", pixels)
        counts = torch.randint(0, pixels + 1, (24,), generator=g)
        counts[:3] = torch.tensor([0, 1, pixels])
        images = torch.randint(0, 200, (24, 1, 1, pixels), generator=g)
        images[torch.arange(pixels) < counts[:, None, None, None]] = 220
        check(images.to(torch.uint8), "Equalize", [None] * 24, None, None)


@pytest.mark.parametrize("count", [42, 43, 60, 90])
def test_equalize_of_batches_around_the_size_where_its_keys_grow(count):
    """Up to 128 channels the value and the number of the channel fit 15 bits."""
    check(samples.images(3, 20, 20, count, "keys"), "Equalize", [None] * count, None, None)


@pytest.mark.parametrize("channels", [1, 3], ids=["grey", "rgb"])
def test_cutout_of_every_side_at_every_position(channels):
    height, width = 5, 4
    cases = [(n, y, x) for n in range(11) for y in range(height) for x in range(width)]
    images = samples.images(channels, height, width, len(cases), "cutout")
    sides = [float(n) for n, _, _ in cases]
    check(images, "Cutout", sides, torch.tensor([c[1:] for c in cases]), None)


@pytest.mark.parametrize("size", [(2, 2), (2, 9), (9, 2), (3, 3), (3, 5), (4, 6), (5, 5), (6, 5)])
@pytest.mark.parametrize("name", ["Sharpness", "Smooth", "Blur"])
def test_filters_where_there_is_hardly_an_inside(name, size):
    images = samples.images(3, *size, 60, "sharp")
    check(images, name, [0.0, 0.3, 1.9, 10.0, 1.0] * 12, None, None)


def test_every_whole_crop_of_every_size():
    """All weights that an image up to 24 pixels can ask for."""
    for side in range(1, 25):
        cuts = [float(cut) for cut in range((side + 1) // 2)]
        image = samples.image("full", 1, side, side, "weights")
        check(image.expand(len(cuts), -1, -1, -1), "CropBilinear", cuts, None, None)


def test_every_half_crop_of_every_small_size():
    """Also where the shorter side is even: half a pixel more can be cut of it than whole ones."""
    cuts = [0.5 + i for i in range(6)] + [2.4999998, 3.4999998]
    for height in range(1, 13):
        for width in range(1, 13):
            image = samples.image("full", 1, height, width, "halves")
            check(image.expand(len(cuts), -1, -1, -1), "CropBilinear", cuts, None, None)
