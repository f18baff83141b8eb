"""The plug-in: three lines in a loop, labels traced to their images, resuming, and its record."""

import copy
import math
import pickle
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import divaug
from divaug import (
    DivAug,
    Views,
    default_augmentation,
    expand,
    follow,
    policies,
    score,
    select,
    variance_diversity,
)
from divaug._expand import replay
from divaug._select import METHODS
from divaug.operations import OPERATIONS
from tests.reference import samples, two_processes
from tests.reference.no_waiting import NoWaiting
from tests.reference.small_models import network

IMAGES = samples.images(3, 12, 12, 6)
LABELS = torch.tensor([4, 0, 3, 1, 2, 0])
PAIRS = policies.Single("SamplePairing", 1.0)
GEOMETRIC = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate")


def test_a_plain_loop_learns():
    model = network(2)
    optimizer = torch.optim.SGD(model.parameters(), 0.2)
    dark = torch.randint(0, 100, (16, 3, 8, 8), generator=samples.generator("dark"))
    images = torch.cat([dark, dark + 150]).to(torch.uint8)
    targets = torch.arange(2).repeat_interleave(16)
    tame = policies.Uniform(exclude=("Invert", "Solarize", "SamplePairing", "Brightness"))
    augment = DivAug(model, 4, 2, policy=tame)
    losses = []
    for _ in range(40):
        views, labels = augment(images, targets)
        loss = F.cross_entropy(model(views), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert sum(losses[-5:]) < 0.6 * sum(losses[:5])


# --- labels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [
    policies.Identity(),
    policies.Uniform(exclude=tuple(n for n in OPERATIONS if n not in GEOMETRIC)),
], ids=["nothing", "geometry"])  # fmt: skip
@pytest.mark.parametrize("method", METHODS)
def test_every_output_is_traced_to_its_source(policy, method):
    """64 images of one value each, 64 labels: what comes out shows where it came from."""
    values = torch.randperm(64, generator=samples.generator(1)) * 3 + 60
    images = values.to(torch.uint8).view(64, 1, 1, 1).expand(64, 3, 16, 16).contiguous()
    labels = torch.randperm(64, generator=samples.generator(2))
    views, repeated = DivAug(network(64), 8, 4, policy=policy, method=method)(images, labels)
    assert views.shape == (256, 3, 16, 16)
    shown = (views.flatten(1).amax(1) * 255).round().long()  # moved content leaves black behind
    label_of_value = dict(zip(values.tolist(), labels.tolist(), strict=True))
    assert [label_of_value[v] for v in shown.tolist()] == repeated.tolist()
    assert torch.equal(repeated, labels.repeat_interleave(4))  # image-major


def test_soft_labels_and_no_labels():
    soft = torch.softmax(torch.arange(30.0).view(6, 5), -1)
    hard_views, _ = DivAug(network(), 4, 2)(IMAGES, LABELS)
    views, labels = DivAug(network(), 4, 2)(IMAGES, soft)
    assert torch.equal(labels, soft.repeat_interleave(2, 0))
    bare, nothing = DivAug(network(), 4, 2)(IMAGES)
    assert nothing is None
    assert torch.equal(views, hard_views)
    assert torch.equal(bare, hard_views)


# --- it is expand, score and select ------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_equal_to_the_three_stages(method):
    model, default = network(), default_augmentation.cifar10()
    index = torch.tensor([5, 9, 1, 77, 3, 2])
    augment = DivAug(model, 6, 3, default=default, method=method, seed=9)
    for step in range(3):
        views, _ = augment(IMAGES, index=index)
        candidates, _ = expand(IMAGES, 6, None, default, 9, index, step=step)
        chosen = select(score(model, candidates), 3, method, 9, step=step, index=index)
        picked = torch.stack([candidates[b, chosen[b]] for b in range(6)]).flatten(0, 1)
        assert torch.equal(views, picked)


@pytest.mark.parametrize("method", ["kmeans++", "uniform"])
def test_an_explanation_is_of_the_next_call_and_counts_no_step(method):
    model, index = network(), torch.tensor([5, 9, 1, 77, 3, 2])
    augment = DivAug(model, 6, 3, default=default_augmentation.cifar10(), method=method, seed=9)
    augment(IMAGES)
    before = augment.state_dict(), augment.record()
    found = augment.explain(IMAGES, index=index)
    assert str((augment.state_dict(), augment.record())) == str(
        before
    )  # NaN is not equal to itself
    views, _ = augment(IMAGES, index=index)
    picked = torch.stack([found.candidates[b, found.chosen[b]] for b in range(6)]).flatten(0, 1)
    assert torch.equal(views, picked)
    assert torch.equal(found.probs, score(model, found.candidates))
    assert augment.kept().equal(found.subpolicies[torch.arange(6)[:, None], found.chosen])
    again = replay(IMAGES, augment.kept(), finished=True)
    assert torch.equal(again.flatten(0, 1), views)
    with pytest.raises(ValueError, match="`images` is empty"):
        augment.explain(IMAGES[:0])


def test_without_a_default_augmentation_bytes_are_scaled():
    views, _ = DivAug(network(), 2, 1, policy=policies.Identity())(IMAGES)
    torch.testing.assert_close(views, IMAGES.float() / 255, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_images_come_in_the_models_dtype(dtype):
    assert DivAug(network().to(dtype), 4, 2)(IMAGES)[0].dtype == dtype
    assert DivAug(nn.Flatten(), 4, 2, method="uniform")(IMAGES)[0].dtype == torch.float32
    assert DivAug(network().float(), 4, 2, dtype=torch.float32)(IMAGES)[0].dtype == torch.float32


def test_channels_last():
    plain, _ = DivAug(network(), 4, 2)(IMAGES)
    views, _ = DivAug(network(), 4, 2, channels_last=True)(IMAGES)
    assert views.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(views, plain)


def test_how_many_are_kept_and_by_which_rule_may_change_between_calls():
    """A schedule of S, for instance."""
    augment = DivAug(network(5), 6, 4)
    augment.num_selected, augment.method = 2, "greedy"
    assert (len(augment(IMAGES)[0]), augment.views) == (2 * len(IMAGES), 2)
    fixed = DivAug(network(5), 6, 2, method="greedy")
    assert torch.equal(fixed(IMAGES)[0], DivAug.__call__(fresh(augment), IMAGES)[0])
    for name, value, message in (
        ("num_selected", 7, r"`num_selected` must lie in \[1, num_candidates=6\], got 7"),
        ("num_selected", 2.0, r"`num_selected` must be an int of at least 1, got 2\.0"),
        ("method", "nope", "unknown method 'nope'"),
    ):
        before = getattr(augment, name)
        with pytest.raises(ValueError, match=message):
            setattr(augment, name, value)
        assert getattr(augment, name) == before
    many = DivAug(network(5), 40, 20)
    with pytest.raises(ValueError, match="subsets"):
        many.method = "exact"
    many.num_selected, many.method = 2, "exact"
    with pytest.raises(ValueError, match="subsets"):
        many.num_selected = 20


def fresh(augment):
    """The same augmenter before its first step."""
    augment.load_state_dict({"step": 0, "seed": 0})
    return augment


def test_a_method_that_needs_no_model_does_not_ask_it():
    class Never(nn.Module):
        def forward(self, _images):
            raise AssertionError("asked")

    assert len(DivAug(Never(), 4, 2, method="uniform")(IMAGES)[0]) == 12


def test_a_schedule_follows_the_epoch():
    augment = DivAug(network(), 8, 4, policy=policies.PBA("svhn"))
    augment(IMAGES, epoch=0)
    assert sum(augment.record().operations.values()) == 0
    augment(IMAGES, epoch=150)
    assert sum(augment.record().operations.values()) > 0
    with pytest.raises(ValueError, match="epoch"):
        augment(IMAGES)


@pytest.mark.parametrize("epoch", ["x", -1, 1.5, True, torch.tensor(1.5), torch.arange(2)], ids=str)
@pytest.mark.parametrize("policy", [policies.Uniform(), policies.PBA("svhn")], ids=["none", "pba"])
def test_an_epoch_that_is_none_is_refused_with_and_without_a_schedule(policy, epoch):
    for augment in (DivAug(network(), 4, 2, policy=policy), Views(policy)):
        with pytest.raises(ValueError, match="`epoch` must be an int"):
            augment(IMAGES, epoch=epoch)


# --- steps and resuming ------------------------------------------------------------------------


def test_a_resumed_run_draws_what_the_uninterrupted_one_would_have():
    whole = DivAug(network(), 4, 2, seed=2**63 + 1)
    expected = [whole(IMAGES)[0] for _ in range(5)]
    first = DivAug(network(), 4, 2, seed=2**63 + 1)
    for _ in range(3):
        first(IMAGES)
    saved = first.state_dict()
    assert {type(value) for value in saved.values()} == {int}  # goes into JSON and checkpoints
    resumed = DivAug(network(), 4, 2)
    resumed.load_state_dict(saved)
    assert torch.equal(resumed(IMAGES)[0], expected[3])
    assert torch.equal(resumed(IMAGES)[0], expected[4])
    assert resumed.state_dict() == whole.state_dict()


@pytest.mark.parametrize("way", ["made", "copied", "unpickled", "record loaded"])
def test_what_is_made_in_inference_mode_serves_outside_of_it(way):
    whole = DivAug(network(), 4, 2)
    whole(IMAGES)
    with torch.inference_mode():
        if way == "made":
            augment = DivAug(network(), 4, 2)
            augment(IMAGES)
        elif way == "copied":
            augment = copy.deepcopy(whole)
        elif way == "unpickled":
            augment = pickle.loads(pickle.dumps(whole))
        else:
            augment = DivAug(network(), 4, 2)
            augment.load_state_dict(whole.state_dict())
            augment.load_record_state(whole.record_state())
    assert torch.equal(augment(IMAGES)[0], whole(IMAGES)[0])
    assert augment.record_state() == whole.record_state()


def test_a_failed_call_does_not_count_as_a_step():
    augment = DivAug(network(), 4, 2)
    with pytest.raises(ValueError, match="index"):
        augment(IMAGES, index=torch.arange(3))
    assert augment.state_dict()["step"] == 0


# --- the record --------------------------------------------------------------------------------


def test_the_record_is_a_count_of_the_kept_sub_policies():
    model = network()
    augment = DivAug(model, 6, 3, seed=4)
    drawn, applied = torch.zeros(16), torch.zeros(16)
    probability = [[] for _ in range(16)]
    kept_diversity, all_diversity = [], []
    for step in range(3):
        augment(IMAGES)
        plain = default_augmentation.plain((0.0,) * 3, (1.0,) * 3)
        candidates, subpolicies = expand(IMAGES, 6, None, plain, 4, step=step)
        probs = score(model, candidates)
        chosen = select(probs, 3, seed=4, step=step)
        for b in range(6):
            kept_diversity.append(float(variance_diversity(probs[b, chosen[b]])))
            all_diversity.append(float(variance_diversity(probs[b])))
            for j in chosen[b].tolist():
                this = subpolicies[b, j]
                for k in range(2):
                    i = int(this.operation[k])
                    drawn[i] += 1
                    applied[i] += int(this.applied[k])
                    probability[i].append(float(this.probability[k]))
    record = augment.record()
    assert record.images == 18
    assert list(record.operations) == list(OPERATIONS)
    assert list(record.operations.values()) == applied.tolist()
    assert list(record.drawn.values()) == drawn.tolist()
    assert sum(record.drawn.values()) == 18 * 3 * 2
    for i, name in enumerate(OPERATIONS):
        if probability[i]:
            mean = sum(probability[i]) / len(probability[i])
            assert record.probability[name] == pytest.approx(mean, rel=1e-5)
        else:
            assert math.isnan(record.probability[name])
    assert record.diversity_kept == pytest.approx(sum(kept_diversity) / 18, rel=1e-4)
    assert record.diversity_all == pytest.approx(sum(all_diversity) / 18, rel=1e-4)
    assert record.diversity_best >= record.diversity_kept


def test_the_exact_choice_reaches_the_best_there_is_and_no_other_does():
    reached = {}
    for method in ("kmeans++", "greedy", "exact"):
        augment = DivAug(network(10, seed=3), 8, 4, method=method)
        augment(IMAGES)
        record = augment.record()
        reached[method] = record.diversity_kept / record.diversity_best
    assert reached["exact"] == pytest.approx(1.0, rel=1e-5)
    assert max(reached["kmeans++"], reached["greedy"]) < 1


def test_what_was_not_measured_is_not_a_number():
    augment = DivAug(network(), 4, 2, method="uniform")
    augment(IMAGES)
    assert math.isnan(augment.record().diversity_kept)
    assert math.isnan(augment.record().diversity_all)
    assert math.isnan(augment.record().diversity_best)
    assert augment.record().images == 6


def test_selecting_and_recording_never_wait_for_the_device():
    augment = DivAug(network(), 4, 2)
    _, subpolicies = expand(IMAGES, 4)
    probs = torch.softmax(torch.randn(6, 4, 5, generator=samples.generator(0)), -1)
    augment(IMAGES)
    with NoWaiting():
        for method in METHODS:
            chosen = select(probs, 2, method, step=torch.tensor(1))
        augment._finish(IMAGES, subpolicies, chosen, probs)
    with pytest.raises(AssertionError, match="wait"), NoWaiting():
        probs.max().item()


# --- in other people's loops -------------------------------------------------------------------


def test_under_autocast():
    model = network()
    augment = DivAug(model, 4, 2, default=default_augmentation.cifar10())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        views, labels = augment(IMAGES, LABELS)
        loss = F.cross_entropy(model(views), labels)
    loss.backward()
    assert views.dtype == torch.float32
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


COMPILED = {
    "divaug": lambda model: DivAug(model, 4, 2),
    "views": lambda _model: Views(policies.Uniform(), num_views=2),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", COMPILED)
def test_inside_a_compiled_step(kind, backend):
    """The same bits as outside, step after step, and gradients of the compiled rest."""
    model = network()
    inside, outside = (COMPILED[kind](model) for _ in range(2))

    @torch.compile(backend=backend)
    def step(images, labels):
        views, repeated = inside(images, labels)
        return views, repeated, F.cross_entropy(model(views), repeated)

    for _ in range(3):
        outside.model = copy.deepcopy(model)  # its BatchNorm sees the views after the choice
        expected = outside(IMAGES, LABELS)
        *found, loss = step(IMAGES, LABELS)
        for one, other in zip(found, expected, strict=True):
            assert torch.equal(one, other)
    loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    torch._dynamo.reset()


@pytest.mark.parametrize("part", ["expand", "replay", "follow", "last", "select", "score"])
def test_of_the_parts_inside_a_compiled_function_nothing_is_compiled(part):
    candidates, subpolicies = expand(IMAGES, 4)
    model = network()
    probs = score(model, candidates)
    augment = DivAug(model, 4, 2, default=default_augmentation.cifar10())
    augment(IMAGES)
    calls = {
        "expand": lambda: expand(IMAGES, 4)[0],
        "replay": lambda: replay(IMAGES, subpolicies),
        "follow": lambda: follow(IMAGES, subpolicies, fill=0),
        "last": lambda: augment.follow(IMAGES, fill=0),
        "select": lambda: select(probs, 2),
        "score": lambda: score(model, candidates),
    }

    def refuse(graph, _inputs):
        raise AssertionError(f"compiled: {graph.code}")

    assert torch.equal(torch.compile(calls[part], backend=refuse)(), calls[part]())
    torch._dynamo.reset()


def test_two_processes_draw_what_one_process_draws(tmp_path):
    """Same sample, same step: the same views, partners from the pool included."""
    whole = two_processes.augment_share(network(10), list(range(two_processes.SAMPLES)))
    torch.multiprocessing.spawn(two_processes.run, (2, str(tmp_path)), nprocs=2)
    for rank in range(2):
        share = torch.load(tmp_path / f"rank{rank}.pt")
        for step in range(two_processes.STEPS):
            assert torch.equal(share[step][0], whole[step][0][rank::2])
            assert torch.equal(share[step][1], whole[step][1][rank::2])


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ({"num_candidates": 4, "num_selected": 5}, ValueError, "num_selected"),
    ({"num_candidates": 4, "num_selected": 0}, ValueError, "num_selected"),
    ({"method": "kmeans"}, ValueError, r"Did you mean 'kmeans\+\+'"),
    ({"seed": -1}, ValueError, "seed"),
    ({"policy": "Uniform"}, TypeError, "policy"),
    ({"num_candidates": "8"}, ValueError, r"`num_candidates`.*an int in \[1, 64\], got '8'"),
    ({"num_candidates": 100}, ValueError, r"`num_candidates`.*in \[1, 64\], got 100"),
    ({"num_selected": 2.0}, ValueError, "`num_selected` must be an int.*got 2.0"),
    ({"chunk_size": 0}, ValueError, "`chunk_size`.*at least 1, got 0"),
    ({"method": ["kmeans++"]}, ValueError, r"unknown method \['kmeans\+\+'\]"),
    ({"default": "cifar10"}, TypeError, r"`default`.*default_augmentation\.cifar10\(\).*'cifar10'"),
    ({"dtype": "float32"}, TypeError, r"`dtype` must be a torch\.dtype.*'float32'"),
    ({"backend": "cuda"}, ValueError, r"`backend`.*'torch', 'triton'.*None, got 'cuda'"),
    ({"dtype": torch.uint8}, ValueError, r"`dtype` must be a float of.*, got torch\.uint8"),
    ({"dtype": torch.float8_e4m3fn}, ValueError, r"16 bits or more, got torch\.float8"),
    ({"num_candidates": 64, "num_selected": 8, "method": "exact"}, ValueError,
     r'method="exact" would try 4,426,165,368 subsets for E=64, S=8, more than 20,000'),
])  # fmt: skip
def test_wrong_settings_are_refused_at_once(arguments, error, message):
    with pytest.raises(error, match=message):
        DivAug(network(), **arguments)


@pytest.mark.parametrize(("pool", "error", "message"), [
    ([1], TypeError, r"`pool` must be a uint8 tensor \[N,C,H,W\], got list"),
    (IMAGES.float(), TypeError, r"`pool` must be a uint8 tensor.*got torch\.float32"),
    (IMAGES[0], ValueError, r"`pool` must hold originals.*as \[N,C,H,W\]"),
    (IMAGES[:0], ValueError, r"`pool` must hold originals, one or more"),
    (IMAGES.permute(0, 1, 3, 2), ValueError, r"`pool` must be contiguous.*pool\.contiguous\(\)"),
], ids=["list", "floats", "one image", "empty", "strided"])  # fmt: skip
def test_a_pool_that_no_batch_could_draw_from_is_refused_at_once(pool, error, message):
    with pytest.raises(error, match=message):
        DivAug(network(), pool=pool)
    with pytest.raises(error, match=message):
        Views(pool=pool)


def test_labels_must_fit_the_images():
    with pytest.raises(ValueError, match=r"one entry per image, got \(5,\) for 6"):
        DivAug(network())(IMAGES, LABELS[:5])
    with pytest.raises(TypeError, match=r"`labels` must be a tensor.*got list.*arange"):
        DivAug(network())(IMAGES, LABELS.tolist())
    with pytest.raises(ValueError, match=r"`labels` must have one entry per image, got \(\)"):
        DivAug(network())(IMAGES[:1], LABELS[0])


@pytest.mark.parametrize("labels", [None, LABELS], ids=["none", "labels"])
@pytest.mark.parametrize("augment", [DivAug(network()), Views()], ids=["DivAug", "Views"])
def test_images_of_other_channels_are_refused_without_a_word_of_what_was_not_passed(
    augment, labels
):
    with pytest.raises(ValueError, match=r"`images`.*C=12 .*images\.permute\(0, 3, 1, 2\)"):
        augment(IMAGES.permute(0, 2, 3, 1), labels)
    for channels in (2, 4):
        images = IMAGES[:, :1].expand(-1, channels, -1, -1)
        with pytest.raises(ValueError, match=rf"`images`.*C={channels} .*grey or RGB") as caught:
            augment(images, labels)
        assert "permute" not in str(caught.value), "no axis holds one or three channels"


def test_normalised_images_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match="Normalize"):
        divaug.DivAug(network())(torch.randn(2, 3, 8, 8, generator=samples.generator(0)))
    with pytest.raises(ValueError, match="from 0 to 255 pass uint8"):
        divaug.DivAug(network())(IMAGES.float())


def test_an_empty_batch_stays_empty():
    augment = DivAug(network(), 4, 2)
    images, labels = augment(IMAGES[:0], torch.zeros(0, dtype=torch.int64))
    assert images.shape == (0, *IMAGES.shape[1:])
    assert len(labels) == 0


def test_an_augmenter_sent_to_another_process_counts_for_itself():
    """torch sends a CPU tensor as memory that both processes write to."""
    augment = DivAug(network())
    images = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    augment(images)
    other = pickle.loads(ForkingPickler.dumps(augment))
    for _ in range(3):
        other(images)
    assert other.state_dict()["step"] == 4
    assert other.record().images == 8
    assert augment.state_dict()["step"] == 1
    assert augment.record().images == 2


@pytest.mark.parametrize("make", [lambda: DivAug(network(5), 8, 3), lambda: Views(num_views=3)])
def test_what_made_the_views_can_be_asked_for_and_replayed(make):
    augment = make()
    with pytest.raises(ValueError, match="nothing was augmented yet"):
        augment.kept()
    for _ in range(2):
        views, _ = augment(IMAGES)
        kept = augment.kept()
        assert kept.shape[:2] == (len(IMAGES), 3)
        again = replay(IMAGES, kept).flatten(0, 1)
        assert torch.equal((views * 255).round().to(torch.uint8), again)
    with pytest.raises(ValueError, match="nothing was augmented yet"):
        copy.deepcopy(augment).kept()


@pytest.mark.parametrize("make", [
    lambda pool: DivAug(network(5), 8, 3, pool=pool), lambda pool: Views(PAIRS, pool=pool),
])  # fmt: skip
def test_what_made_the_views_needs_the_pool_that_they_were_paired_from(make):
    pool = samples.images(3, 12, 12, 40, "pool")
    augment = make(pool)
    views, _ = augment(IMAGES)
    kept = augment.kept()
    again = replay(IMAGES, kept, pool=pool).flatten(0, 1)
    assert torch.equal((views * 255).round().to(torch.uint8), again)
    before = kept.clone()
    augment._last[0].argument.zero_()  # as a graph does that is replayed
    assert kept.equal(before)
