"""What the rules keep: against the slow way, by laws of chance, and with nothing left changed."""

import copy
import itertools
import json
import math

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import divaug.lab.examine as ways
from divaug._expand import expand
from divaug._select import METHODS, select
from divaug.lab import models
from divaug.lab.cli import app
from divaug.lab.examine import BATCH, JUDGE, SETTLED, SPACES, WAYS, examine, examine_run
from divaug.lab.results import read_records
from divaug.lab.train import Hardware, train
from divaug.lab.train.console import Silent
from divaug.lab.train.data import default_of
from divaug.lab.train.run import open_run
from divaug.policies import Uniform
from tests.training_helpers import toy_data, toy_recipe

CPU = torch.device("cpu")
DATA = toy_data(num_train=24, num_test=8)
DEFAULT = default_of("toy", DATA)
E, S, SEED = 6, 3, 5
# The order in which the images are looked at.
ORDER = torch.randperm(24, generator=torch.Generator().manual_seed(SEED))
IMAGES, LABELS = DATA.train_images[ORDER], DATA.train_labels[ORDER]


def made_network(seed=1):
    """Statistics that are not those of any batch, and predictions that are not all alike."""
    network = models.build("tiny-resnet-8", 4, 1, seed=seed)
    network.train()
    with torch.no_grad():
        for _ in range(5):
            network((DATA.train_images / 255 - 0.35) / 0.25 * 1.5)
        last = [p for name, p in network.named_parameters() if name.endswith("weight")][-1]
        last.mul_(20)  # confident, so that there is diversity
    return network


@pytest.fixture(scope="module")
def network():
    return made_network()


def looked(network, **changes):
    given = {"num_candidates": E, "num_selected": S, "seed": SEED, "batch_size": 24} | changes
    return examine(network, DATA, DEFAULT, CPU, **given)


def predictions(network, space, way):
    """The slow way: a network in the mode that the way means, all candidates at once."""
    index = torch.arange(24)
    candidates, _ = expand(IMAGES, E, Uniform(space), DEFAULT, SEED, index, pool=IMAGES)
    asked = copy.deepcopy(network).eval()
    flat = candidates.flatten(0, 1)
    if way.batch_statistics:
        for module in asked.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.train()
    with torch.no_grad(), torch.autocast("cpu", way.dtype, enabled=way.dtype != torch.float32):
        logits = asked(flat.to(way.dtype))
    return logits.float().softmax(-1).view(24, E, -1)


def variance(probs):
    p = probs.double()
    return float(((p - p.mean(1, keepdim=True)) ** 2).sum(-1).mean())


def test_what_is_kept_is_judged_by_the_definitions(network):
    found = looked(network)
    assert found.images == 24
    kept = {(c.space, c.way, c.rule): c for c in found.choices}
    asking = [rule for rule in METHODS if METHODS[rule].needs_probs]
    expected = {(s, w, r) for s in SPACES for w in WAYS for r in asking}
    assert set(kept) == expected | {(s, JUDGE, "uniform") for s in SPACES}
    index = torch.arange(24)
    for (space, way, rule), one in kept.items():
        if rule == "uniform":
            continue  # no draw, see below
        judged, asked, batch = (predictions(network, space, WAYS[w]) for w in (JUDGE, way, BATCH))
        chosen = select(asked, S, rule, SEED, index=index)
        same = select(judged, S, rule, SEED, index=index)
        rows = index[:, None]
        assert one.diversity == pytest.approx(variance(judged[rows, chosen]), rel=1e-4)
        assert one.batch_diversity == pytest.approx(variance(batch[rows, chosen]), rel=1e-4)
        right = judged[rows, chosen].argmax(-1) == LABELS[:, None]
        assert one.accuracy == pytest.approx(float(right.float().mean()))
        assert one.agreement == pytest.approx(in_common(chosen, same))
        # Image i by the scores of the one before it, with its own random numbers.
        others = select(asked[torch.arange(24) - 1], S, rule, SEED, index=index)
        assert one.unrelated == pytest.approx(in_common(others, same))


def in_common(chosen, others):
    pairs = zip(chosen.tolist(), others.tolist(), strict=True)
    return sum(len(set(a) & set(b)) for a, b in pairs) / chosen.numel()


def test_the_candidates_are_described_before_any_choice(network):
    for one in looked(network).candidates:
        probs = predictions(network, one.space, WAYS[JUDGE])
        assert one.diversity == pytest.approx(variance(probs), rel=1e-4)
        right = probs.argmax(-1) == LABELS[:, None]
        assert one.accuracy == pytest.approx(float(right.float().mean()))
        best = select(probs, S, "exact")
        of_best = [variance(probs[i, best[i]][None]) for i in range(24)]
        assert one.best == pytest.approx(sum(of_best) / 24, rel=1e-4)
        assert one.settled == pytest.approx(sum(v < SETTLED for v in of_best) / 24)
        assert SETTLED == 0.01  # what tables and docs say


def test_settled_images_are_those_with_nothing_to_choose(network):
    """A network that says the same of everything; then one whose answers differ a little."""
    dull, timid = copy.deepcopy(network), copy.deepcopy(network)
    with torch.no_grad():
        dull.fc.weight.zero_()
        timid.fc.weight.mul_(0.2)
    (every,) = looked(dull, spaces=("paper",)).candidates
    assert (every.diversity, every.settled) == (pytest.approx(0, abs=1e-12), 1.0)
    (every,) = looked(timid, spaces=("paper",)).candidates
    probs = predictions(timid, "paper", WAYS[JUDGE])
    best = select(probs, S, "exact")
    settled = [variance(probs[i, best[i]][None]) < SETTLED for i in range(24)]
    assert every.settled == pytest.approx(sum(settled) / 24)
    assert 0 < every.settled < 1


def test_no_rule_surpasses_the_exact_one_and_its_own_scores_agree_with_themselves(network):
    found = looked(network)
    best = {one.space: one.best for one in found.candidates}
    for one in found.choices:
        assert one.diversity <= best[one.space] * (1 + 1e-6)
        if one.way == JUDGE:
            assert one.agreement == 1.0
            if one.rule == "exact":
                assert one.diversity == pytest.approx(best[one.space], rel=1e-5)
    batch = {(c.space, c.rule, c.way): c.batch_diversity for c in found.choices}
    for space in SPACES:  # by the scores it is judged by, the exact rule is the best there too
        assert batch[space, "exact", BATCH] >= batch[space, "exact", JUDGE]


def test_unrelated_scores_have_in_common_what_the_rule_draws_alike(network):
    """Exact draws nothing: S of E by chance. Others begin with the same candidate, at least."""
    found = [looked(network, seed=seed, spaces=("paper",)) for seed in range(6)]
    judged = [c for one in found for c in one.choices if c.way == JUDGE]
    mean = {
        rule: sum(c.unrelated for c in judged if c.rule == rule) / len(found) for rule in METHODS
    }
    assert mean["uniform"] == 1.0  # it asks nobody
    assert mean["exact"] == pytest.approx(S / E, abs=0.12)
    assert mean["kmeans++"] > 1 / S
    (alone,) = [
        c
        for c in looked(network, batch_size=1).choices
        if (c.space, c.way, c.rule) == ("paper", JUDGE, "exact")
    ]
    assert math.isnan(alone.unrelated)  # there is no other image


def test_chance_is_the_mean_over_all_choices(network):
    found = looked(network)
    for space in SPACES:
        (chance,) = [c for c in found.choices if (c.space, c.rule) == (space, "uniform")]
        judged, batch = (predictions(network, space, WAYS[way]) for way in (JUDGE, BATCH))
        subsets = list(itertools.combinations(range(E), S))
        for probs, value in ((judged, chance.diversity), (batch, chance.batch_diversity)):
            mean = sum(variance(probs[:, list(one)]) for one in subsets) / len(subsets)
            assert value == pytest.approx(mean, rel=1e-4)
        right = (judged.argmax(-1) == LABELS[:, None]).float()
        mean = sum(float(right[:, list(one)].mean()) for one in subsets) / len(subsets)
        assert chance.accuracy == pytest.approx(mean)
        assert (chance.way, chance.agreement, chance.unrelated) == (JUDGE, 1.0, 1.0)


def test_a_single_candidate_leaves_nothing_to_chance(network):
    found = looked(network, num_candidates=1, num_selected=1, spaces=("paper",))
    assert {one.diversity for one in found.choices} == {0.0}
    assert {one.agreement for one in found.choices} == {1.0}


def everything(network):
    state = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    return state, [module.training for module in network.modules()]


def test_the_network_is_left_as_it_was(network):
    for training in (True, False):
        network.train(training)
        before, modes = everything(network)
        looked(network)
        (after, now) = everything(network)
        assert modes == now
        assert before.keys() == after.keys()
        assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("precision", ["highest", "high"])
def test_on_a_gpu_float32_is_no_tf32_and_the_switches_are_put_back(allowed, precision):
    old = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32

    def switches():
        return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32

    try:
        torch.set_float32_matmul_precision(precision)
        torch.backends.cudnn.allow_tf32 = allowed
        with ways._whole_float32(torch.device("cuda")):
            assert switches() == ("highest", False)
        assert switches() == (precision, allowed)
        with pytest.raises(KeyError), ways._whole_float32(torch.device("cuda")):
            raise KeyError
        assert switches() == (precision, allowed)
        with ways._whole_float32(torch.device("cpu")):  # there is no TF32 to be kept out
            assert switches() == (precision, allowed)
    finally:
        torch.set_float32_matmul_precision(old[0])
        torch.backends.cudnn.allow_tf32 = old[1]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"num_selected": 7}, r"`num_selected` must be an int in \[1, 6\], got 7"),
        ({"num_candidates": 65}, "`num_candidates`"),
        ({"spaces": ()}, "`spaces` must name at least one space"),
    ],
)
def test_what_cannot_be_examined_is_refused(network, change, named):
    with pytest.raises(ValueError, match=named):
        looked(network, **change)
    with pytest.raises(ValueError, match=r"float32 parameters, got torch.bfloat16"):
        looked(copy.deepcopy(network).bfloat16())


class Failing(torch.nn.Module):
    """Answers so often, then fails."""

    def __init__(self, network, answers):
        super().__init__()
        self.network, self.left = network, answers

    def forward(self, images):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("no answer")
        return self.network(images)


def test_too_many_subsets_to_try_leave_the_exact_rule_out(network):
    found = looked(network, num_candidates=30, num_selected=10, spaces=("paper",))
    assert {one.rule for one in found.choices} == set(METHODS) - {"exact"}
    (every,) = found.candidates
    assert math.isnan(every.best)
    assert math.isnan(every.settled)
    assert every.diversity > 0


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examined") / "run"
    path = folder.with_name("toy.npz")
    np.savez(
        path,
        x_train=DATA.train_images.numpy(),
        y_train=DATA.train_labels.numpy(),
        x_test=DATA.test_images.numpy(),
        y_test=DATA.test_labels.numpy(),
    )
    recipe = toy_recipe(augmenter="divaug", num_candidates=4, num_selected=2, epochs=3, seed=3)
    train(recipe, folder, data=path, device="cpu", reporter=Silent())
    return folder, path


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_run_is_examined_at_its_own_settings(run):
    folder, path = run
    found = examine_run(folder, data=path, device="cpu")
    assert found.images == 24
    assert examine_run(folder, data=path, device="cpu") == found
    last, before = sorted((folder / "checkpoints").iterdir(), reverse=True)[:2]
    assert examine_run(last, device="cpu") == found
    assert examine_run(before, device="cpu") != found
    assert examine_run(folder, images=8, device="cpu").images == 8
    asked = open_run(folder).network(DATA, Hardware.choose("cpu", "float32", eager=True))
    settings = {"num_candidates": 4, "num_selected": 2, "seed": 3, "batch_size": 8}
    data = open_run(folder).data(path)
    assert examine(asked, data, default_of("toy", data), CPU, **settings) == found
    for other in ({"num_candidates": 3}, {"num_selected": 3}, {"seed": 0}, {"batch_size": 9}):
        assert examine(asked, data, default_of("toy", data), CPU, **settings | other) != found


def test_the_command_shows_what_it_writes(run, tmp_path):
    folder, _ = run
    path = tmp_path / "new" / "found.json"
    result = call("examine", folder, "--images", 8, "--json", path, "--device", "cpu")
    assert result.exit_code == 0, result.output
    content = json.loads(path.read_text())
    assert content["images"] == 8
    assert len(content["choices"]) == 2 * (3 * 3 + 1)
    for one in content["choices"]:
        assert f"{one['diversity']:.4f}" in result.output
    assert "8 training images" in result.output
    assert not list(tmp_path.rglob("examinations"))


def test_the_command_leaves_a_record_of_the_checkpoint(run, tmp_path):
    folder, data = run
    middle = sorted((folder / "checkpoints").iterdir())[-2]
    for where in (folder, middle):
        result = call("examine", where, "--results", tmp_path, "--device", "cpu")
        assert result.exit_code == 0, result.output
    records = sorted(read_records(tmp_path), key=lambda one: one.epochs)
    assert [one.epochs for one in records] == [2, 3]
    assert records[0].values != records[1].values
    # Other data under that name is not mixed in.
    other = tmp_path / "other.npz"
    with np.load(data) as file:
        np.savez(other, **{name: file[name][::-1] for name in file})
    before = read_records(tmp_path)
    words = ("examine", folder, "--data", other, "--device", "cpu")
    for where, named in (
        (tmp_path, "other data under the name 'toy'"),
        (tmp_path / "new", "a record of it cannot be made with"),
    ):
        result = call(*words, "--results", where)
        assert result.exit_code != 0
        assert named in str(result.exception)
    assert read_records(tmp_path) == before
    assert call(*words).exit_code == 0  # without a record it is shown


def test_the_order_is_made_on_the_processor_whatever_the_default_device(network):
    usual = looked(network)
    with torch.device("meta"):
        assert looked(network) == usual
