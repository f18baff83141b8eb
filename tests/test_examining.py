"""What the rules keep: against the slow way, by laws of chance, and with nothing left changed."""

import copy
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from divaug import models
from divaug.cli import app
from divaug.examining import JUDGE, SETTLED, SPACES, TRAINING, WAYS, examine, examine_run
from divaug.expansion import expand
from divaug.policies import Uniform
from divaug.reproduction.formats import from_text
from divaug.reproduction.store import read_store
from divaug.selection import METHODS, select
from divaug.training import train
from divaug.training.data import default_of
from divaug.training.progress import Silent
from tests.training_helpers import toy_data, toy_recipe

CPU = torch.device("cpu")
DATA = toy_data(num_train=24, num_test=8)
DEFAULT = default_of("toy", DATA)
E, S, SEED = 6, 3, 5


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
    candidates, _ = expand(
        DATA.train_images, E, Uniform(space), DEFAULT, SEED, index, pool=DATA.train_images
    )
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
        judged, asked, training = (
            predictions(network, space, WAYS[w]) for w in (JUDGE, way, TRAINING)
        )
        chosen = select(asked, S, rule, SEED, index=index)
        same = select(judged, S, rule, SEED, index=index)
        rows = index[:, None]
        assert one.diversity == pytest.approx(variance(judged[rows, chosen]), rel=1e-4)
        assert one.training == pytest.approx(variance(training[rows, chosen]), rel=1e-4)
        right = judged[rows, chosen].argmax(-1) == DATA.train_labels[:, None]
        assert one.accuracy == pytest.approx(float(right.float().mean()))
        both = [len(set(a) & set(b)) for a, b in zip(chosen.tolist(), same.tolist(), strict=True)]
        assert one.agreement == pytest.approx(sum(both) / (24 * S))


def test_the_candidates_are_described_before_any_choice(network):
    for one in looked(network).candidates:
        probs = predictions(network, one.space, WAYS[JUDGE])
        assert one.diversity == pytest.approx(variance(probs), rel=1e-4)
        right = probs.argmax(-1) == DATA.train_labels[:, None]
        assert one.accuracy == pytest.approx(float(right.float().mean()))
        best = select(probs, S, "exact")
        of_best = [variance(probs[i, best[i]][None]) for i in range(24)]
        assert one.best == pytest.approx(sum(of_best) / 24, rel=1e-4)
        assert one.settled == pytest.approx(sum(v < SETTLED for v in of_best) / 24)


def test_no_rule_surpasses_the_exact_one_and_its_own_scores_agree_with_themselves(network):
    found = looked(network)
    best = {one.space: one.best for one in found.candidates}
    for one in found.choices:
        assert one.diversity <= best[one.space] * (1 + 1e-6)
        if one.way == JUDGE:
            assert one.agreement == 1.0
            if one.rule == "exact":
                assert one.diversity == pytest.approx(best[one.space], rel=1e-5)
    training = {(c.space, c.rule, c.way): c.training for c in found.choices}
    for space in SPACES:  # by the scores it is judged by, the exact rule is the best there too
        assert training[space, "exact", TRAINING] >= training[space, "exact", JUDGE]


def test_chance_keeps_the_diversity_that_combinatorics_says(network):
    """Any S of E: on average (S − 1)·E / (S·(E − 1)) of the diversity of all, over many draws."""
    ratios = []
    for seed in range(40):
        found = looked(network, seed=seed, spaces=("paper",))
        (chance,) = [c for c in found.choices if c.rule == "uniform"]
        ratios.append(chance.diversity / found.candidates[0].diversity)
    expected = (S - 1) * E / (S * (E - 1))
    error = torch.tensor(ratios).std() / math.sqrt(len(ratios))
    assert sum(ratios) / len(ratios) == pytest.approx(expected, abs=4 * float(error))
    assert float(error) < 0.03  # fine enough to tell it from all of them, or the best


@pytest.mark.parametrize("batch_size", [1, 7, 24])
def test_evaluation_mode_hangs_on_no_batch(network, batch_size):
    whole, parts = looked(network), looked(network, batch_size=batch_size)
    for one, other in zip(whole.choices, parts.choices, strict=True):
        if one.way == JUDGE:
            assert other.diversity == pytest.approx(one.diversity, rel=1e-3)
            assert other.accuracy == one.accuracy


def everything(network):
    state = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    return state, [module.training for module in network.modules()]


def test_the_network_is_left_as_it_was(network):
    for training in (True, False):
        network.train(training)
        (before, modes), switches = everything(network), torch.backends.cudnn.allow_tf32
        looked(network)
        (after, now) = everything(network)
        assert modes == now
        assert before.keys() == after.keys()
        assert all(torch.equal(before[name], after[name]) for name in before)
        assert torch.backends.cudnn.allow_tf32 == switches


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


@pytest.mark.parametrize("answers", [0, 1, 2])
def test_the_network_is_left_as_it_was_when_it_fails(network, answers):
    """At the first, second and third way of scoring, the last without running statistics."""
    failing = Failing(network, answers)
    before, modes = everything(failing)
    with pytest.raises(RuntimeError, match="no answer"):
        looked(failing)
    after, now = everything(failing)
    assert modes == now
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


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
    recipe = toy_recipe(augmenter="divaug", num_candidates=4, num_selected=2, epochs=3)
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


def test_a_run_with_other_ranges_is_examined_with_its_own_too(run, tmp_path):
    _, path = run
    recipe = toy_recipe(augmenter="divaug", epochs=1, space="uda")
    train(recipe, tmp_path / "run", data=path, device="cpu", reporter=Silent())
    found = examine_run(tmp_path / "run", device="cpu")
    assert [one.space for one in found.candidates] == ["uda", *SPACES]


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
    records = sorted(read_store(tmp_path).examinations.values(), key=lambda one: one.epochs)
    assert [one.epochs for one in records] == [2, 3]
    assert records[0].values != records[1].values
    (last,) = [p for p in (tmp_path / "examinations").iterdir() if "epoch3" in p.name]
    assert from_text(last.read_text()) == records[1]
    # Other data under that name is not mixed in.
    other = tmp_path / "other.npz"
    with np.load(data) as file:
        np.savez(other, **{name: file[name][::-1] for name in file})
    before = sorted(tmp_path.rglob("*.json"))
    result = call("examine", folder, "--results", tmp_path, "--data", other, "--device", "cpu")
    assert result.exit_code != 0
    assert "other data under the name 'toy'" in str(result.exception)
    assert sorted(tmp_path.rglob("*.json")) == before


def test_a_folder_that_cannot_hold_records_is_refused_before_any_work(run, tmp_path, monkeypatch):
    def forbidden(*_args, **_more):
        raise AssertionError("examined, with nowhere to write to")

    monkeypatch.setattr("divaug.examining.examine", forbidden)
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = call("examine", run[0], "--results", blocked, "--device", "cpu")
    assert isinstance(result.exception, OSError)
    assert blocked.read_text() == ""


def test_hash_and_file_tell_epochs_apart(run, tmp_path):
    call("examine", run[0], "--results", tmp_path, "--device", "cpu")
    (one,) = read_store(tmp_path).examinations.values()
    assert replace(one, epochs=2).hash != one.hash
    assert replace(one, values=replace(one.values, images=3)).hash == one.hash
