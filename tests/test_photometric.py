"""ImageNet's further steps against Pillow: crop and resize, jitter in order, lighting."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance
from scipy import stats

from divaug import expand, policies
from divaug._photometric import (
    _by_products,
    _by_taps,
    _weights,
    crop_and_resize,
    draw_placement,
)
from divaug._random import Stream
from divaug.default_augmentation import DefaultAugmentation, Photometric, imagenet
from divaug.operations.resample import taps
from tests.reference import samples
from tests.reference.pillow_operations import from_pillow, to_pillow

RARE = 1e-4
ENHANCERS = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)


def pillow_cut(image, box):
    top, left, height, width = (int(v) for v in box)
    return Image.fromarray(to_pillow(image)).crop((left, top, left + width, top + height))


def pillow_crop(image, box, size):
    """Rows, then columns: `resize((size, size))` of every Pillow up to 12, on any version.

    Pillow 13 begins with the columns where the height shrinks much more than the width; one axis at
    a time it has no choice.
    """
    cut = pillow_cut(image, box)
    rows = cut.resize((size, cut.height), Image.Resampling.BILINEAR)
    return from_pillow(np.asarray(rows.resize((size, size), Image.Resampling.BILINEAR)))


def boxes_in(height, width, count, seed):
    rng = np.random.default_rng(seed)
    made = [(0, 0, height, width), (0, 0, 1, 1), (height - 1, width - 1, 1, 1), (0, 0, 1, width),
            (0, 0, height, 1)]  # fmt: skip
    while len(made) < count:
        h, w = rng.integers(1, height + 1), rng.integers(1, width + 1)
        made.append((rng.integers(0, height - h + 1), rng.integers(0, width - w + 1), h, w))
    return torch.tensor(np.array(made))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width", "size"), [
    (1, 1, 1), (1, 1, 5), (5, 3, 8), (32, 32, 32), (40, 24, 7), (33, 61, 16), (64, 64, 32),
    (63, 97, 64), (96, 80, 96), (16, 16, 50), (200, 180, 9),
])  # fmt: skip
def test_equal_to_pillow_to_the_byte(height, width, size, channels):
    boxes = boxes_in(height, width, 150, seed=height * 1000 + width + size)
    images = samples.images(channels, height, width, len(boxes))
    made = crop_and_resize(images, boxes, size)
    for i, box in enumerate(boxes):
        expected = pillow_crop(images[i], box, size)
        assert torch.equal(made[i], expected), f"box {box.tolist()}"


@pytest.mark.parametrize(
    ("height", "width", "size"), [(1, 1, 3), (40, 24, 7), (63, 97, 64), (9, 70, 70)]
)
def test_on_a_gpu_it_is_done_in_another_way_to_the_same_bytes(height, width, size):
    boxes = boxes_in(height, width, 60, seed=height + width + size)
    images = samples.images(3, height, width, len(boxes))
    made = _by_products(images, boxes, size)
    assert torch.equal(made, _by_taps(images, boxes, size))
    assert made.is_contiguous()


@pytest.mark.parametrize("size", [9, 32, 160, 224])
def test_both_ways_have_the_same_weights_for_every_length(size):
    """Rounded otherwise, one of them would be noticed in some picture or other only."""
    for length in torch.arange(1, 401).split(40):
        source, weight = taps(length, size, 400)
        all_of_them = _weights(torch.zeros_like(length), length, 400, size)
        found = torch.zeros_like(all_of_them).scatter_add_(2, source, weight.double())
        assert torch.equal(found, all_of_them)


def test_equal_to_one_call_of_pillow_where_its_version_does_not_matter():
    boxes = boxes_in(60, 90, 80, seed=5)
    boxes = boxes[boxes[:, 2] <= boxes[:, 3]]  # not higher than wide: every version begins alike
    images = samples.images(3, 60, 90, len(boxes))
    for size in (24, 75, 120):
        made = crop_and_resize(images, boxes, size)
        for i, box in enumerate(boxes):
            whole = pillow_cut(images[i], box).resize((size, size), Image.Resampling.BILINEAR)
            assert torch.equal(made[i], from_pillow(np.asarray(whole))), f"box {box.tolist()}"


def photometric_draws(settings, count=3000, size=(60, 80), seed=1):
    default = replace(imagenet(), photometric=settings)
    return draw_placement(default, Stream(seed, 0, torch.arange(count)), 2, size)


def test_the_whole_of_imagenets_augmentation_equals_pillow():
    """Crop, resize, jitter in the drawn order, flip, normalise, lighting; one image at a time."""
    default = imagenet(24)
    images = samples.images(3, 50, 41, 10)
    candidates, subpolicies = expand(images, 4, policies.Identity(), default, seed=4)
    drawn = subpolicies.placement
    for i in range(10):
        for j in range(4):
            image = Image.fromarray(to_pillow(pillow_crop(images[i], drawn.box[i, j], 24)))
            for which in drawn.order[i, j].tolist():
                image = ENHANCERS[which](image).enhance(float(drawn.factor[i, j, which]))
            pixels = np.asarray(image).astype(np.float64) / 255
            if drawn.flip[i, j]:
                pixels = pixels[:, ::-1]
            pixels = pixels + drawn.shift[i, j].double().numpy()
            expected = (pixels - np.array(default.mean)) / np.array(default.std)
            found = candidates[i, j].permute(1, 2, 0).numpy()
            np.testing.assert_allclose(found, expected, rtol=0, atol=5e-6)


def test_without_jitter_and_lighting_only_the_crop_is_left():
    settings = Photometric(size=20, jitter=0.0, lighting=0.0)
    default = DefaultAugmentation((0.0,) * 3, (1.0,) * 3, photometric=settings)
    images = samples.images(3, 30, 36, 6)
    candidates, subpolicies = expand(images, 2, policies.Identity(), default, seed=9)
    box = subpolicies.placement.box
    for i in range(6):
        for j in range(2):
            expected = pillow_crop(images[i], box[i, j], 20)
            assert torch.equal((candidates[i, j] * 255).round().to(torch.uint8), expected)


def test_boxes_lie_inside_and_have_the_drawn_areas_and_ratios():
    top, left, h, w = photometric_draws(Photometric(), size=(300, 400)).box.unbind(-1)
    assert (top >= 0).all()
    assert (left >= 0).all()
    assert (top + h <= 300).all()
    assert (left + w <= 400).all()
    area, ratio = (h * w / (300 * 400)).double(), (w / h).double()
    assert area.min() > 0.075
    assert area.max() <= 1.0
    assert ratio.min() > 0.74
    assert ratio.max() < 1.35
    # Up to 0.5 every box fits at the first try, so there the area is uniform and the ratio even in
    # its logarithm; whole pixels blur both by less than this test sees.
    small = area < 0.5
    assert stats.kstest(area[small].numpy(), "uniform", (0.08, 0.42)).pvalue > RARE
    log = ratio[small].log().numpy() / math.log(4 / 3)
    assert stats.kstest(log, "uniform", (-1, 2)).pvalue > RARE


def test_places_of_small_boxes_are_uniform():
    settings = Photometric(area=(0.0625, 0.0625), ratio=(1.0, 1.0))
    top, left, h, w = photometric_draws(settings, size=(40, 40)).box.unbind(-1)
    assert (h == 10).all()
    assert (w == 10).all()
    for place in (top, left):
        counts = torch.bincount(place.flatten(), minlength=31)
        assert len(counts) == 31
        assert stats.chisquare(counts.numpy()).pvalue > RARE


@pytest.mark.parametrize(("size", "expected"), [
    ((100, 1000), (0, 433, 100, 133)),  # 4/3 of the height, centred
    ((1000, 100), (433, 0, 133, 100)),
])  # fmt: skip
def test_where_no_try_fits_the_crop_is_centred(size, expected):
    settings = Photometric(area=(0.9, 1.0))
    box = photometric_draws(settings, count=20, size=size).box
    assert box.unique(dim=1).shape[1] == 1
    assert box[0, 0].tolist() == list(expected)


def test_jitter_factors_are_uniform_and_all_orders_equally_likely():
    drawn = photometric_draws(Photometric(jitter=0.4))
    for k in range(3):
        assert stats.kstest(drawn.factor[..., k].flatten(), "uniform", (0.6, 0.8)).pvalue > RARE
    code = drawn.order[..., 0] * 9 + drawn.order[..., 1] * 3 + drawn.order[..., 2]
    kinds, counts = code.unique(return_counts=True)
    assert len(kinds) == 6
    assert stats.chisquare(counts.numpy()).pvalue > RARE


def test_lighting_has_the_published_covariance():
    """Shift = P·(α∘λ) with α normal of deviation 0.1 (Krizhevsky et al.)."""
    eigenvalues = np.array([0.2175, 0.0188, 0.0045])
    vectors = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140],
                        [-0.5836, -0.6948, 0.4203]])  # fmt: skip
    shift = photometric_draws(Photometric(), count=20_000).shift.flatten(0, 1).double().numpy()
    alpha = shift @ np.linalg.inv(vectors).T / eigenvalues
    for k in range(3):
        # Normal numbers come from 4096 quantiles: looked at through 64 bins.
        edges = np.concatenate([[-np.inf], stats.norm.ppf(np.arange(1, 64) / 64) * 0.1, [np.inf]])
        counts, _ = np.histogram(alpha[:, k], edges)
        assert stats.chisquare(counts).pvalue > RARE
    covariance = np.cov(shift.T)
    expected = vectors @ np.diag((0.1 * eigenvalues) ** 2) @ vectors.T
    np.testing.assert_allclose(covariance, expected, rtol=0.05, atol=2e-6)


@pytest.mark.parametrize(("name", "value", "rule"), [
    ("area", (2, -1), "at most 1"),
    ("area", (0.0, 1.0), "above 0"),
    ("area", (0.5, 0.4), r"\(smallest, largest\)"),
    ("area", (0.5, 1.5), "at most 1"),
    ("area", (0.5, math.nan), "finite"),
    ("area", (0.1, 0.5, 1.0), "two"),
    ("area", 0.5, "two"),
    ("area", ("0.1", "1"), "numbers"),
    ("ratio", (0.0, 1.0), "above 0"),
    ("ratio", (2.0, 1.0), r"\(smallest, largest\)"),
    ("ratio", (1.0, math.inf), "finite"),
    ("jitter", -0.1, r"\[0, 1\]"),
    ("jitter", 1.5, r"\[0, 1\]"),
    ("lighting", -0.1, r"\[0, 1\]"),
    ("lighting", math.nan, r"\[0, 1\]"),
    ("lighting", "a", r"\[0, 1\]"),
])  # fmt: skip
def test_settings_that_nothing_can_be_drawn_from_are_refused(name, value, rule):
    with pytest.raises(ValueError, match=rf"`{name}` must be .*{rule}.*, got "):
        Photometric(**{name: value})


@pytest.mark.parametrize("further", ["x", 224, Photometric, {"size": 224}], ids=repr)
def test_a_default_augmentation_takes_no_other_photometric_steps(further):
    with pytest.raises(TypeError, match=r"`photometric` must be a .*Photometric or None, got "):
        DefaultAugmentation((0.5,) * 3, (0.5,) * 3, photometric=further)
