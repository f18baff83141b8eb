"""Policies: operations, probabilities, magnitudes, signs and partners within binomial bounds."""

import numpy as np
import pytest
import torch
from scipy import stats

from divaug import expand, policies
from divaug._random import Purpose, Stream, uniform
from divaug.operations import OPERATIONS, Operation
from divaug.operations.magnitude import Range, spaces
from divaug.policies import Partners

RARE = 1e-4  # two-sided chance that a correct policy fails one of these tests; seeds are fixed


def draws(policy, samples=4000, candidates=5, seed=3, pool=50, epoch=None, size=(32, 32)):
    own = torch.arange(samples) % pool
    stream = Stream(seed, 0, torch.arange(samples))
    return policy.draw(stream, candidates, size, Partners(pool, own), epoch)


def assert_frequency(hits, trials, chance):
    found = stats.binomtest(int(hits), int(trials), chance).pvalue
    assert found > RARE, f"{hits} of {trials} at chance {chance}"


def assert_evenly_spread(counts):
    assert stats.chisquare(np.asarray(counts)).pvalue > RARE, counts


def assert_uniform(values, low=0.0, high=1.0):
    assert stats.kstest(values.flatten().numpy(), "uniform", (low, high - low)).pvalue > RARE


# --- the universal set -------------------------------------------------------------------------


@pytest.mark.parametrize("space", spaces())
def test_uniform_draws_every_operation_equally_often_in_both_places(space):
    these = draws(policies.Uniform(space))
    known = [these.names.index(name) for name in spaces()[space]]
    for k in range(2):
        counts = torch.bincount(these.operation[..., k].flatten(), minlength=len(these.names))
        assert_evenly_spread(counts[known])
        assert counts.sum() == counts[known].sum()
    pairs = these.operation[..., 0] * 32 + these.operation[..., 1]
    counts = torch.bincount(pairs.flatten(), minlength=32**2).view(32, 32)[known][:, known]
    assert_evenly_spread(counts.flatten())  # independent, with replacement


def test_uniform_draws_probability_and_magnitude_anew_for_every_candidate():
    these = draws(policies.Uniform())
    assert_uniform(these.probability)
    assert_uniform(these.magnitude)
    for name in ("probability", "magnitude", "argument"):
        values = getattr(these, name)[:200]
        assert (values[:, 0] != values[:, 1]).any(1).all()
    # Independent of each other and between the two operations.
    flat = torch.cat([these.probability, these.magnitude], -1).flatten(0, 1).double()
    correlation = torch.corrcoef(flat.T) - torch.eye(4)
    assert correlation.abs().max() < 4.5 / len(flat) ** 0.5


def test_the_coin_falls_with_the_drawn_probability():
    these = draws(policies.Uniform())
    p, applied = these.probability.flatten().double(), these.applied.flatten()
    for low in range(10):
        inside = (p >= low / 10) & (p < (low + 1) / 10)
        assert_frequency(applied[inside].sum(), inside.sum(), float(p[inside].mean()))
    assert_frequency((~these.applied).all(-1).sum(), these.applied[..., 0].numel(), 0.25)


def test_signs_are_fair_and_belong_to_signed_operations_alone():
    these = draws(policies.Uniform())
    signed = {"ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate",
              "Contrast", "Color", "Brightness", "Sharpness"}  # fmt: skip
    enhance = {"Contrast", "Color", "Brightness", "Sharpness"}
    for i, name in enumerate(OPERATIONS):
        argument = these.argument[these.operation == i]
        middle = 1.0 if name in enhance else 0.0
        if name in signed:
            assert_frequency((argument > middle).sum(), len(argument), 0.5)
        else:
            assert (argument >= 0).all()


def test_arguments_fill_the_ranges_of_the_paper():
    these = draws(policies.Uniform(), size=(32, 48))
    limits = {"ShearX": 0.3, "ShearY": 0.3, "TranslateX": 0.45 * 48, "TranslateY": 0.45 * 32,
              "Rotate": 30.0}  # fmt: skip
    for name, limit in limits.items():
        assert_uniform(these.argument[these.operation == OPERATIONS.index(name)], -limit, limit)
    for name in ("Contrast", "Color", "Brightness", "Sharpness"):
        assert_uniform(these.argument[these.operation == OPERATIONS.index(name)], 0.1, 1.9)
    for name, high in {"Solarize": 256.0, "Cutout": 6.4, "SamplePairing": 0.4}.items():
        assert_uniform(these.argument[these.operation == OPERATIONS.index(name)], 0.0, high)
    bits = these.argument[these.operation == OPERATIONS.index("Posterize")]
    assert set(bits.tolist()) == {4.0, 5.0, 6.0, 7.0, 8.0}


def test_released_posterize_keeps_1_bit_half_of_the_time():
    these = draws(policies.Single("Posterize", 1.0, "released"))
    for bits, chance in {1.0: 0.5, 2.0: 0.25, 3.0: 0.25}.items():
        assert_frequency((these.argument == bits).sum(), these.argument.numel(), chance)


def test_places_are_uniform_over_the_pixels():
    these = draws(policies.Uniform(), size=(5, 7))
    y, x = these.center.flatten(0, 2).unbind(1)
    assert_evenly_spread(torch.bincount(y * 7 + x, minlength=35))


def test_a_partner_is_any_image_but_the_sample_itself():
    these = draws(policies.Single("SamplePairing", 1.0), samples=6000, pool=6)
    own = (torch.arange(6000) % 6)[:, None, None]
    assert not (these.partner == own).any()
    for me in range(6):
        counts = torch.bincount(these.partner[own.flatten() == me].flatten(), minlength=6)
        assert_evenly_spread(counts[torch.arange(6) != me])


def test_a_pool_of_one_leaves_only_itself():
    assert (draws(policies.Uniform(), samples=3, pool=1).partner == 0).all()


def test_samples_outside_the_pool_still_get_a_partner_inside():
    numbers = torch.cat([torch.arange(4, 2004), torch.arange(-2000, 0)])
    stream = Stream(0, 0, numbers)
    these = policies.Uniform().draw(stream, 2, (8, 8), Partners(4, numbers))
    for outside in (these.partner[:2000], these.partner[2000:]):
        assert_evenly_spread(torch.bincount(outside.flatten(), minlength=4))
    alone = policies.Uniform().draw(stream, 2, (8, 8), Partners(1, numbers))
    assert (alone.partner == 0).all()


@pytest.mark.parametrize("k", [1, 3, 16])
def test_uniform_draws_as_many_operations_as_asked(k):
    policy = policies.Uniform(operations_per_subpolicy=k)
    assert draws(policy, samples=4).shape == (4, 5, k)
    assert policy.num_operations == k


def test_excluded_operations_never_come():
    these = draws(policies.Uniform(exclude=("Invert", "SamplePairing")))
    counts = torch.bincount(these.operation.flatten(), minlength=16)
    gone = [OPERATIONS.index("Invert"), OPERATIONS.index("SamplePairing")]
    assert counts[gone].sum() == 0
    assert_evenly_spread(np.delete(counts.numpy(), gone))


def _add(images, value, _center, _partner):
    return (images.int() + value[:, None, None, None].int()).to(torch.uint8)


ADD = Operation("Add", _add, "value", 0.0, 9.0)
SWAP = Operation("Swap", lambda _x, _v, _c, other: other, needs_partner=True)


def test_an_operation_of_your_own_is_drawn_and_applied():
    only = tuple(OPERATIONS)
    policy = policies.Uniform(exclude=only, operations_per_subpolicy=1,
                              extra=((ADD, Range(3.0, 0.0, "always 3")),))  # fmt: skip
    images = torch.arange(2 * 3 * 4 * 4, dtype=torch.uint8).view(2, 3, 4, 4)
    candidates, subpolicies = expand(images, 40, policy)
    assert (subpolicies.operation == 16).all()
    assert subpolicies.operations[16] is ADD
    applied = subpolicies.applied[:, :, 0, None, None, None]
    assert torch.equal(candidates, torch.where(applied, images[:, None] + 3, images[:, None]))
    assert "Add(3)" in subpolicies[0, 0].describe()[0]


@pytest.mark.parametrize("side", [4, 5])
def test_an_operation_of_your_own_may_return_one_value_for_all_pixels(side):
    def mean(images, *_):
        return images.float().mean((1, 2, 3), keepdim=True).to(torch.uint8).expand_as(images)

    policy = policies.Uniform(exclude=tuple(OPERATIONS), operations_per_subpolicy=1,
                              extra=((Operation("Mean", mean), Range(0.0, 0.0, "")),))  # fmt: skip
    images = torch.arange(2 * 3 * side**2).view(2, 3, side, side).to(torch.uint8)
    candidates, subpolicies = expand(images, 20, policy)
    applied = subpolicies.applied[:, :, 0, None, None, None]
    assert torch.equal(candidates, torch.where(applied, mean(images)[:, None], images[:, None]))


def test_an_operation_of_your_own_may_need_a_partner():
    policy = policies.Uniform(exclude=tuple(OPERATIONS), operations_per_subpolicy=1,
                              extra=((SWAP, Range(0.0, 0.0, "none")),))  # fmt: skip
    images = torch.arange(5, dtype=torch.uint8).view(5, 1, 1, 1).expand(5, 1, 2, 2).contiguous()
    candidates, subpolicies = expand(images, 20, policy)
    shown = candidates[:, :, 0, 0, 0].long()
    own = torch.arange(5)[:, None].expand(5, 20)
    expected = torch.where(subpolicies.applied[..., 0], subpolicies.partner[..., 0], own)
    assert torch.equal(shown, expected)


# --- the others --------------------------------------------------------------------------------


def test_rand_augment_draws_fourteen_choices_equally_often_and_applies_them_all():
    these = draws(policies.RandAugment(3, 5))
    counts = torch.bincount((these.operation + 1).flatten(), minlength=17)
    named = counts[counts > 0]
    assert len(named) == 14
    assert counts[0] > 0  # the identity
    for absent in ("Invert", "Cutout", "SamplePairing"):
        assert counts[1 + OPERATIONS.index(absent)] == 0
    assert_evenly_spread(named)
    assert torch.equal(these.applied, these.operation >= 0)
    rotate = these.argument[these.operation == OPERATIONS.index("Rotate")]
    assert set(rotate.tolist()) == {15.0, -15.0}
    assert_frequency((rotate > 0).sum(), len(rotate), 0.5)


def test_shared_level_draws_20_operations_by_halves_at_one_level():
    these = draws(policies.SharedLevel(), samples=8000)
    known = [these.names.index(name) for name in spaces()["uda"]]
    assert len(known) == 20
    for k in range(2):
        counts = torch.bincount(these.operation[..., k].flatten(), minlength=len(these.names))
        assert_evenly_spread(counts[known])
        assert_frequency(these.applied[..., k].sum(), these.applied[..., k].numel(), 0.5)
    both = these.applied.all(-1)
    assert_frequency(both.sum(), both.numel(), 0.25)  # two coins, not one
    assert torch.equal(these.magnitude[..., 0], these.magnitude[..., 1])
    assert_uniform(these.magnitude[..., 0])
    assert (these.magnitude[:200, 0] != these.magnitude[:200, 1]).all()  # anew for each candidate


# The authors' list: low and high end, between which a level leads; the first five are mirrored.
ENDS = {
    "ShearX": (-0.3, 0.3), "ShearY": (-0.3, 0.3), "TranslateX": (-0.45 * 48, 0.45 * 48),
    "TranslateY": (-0.45 * 32, 0.45 * 32), "Rotate": (-30, 30), "Solarize": (0, 256),
    "Posterize": (4, 8), "Contrast": (0.1, 1.9), "Color": (0.1, 1.9), "Brightness": (0.1, 1.9),
    "Sharpness": (0.1, 1.9), "Cutout": (0, 0.2 * 48), "CropBilinear": (0, 0.1 * 48),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_shared_level_leads_from_the_low_to_the_high_end(name):
    these = draws(policies.SharedLevel(), size=(32, 48))
    here = these.operation == these.names.index(name)
    level, found = these.magnitude[here].double(), these.argument[here].double()
    low, high = ENDS[name]
    expected = low + (high - low) * level
    if name in list(ENDS)[:5]:
        assert_frequency(((found > 0) == (expected > 0)).sum(), len(found), 0.5)
        found, expected = found.abs(), expected.abs()
    if name == "Posterize":
        expected = expected.floor()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)


def test_trivial_augment_draws_one_of_14_at_one_of_31_strengths():
    these = draws(policies.TrivialAugment(), samples=8000)
    counts = torch.bincount((these.operation + 1).flatten(), minlength=17)
    assert_evenly_spread(counts[counts > 0])
    assert (counts > 0).sum() == 14
    assert torch.equal(these.applied, these.operation >= 0)
    rotate = these.argument[these.operation == OPERATIONS.index("Rotate")].abs()
    levels, counts = rotate.unique(return_counts=True)
    torch.testing.assert_close(levels, torch.linspace(0, 135, 31))
    assert_evenly_spread(counts)


@pytest.mark.parametrize(
    "policy",
    [policies.AutoAugment(name) for name in ("cifar10", "svhn", "imagenet", "cifar10-95")]
    + [policies.FastAutoAugment(name) for name in ("cifar10", "svhn", "imagenet")],
    ids=repr,
)
def test_published_rows_are_drawn_evenly_and_keep_their_pairs(policy):
    these = draws(policy)
    rows = [tuple(OPERATIONS.index(e.operation) for e in row) for row in policy.rows()]
    chance = {pair: rows.count(pair) / len(rows) for pair in rows}
    pairs = list(map(tuple, these.operation.flatten(0, 1).tolist()))
    assert set(pairs) == set(chance)
    expected = [chance[pair] * len(pairs) for pair in chance]
    observed = [pairs.count(pair) for pair in chance]
    assert stats.chisquare(observed, expected).pvalue > RARE


@pytest.mark.parametrize("p", [0.0, 1.0, 0.3])
def test_single_never_fires_at_0_and_always_at_1(p):
    these = draws(policies.Single("Rotate", p), samples=20_000)
    assert these.shape == (20_000, 5, 1)
    if p in (0.0, 1.0):
        assert (these.applied == bool(p)).all()
    assert_frequency(these.applied.sum(), these.applied.numel(), p)


def test_even_a_coin_of_exactly_0_does_not_fire_at_probability_0():
    # A word below 256 is the uniform number 0; this draw has one.
    sample, candidate = 620_723, 5
    alone = Stream(0, 0, torch.tensor([sample]))
    coin = alone.words(Purpose.OPERATION, 16, 1)[2]
    assert float(uniform(coin)[0, candidate, 0]) == 0.0
    partners = Partners(2, torch.tensor([0]))
    for p in (0.0, 1.0):
        these = policies.Single("Invert", p).draw(alone, 16, (4, 4), partners)
        assert bool(these.applied[0, candidate, 0]) == bool(p)


def test_identity_changes_nothing():
    images = torch.arange(48, dtype=torch.uint8).view(1, 3, 4, 4)
    candidates, subpolicies = expand(images, 3, policies.Identity())
    assert torch.equal(candidates, images[:, None].expand(1, 3, 3, 4, 4))
    assert subpolicies.shape == (1, 3, 0)


@pytest.mark.parametrize("policy", [policies.AutoAugment("svhn"), policies.FastAutoAugment("svhn")])
def test_published_rows_are_applied_with_their_probability(policy):
    """By tenths: some lists hold thousands of probabilities, each rare."""
    these = draws(policy)
    p, applied = these.probability.double(), these.applied
    for low in range(10):
        inside = (p >= low / 10) & (p < (low + 1) / 10)
        if inside.any():
            assert_frequency(applied[inside].sum(), inside.sum(), float(p[inside].mean()))
