"""Stateless randomness: published words, laws of the numbers, and nothing else that matters."""

import itertools
import random

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import divaug
from divaug import default_augmentation, policies
from divaug._random import Purpose, Stream, below, check_index, check_seed, philox, uniform
from divaug.policies import Partners
from tests.reference import philox_python

# The three vectors of Random123's file of known answers for philox4x32-10.
KNOWN = {
    "zeros": ("00000000 00000000 00000000 00000000", "00000000 00000000",
              "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    "ones": ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
             "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    "pi": ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
           "d16cfe09 94fdcceb 5001e420 24126ea1"),
}  # fmt: skip


def numbers(text):
    return tuple(int(word, 16) for word in text.split())


def stream(seed=0, step=0, samples=4):
    index = samples if isinstance(samples, torch.Tensor) else torch.arange(samples)
    return Stream(seed, step, index)


@pytest.mark.parametrize("make", [torch.tensor, np.array], ids=["torch", "numpy"])
@pytest.mark.parametrize("name", KNOWN)
def test_published_known_answers(name, make):
    counter, key, expected = (numbers(text) for text in KNOWN[name])
    words = philox(tuple(make([word]) for word in counter), key)
    assert tuple(int(word[0]) for word in words) == expected
    assert philox_python.philox(counter, key) == expected


@pytest.mark.parametrize("make", [torch.tensor, np.array], ids=["torch", "numpy"])
def test_random_counters_equal_plain_python(make):
    rng = random.Random(1)
    key = (rng.getrandbits(32), rng.getrandbits(32))
    counters = [tuple(rng.getrandbits(32) for _ in range(4)) for _ in range(300)]
    words = philox(tuple(make(column) for column in zip(*counters, strict=True)), key)
    ours = list(zip(*(word.tolist() for word in words), strict=True))
    assert ours == [philox_python.philox(counter, key) for counter in counters]


@pytest.mark.parametrize("seed", [0, 5, 2**32 + 7, 2**64 - 1])
@pytest.mark.parametrize("step", [0, 12345, 2**32 - 1, 2**32 + 3])
def test_the_words_of_a_stream_follow_the_documented_counter(seed, step):
    index = torch.tensor([0, 49_999, 2**32 - 1])
    words = stream(seed, step, index).words(Purpose.JITTER, 3, 2)
    for b, e, k in itertools.product(range(3), range(3), range(2)):
        expected = philox_python.words(seed, step, int(index[b]), e, k, 9)
        assert tuple(int(word[b, e, k]) for word in words) == expected


def test_a_step_in_a_tensor_is_the_same_step():
    one = stream(3, 17).words(Purpose.CROP, 2, 1)
    two = stream(3, torch.tensor(17)).words(Purpose.CROP, 2, 1)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_purposes_are_distinct_and_no_two_draws_share_their_words():
    assert len({int(p) for p in Purpose}) == len(list(Purpose))
    seen = torch.cat(
        [
            torch.stack(stream(11, step, 16).words(purpose, 8, 3), -1).reshape(-1, 4)
            for purpose in Purpose
            for step in range(3)
        ]
    )
    # 128 bits each: a repeated row would be a repeated counter, not chance.
    assert len(seen.unique(dim=0)) == len(seen)


def test_uniform_is_the_upper_24_bits_and_never_1():
    words = torch.tensor([0, 255, 256, 2**31, 2**32 - 1])
    expected = [(int(word) // 256) / 2**24 for word in words]
    assert uniform(words).tolist() == expected
    assert uniform(words).dtype == torch.float32
    assert float(uniform(words).max()) < 1.0


def test_uniform_numbers_are_uniform():
    values = uniform(torch.cat([w.flatten() for w in stream(4, 0, 5000).words(Purpose.CROP, 4, 1)]))
    assert stats.kstest(values.numpy(), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("bound", [1, 2, 3, 16, 25, 1000, 2**31])
def test_below_is_the_floor_of_the_exact_product(bound):
    words = torch.tensor([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 0xDEADBEEF])
    assert below(words, bound).tolist() == [int(word) * bound // 2**32 for word in words]
    assert below(words, torch.tensor(bound)).tolist() == below(words, bound).tolist()


def test_below_is_uniform_over_its_range():
    values = below(stream(9, 0, 4000).words(Purpose.PLACE, 8, 1)[2], 25).flatten()
    counts = torch.bincount(values, minlength=25)
    assert len(counts) == 25
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_words_of_neighbouring_counters_are_uncorrelated():
    u = uniform(stream(2, 0, 400).words(Purpose.CROP, 20, 4)[0]).double() - 0.5
    for a, b in [(u[1:], u[:-1]), (u[:, 1:], u[:, :-1]), (u[..., 1:], u[..., :-1])]:
        # Products of independent uniforms have standard deviation 1/12.
        assert abs(float((a * b).mean())) < 4.5 / 12 / a.numel() ** 0.5


def test_a_sample_has_its_words_wherever_it_stands_and_whatever_ran_before():
    index = torch.tensor([7, 3, 99, 3])
    words = torch.stack(stream(1, 2, index).words(Purpose.OPERATION, 5, 2))
    assert torch.equal(words[:, 1], words[:, 3])
    order = torch.tensor([2, 0, 3, 1])
    shuffled = torch.stack(stream(1, 2, index[order]).words(Purpose.OPERATION, 5, 2))
    assert torch.equal(shuffled, words[:, order])
    alone = torch.stack(stream(1, 2, index[2:3]).words(Purpose.OPERATION, 5, 2))
    assert torch.equal(alone, words[:, 2:3])
    fewer = torch.stack(stream(1, 2, index).words(Purpose.OPERATION, 3, 1))
    assert torch.equal(fewer, words[:, :, :3, :1])


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_beyond_64_bits_is_refused(seed):
    with pytest.raises(ValueError, match="seed"):
        check_seed(seed)


def test_index_is_checked():
    device = torch.device("cpu")
    assert check_index(None, 3, device).tolist() == [0, 1, 2]
    assert check_index(torch.tensor([5, 6], dtype=torch.int32), 2, device).dtype == torch.int64
    with pytest.raises(ValueError, match=r"\(3,\)"):
        check_index(torch.tensor([1, 2]), 3, device)
    for wrong in (torch.tensor([1.0, 2.0]), torch.tensor([True, False]), [0, 1]):
        with pytest.raises(TypeError, match="index"):
            check_index(wrong, 2, device)


# --- no global generator -----------------------------------------------------------------------


class Dropping(nn.Module):
    """A model with dropout: in evaluation mode it must not draw."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(3 * 8 * 8, 5))

    def forward(self, images):
        return self.layers(images)


def _draws(policy):
    partners = Partners(4, torch.arange(4))
    return policy.draw(stream(1), 3, (8, 8), partners, epoch=60).argument


IMAGES = torch.arange(4 * 3 * 8 * 8).remainder(251).to(torch.uint8).view(4, 3, 8, 8)
PROBS = torch.softmax(torch.arange(4 * 6 * 5).remainder(7).float().view(4, 6, 5), -1)
torch_state = torch.get_rng_state()
MODEL = Dropping()
torch.set_rng_state(torch_state)

CALLS = {
    "expand": lambda: divaug.expand(IMAGES, 4)[0],
    "expand with a pool": lambda: divaug.expand(IMAGES, 4, pool=IMAGES)[0],
    "expand for CIFAR": lambda: divaug.expand(IMAGES, 4, None, default_augmentation.cifar10())[0],
    "expand for ImageNet": lambda: divaug.expand(
        IMAGES, 4, None, default_augmentation.imagenet(6)
    )[0],
    "score": lambda: divaug.score(MODEL, IMAGES[None].float()),
    "DivAug": lambda: divaug.DivAug(MODEL)(IMAGES)[0],
    **{
        f"select {method}": lambda method=method: divaug.select(PROBS, 3, method)
        for method in ("kmeans++", "uniform", "greedy", "exact")
    },
    **{
        f"policy {type(policy).__name__}": lambda policy=policy: _draws(policy)
        for policy in (
            policies.Uniform(), policies.RandAugment(), policies.AutoAugment(),
            policies.FastAutoAugment(), policies.PBA(), policies.TrivialAugment(),
            policies.SharedLevel(), policies.Single(), policies.Identity(),
        )
    },
}  # fmt: skip


def global_states():
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 (the global generator is the subject)
    return torch.get_rng_state().tolist(), random.getstate(), (name, keys.tolist(), *rest)


def reseed(seed):
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (as above)


@pytest.fixture
def _global_generators_restored():
    saved = torch.get_rng_state(), random.getstate(), np.random.get_state()  # noqa: NPY002 (as above)
    yield
    torch.set_rng_state(saved[0])
    random.setstate(saved[1])
    np.random.set_state(saved[2])  # noqa: NPY002 (as above)


@pytest.mark.usefixtures("_global_generators_restored")
@pytest.mark.parametrize("name", CALLS)
def test_global_generators_are_neither_advanced_nor_read(name):
    reseed(1)
    before = global_states()
    first = CALLS[name]()
    assert global_states() == before
    reseed(2)
    assert torch.equal(CALLS[name](), first)


@pytest.mark.parametrize(("index", "message"), [
    ([0, 1], r"got list; .* torch.as_tensor\(index\)"),
    (torch.tensor([0.0, 1.0]), r"got torch.float32; .*long\(\)"),
])  # fmt: skip
def test_numbers_of_samples_that_are_none(index, message):
    with pytest.raises(TypeError, match=message):
        check_index(index, 2, torch.device("cpu"))
