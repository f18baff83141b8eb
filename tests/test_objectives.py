"""Losses on unlabelled images and annealing: literal loops, and numbers worked out by hand."""

import math

import pytest
import torch

from divaug.objectives import (
    ANNEALING,
    annealed_cross_entropy,
    annealing_threshold,
    confident,
    consistency_loss,
    divergence,
    pseudo_label_loss,
    sharpen,
)


def softmax(values, temperature=1.0):
    top = max(values)
    powers = [math.exp((v - top) / temperature) for v in values]
    return [p / sum(powers) for p in powers]


def logits(*shape, seed=0, scale=3.0):
    g = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*shape, generator=g, dtype=torch.float64)


def loop(original, views, temperature, confidence, term):
    """The mean over images of the mean over views of `term`, 0 for images nobody is sure of."""
    per_image, counted = [], []
    for image, its_views in zip(original.tolist(), views.tolist(), strict=True):
        sure = max(softmax(image)) > confidence
        per_view = [term(image, softmax(view), temperature) for view in its_views]
        per_image.append(sum(per_view) / len(per_view) if sure else 0.0)
        counted.append(sure)
    return sum(per_image) / len(per_image), counted


def kl_term(image, q, temperature):
    return sum(t * math.log(t / p) for t, p in zip(softmax(image, temperature), q, strict=True))


def hard_term(image, q, _temperature):
    return -math.log(q[image.index(max(image))])


LOSSES = pytest.mark.parametrize(
    ("loss", "term"), [(consistency_loss, kl_term), (pseudo_label_loss, hard_term)]
)


@LOSSES
@pytest.mark.parametrize("views", [1, 2, 3])
@pytest.mark.parametrize("confidence", [0.0, 0.6, 0.8, 1.0])
def test_equal_to_a_literal_loop(loss, term, views, confidence):
    original, strong = logits(9, 5), logits(9, views, 5, seed=1)
    found, mask = loss(original, strong, 0.4, confidence)
    expected, counted = loop(original, strong, 0.4, confidence, term)
    assert float(found) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert mask.tolist() == counted
    if confidence == 0.6:
        assert 0 < sum(counted) < 9


@LOSSES
def test_gradients_reach_the_views_that_count_and_nothing_else(loss, term):
    original, strong = logits(8, 4).requires_grad_(), logits(8, 2, 4, seed=1).requires_grad_()
    value, mask = loss(original, strong, 0.4, 0.8)
    value.backward()
    assert original.grad is None
    reached = strong.grad.abs().sum((1, 2)) > 0
    assert torch.equal(reached, mask)
    assert 0 < int(mask.sum()) < 8
    # d/dz of both losses is (q − target)/(S·B) for images that count.
    image = int(mask.nonzero()[0])
    q = softmax(strong[image, 0].tolist())
    row = original[image].tolist()
    hard = [float(v == max(row)) for v in row]
    target = softmax(row, 0.4) if loss is consistency_loss else hard
    expected = [(a - b) / 16 for a, b in zip(q, target, strict=True)]
    assert strong.grad[image, 0].tolist() == pytest.approx(expected, abs=1e-12)


def test_the_mask_looks_at_the_prediction_before_sharpening():
    """0.7311 for the likelier of two classes one logit apart; sharpened at 0.4 it is 0.9241."""
    original = torch.tensor([[1.0, 0.0]])
    assert float(original.softmax(-1)[0, 0]) == pytest.approx(0.731059, abs=1e-6)
    assert float(sharpen(original, 0.4).exp()[0, 0]) == pytest.approx(0.924142, abs=1e-6)
    assert not confident(original, 0.8)[0]
    assert confident(original, 0.73)[0]
    assert float(consistency_loss(original, torch.zeros(1, 1, 2), 0.4, 0.8)[0]) == 0.0


def test_sharpening_by_hand():
    probs = sharpen(torch.tensor([[0.5, 0.3, 0.2]]).log(), 0.5).exp()[0]
    squares = [0.25, 0.09, 0.04]  # a temperature of a half squares the probabilities
    assert probs.tolist() == pytest.approx([s / 0.38 for s in squares], abs=1e-6)
    same = sharpen(logits(3, 4), 1.0)
    assert torch.allclose(same, logits(3, 4).log_softmax(-1))


def test_a_class_that_is_ruled_out_counts_as_nothing():
    """Masked classes have a logit of −∞, in the original and in its views."""
    original, views = logits(4, 6), logits(4, 6, seed=3)[:, None]
    expected, _ = consistency_loss(original[:, 1:], views[..., 1:], 0.4, 0.0)
    original[:, 0] = views[..., 0] = -torch.inf
    views.requires_grad_()
    found, _ = consistency_loss(original, views, 0.4, 0.0)
    assert torch.allclose(found, expected)
    found.backward()
    assert views.grad.isfinite().all()
    learned = original.log_softmax(-1).requires_grad_()
    divergence(learned, views.detach()[:, 0].log_softmax(-1)).sum().backward()
    assert learned.grad.isfinite().all()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # α at 0, 1/2 and 1; with ten classes the threshold is 0.1 + 0.9·α.
        ("linear", (0.0, 0.5, 1.0)),
        ("log", (0.0, 0.9179150, 0.9932621)),
        ("exp", (0.0067379, 0.0820850, 1.0)),
    ],
)
def test_annealing_by_hand(name, expected):
    for progress, alpha in zip((0.0, 0.5, 1.0), expected, strict=True):
        now = torch.tensor(progress, dtype=torch.float64)
        assert float(annealing_threshold(name, now, 10)) == pytest.approx(
            0.1 + 0.9 * alpha, abs=1e-7
        )


@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_annealed_cross_entropy_against_a_loop(threshold):
    outputs, labels = logits(40, 5), torch.arange(40) % 5
    total, count = 0.0, 0
    for row, label in zip(outputs.tolist(), labels.tolist(), strict=True):
        p = softmax(row)[label]
        if p < threshold:
            total, count = total - math.log(p), count + 1
    found, number = annealed_cross_entropy(outputs, labels, torch.tensor(threshold))
    assert float(found) == pytest.approx(total, rel=1e-12, abs=0)
    assert int(number) == count


@pytest.mark.parametrize("name", ANNEALING)
def test_an_image_without_a_label_never_counts(name):
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(5))
    labels = torch.tensor([0, -100, 2, -100])
    threshold = annealing_threshold(name, torch.tensor(0.9), 3)
    total, count = annealed_cross_entropy(logits, labels, threshold)
    alone = annealed_cross_entropy(logits[::2], labels[::2], threshold)
    assert (float(total), int(count)) == (float(alone[0]), int(alone[1]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_single(dtype):
    """As exactly as its logits allow: equal to the loss of the same numbers in float32."""
    draw = torch.Generator().manual_seed(6)
    original, views = torch.randn(5, 7, generator=draw) * 4, torch.randn(5, 3, 7, generator=draw)
    original, views = original.to(dtype), (original[:, None] + views / 50).to(dtype)
    for loss in (consistency_loss, pseudo_label_loss):
        half, single = (
            loss(original, views, 0.4, 0.5),
            loss(original.float(), views.float(), 0.4, 0.5),
        )
        assert half[0].dtype == torch.float32
        assert torch.equal(half[0], single[0])
        assert torch.equal(half[1], single[1])
    labels = torch.tensor([0, 1, 2, 3, 4])
    half = annealed_cross_entropy(original, labels, torch.tensor(0.9))
    assert torch.equal(
        half[0], annealed_cross_entropy(original.float(), labels, torch.tensor(0.9))[0]
    )


def test_a_loss_that_is_no_number_is_not_annealed_away():
    outputs = torch.tensor([[math.nan, 0.0], [1.0, 0.0]])
    total, count = annealed_cross_entropy(outputs, torch.tensor([0, 0]), torch.tensor(0.5))
    assert math.isnan(float(total))
    assert int(count) == 1


@LOSSES
def test_bad_input_is_named(loss, term):
    assert term is not None
    with pytest.raises(ValueError, match=r"`confidence` must be a number in \[0, 1\], got 1\.5"):
        loss(logits(2, 3), logits(2, 1, 3), 0.4, 1.5)
    with pytest.raises(ValueError, match=r"`views` must be \[B,S,D\] with B=2 and D=3"):
        loss(logits(2, 3), logits(3, 1, 3), 0.4, 0.5)
    with pytest.raises(ValueError, match=r"`original` must be logits \[B,D\]"):
        loss(logits(2, 3), logits(2, 3), 0.4, 0.5)


def test_unknown_annealing_and_a_temperature_of_nothing():
    with pytest.raises(ValueError, match=r"unknown annealing 'liner'. Did you mean 'linear'"):
        annealing_threshold("liner", torch.tensor(0.0), 10)
    for temperature in (0.0, -1, math.nan, "x", None, True):
        message = f"`temperature` must be a number above 0, got {temperature!r}"
        with pytest.raises(ValueError, match=message):
            sharpen(logits(1, 2), temperature)


@pytest.mark.parametrize("function", [sharpen, confident])
def test_logits_that_are_none_are_named(function):
    with pytest.raises(TypeError, match=r"`logits` must be a tensor of floats, got list"):
        function([[0.0, 1.0]], 0.5)
    with pytest.raises(TypeError, match=r"`logits` must be a tensor of floats, got torch\.int64"):
        function(torch.tensor([[0, 1]]), 0.5)
    with pytest.raises(ValueError, match=r"`(temperature|confidence)` must be a number.*got 'x'"):
        function(logits(1, 2), "x")


@pytest.mark.parametrize(("labels", "error", "message"), [
    (torch.tensor([0.0, 1.0]), TypeError, r"`labels`.*int64.*got torch\.float32.*\.long\(\)"),
    (torch.eye(3)[:2], ValueError, r"`labels` hard \[B\], got \(2, 3\) and \(2, 3\)"),
    (torch.tensor([0]), ValueError, r"`labels` hard \[B\], got \(2, 3\) and \(1,\)"),
])  # fmt: skip
def test_labels_of_annealing_must_be_hard(labels, error, message):
    with pytest.raises(error, match=message):
        annealed_cross_entropy(logits(2, 3), labels, torch.tensor(0.5))
