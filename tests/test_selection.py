"""Selection: the exact distribution, literal loops on the same words, and S distinct always."""

import itertools
import math
import multiprocessing
import os
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from divaug import _products, select, variance_diversity
from divaug._select import METHODS, squared_distances
from tests.reference import kmeanspp_loops as loops
from tests.reference import samples

DRAWN = ("kmeans++", "uniform", "greedy")


def realistic(B, E, D, seed=0, sharpness=3.0):
    """Predictions of a half-trained network: candidates of an image agree more or less."""
    g = torch.Generator().manual_seed(seed)
    image = torch.randn(B, 1, D, generator=g) * sharpness
    spread = torch.rand(B, 1, 1, generator=g) * sharpness
    return torch.softmax(image + spread * torch.randn(B, E, D, generator=g), -1)


def awkward(B, E, D, seed=0):
    """Everything a model can do wrong, image by image."""
    g = torch.Generator().manual_seed(seed)
    probs = torch.softmax(4 * torch.randn(B, E, D, generator=g), -1)
    at = torch.arange(B)
    probs[at % 8 == 1] = 1.0 / D
    probs[at % 8 == 2] = torch.eye(D)[torch.randint(0, D, (E,), generator=g)]
    probs[at % 8 == 3, 0] = float("nan")
    probs[at % 8 == 4, -1, 0] = float("inf")
    probs[at % 8 == 5] *= 3.0
    probs[at % 8 == 6] = float("nan")
    probs[at % 8 == 7, 1:] = probs[at % 8 == 7, :1] * 1.0
    return probs


def diversity_of(probs, chosen):
    return variance_diversity(probs.double().take_along_dim(chosen[..., None], 1))


# --- k-means++ against its exact distribution --------------------------------------------------

DISTRIBUTIONS = {
    "spread": [[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8], [0.4, 0.3, 0.3]],
    "two close": [[0.5, 0.5], [0.52, 0.48], [1.0, 0.0], [0.0, 1.0], [0.3, 0.7]],
    "two equal": [[0.6, 0.4], [0.6, 0.4], [0.1, 0.9], [0.8, 0.2]],
    "fewer points than S": [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]],
    "all equal": [[0.5, 0.5]] * 4,
    "one broken": [[0.5, 0.5], [float("nan"), 0.5], [0.9, 0.1], [0.0, 1.0]],
}


@pytest.mark.parametrize("S", [2, 3])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_kmeans_plus_plus_has_the_enumerated_distribution(name, S):
    vectors = DISTRIBUTIONS[name]
    expected = loops.distribution(vectors, S)
    trials = 20_000
    chosen = select(torch.tensor([vectors]).expand(trials, -1, -1), S, seed=20_260 + S)
    found = torch.unique(chosen, dim=0, return_counts=True)
    counts = {tuple(k): n for k, n in zip(found[0].tolist(), found[1].tolist(), strict=True)}
    assert set(counts) <= set(expected)  # nothing of probability zero was ever drawn
    rare = [k for k, chance in expected.items() if chance * trials < 5]
    common = [k for k in expected if k not in rare]
    observed = [counts.get(k, 0) for k in common] + [sum(counts.get(k, 0) for k in rare)]
    chances = [expected[k] for k in common] + [sum(expected[k] for k in rare)]
    if chances[-1] * trials < 5:
        observed[-2:], chances[-2:] = [sum(observed[-2:])], [sum(chances[-2:])]
    test = stats.chisquare(observed, np.array(chances) / sum(chances) * trials)
    assert test.pvalue > 1e-3


@pytest.mark.parametrize("S", [1, 2, 3, 5])
def test_uniform_draws_every_ordered_subset_equally_often(S):
    probs = torch.tensor([[[0.9, 0.1]] * 4 + [[0.0, 1.0]]]).expand(24_000, -1, -1)
    chosen = select(probs, S, method="uniform", seed=5)
    _, counts = torch.unique(chosen, dim=0, return_counts=True)
    assert len(counts) == len(list(itertools.permutations(range(5), S)))
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


# --- literal loops fed the same words ----------------------------------------------------------


@pytest.mark.parametrize("method", DRAWN)
@pytest.mark.parametrize("make", [realistic, awkward])
@pytest.mark.parametrize(("E", "S", "D"), [(1, 1, 2), (2, 2, 3), (5, 3, 2), (8, 4, 10), (7, 7, 31)])
def test_equal_to_a_loop_over_images(method, make, E, S, D):
    probs = make(40, E, D, seed=E + D)
    index = torch.arange(40) * 977 + 3
    chosen = select(probs, S, method=method, seed=2**40 + 1, step=12, index=index)
    for b in range(40):
        expected = loops.LOOPS[method](probs[b].tolist(), S, 2**40 + 1, 12, int(index[b]))
        assert chosen[b].tolist() == expected, f"image {b}"


# --- S distinct, always ------------------------------------------------------------------------

odd_numbers = st.sampled_from([0.0, 1.0, 0.5, 1e-30, -0.0, -1.0, 7.0, 1e38]) | st.floats(
    width=32, allow_nan=True, allow_infinity=True
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data(), E=st.integers(1, 9), D=st.integers(2, 5))
def test_indices_are_distinct_whatever_the_probabilities(data, E, D):
    S = data.draw(st.integers(1, E))
    values = data.draw(st.lists(odd_numbers, min_size=2 * E * D, max_size=2 * E * D))
    probs = torch.tensor(values).view(2, E, D)
    for method in METHODS:
        chosen = select(probs, S, method=method, seed=data.draw(st.integers(0, 2**64 - 1)))
        assert chosen.shape == (2, S)
        assert chosen.dtype == torch.int64
        assert int(chosen.min()) >= 0
        assert int(chosen.max()) < E
        assert all(len(set(row)) == S for row in chosen.tolist())


@pytest.mark.parametrize("method", METHODS)
def test_as_many_as_there_are_keeps_everything(method):
    chosen = select(awkward(64, 6, 4), 6, method=method)
    assert torch.equal(chosen.sort(1).values, torch.arange(6).expand(64, 6))


@pytest.mark.parametrize("method", METHODS)
def test_the_most_candidates_with_the_largest_distances_do_not_overflow(method):
    # 64 one-hot vectors are as far apart as vectors can be: the sums reach their largest values.
    S = 64 if method != "exact" else 1
    chosen = select(torch.eye(64).expand(8, -1, -1), S, method=method, seed=3)
    assert all(len(set(row)) == S for row in chosen.tolist())
    if method == "kmeans++":
        spread = select(torch.eye(64).expand(4000, -1, -1), 2, seed=4)[:, 1]
        assert stats.chisquare(torch.bincount(spread, minlength=64).numpy()).pvalue > 1e-3


@pytest.mark.parametrize("method", ["kmeans++", "greedy"])
def test_broken_candidates_are_kept_last(method):
    probs = realistic(200, 6, 5, seed=2)
    probs[:, 4] = float("nan")
    chosen = select(probs, 5, method=method, seed=1)
    first_is_broken = chosen[:, 0] == 4
    assert first_is_broken.any()
    assert not (chosen[~first_is_broken] == 4).any()


def test_duplicates_wait_until_nothing_else_is_left():
    probs = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]).expand(500, -1, -1)
    chosen = select(probs, 2, seed=6)
    assert ((chosen[:, 0] < 2) != (chosen[:, 1] < 2)).all()


def test_an_empty_batch_gives_no_indices():
    assert select(torch.zeros(0, 8, 10), 4).shape == (0, 4)


# --- what a draw depends on --------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_choice_belongs_to_its_sample_not_to_its_place(method):
    probs, index = awkward(48, 8, 10), torch.arange(48) * 31
    whole = select(probs, 4, method=method, seed=9, step=2, index=index)
    order = torch.randperm(48, generator=torch.Generator().manual_seed(0))
    shuffled = select(probs[order], 4, method=method, seed=9, step=2, index=index[order])
    assert torch.equal(shuffled, whole[order])
    parts = [
        select(probs[i : i + 7], 4, method=method, seed=9, step=2, index=index[i : i + 7])
        for i in range(0, 48, 7)
    ]
    assert torch.equal(torch.cat(parts), whole)


@pytest.mark.parametrize("method", DRAWN)
def test_seed_and_step_both_matter(method):
    probs = realistic(64, 8, 10)
    base = select(probs, 4, method=method, seed=1, step=1)
    assert not torch.equal(base, select(probs, 4, method=method, seed=2, step=1))
    assert not torch.equal(base, select(probs, 4, method=method, seed=1, step=2))
    assert torch.equal(base, select(probs, 4, method=method, seed=1, step=torch.tensor(1)))


def test_probabilities_of_any_memory_layout_are_read_alike():
    probs = realistic(16, 10, 8)
    assert torch.equal(
        select(probs.transpose(1, 2), 4), select(probs.transpose(1, 2).contiguous(), 4)
    )


# --- exact and greedy --------------------------------------------------------------------------


@pytest.mark.parametrize(("E", "S", "D"), [(4, 2, 2), (6, 3, 10), (8, 4, 100), (5, 1, 3)])
def test_exact_reaches_the_best_of_all_subsets(E, S, D):
    probs = realistic(30, E, D, seed=S)
    reached = diversity_of(probs, select(probs, S, method="exact"))
    best = [loops.best_subset(probs[b].tolist(), S) for b in range(30)]
    torch.testing.assert_close(reached, torch.tensor(best).float(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("E", "S"), [(8, 4), (8, 2), (12, 6), (33, 32)])
@pytest.mark.parametrize("apart", [1e-5, 1e-6, 3e-7])
def test_exact_tells_predictions_apart_that_hardly_differ(E, S, apart):
    """In Python's whole numbers, after the rounding to multiples of 2**-26."""
    others = torch.rand(6, E, 9, generator=samples.generator(E, S, apart)) * apart / 9
    probs = torch.cat([1 - others.sum(-1, keepdim=True), others], -1)
    fixed = (probs.double() * 2**26).floor().long()
    chosen = select(probs, S, method="exact")
    for image, kept in zip(fixed.tolist(), chosen.tolist(), strict=True):
        squared = {
            (i, j): sum((a - b) ** 2 for a, b in zip(image[i], image[j], strict=True))
            for i, j in itertools.combinations(range(E), 2)
        }
        best, found = (
            max(sum(squared[pair] for pair in itertools.combinations(subset, 2)) for subset in of)
            for of in (itertools.combinations(range(E), S), [sorted(kept)])
        )
        assert found == best


def test_exact_takes_the_first_of_equal_subsets():
    assert select(torch.full((1, 5, 2), 0.5), 3, method="exact").tolist() == [[0, 1, 2]]


def test_squared_distances_equal_the_definition():
    probs = realistic(5, 6, 7)
    distance, finite = squared_distances(probs)
    expected = (probs.double()[:, :, None] - probs.double()[:, None]).square().sum(-1)
    torch.testing.assert_close(distance.double() * 2.0**-52, expected, rtol=0, atol=1e-6)
    assert finite.all()
    assert not squared_distances(awkward(4, 6, 3))[1][3, 0].any()


def mean_diversity(probs, method, S=4, repeats=8):
    chosen = [select(probs, S, method=method, seed=seed) for seed in range(repeats)]
    return float(torch.stack([diversity_of(probs, c).mean() for c in chosen]).mean())


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("D", [10, 100])
def test_the_more_a_method_tries_the_more_diverse_its_choice(D, sharpness):
    probs = realistic(100, 8, D, seed=D, sharpness=sharpness)
    exact, greedy, plus, uniform = (
        mean_diversity(probs, method, repeats=4)
        for method in ("exact", "greedy", "kmeans++", "uniform")
    )
    assert exact >= greedy
    assert exact >= plus
    assert greedy > uniform
    assert plus > uniform


def test_how_far_kmeans_plus_plus_is_from_the_optimum():
    """For E = 8, S = 4 on predictions of a half-trained network of 10 classes.

    k-means++ reaches about 75 % of the largest Variance Diversity among the 70 subsets, the
    farthest-point rule about 85 %, and a random choice about 61 %.
    """
    probs = realistic(1000, 8, 10, seed=1)
    exact = mean_diversity(probs, "exact", repeats=1)
    part = {m: mean_diversity(probs, m) / exact for m in ("kmeans++", "greedy", "uniform")}
    assert part["kmeans++"] == pytest.approx(0.755, abs=0.02)
    assert part["greedy"] == pytest.approx(0.848, abs=0.02)
    assert part["uniform"] == pytest.approx(0.607, abs=0.02)


# --- refusals ----------------------------------------------------------------------------------


def test_exact_refuses_too_many_subsets_and_names_the_remedy():
    with pytest.raises(ValueError, match=r"601,080,390.*kmeans\+\+"):
        select(torch.rand(1, 32, 3), 16, method="exact")


@pytest.mark.parametrize("S", [0, -1, 9])
def test_the_number_kept_must_fit(S):
    with pytest.raises(ValueError, match=r"num_selected.*E=8"):
        select(torch.rand(2, 8, 3), S)


def test_wrong_probabilities_are_named():
    with pytest.raises(ValueError, match="two classes"):
        select(torch.rand(2, 8, 1), 2)
    with pytest.raises(ValueError, match=r"\[B,E,D\]"):
        select(torch.rand(8, 3), 2)
    with pytest.raises(ValueError, match="list"):
        select([[0.5, 0.5]], 1)
    with pytest.raises(TypeError, match="float"):
        select(torch.ones(2, 8, 3, dtype=torch.int64), 2)
    with pytest.raises(ValueError, match="64"):
        select(torch.rand(1, 65, 3), 2)
    with pytest.raises(ValueError, match=r"index.*\(2,\)"):
        select(torch.rand(2, 8, 3), 2, index=torch.arange(3))
    with pytest.raises(ValueError, match="seed"):
        select(torch.rand(2, 8, 3), 2, seed=-1)


def test_an_unknown_method_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"Did you mean 'greedy'"):
        select(torch.rand(2, 8, 3), 2, method="greedily")


def test_a_backend_that_cannot_run_is_refused_with_its_reason():
    with pytest.raises(ValueError, match="backend"):
        select(torch.rand(2, 8, 3), 2, backend="cuda")
    with pytest.raises(ValueError, match="no kernel"):
        select(torch.rand(2, 8, 3), 2, method="exact", backend="triton")


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("E", [1, 2, 3, 8, 9])
def test_products_are_the_same_from_either_library(E, threads, monkeypatch):
    """And from whole numbers of any size in Python, with sums that are those of the vectors."""
    monkeypatch.setattr(_products, "CHUNK_NUMBERS", 2 * E * 37)  # six images are three chunks
    monkeypatch.setattr(_products, "CHUNKS_PER_THREAD", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    g = torch.Generator().manual_seed(E)
    probs = (3 * torch.randn(6, E, 37, generator=g)).softmax(-1)
    probs[4, 0, 0] = -0.25  # counts as 0, in a chunk of its own kind
    found = _products.products_and_sums(probs)
    assert torch.equal(found, _products._on_device(probs))
    found = found.permute(2, 0, 1)
    whole = (probs.double().clamp(0, 1) * (1 << 26)).floor().to(torch.int64).tolist()
    for image, expected in zip(found.tolist(), whole, strict=True):
        for row, a in zip(image, expected, strict=True):
            dots = [sum(x * y for x, y in zip(a, b, strict=True)) for b in expected]
            assert row == [*dots, sum(a)]
    probs[2, 0, 5] = math.nan
    broken = _products.products_and_sums(probs)
    assert torch.equal(broken.isnan(), _products._on_device(probs).isnan())
    assert torch.equal(broken.isnan().nonzero()[:, 2].unique(), torch.tensor([2]))


class OneDevice(TorchDispatchMode):
    """Refuses to mix tensors of the host with those of another device.

    An index, say, that lies on the host is copied there first, and the host waits for it.
    """

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        devices = {tensor.device.type for tensor in tensors if tensor.ndim}
        assert len(devices) <= 1, f"{function} mixes {devices}"
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("method", METHODS)
def test_on_a_device_nothing_comes_from_the_host(method):
    """Shown on torch's device without memory, where only shapes are computed."""
    with OneDevice():
        chosen = select(torch.rand(5, 8, 11, device="meta"), 4, method)
    assert chosen.shape == (5, 4)
    assert chosen.device.type == "meta"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_has_helpers_of_its_own(monkeypatch):
    """Threads do not survive a fork: work handed to the parent's would wait for ever."""
    monkeypatch.setattr(_products, "CHUNK_NUMBERS", 1)
    monkeypatch.setattr(_products, "CHUNKS_PER_THREAD", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    probs = torch.rand(6, 4, 5).softmax(-1)
    here = _products.products_and_sums(probs)
    reader, writer = multiprocessing.Pipe(duplex=False)

    def there() -> None:
        writer.send(torch.equal(_products.products_and_sums(probs), here))

    context = multiprocessing.get_context("fork")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
        child = context.Process(target=there)
        child.start()
    try:
        assert reader.poll(60), "the forked process waits for threads that it does not have"
        assert reader.recv()
    finally:
        child.kill()
        child.join()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_large_numbers_are_finite_and_infinite_ones_are_not(dtype):
    """Numbers below 0 count as 0 and those above 1 as 1, however far outside they lie."""
    inf, nan = math.inf, math.nan
    vectors = [[1, 0, 0], [1e31, 0, 0], [1, -3e38, -3e38], [inf, 0, 0], [0, -inf, 0], [nan, 0, 0],
               [inf, -inf, 0], [3e38, 3e38, 0], [0, 1, 0]]  # fmt: skip
    distance, finite = squared_distances(torch.tensor([vectors], dtype=dtype))
    usable = torch.tensor([True, True, True, False, False, False, False, False, True])
    assert torch.equal(finite[0], usable[:, None] & usable)
    assert distance[0, 0, :3].tolist() == [0, 0, 0]
    assert distance[0, :3, 8].tolist() == [1 << 53] * 3
