"""The default augmentation: a NumPy loop over the drawn values, its statistics, and its output."""

import numpy as np
import pytest
import torch
from scipy import stats

from divaug import expand, policies
from divaug._photometric import Photometric
from divaug.default_augmentation import (
    DefaultAugmentation,
    cifar10,
    cifar100,
    imagenet,
    plain,
    svhn,
)
from tests.reference import default_loops, samples

RARE = 1e-4
NOTHING = policies.Identity()


def draws(default, count=4000, candidates=5, size=(32, 32), seed=2):
    images = torch.zeros(1, 3, *size, dtype=torch.uint8).expand(count, -1, -1, -1)
    return expand(images, candidates, NOTHING, default, seed)[1].placement


SETTINGS = {
    "cifar10": (cifar10(), (32, 32)),
    "cifar100": (cifar100(), (32, 32)),
    "svhn": (svhn(), (32, 32)),
    "crop alone": (DefaultAugmentation((0.5,) * 3, (0.2,) * 3, padding=3), (9, 13)),
    "flip alone": (DefaultAugmentation((0.5,) * 3, (0.2,) * 3, flip=1.0), (9, 13)),
    "odd Cutout": (DefaultAugmentation((0.1,) * 3, (0.3,) * 3, cutout=5), (9, 13)),
    "too large a Cutout": (DefaultAugmentation((0.1,) * 3, (1.0,) * 3, cutout=40), (9, 9)),
    "too large a padding": (DefaultAugmentation((0.1,) * 3, (1.0,) * 3, padding=9), (4, 4)),
    "plain": (plain((0.2, 0.3, 0.4), (0.5, 0.6, 0.7)), (8, 8)),
    "grey": (DefaultAugmentation((0.2860,), (0.3530,), padding=2, flip=0.5, cutout=4), (28, 28)),
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_equal_to_a_loop_over_candidates(name):
    default, size = SETTINGS[name]
    images = samples.images(len(default.mean), *size, 7)
    candidates, subpolicies = expand(images, 4, NOTHING, default, seed=5)
    drawn = subpolicies.placement
    for i in range(7):
        for j in range(4):
            expected = default_loops.finish(
                images[i].numpy(), drawn.offset[i, j].tolist(), bool(drawn.flip[i, j]),
                drawn.center[i, j].tolist(), padding=default.padding, cutout=default.cutout,
                mean=default.mean, std=default.std,
            )  # fmt: skip
            np.testing.assert_allclose(candidates[i, j].numpy(), expected, rtol=2e-6, atol=2e-6)
            assert (candidates[i, j].numpy()[expected == 0] == 0).all() or not default.cutout


def test_the_sub_policy_comes_first():
    images = samples.images(3, 16, 16, 6)
    invert = policies.Single("Invert", 1.0)
    default = cifar10()
    inverted, _ = expand(images, 3, invert, default, seed=1)
    first, _ = expand(255 - images, 3, NOTHING, default, seed=1)
    assert torch.equal(inverted, first)  # the padding stays black: it was added afterwards


def test_crop_offsets_are_uniform_over_all_places():
    offset = draws(cifar10()).offset.flatten(0, 1)
    assert offset.min() == 0
    assert offset.max() == 8
    counts = torch.bincount(offset[:, 0] * 9 + offset[:, 1], minlength=81)
    assert stats.chisquare(counts.numpy()).pvalue > RARE


@pytest.mark.parametrize(("make", "chance"), [(cifar10, 0.5), (cifar100, 0.5), (svhn, 0.0)])
def test_flip_frequency(make, chance):
    flip = draws(make()).flip
    assert stats.binomtest(int(flip.sum()), flip.numel(), chance).pvalue > RARE


def test_cutout_is_clipped_so_that_it_erases_196_of_1024_pixels_on_average():
    images = torch.full((2500, 1, 32, 32), 255, dtype=torch.uint8)
    default = DefaultAugmentation((0.5,), (0.5,), cutout=16)
    erased = (expand(images, 2, NOTHING, default)[0] == 0).flatten(2).sum(-1).double()
    # Along one axis the mean is (16·32 − 2·(1 + … + 8) + 8)/32 = 14 pixels, and 14² = 196.
    standard_error = float(erased.std() / erased.numel() ** 0.5)
    assert abs(float(erased.mean()) - 196.0) < 4 * standard_error
    assert standard_error < 1.5
    assert erased.max() == 256
    assert erased.min() == 64


def test_cutout_centres_are_uniform():
    center = draws(cifar10()).center.flatten(0, 1)
    counts = torch.bincount(center[:, 0] * 32 + center[:, 1], minlength=1024)
    assert stats.chisquare(counts.numpy()).pvalue > RARE


@pytest.mark.parametrize(("make", "mean", "std"), [
    (cifar10, (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    (cifar100, (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
    (svhn, (0.4377, 0.4438, 0.4728), (0.1980, 0.2010, 0.1970)),
    (imagenet, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
])  # fmt: skip
def test_each_dataset_has_its_own_statistics(make, mean, std):
    np.testing.assert_allclose(make().mean, mean, atol=6e-5)
    np.testing.assert_allclose(make().std, std, atol=6e-5)


def test_normalisation_of_black_and_white():
    default = cifar10()
    for byte, value in ((0, 0.0), (255, 1.0)):
        images = torch.full((1, 3, 2, 2), byte, dtype=torch.uint8)
        found = expand(images, 1, NOTHING, plain(default.mean, default.std))[0][0, 0, :, 0, 0]
        expected = [(value - m) / s for m, s in zip(default.mean, default.std, strict=True)]
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_dtype_and_memory_format_change_nothing_but_the_rounding(dtype, channels_last):
    images = samples.images(3, 32, 32, 5)
    base, _ = expand(images, 4, None, cifar10(), seed=3)
    made, _ = expand(images, 4, None, cifar10(), seed=3, dtype=dtype, channels_last=channels_last)
    assert made.dtype == dtype
    assert torch.equal(made, base.to(dtype))
    layout = torch.channels_last if channels_last else torch.contiguous_format
    assert made.flatten(0, 1).is_contiguous(memory_format=layout)


@pytest.mark.parametrize(("settings", "message"), [
    ({"mean": (0.5,), "std": (0.1, 0.1)}, "per channel"),
    ({"mean": (0.5,) * 4, "std": (0.1,) * 4}, "1 or 3"),
    ({"mean": (0.5,), "std": (0.0,)}, "positive"),
    ({"mean": "x", "std": "y"}, "`mean` must be a tuple of numbers.*got 'x'"),
    ({"mean": 0.5, "std": 0.1}, r"`mean` must be a tuple of numbers.*\(0\.5,\), got 0\.5"),
    ({"mean": (0.5,), "std": ("0.1",)}, "`std` must be a tuple of numbers"),
    ({"mean": (125.0,), "std": (60.0,)}, r"`mean` must lie in \[0, 1\].*125.*divide.*by 255"),
    ({"mean": (0.5,), "std": (0.1,), "flip": "x"}, "`flip` must be a number"),
    ({"mean": (0.5,), "std": (0.1,), "flip": 1.5}, r"\[0, 1\]"),
    ({"mean": (0.5,), "std": (0.1,), "padding": -1}, r"`padding` must be .*8192\], got -1"),
    ({"mean": (0.5,), "std": (0.1,), "padding": 4.0}, "`padding` must be an int"),
    ({"mean": (0.5,), "std": (0.1,), "cutout": True}, "`cutout` must be an int"),
    ({"mean": (0.5,), "std": (0.1,), "photometric": Photometric()}, "with three channels.*of 1;"),
])  # fmt: skip
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        DefaultAugmentation(**settings)


def test_lists_of_statistics_are_as_good_as_tuples():
    """Also NumPy's numbers: what is equal is looked up as one."""
    made = DefaultAugmentation([0.5], [np.float32(0.25)])
    assert made == DefaultAugmentation((0.5,), (0.25,))
    assert hash(made) == hash(DefaultAugmentation((0.5,), (0.25,)))


@pytest.mark.parametrize(("height", "width"), [(9, 12), (4, 4), (5, 4)])
def test_the_center_crop_is_as_large_as_finished_candidates(height, width):
    images = torch.arange(height * width).view(1, 1, height, width).expand(2, 3, -1, -1)
    top, left = (height - 4) // 2, (width - 4) // 2
    cropped = imagenet(4).center_crop(images)
    assert torch.equal(cropped, images[:, :, top : top + 4, left : left + 4])
    assert torch.equal(cifar10().center_crop(images), images)
    with pytest.raises(ValueError, match=f"images of {height}×{width} are smaller than 13×13"):
        imagenet(13).center_crop(images)


def test_images_for_evaluation_are_candidates_that_nothing_happened_to():
    images = samples.images(3, 12, 14, 4)
    for default, middle in ((cifar10(), images), (imagenet(8), images[:, :, 2:10, 3:11])):
        bare = plain(default.mean, default.std)
        expected = expand(middle, 1, NOTHING, bare)[0][:, 0]
        assert torch.equal(default.for_evaluation(images), expected)
        assert torch.equal(default.for_evaluation(images / 255), expected)
    with pytest.raises(ValueError, match="`default` is for 3 channels, `images` have 1"):
        cifar10().for_evaluation(images[:, :1])
