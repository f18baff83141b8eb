"""The measures against loops, their bounds and invariances, and their accumulators."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from divaug import affinity, loss_diversity, variance_diversity
from divaug._diversity import AffinityMeter, Mean, kept_by_chance, largest_diversity, upper_bound
from tests.reference import kmeanspp_loops as loops


def probabilities(*shape, seed=0, sharpness=3.0):
    logits = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return torch.softmax(logits * sharpness, -1)


@pytest.mark.parametrize(("S", "D"), [(1, 2), (4, 10), (8, 3), (2, 1000)])
def test_variance_diversity_is_equation_4(S, D):
    probs = probabilities(12, S, D)
    found = variance_diversity(probs)
    assert found.shape == (12,)
    assert found.dtype == torch.float32
    expected = torch.tensor([loops.variance_diversity(p.tolist()) for p in probs])
    torch.testing.assert_close(found, expected.float(), rtol=1e-5, atol=1e-7)


def test_variance_diversity_is_half_the_mean_squared_distance_of_pairs():
    probs = probabilities(6, 5, 7).double()
    pairs = (probs[:, :, None] - probs[:, None]).square().sum(-1).mean((1, 2)) / 2
    torch.testing.assert_close(variance_diversity(probs).double(), pairs, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("S", "D"), [(4, 10), (4, 4), (6, 3), (8, 2), (1, 5)])
def test_the_bound_is_reached_where_predictions_spread_evenly(S, D):
    one_hot = torch.eye(D)[torch.arange(S) % D]
    assert float(variance_diversity(one_hot)) == pytest.approx(upper_bound(S, D), abs=1e-6)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    S=st.integers(1, 8),
    D=st.integers(2, 12),
    seed=st.integers(0, 999),
    sharpness=st.sampled_from([0.1, 1.0, 10.0, 1000.0]),
)
def test_variance_diversity_lies_between_0_and_its_bound(S, D, seed, sharpness):
    value = float(variance_diversity(probabilities(S, D, seed=seed, sharpness=sharpness)))
    assert 0.0 <= value <= upper_bound(S, D) + 1e-6


def test_the_bound_of_the_paper():
    assert upper_bound(4, 10) == 0.75
    assert upper_bound(4, 2) == 0.5
    assert upper_bound(1, 10) == 0.0


@pytest.mark.parametrize(("E", "S", "D"), [(8, 4, 10), (5, 1, 3), (5, 5, 3), (6, 2, 100)])
def test_the_largest_diversity_is_that_of_some_choice_and_of_none_more(E, S, D):
    probs = torch.randn(7, E, D, generator=torch.Generator().manual_seed(E)).mul(3).softmax(-1)
    every = [variance_diversity(probs[:, list(s)]) for s in itertools.combinations(range(E), S)]
    largest = torch.stack(every).amax(0)
    torch.testing.assert_close(largest_diversity(probs, S).float(), largest)


def test_the_largest_of_too_many_choices_is_not_a_number():
    assert bool(largest_diversity(torch.rand(2, 20, 3), 10).isnan().all())


def test_loss_diversity_is_the_mean_cross_entropy():
    logits = torch.randn(6, 3, 5, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 1, 2, 3, 4, 0])
    found = loss_diversity(logits, labels)
    for b in range(6):
        losses = []
        for s in range(3):
            row = logits[b, s].double().tolist()
            total = sum(math.exp(v) for v in row)
            losses.append(-math.log(math.exp(row[int(labels[b])]) / total))
        assert float(found[b]) == pytest.approx(sum(losses) / 3, rel=1e-5)
    soft = torch.nn.functional.one_hot(labels, 5).float()
    torch.testing.assert_close(loss_diversity(logits, soft), found)
    assert loss_diversity(logits.double(), soft.double()).dtype == torch.float32


def test_loss_diversity_of_soft_labels():
    draw = torch.Generator().manual_seed(1)
    logits = torch.randn(4, 3, 5, generator=draw, requires_grad=True)
    soft = torch.rand(4, 5, generator=draw)
    each = [
        torch.nn.functional.cross_entropy(logits[:, s], soft, reduction="none") for s in (0, 1, 2)
    ]
    torch.testing.assert_close(loss_diversity(logits, soft), sum(each) / 3)
    ruled_out = logits.detach().masked_fill(torch.arange(5) == 3, -math.inf).requires_grad_()
    soft[:, 3] = 0.0
    found = loss_diversity(ruled_out, soft)
    others = [0, 1, 2, 4]
    torch.testing.assert_close(found, loss_diversity(ruled_out[..., others], soft[:, others]))
    found.sum().backward()
    assert bool(ruled_out.grad.isfinite().all())
    soft[0, 3] = 0.5  # what cannot be is sure
    assert loss_diversity(ruled_out, soft).isinf().tolist() == [True, False, False, False]


def test_affinity_by_hand():
    labels = torch.tensor([0, 1, 2, 0])
    clean = torch.eye(3)[torch.tensor([0, 1, 2, 1])]  # three of four right
    once = torch.eye(3)[torch.tensor([0, 2, 0, 1])]  # one of four right
    assert float(affinity(clean, once, labels)) == pytest.approx(0.25 - 0.75)
    twice = torch.stack([once, clean], 1)  # four of eight right
    assert float(affinity(clean, twice, labels)) == pytest.approx(0.5 - 0.75)
    assert float(affinity(clean, clean, labels)) == 0.0


def test_accumulated_batches_equal_one_pass():
    probs = probabilities(103, 4, 10)
    labels = torch.randint(0, 10, (103,), generator=torch.Generator().manual_seed(2))
    clean = probabilities(103, 10, seed=3)
    mean, meter = Mean(), AffinityMeter()
    for start in range(0, 103, 17):
        part = slice(start, start + 17)
        mean.update(variance_diversity(probs[part]))
        meter.update(clean[part], probs[part], labels[part])
    assert float(mean.compute()) == pytest.approx(float(variance_diversity(probs).mean()), rel=1e-6)
    assert mean.count == 103
    assert float(meter.compute()) == pytest.approx(float(affinity(clean, probs, labels)), abs=1e-12)


@pytest.mark.parametrize(("labels", "error", "message"), [
    (torch.tensor([0, 3]), ValueError, r"`labels` must lie in \[0, 2\].*got 0 to 3"),
    (torch.tensor([-100, 1]), ValueError, r"`labels` must lie in \[0, 2\].*got -100 to 1"),
    (torch.tensor([0, 1], dtype=torch.int32), TypeError, r"int64, got torch\.int32.*long"),
    (torch.tensor([0.0, 1.0]), TypeError, r"int64, got torch\.float32"),
    (torch.eye(3)[:2].long(), TypeError, r"soft `labels`.*floats, got torch\.int64.*float"),
    (torch.eye(2), ValueError, r"`labels` \[B\] or \[B,D\].*\(2, 2\)"),
    (torch.tensor(0), ValueError, r"`labels` \[B\] or \[B,D\]"),
    ([0, 1], TypeError, r"`labels` must be a torch\.Tensor, got list"),
])  # fmt: skip
def test_labels_that_do_not_fit_are_refused(labels, error, message):
    with pytest.raises(error, match=message):
        loss_diversity(torch.rand(2, 4, 3), labels)


@pytest.mark.parametrize(("labels", "error", "message"), [
    (torch.tensor([7, 1]), ValueError, r"`labels` must lie in \[0, 2\].*`clean`, got 1 to 7"),
    (torch.tensor([7, -100]), ValueError, r"`labels` must lie in \[0, 2\].*got -100 to 7"),
    (torch.tensor([0, 1], dtype=torch.int32), TypeError, r"int64, got torch\.int32.*long"),
    (torch.tensor([0.0, 1.0]), TypeError, r"int64, got torch\.float32"),
    (torch.eye(3)[:2], ValueError, r"`labels` \[B\]"),
])  # fmt: skip
def test_labels_that_no_prediction_can_meet_are_no_affinity(labels, error, message):
    """They would count as wrong answers, before augmentation and after."""
    with pytest.raises(error, match=message):
        affinity(torch.rand(2, 3), torch.rand(2, 4, 3), labels)


@pytest.mark.parametrize("probs", [
    torch.tensor([[2.0, -1.0], [0.5, 0.5]]), torch.tensor([[30.0, 1.0], [0.5, 0.5]]),
], ids=["below 0", "above 1"])  # fmt: skip
def test_logits_are_no_probabilities(probs):
    with pytest.raises(ValueError, match=r"`probs`.*\[0, 1\].*logits\.softmax\(-1\)"):
        variance_diversity(probs)


def test_sigmoids_of_many_labels_are_no_probabilities():
    labels = torch.tensor([[[1.0] * 20, [0.0] * 20]])
    with pytest.raises(ValueError, match=r"sums to 20; of sigmoids p .*torch.cat"):
        variance_diversity(labels)
    for dtype in (torch.float32, torch.float16):
        variance_diversity(torch.full((2, 100), 0.0106, dtype=dtype))  # sums to 1.06
        with pytest.raises(ValueError, match=r"sums to 1\.0[67]"):
            variance_diversity(torch.full((2, 100), 0.0107, dtype=dtype))
    vectors = torch.cat([labels, 1 - labels], -1) / labels.shape[-1]
    assert 0 < float(variance_diversity(vectors)) <= upper_bound(2, 40)


@pytest.mark.parametrize("which", [0, 1])
def test_a_prediction_that_is_not_a_number_is_no_class(which):
    """To argmax it is the largest: a network gone astray would always say class 0, or be right."""
    predictions = [torch.tensor([[0.1, 0.9], [0.8, 0.2]]) for _ in range(2)]
    predictions[which][0, 0] = math.nan
    assert affinity(*predictions, torch.tensor([0, 0])).isnan()
    ruled_out = torch.tensor([[-math.inf, 0.0], [0.0, -math.inf]])
    assert float(affinity(ruled_out, ruled_out, torch.tensor([1, 0]))) == 0


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match=r"\[...,S,D\]"):
        variance_diversity(torch.rand(5))
    with pytest.raises(ValueError, match="int64"):
        variance_diversity(torch.ones(2, 3, dtype=torch.int64))
    with pytest.raises(ValueError, match="S ≥ 1"):
        variance_diversity(torch.rand(2, 0, 3))
    with pytest.raises(ValueError, match=r"\[B,S,D\]"):
        loss_diversity(torch.rand(4, 3), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(ValueError, match="S ≥ 1"):
        loss_diversity(torch.rand(4, 0, 3), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"\[B,S,D\]"):
        loss_diversity(torch.rand(4, 2, 3), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(TypeError, match=r"`probs` must be a torch\.Tensor, got list"):
        variance_diversity([[0.5, 0.5]])
    with pytest.raises(TypeError, match=r"`values` must be a torch\.Tensor, got str"):
        Mean().update("x")
    labels = torch.zeros(4, dtype=torch.int64)
    with pytest.raises(TypeError, match=r"`labels`.*got list"):
        affinity(torch.rand(4, 3), torch.rand(4, 3), [0, 0, 0, 0])
    with pytest.raises(ValueError, match="`clean`"):
        affinity(torch.rand(4), torch.rand(4, 3), labels)
    with pytest.raises(ValueError, match="`augmented`"):
        affinity(torch.rand(4, 3), torch.rand(4, 2), labels)
    with pytest.raises(ValueError, match="`augmented`"):
        affinity(torch.rand(4, 3), torch.rand(5, 2, 3), labels)
    for meter in (Mean(), AffinityMeter()):
        with pytest.raises(ValueError, match="update"):
            meter.compute()


@pytest.mark.parametrize(("E", "S"), [(8, 4), (5, 2), (4, 4), (3, 1), (1, 1)])
def test_chance_keeps_the_mean_over_all_choices(E, S):
    probs = torch.rand(E, 6, generator=torch.Generator().manual_seed(E)).softmax(-1)
    choices = [list(one) for one in itertools.combinations(range(E), S)]
    mean = torch.stack([variance_diversity(probs[one]) for one in choices]).mean()
    expected = kept_by_chance(E, S) * variance_diversity(probs)
    torch.testing.assert_close(mean, expected, rtol=1e-5, atol=1e-8)
