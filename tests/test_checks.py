"""Numbers as settings: NumPy's are taken like Python's, and what is kept is Python's."""

import json

import numpy as np
import pytest
import torch

import divaug
from divaug import DefaultAugmentation, Views, default_augmentation
from divaug._checks import check_number, check_range, check_whole, real, whole
from divaug._photometric import Photometric
from tests.reference.small_models import network

IMAGES = torch.arange(4 * 3 * 8 * 8).remainder(251).to(torch.uint8).view(4, 3, 8, 8)
WIDTHS = [np.int8, np.uint8, np.int32, np.int64, np.uint64]


@pytest.mark.parametrize("kind", WIDTHS)
def test_a_whole_number_of_numpy_becomes_pythons(kind):
    assert (type(whole(kind(8))), whole(kind(8))) == (int, 8)
    assert (type(real(kind(8))), real(kind(8))) == (int, 8)
    assert type(check_whole("n", kind(8), 1, 8)) is int
    with pytest.raises(ValueError, match="`n` must be an int in"):
        check_whole("n", kind(9), 1, 8)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, float])
def test_a_number_of_numpy_becomes_pythons(kind):
    assert whole(kind(8)) is None
    assert (type(real(kind(0.5))), real(kind(0.5))) == (float, 0.5)
    assert type(check_number("`p`", kind(0.5), 0, 1)) is float
    assert check_range("area", (kind(0.5), np.int64(1))) == (0.5, 1.0)
    with pytest.raises(ValueError, match="`p` must be a number in"):
        check_number("`p`", kind("nan"), 0, 1)


@pytest.mark.parametrize(
    "value", [True, np.True_, "8", None, 8j, [8], np.array(8), torch.tensor(8)]
)
def test_other_things_are_no_numbers(value):
    assert whole(value) is None
    assert real(value) is None


def test_augmenters_take_numbers_of_numpy():
    model = network()
    eight, two, seed = np.int64(8), np.int32(2), np.uint32(7)
    augment = divaug.DivAug(model, eight, two, seed=seed, chunk_size=np.int64(3))
    augment.load_state_dict({"step": np.int64(5), "seed": seed})
    assert json.loads(json.dumps(augment.state_dict())) == {"step": 5, "seed": 7}
    plain = divaug.DivAug(model, 8, 2, seed=7, chunk_size=3)
    plain.load_state_dict({"step": 5, "seed": 7})
    assert torch.equal(augment(IMAGES)[0], plain(IMAGES)[0])
    assert type(augment.views) is type(Views(num_views=two).views) is int


@pytest.mark.parametrize("make", [np.array, torch.tensor, tuple])
def test_default_augmentations_take_numbers_of_numpy_and_means_of_any_kind(make):
    default = DefaultAugmentation(
        make([0.5, 0.25, 0.125]), make([1.0, 0.5, 0.25]),
        padding=np.int64(4), flip=np.float32(0.5), cutout=np.int64(3),
        photometric=Photometric(np.int64(8), jitter=np.float32(0.5), lighting=np.float32(0.25)),
    )  # fmt: skip
    photometric = Photometric(8, jitter=0.5, lighting=0.25)
    expected = DefaultAugmentation(
        (0.5, 0.25, 0.125), (1.0, 0.5, 0.25), 4, 0.5, 3, photometric
    )  # fmt: skip
    assert (repr(default), hash(default)) == (repr(expected), hash(expected))
    assert default_augmentation.imagenet(np.int64(8)) == default_augmentation.imagenet(8)
    for wrong in (np.zeros((3, 1)), torch.tensor(0.5), torch.tensor([True]), np.array(["a"])):
        with pytest.raises(TypeError, match="`mean` must be"):
            DefaultAugmentation(wrong, (1.0, 1.0, 1.0))
