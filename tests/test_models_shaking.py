"""Shake-Shake and ShakeDrop: their rules forward and backward, their mean, and their noise.

The noise is a pure function, so every statistical test here sees the same numbers each time; its
bounds are five standard deviations of the estimate.
"""

import copy

import pytest
import torch
from scipy import stats

from divaug.lab.models import build, seed_noise
from divaug.lab.models.pyramidnet import PyramidNet, shake_drop
from divaug.lab.models.shake_shake import ShakeShake, shake_shake
from divaug.lab.models.shaking import ShakeNoise


def noise_of(layers, draws, batch_size, seed=0):
    noise = ShakeNoise(layers, draws)
    seed_noise(noise, seed)
    return torch.stack(noise(batch_size))


def small_network(kind, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(5)
        network = {"shake": lambda: ShakeShake(8, 4, 3), "pyramid": lambda: PyramidNet(11, 6, 3)}[
            kind
        ]()
    seed_noise(network, seed)
    return network


def images(batch_size=6, dtype=torch.float32):
    return torch.randn(
        batch_size, 3, 16, 16, generator=torch.Generator().manual_seed(1), dtype=dtype
    )


def two_faced(forward_value, backward_value):
    """A value whose gradient is that of another one, without autograd.Function."""
    return backward_value + (forward_value - backward_value).detach()


def per_image(factor):
    return factor.double().view(-1, 1, 1, 1)


def test_shake_shake_uses_alpha_forward_and_beta_backward():
    first = torch.tensor([1.0, 1.0]).view(2, 1, 1, 1).requires_grad_()
    second = torch.tensor([5.0, 5.0]).view(2, 1, 1, 1).requires_grad_()
    noise = torch.tensor([[0.25, 1.0], [0.75, 0.125]])  # alpha, beta of two images
    out = shake_shake(first, second, noise)
    assert out.flatten().tolist() == [0.25 * 1 + 0.75 * 5, 1.0]
    out.backward(torch.tensor([2.0, 8.0]).view(2, 1, 1, 1))
    assert first.grad.flatten().tolist() == [0.75 * 2, 0.125 * 8]
    assert second.grad.flatten().tolist() == [0.25 * 2, 0.875 * 8]


def test_shake_drop_uses_alpha_forward_and_beta_backward_where_the_gate_says_so():
    x = torch.full((3, 1, 1, 1), 4.0, requires_grad=True)
    # Two images below p = 0.5 and one above it; alpha is stretched from [0, 1) to [-1, 1).
    noise = torch.tensor([[0.25, 0.49, 0.5], [0.0, 0.75, 0.0], [0.125, 0.5, 0.0]])
    out = shake_drop(x, 0.5, noise)
    assert out.flatten().tolist() == [-4.0, 2.0, 4.0]
    out.backward(torch.full_like(x, 8.0))
    assert x.grad.flatten().tolist() == [1.0, 4.0, 8.0]


def test_shake_shake_mean_in_training_is_the_value_in_evaluation():
    count = 200_000
    first, second = torch.tensor([3.0]), torch.tensor([-1.0])
    noise = noise_of(1, 2, count)[0]
    grown = [value.view(1, 1, 1, 1).expand(count, 1, 1, 1) for value in (first, second)]
    mean = shake_shake(*grown, noise).mean().item()
    # alpha has variance 1/12 and the output is second + alpha * (first - second).
    bound = 5 * 4 / (12 * count) ** 0.5
    assert abs(mean - shake_shake(first, second, None).item()) < bound


@pytest.mark.parametrize("p", [0.5 / 90, 0.2, 0.5])
def test_shake_drop_means_forward_and_backward(p):
    count = 200_000
    x = torch.ones(count, 1, 1, 1, requires_grad=True)
    out = shake_drop(x, p, noise_of(1, 3, count)[0])
    out.sum().backward()
    # A factor is 1 with probability 1 - p, else uniform in [-1, 1) (square 1/3) or [0, 1) (1/3).
    square = (1 - p) + p / 3
    forward, backward = 1 - p, (1 - p) + p / 2
    evaluated = shake_drop(torch.ones(1), p, None).item()
    assert evaluated == pytest.approx(forward)
    assert abs(out.mean().item() - evaluated) < 5 * ((square - forward**2) / count) ** 0.5
    assert abs(x.grad.mean().item() - backward) < 5 * ((square - backward**2) / count) ** 0.5
    disturbed = (out != 1).double().mean().item()
    assert abs(disturbed - p) < 5 * (p * (1 - p) / count) ** 0.5


def test_drop_probability_grows_linearly_to_one_half():
    with torch.device("meta"):
        units = build("pyramidnet-272", 10).units
    expected = [0.5 * unit / 90 for unit in range(1, 91)]
    assert [unit.drop_probability for unit in units] == pytest.approx(expected)


def test_gates_are_drawn_for_each_image_and_each_unit():
    gates = noise_of(90, 3, 512)[:, 0] < 0.5
    share = gates.double().mean(dim=1)
    # One gate a batch would give shares of 0 or 1; 5 sigma of 512 fair coins is 0.11.
    assert (share - 0.5).abs().max() < 5 * 0.5 / 512**0.5
    same = (gates[:, None] == gates[None, :]).double().mean(dim=2) - torch.eye(90) / 2
    assert (same - 0.5).abs().max() < 5 * 0.5 / 512**0.5


@pytest.mark.parametrize("kind", ["shake", "pyramid"])
def test_network_gives_each_layer_its_own_noise_forward_and_backward(kind):
    network = small_network(kind).double()
    replay = copy.deepcopy(network)
    rows = copy.deepcopy(network.noise)(6)
    x = images(dtype=torch.float64)
    features = replay.stem(x)
    if kind == "shake":
        for block, (alpha, beta) in zip(replay.blocks, rows, strict=True):
            h = torch.relu(features)
            one, two = block.branch1(h), block.branch2(h)
            a, b = per_image(alpha), per_image(beta)
            mixed = two_faced(a * one + (1 - a) * two, b * one + (1 - b) * two)
            features = mixed + (features if block.shortcut is None else block.shortcut(h))
    else:
        for unit, (gate, alpha, beta) in zip(replay.units, rows, strict=True):
            out = unit.branch(features)
            kept = per_image(gate >= unit.drop_probability)
            a = kept + (1 - kept) * (2 * per_image(alpha) - 1)
            b = kept + (1 - kept) * per_image(beta)
            short = torch.nn.functional.avg_pool2d(features, 2) if unit.stride == 2 else features
            features = two_faced(a * out, b * out)
            features = features + torch.cat([short, torch.zeros_like(out)[:, short.shape[1] :]], 1)
        features = replay.bn(features)
    logits = replay.fc(torch.relu(features).mean(dim=(2, 3)))
    ours = network(x)
    torch.testing.assert_close(ours, logits)
    ours.square().sum().backward()
    logits.square().sum().backward()
    for (name, p), q in zip(network.named_parameters(), replay.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, msg=name)


def test_noise_equals_the_hash_in_plain_integers():
    def mix(x):
        x ^= x >> 16
        x = x * 0x21F0AAAD % 2**32
        x ^= x >> 15
        x = x * 0x735A2D97 % 2**32
        return x ^ x >> 15

    seed, step = 0x7123456789ABCDEF, 2**33 + 5
    noise = ShakeNoise(layers=3, draws=2)
    seed_noise(noise, seed, rank=3, num_ranks=5)
    noise.noise_step.fill_(step)
    for layer, row in enumerate(noise(4)):
        for draw in range(2):
            for position in range(4):
                state = 0
                for word in (
                    *(seed % 2**32, seed // 2**32, step % 2**32, step // 2**32),
                    *(layer * 2 + draw, position + 3 * 4),
                ):
                    state = mix((state + word + 0x9E3779B9) % 2**32)
                assert row[draw, position].item() == (state >> 8) / 2**24


def test_noise_is_uniform_and_uncorrelated_along_every_axis():
    noise = ShakeNoise(layers=16, draws=3)
    uniform = torch.stack([torch.stack(noise(256)) for _ in range(16)]).double()
    # [step, layer, draw, position]; seeded, so this p-value is one fixed number.
    assert stats.kstest(uniform.flatten().numpy(), "uniform").pvalue > 1e-3
    centred = uniform - 0.5
    for axis in range(4):
        length = uniform.shape[axis]
        for lag in (1, 2):
            left = centred.narrow(axis, 0, length - lag)
            right = centred.narrow(axis, lag, length - lag)
            correlation = (left * right).mean().item() * 12
            assert abs(correlation) < 5 / left.numel() ** 0.5


def test_noise_differs_between_seeds_steps_layers_draws_and_positions():
    noise = ShakeNoise(layers=4, draws=2)
    seen = []
    for seed in (0, 1, 2**32, 2**62):
        seed_noise(noise, seed)
        seen += [torch.stack(noise(8)), torch.stack(noise(8))]
    values = torch.stack(seen).flatten()
    # 512 numbers of 24 bits: a collision has a chance of 512^2 / 2 / 2^24, below 1 %.
    assert len(values.unique()) == len(values)


@pytest.mark.parametrize("kind", ["shake", "pyramid"])
def test_restored_network_continues_as_the_uninterrupted_one(kind):
    network = small_network(kind, seed=11)
    network(images())
    saved = copy.deepcopy(network.state_dict())
    expected = network(images())
    restored = small_network(kind)
    restored.load_state_dict(saved)
    assert torch.equal(restored(images()), expected)
    assert not torch.equal(network(images()), expected)  # each step draws anew


@pytest.mark.parametrize("kind", ["shake", "pyramid"])
def test_evaluation_is_deterministic_and_changes_no_state(kind):
    network = small_network(kind).eval()
    before = copy.deepcopy(network.state_dict())
    generator = torch.get_rng_state()
    assert torch.equal(network(images()), network(images()))
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name]), name
    network.train()(images())
    assert torch.equal(torch.get_rng_state(), generator)


def test_noise_of_an_image_does_not_depend_on_how_many_processes_share_the_batch():
    halves = []
    for rank in range(2):
        noise = ShakeNoise(3, 2)
        seed_noise(noise, 4, rank=rank, num_ranks=2)
        halves.append([torch.stack(noise(size)) for size in (4, 1, 6)])  # of any size
    whole = ShakeNoise(3, 2)
    seed_noise(whole, 4)
    for i, size in enumerate((8, 2, 12)):
        assert torch.equal(torch.cat([half[i] for half in halves], 2), torch.stack(whole(size)))


def test_noise_of_kinds_in_one_batch_does_not_depend_on_the_processes_either():
    """Each process has its part of every kind, and so not one piece of the whole batch."""
    whole, kinds = noise_of(2, 3, 4 + 6 + 10, seed=4).split([4, 6, 10], 2), (2, 3, 5)
    parts = []
    for rank in range(2):
        noise = ShakeNoise(2, 3)
        seed_noise(noise, 4, rank=rank, num_ranks=2, kinds=kinds)
        parts.append(torch.stack(noise(sum(kinds))).split(list(kinds), 2))
    for first, second, expected in zip(*parts, whole, strict=True):
        assert torch.equal(torch.cat([first, second], 2), expected)


@pytest.mark.parametrize(
    ("seed", "rank", "message"),
    [(-1, 0, "seed must"), (2**63, 0, "seed must"), (0, -1, "rank must"), (0, 2, "rank must")],
)
def test_bad_seeds_are_refused(seed, rank, message):
    with pytest.raises(ValueError, match=message):
        seed_noise(ShakeNoise(1, 1), seed, rank=rank, num_ranks=2)


@pytest.mark.gpu
def test_noise_has_the_same_bits_on_a_gpu():
    here, there = ShakeNoise(90, 3), ShakeNoise(90, 3).cuda()
    for _ in range(3):
        assert torch.equal(torch.stack(here(128)), torch.stack(there(128)).cpu())
