"""Measures of an augmenter against the definitions, image by image."""

import shutil

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from typer.testing import CliRunner

from divaug._diversity import upper_bound
from divaug.lab import methods as augmenters
from divaug.lab import models
from divaug.lab.cli import app
from divaug.lab.measure import measure, measure_run, measured_epochs
from divaug.lab.methods import AUGMENTERS, SCHEDULES, Settings
from divaug.lab.train import Hardware, checkpoint, train
from divaug.lab.train.console import Silent
from divaug.lab.train.data import default_of
from divaug.lab.train.run import open_run
from tests.training_helpers import Counting, toy_data, toy_recipe

CPU = Hardware(torch.device("cpu"))
DATA = toy_data(num_train=12, num_test=8)
DEFAULT = default_of("toy", DATA)


@pytest.fixture(scope="module")
def network():
    return models.build("tiny-resnet-8", 4, 1, seed=1).eval()


def maker(name, network, **changes):
    given = {"num_candidates": 6, "num_selected": 4, "total_epochs": 10, "seed": 2} | changes
    return lambda pool: augmenters.build(name, Settings(network, DEFAULT, pool=pool, **given))


@pytest.mark.parametrize("name", AUGMENTERS)
def test_measures_of_every_augmenter_keep_their_bounds(name, network):
    found = measure(network, DATA, maker(name, network), DEFAULT, CPU, views=4, batch_size=5)
    assert 0.0 <= found.variance_diversity <= upper_bound(4, 4)
    assert found.loss_diversity > 0
    assert found.affinity == pytest.approx(found.augmented_accuracy - found.clean_accuracy)
    assert (found.views, found.train_images, found.test_images) == (4, 12, 8)


def test_measures_follow_their_definitions_image_by_image(network):
    """The slow way: each view of each image on its own, as the draws of successive steps."""
    found = measure(
        network, DATA, maker("randaugment", network), DEFAULT, CPU, views=2, batch_size=12
    )
    augment = maker("randaugment", network)(DATA.train_images)
    index = torch.arange(12)
    views = [augment(DATA.train_images, index=index)[0] for _ in range(2)]
    variance, loss = [], []
    for i in range(12):
        logits = torch.cat([network(view[i : i + 1]) for view in views]).detach()
        p = logits.softmax(1).double()
        variance.append(float(((p - p.mean(0)) ** 2).sum() / 2))
        label = DATA.train_labels[i]
        loss.append(float(F.cross_entropy(logits, label.expand(2))))
    assert found.variance_diversity == pytest.approx(sum(variance) / 12, rel=1e-4)
    assert found.loss_diversity == pytest.approx(sum(loss) / 12, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "views", "passes"),
    [("default", 4, [12 * 4, 8 * 4]), ("default", 100, [12 * 85, 12 * 15, 8 * 100]),
     ("divaug", 8, [12 * 8, 8 * 8])],
)  # fmt: skip
def test_calls_share_passes_of_the_network_up_to_a_size(name, views, passes):
    """Views of one image at a time would leave a GPU idle, all at once might not fit it."""
    network, seen = models.build("tiny-resnet-8", 4, 1, seed=1).eval(), []
    make = maker(name, models.build("tiny-resnet-8", 4, 1, seed=1).eval())
    network.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))
    measure(network, DATA, make, DEFAULT, CPU, views=views)
    clean = seen.pop()
    assert (seen, clean) == (passes, len(DATA.test_images))


class Noting:
    """An augmenter of one view that changes nothing, and notes for what it was called."""

    views = 1

    def __init__(self):
        self.asked = []

    def __call__(self, images, labels, *, index, epoch):
        self.asked += [(row, epoch) for row in index.tolist()]
        return images / 255, labels


@pytest.mark.parametrize("batch_size", [1, 2, 5, 100])
@pytest.mark.parametrize("epochs", [(3,), (0, 4, 9), tuple(range(10))])
def test_the_epochs_of_a_schedule_share_the_images_evenly(network, epochs, batch_size):
    """Whatever the batch: each image belongs to one epoch, and is shown as often as asked."""
    parts = []

    def make(_pool):
        parts.append(Noting())
        return parts[-1]

    found = measure(
        network, DATA, make, DEFAULT, CPU, views=2, epochs=epochs, batch_size=batch_size
    )
    assert found.epochs == len(epochs)
    for noted, num_images in zip(parts, (12, 8), strict=True):
        expected = [(row, epochs[row % len(epochs)]) for row in range(num_images)]
        assert sorted(noted.asked) == sorted(expected * 2)


def test_a_schedule_is_measured_as_the_mean_over_its_epochs(network):
    """The slow way: the images of each epoch on their own, and the mean over all images."""
    epochs = (0, 5, 9)
    found = measure(
        network, DATA, maker("pba", network), DEFAULT, CPU, views=2, epochs=epochs, batch_size=4
    )
    augment, variance = maker("pba", network)(DATA.train_images), []
    for i, epoch in enumerate(epochs):
        rows = torch.arange(i, 12, 3)
        images = DATA.train_images[rows]
        views = [augment(images, index=rows, epoch=epoch)[0] for _ in range(2)]
        p = torch.stack([network(view).softmax(1) for view in views], 1).detach().double()
        variance += ((p - p.mean(1, keepdim=True)) ** 2).sum(-1).mean(1).tolist()
    assert found.variance_diversity == pytest.approx(sum(variance) / 12, rel=1e-4)
    last = measure(network, DATA, maker("pba", network), DEFAULT, CPU, views=2, epochs=(9,))
    assert found.variance_diversity != pytest.approx(last.variance_diversity, rel=1e-3)


def test_epochs_of_a_schedule_lie_in_the_middle_of_equal_parts():
    assert measured_epochs("pba", 600) == tuple(range(30, 600, 60))
    assert measured_epochs("pba", 3) == (0, 1, 2)
    assert measured_epochs("pba", 1) == (0,)
    for epochs in range(1, 300):
        found = measured_epochs("pba", epochs)
        assert len(set(found)) == min(10, epochs)
        assert 0 <= min(found) <= max(found) < epochs
    assert measured_epochs("randaugment", 600) == (599,)


@pytest.mark.parametrize("name", AUGMENTERS)
def test_schedules_are_those_whose_policy_asks_for_the_epoch(name, network):
    policy = maker(name, network)(DATA.train_images).expansion.policy
    assert policy.needs_epoch == (name in SCHEDULES)


def test_selection_makes_kept_views_more_diverse_than_chance(network):
    """Exact choice cannot be beaten by random choice among the same candidates."""
    exact, chance = (
        measure(network, DATA, maker(name, network), DEFAULT, CPU, views=4)
        for name in ("divaug-exact", "random")
    )
    assert exact.variance_diversity > chance.variance_diversity


@pytest.mark.parametrize("make", [lambda: models.build("tiny-resnet-8", 4, 1), Counting])
def test_the_network_is_left_as_it_was(make):
    network = make()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    measure(network, DATA, maker("divaug", network), DEFAULT, CPU)
    assert network.training
    assert all(torch.equal(before[n], t) for n, t in network.state_dict().items())


def test_views_must_fit_the_augmenter(network):
    with pytest.raises(ValueError, match="multiple of the 4 views"):
        measure(network, DATA, maker("divaug", network), DEFAULT, CPU, views=6)


def test_a_run_can_be_opened_at_its_end_or_at_a_checkpoint(tmp_path):
    recipe = toy_recipe()
    result = train(recipe, tmp_path / "run", data=toy_data(), device="cpu", reporter=Silent())
    opened = open_run(tmp_path / "run")
    assert opened.recipe == recipe
    assert opened.checkpoint.step == result.step
    older = checkpoint.find(tmp_path / "run" / "checkpoints")[0]
    assert open_run(older).checkpoint.step == 6
    shutil.copytree(tmp_path / "run", tmp_path / "copy", ignore=shutil.ignore_patterns("step-*"))
    with pytest.raises(ValueError, match="has no checkpoint to use: there is none"):
        open_run(tmp_path / "copy")
    network = opened.network(toy_data(), CPU)
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, opened.checkpoint.model[name])
    with pytest.raises(ValueError, match="belongs to another network"):
        opened.network(toy_data(channels=3), CPU)


def test_what_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        open_run(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="is no run"):
        open_run(tmp_path)
    (tmp_path / "recipe.json").write_text(toy_recipe().to_json())
    with pytest.raises(ValueError, match="has no checkpoint to use: there is none"):
        open_run(tmp_path)


def test_a_run_is_measured_with_its_own_network(tmp_path):
    data = toy_data(num_train=16)
    run = tmp_path / "run"
    train(toy_recipe(epochs=1), run, data=data, device="cpu", reporter=Silent())
    said = []
    found = measure_run(
        run, ["none", "divaug"], data=data, views=2, images=8, device="cpu", say=said.append
    )
    assert list(found) == ["none", "divaug"]
    assert said == ["measuring none on 8 images", "measuring divaug on 8 images"]
    assert found["none"].variance_diversity == pytest.approx(0.0, abs=1e-10)
    assert found["divaug"].variance_diversity > 0
    assert found["none"].clean_accuracy == found["divaug"].clean_accuracy
    assert found["divaug"].epochs == 1
    own = measure_run(run, data=data, views=2, device="cpu")
    assert list(own) == ["default"]
    assert own["default"].train_images == 16
    with pytest.raises(ValueError, match="Did you mean 'divaug'"):
        measure_run(run, ["none", "divag"], data=data, device="cpu", say=said.append)
    assert len(said) == 2


def test_a_method_that_chooses_must_have_a_choice(tmp_path):
    """All of E candidates are the same ones whoever keeps them: chance under DivAug's name."""
    data, run = toy_data(num_train=16), tmp_path / "run"  # E = 3
    train(toy_recipe(epochs=1), run, data=data, device="cpu", reporter=Silent())
    said = []
    for views in (3, 4, 100):
        with pytest.raises(ValueError, match=rf"`views` must be below E=3.* for divaug .*{views}:"):
            measure_run(run, ["none", "divaug"], data=data, views=views, say=said.append)
    assert said == [], "refused before anything was measured"
    others = measure_run(run, ["random", "randaugment-xS"], data=data, views=3, device="cpu")
    assert [one.views for one in others.values()] == [3, 3]
    many = measure_run(run, ["trivialaugment-xS"], data=data, views=70, device="cpu")
    assert many["trivialaugment-xS"].views == 70


def test_a_run_that_kept_all_candidates_is_measured_as_it_was_trained(tmp_path):
    data, run = toy_data(num_train=16), tmp_path / "run"
    recipe = toy_recipe(epochs=1, augmenter="divaug", num_selected=3)
    train(recipe, run, data=data, device="cpu", reporter=Silent())
    assert measure_run(run, data=data, device="cpu")["divaug"].views == 3
    with pytest.raises(ValueError, match="`views` must be below E=3"):
        measure_run(run, data=data, views=4, device="cpu")


def test_a_run_measures_a_schedule_over_the_whole_of_it(tmp_path):
    data, run = toy_data(num_train=16), tmp_path / "run"
    train(toy_recipe(epochs=3), run, data=data, device="cpu", reporter=Silent())
    assert measure_run(run, ["pba"], data=data, views=2, device="cpu")["pba"].epochs == 3
    arrays = {"x_train": data.train_images, "y_train": data.train_labels,
              "x_test": data.test_images, "y_test": data.test_labels}  # fmt: skip
    np.savez(tmp_path / "toy.npz", **{name: array.numpy() for name, array in arrays.items()})
    words = ["measure", run, "--data", tmp_path / "toy.npz", "--device", "cpu"]
    words += ["--augmenter", "pba", "--augmenter", "none"]
    shown = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert shown.output.count("is a schedule") == 1
    assert "pba is a schedule: measured at 3 epochs spread evenly over it" in shown.output
