"""PBA: its draws against a simulation, its segments, its stretching."""

import numpy as np
import pytest
import torch
from scipy import stats

from divaug import policies
from divaug.operations import OPERATIONS
from divaug.operations.magnitude import read_data
from tests.test_policies import RARE, draws


def test_pba_draws_at_most_two_operations_with_the_published_chances():
    these = draws(policies.PBA("svhn"), epoch=150, samples=8000)
    segment = policies.PBA("svhn").segments()[policies.PBA("svhn").segment_of_epoch()[150]]
    certain = np.prod([1 - e.probability[0] for e in segment])
    number = these.applied.sum(-1)
    trials = number.numel()
    assert certain < 1e-4  # so nearly always enough entries fire
    for count, chance in {0: 0.2, 1: 0.3, 2: 0.5}.items():
        hits = int((number == count).sum())
        assert abs(hits - chance * trials) < 4.5 * (trials * chance * (1 - chance)) ** 0.5 + 5
    assert torch.equal(these.applied, these.operation >= 0)
    assert (these.applied[..., 0] | ~these.applied[..., 1]).all()  # the first slot is filled first


def test_pba_equals_a_walk_through_the_shuffled_entries():
    """Frequencies of the first applied operation against a simulation with Python's loops."""
    policy, epoch = policies.PBA("cifar10"), 60
    entries = policy.segments()[policy.segment_of_epoch()[epoch]]
    rng = np.random.default_rng(0)
    simulated = np.zeros(17)
    for _ in range(20_000):
        left = rng.choice(3, p=[0.2, 0.3, 0.5])
        first = -1
        for i in rng.permutation(30):
            if left == 0:
                break
            if rng.random() < entries[i].probability[0]:
                first = OPERATIONS.index(entries[i].operation)
                break
        simulated[first + 1] += 1
    these = draws(policy, epoch=epoch)
    found = torch.bincount((these.operation[..., 0] + 1).flatten(), minlength=17).numpy()
    used = (simulated + found) > 0
    table = np.stack([simulated[used], found[used]])
    assert stats.chi2_contingency(table).pvalue > RARE


def test_pba_follows_its_published_segments():
    schedule = read_data("pba.json")["schedules"]
    for dataset, length, number in (("cifar10", 200, 17), ("svhn", 160, 14)):
        segments = schedule[dataset]["segments"]
        assert len(segments) == number
        of_epoch = policies.PBA(dataset).segment_of_epoch()
        assert len(of_epoch) == length
        for epoch, i in enumerate(of_epoch):
            assert segments[i]["start_epoch"] <= epoch < segments[i]["end_epoch"]
        assert all(len(s["copy_1"]) == len(s["copy_2"]) == 15 for s in segments)


@pytest.mark.parametrize("total", [1, 20, 100, 300, 1800])
def test_pba_is_stretched_as_its_authors_do(total):
    segments = read_data("pba.json")["schedules"]["cifar10"]["segments"]
    expected = []
    for i, segment in enumerate(segments):
        expected += [i] * int(segment["epochs"] * total / 200)
    expected += [len(segments) - 1] * (total - len(expected))
    assert policies.PBA("cifar10", total).segment_of_epoch() == expected
    assert len(expected) == total


def test_pba_beyond_its_end_stays_at_its_last_segment():
    last = draws(policies.PBA("svhn"), epoch=159, samples=50)
    assert draws(policies.PBA("svhn"), epoch=1000, samples=50).equal(last)
    assert draws(policies.PBA("svhn"), epoch=torch.tensor(159), samples=50).equal(last)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32])
def test_an_epoch_may_be_a_small_number(dtype):
    expected = draws(policies.PBA("svhn"), epoch=99, samples=50)
    assert draws(policies.PBA("svhn"), epoch=torch.tensor(99, dtype=dtype), samples=50).equal(
        expected
    )


def test_pba_without_an_epoch_is_refused():
    with pytest.raises(ValueError, match="`epoch`"):
        draws(policies.PBA("cifar10"))


@pytest.mark.parametrize(
    "epoch", [-1, 1.5, "3", True, 2**63, torch.tensor(1.5), torch.tensor([1, 2])]
)
def test_pba_with_an_epoch_that_is_none_is_refused(epoch):
    with pytest.raises(ValueError, match="`epoch` must be"):
        draws(policies.PBA("cifar10"), epoch=epoch)
