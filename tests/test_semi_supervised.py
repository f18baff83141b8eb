"""Semi-supervised training: the step against a literal loop, splits, averages, labels unread."""

import json
import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from divaug import expand, policies
from divaug.lab import recipes
from divaug.lab.datasets import ImageFiles
from divaug.lab.train import Hardware, checkpoint, train
from divaug.lab.train.build import assemble
from divaug.lab.train.console import Silent
from divaug.lab.train.data import Split, choose_split, draw_split, unlabelled_images
from divaug.lab.train.folder import read_metrics
from divaug.lab.train.optim import Average, rate_at, rates, warmup_steps
from divaug.lab.train.processes import Processes
from divaug.lab.train.run import open_run
from divaug.lab.train.semi import Role, SemiStep, mix, seed_of, visits
from divaug.lab.train.step import WARM_UP, run_of, state_of
from tests.reference.no_waiting import NoWaiting
from tests.test_graphs import StandIn
from tests.training_helpers import PlainEntry, StopAfter, same_story, toy_data, toy_recipe

CPU = torch.device("cpu")
ALONE = Processes()


def semi_recipe(**changes):
    fields = {
        "objective": "uda",
        "augmenter": "divaug",
        "space": "uda",
        "labels": 12,
        "batch_size": 6,
        "unlabelled_batch_size": 8,
        "epoch_steps": 3,
        "epochs": 2,
        "unlabelled_weight": 2.0,
        "confidence": 0.3,
        "annealing": "linear",
        "log_every": 1,
    }
    return toy_recipe(**(fields | changes))


def parts_of(recipe, data=None, hardware=None, processes=ALONE, **more):
    hardware = hardware or Hardware(CPU)
    return assemble(recipe, data or toy_data(), hardware, processes, **more)


def run_steps(parts, steps):
    parts.step.begin_epoch(0)
    done = 0
    for epoch in range(steps):
        for inputs in parts.feed.epoch(epoch, 0):
            if done < steps:
                parts.step(inputs)
            done += 1


def run(recipe, out, **more):
    more = {"data": toy_data(), "reporter": Silent()} | more
    return train(recipe, out, device="cpu", **more)


class TestStep:
    """One step of each objective against code that does it image by image."""

    def weakly(self, images, role, parts, recipe, step):
        weak = replace(parts.default, cutout=0)
        seed, index = seed_of(recipe.seed, role), torch.arange(len(images))
        made = expand(images, 1, policies.Identity(), weak, seed, index, step=step)[0]
        return made[:, 0]

    def losses(self, recipe, given, labels, original, augmented, progress):
        """Both losses, one image and one view at a time."""
        threshold = {"none": math.inf, "linear": 1 / 4 + 3 / 4 * progress}[recipe.annealing]
        counted = []
        for row, label in zip(given, labels.tolist(), strict=True):
            probability = row.softmax(0)[label]
            if float(probability.detach()) < threshold:
                counted.append(-probability.log())
        supervised = sum(counted) / len(counted) if counted else given.sum() * 0
        total = 0
        for row, views in zip(original.detach(), augmented, strict=True):
            if float(row.softmax(0).max()) <= recipe.confidence:
                continue
            for view in views:
                if recipe.objective == "fixmatch":
                    term = F.cross_entropy(view[None], row.argmax()[None])
                else:
                    target = (row / recipe.temperature).softmax(0)
                    term = (target * (target.log() - view.log_softmax(0))).sum()
                total = total + term / len(views)
        return supervised, total / len(original)

    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"objective": "fixmatch", "annealing": "none", "ema_decay": 0.9},
            {"joint_forward": True, "augmenter": "randaugment", "schedule": "cosine-7/16"},
            {"warmup": 0.5, "warmup_rate": 0.001, "confidence": 0.99, "model": "tiny-resnet-8"},
        ],
        ids=["uda", "fixmatch", "joint", "warm-up"],
    )
    def test_equal_to_a_literal_loop(self, changes):
        with PlainEntry():
            recipe = semi_recipe(**({"model": "plain"} | changes))
            parts, other = parts_of(recipe), parts_of(recipe)
        network, views = other.network, other.augment.views
        optimizer = torch.optim.SGD(
            network.parameters(), lr=1.0, momentum=0.9, nesterov=True, weight_decay=5e-4
        )
        average = [p.detach().clone() for p in network.parameters()]
        parts.step.begin_epoch(0)
        seen = []
        for step, inputs in enumerate(parts.feed.epoch(0, 0)):
            batch = other.feed.gather(inputs)
            index = batch.indices
            strong, _ = other.augment(batch.images, None, index=index, epoch=0)
            given = batch.labelled.images
            labelled = self.weakly(given, Role.LABELLED, other, recipe, step)
            weak = self.weakly(batch.images, Role.WEAK, other, recipe, step)
            if recipe.joint_forward:
                logits = network(torch.cat([labelled, weak, strong]))
                given, original, augmented = logits[:6], logits[6:14], logits[14:]
            else:
                given = network(labelled)
                original, augmented = network(weak), network(strong)
            supervised, unlabelled = self.losses(
                recipe, given, batch.labelled.labels, original, augmented.view(8, views, -1),
                step / 6,
            )  # fmt: skip
            optimizer.param_groups[0]["lr"] = rate_at(recipe, step, 6)
            optimizer.zero_grad()
            (supervised + recipe.unlabelled_weight * unlabelled).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
            seen.append((float(supervised.detach()), float(torch.as_tensor(unlabelled).detach())))
            for mean, p in zip(average, network.parameters(), strict=True):
                mean.copy_(0.9 * mean + 0.1 * p.detach())
            parts.step(inputs)
        for mine, theirs in zip(parts.network.parameters(), network.parameters(), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)
        for mine, theirs in zip(parts.network.buffers(), network.buffers(), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)
        if recipe.ema_decay:
            for mine, mean in zip(parts.step.evaluated.parameters(), average, strict=True):
                torch.testing.assert_close(mine, mean, rtol=1e-4, atol=1e-6)
        sums = parts.step.sums.tolist()
        assert sums[2] == 18
        assert sums[4] == 24
        expected = [8 * sum(part) for part in zip(*seen, strict=True)]
        assert sums[5:7] == pytest.approx(expected, rel=1e-4, abs=1e-6)
        assert recipe.confidence > 0.9 or 0 < sums[7] <= 24

    def test_nobody_waits(self):
        parts = parts_of(semi_recipe(augmenter="default", ema_decay=0.9))
        inputs = next(parts.feed.epoch(0, 0))
        parts.step(inputs)
        with NoWaiting():
            parts.step(inputs)

    @pytest.mark.parametrize("joint", [False, True], ids=["three passes", "one pass"])
    def test_no_gradient_reaches_the_originals(self, joint):
        step = parts_of(semi_recipe(joint_forward=joint)).step
        images = torch.rand(9, 1, 16, 16, generator=torch.Generator().manual_seed(0))
        given, original, augmented = step.predict(images[:2], images[2:5], images[5:])
        assert (len(given), len(original), len(augmented)) == (2, 3, 4)
        assert given.requires_grad
        assert augmented.requires_grad
        assert not original.requires_grad

    @pytest.mark.parametrize("changes", [{}, {"ema_decay": 0.9, "joint_forward": True}])
    def test_a_recorded_step_trains_to_the_same_bits(self, monkeypatch, changes):
        recipe = semi_recipe(**changes)
        plain = parts_of(recipe)
        recorded = parts_of(recipe, hardware=Hardware(CPU, graphed=True))
        run_steps(plain, 3)
        stand_in = StandIn(monkeypatch, SemiStep)
        recorded.step.begin_epoch(0)
        runner = run_of(recorded.step)
        for inputs in recorded.feed.epoch(0, 0):
            runner(inputs)
        assert stand_in.warmed == WARM_UP
        for a, b in zip(state_of(plain.step), state_of(recorded.step), strict=True):
            assert torch.equal(a, b)
        listed = {tensor.data_ptr() for tensor in state_of(plain.step)}
        evaluated = plain.step.evaluated.state_dict()
        assert {tensor.data_ptr() for tensor in evaluated.values()} <= listed

    @pytest.mark.parametrize("role", [Role.LABELLED, Role.WEAK])
    def test_an_image_that_comes_twice_in_a_batch_is_cropped_twice(self, role):
        """Fewer images than places: the copies differ, for any number of processes."""
        parts = parts_of(semi_recipe(batch_size=64, unlabelled_batch_size=64))
        # CIFAR's crops: 81 of them, each with its mirror image.
        step = replace(parts.step, weak=replace(parts.default, padding=4, flip=0.5, cutout=0))
        images = toy_data().train_images[:1].expand(64, -1, -1, -1).contiguous()
        made = step.weakly(images, role)
        # 64 draws of 162 show 53 on average, with a deviation below 3.
        assert len(made.flatten(1).unique(dim=0)) > 40
        for rank, half in enumerate(images.split(32)):
            shared = replace(step, processes=Processes(rank, 2)).weakly(half, role)
            assert torch.equal(shared, made.split(32)[rank])
        step.optimizer.step_number += 1
        assert not torch.equal(step.weakly(images, role), made)

    def test_a_loss_that_is_not_finite_stops_the_run(self, tmp_path):
        with pytest.raises(ValueError, match=r"the loss is not finite at step \d+ \(learning rate"):
            run(semi_recipe(learning_rate=1e30, epochs=3), tmp_path / "run")


class TestLabels:
    def test_labels_of_unlabelled_images_are_never_read(self):
        data = toy_data()
        recipe = semi_recipe()
        split = draw_split(data, 12, recipe.seed)
        hidden = [i for i in range(len(data.train_labels)) if i not in split.labelled]
        scrambled = data.train_labels.clone()
        scrambled[hidden] = (scrambled[hidden] + 1 + torch.tensor(hidden)) % 4
        assert int((scrambled != data.train_labels).sum()) > 20
        other = replace(data, train_labels=scrambled)
        one, two = (parts_of(recipe, d, split=split) for d in (data, other))
        run_steps(one, 4)
        run_steps(two, 4)
        for a, b in zip(state_of(one.step), state_of(two.step), strict=True):
            assert torch.equal(a, b)
        # And the test bites: a label that may be read changes the run.
        shown = data.train_labels.clone()
        shown[split.labelled[0]] = (shown[split.labelled[0]] + 1) % 4
        three = parts_of(recipe, replace(data, train_labels=shown), split=split)
        run_steps(three, 4)
        assert not torch.equal(three.step.sums, one.step.sums)

    @pytest.mark.parametrize("labels", [4, 5, 11, 12, 40, 48])
    def test_a_split_is_balanced_and_follows_the_seed(self, labels):
        data = toy_data()
        split = draw_split(data, labels, 3)
        assert len(split.labelled) == labels
        counts = torch.bincount(split.labels_of(data), minlength=4)
        assert int(counts.max() - counts.min()) <= 1
        assert split == draw_split(data, labels, 3)
        if labels < 48:
            assert split.labelled != draw_split(data, labels, 4).labelled

    def test_a_split_that_was_checked_cannot_be_changed(self):
        split = Split((4, 0, 2))
        with pytest.raises(FrozenInstanceError):
            split.labelled = (1, 1)
        assert split.labelled == (0, 2, 4)

    def test_the_split_is_the_same_for_every_method_and_written_with_the_run(self, tmp_path):
        found = set()
        for i, (objective, augmenter) in enumerate(
            [("uda", "divaug"), ("fixmatch", "random"), ("uda", "trivialaugment")]
        ):
            recipe = semi_recipe(objective=objective, augmenter=augmenter, epochs=1)
            run(recipe, tmp_path / str(i))
            found.add((tmp_path / str(i) / "split.json").read_text())
        assert len(found) == 1
        content = json.loads(found.pop())
        assert Split(tuple(content["labelled"]), 0) == draw_split(toy_data(), 12, 0)

    def test_text_there_and_back(self, tmp_path):
        split = Split((5, 1, 3), 7)
        path = tmp_path / "split.json"
        path.write_text(split.to_json())
        assert choose_split(tmp_path / "new", path) == split
        assert choose_split(tmp_path, None) == split
        assert choose_split(tmp_path / "new", None) is None
        with pytest.raises(ValueError, match="started with another split"):
            choose_split(tmp_path, Split((1, 2)))

    def test_a_run_goes_on_with_the_unlabelled_images_it_began_with(self, tmp_path):
        images, recipe = toy_data(seed=7).train_images, semi_recipe()
        run(recipe, tmp_path / "run", unlabelled=images, reporter=StopAfter(2))
        for other in (None, images[:-1], images.flip(0)):
            with pytest.raises(ValueError, match="started with other unlabelled images"):
                run(recipe, tmp_path / "run", resume=True, unlabelled=other)
        assert run(recipe, tmp_path / "run", resume=True, unlabelled=images.clone()).finished
        run(recipe, tmp_path / "whole", unlabelled=images)
        assert same_story(tmp_path / "whole", tmp_path / "run")

    @pytest.mark.parametrize(
        "text",
        ["{", "[]", "{}", '{"labelled": [1, 1]}', '{"labelled": ["a"]}', '{"labelled": [-1]}'],
    )
    def test_text_that_is_no_split(self, tmp_path, text):
        (tmp_path / "split.json").write_text(text)
        with pytest.raises(ValueError, match=r"split\.json is no split: "):
            Split.read(tmp_path / "split.json")


class TestBadInput:
    def test_more_labels_than_there_are(self):
        with pytest.raises(ValueError, match="`labels` must not exceed the 48 training images"):
            parts_of(semi_recipe(labels=49))
        data = toy_data()
        uneven = replace(data, train_labels=data.train_labels.clamp(min=1))
        with pytest.raises(ValueError, match=r"needs 5 of class 0, got 0"):
            draw_split(uneven, 20, 0)

    def test_a_class_without_labels(self):
        with pytest.raises(ValueError, match="`labels` must be at least 4, one for each class"):
            parts_of(semi_recipe(labels=3))
        with pytest.raises(ValueError, match=r"class 'd' has no labelled image \(1 of 4"):
            parts_of(semi_recipe(labels=6), split=Split((0, 1, 2, 4, 5, 6)))

    def test_a_split_of_another_dataset(self):
        with pytest.raises(ValueError, match=r"names image 99, and 'toy' has 48"):
            parts_of(semi_recipe(labels=5), split=Split((0, 1, 2, 3, 99)))

    def test_a_split_that_the_recipe_tells_otherwise(self):
        """Its `labels` is kept with the run, and the length of a warm-up follows from it."""
        with pytest.raises(ValueError, match=r"split has 8 labelled images.*is 12; .*--labels 8"):
            parts_of(semi_recipe(), split=Split(tuple(range(8))))
        for labels in (0, 8):  # 0 leaves it to the split
            parts = parts_of(semi_recipe(labels=labels), split=Split(tuple(range(8))))
            assert len(parts.feed.labels) == 8

    @pytest.mark.parametrize("shape", [(9, 3, 16, 16), (9, 1, 16, 15), (9, 16, 16)])
    def test_unlabelled_images_of_another_size_or_channel_count(self, shape):
        images = torch.zeros(shape, dtype=torch.uint8)
        with pytest.raises(ValueError, match=r"`unlabelled` must hold uint8 images \(1, 16, 16\)"):
            parts_of(semi_recipe(), unlabelled=images)

    def test_unlabelled_images_that_are_no_bytes_or_none(self):
        with pytest.raises(ValueError, match=r"`unlabelled` must hold uint8.*float32"):
            parts_of(semi_recipe(), unlabelled=torch.zeros(3, 1, 16, 16))
        with pytest.raises(ValueError, match=r"`unlabelled` must hold uint8.*\(0, 1, 16, 16\)"):
            parts_of(semi_recipe(), unlabelled=torch.zeros(0, 1, 16, 16, dtype=torch.uint8))

    @pytest.mark.parametrize(
        "change",
        [
            *("labels=8", "unlabelled_batch_size=16", "unlabelled_weight=9", "temperature=0.5"),
            *("confidence=0.5", "annealing=linear", "joint_forward=true", "ema_decay=0.9"),
            "epoch_steps=3",
        ],
    )
    def test_fields_that_need_unlabelled_images(self, change):
        """They would change nothing but the hash, by which a run is found again."""
        field = change.split("=")[0]
        with pytest.raises(ValueError, match=f"^`{field}` needs an objective with unlabelled"):
            recipes.override(recipes.recipe("demo-divaug"), [change])
        recipes.override(recipes.recipe("uda-modern"), [change])

    def test_the_batch_that_cannot_be_shared_out_is_called_by_its_name(self):
        recipe = semi_recipe(batch_size=4, unlabelled_batch_size=7)
        rule = "^`unlabelled_batch_size` must be a multiple of the 2 processes, got 7"
        with pytest.raises(ValueError, match=rule):
            assemble(recipe, toy_data(), Hardware(torch.device("cpu")), Processes(1, 2))

    def test_folders_and_supervised_runs(self):
        with pytest.raises(ValueError, match=r"need an objective with .*got 'supervised'"):
            parts_of(toy_recipe(), split=Split((1, 2)))
        folder = object.__new__(ImageFiles)
        object.__setattr__(folder, "name", "photos")
        with pytest.raises(ValueError, match="'uda' needs a dataset in memory, and 'photos'"):
            parts_of(semi_recipe(), folder)


class TestFeed:
    def test_every_pass_takes_every_image_once_in_another_order(self):
        taken = visits(10, 4, 0, 15, seed=5, device=CPU)
        passes = taken.view(6, 10)
        assert all(sorted(row) == list(range(10)) for row in passes.tolist())
        assert len({tuple(row) for row in passes.tolist()}) == 6

    @pytest.mark.parametrize(("count", "batch"), [(10, 4), (3, 8), (4, 4), (100, 7)])
    def test_where_a_stretch_begins_changes_nothing(self, count, batch):
        whole = visits(count, batch, 0, 12, seed=1, device=CPU)
        for first in (1, 5, 11):
            part = visits(count, batch, first, 12 - first, seed=1, device=CPU)
            assert torch.equal(part, whole[first:])

    def test_epochs_continue_the_passes_and_processes_share_them(self):
        recipe = semi_recipe()
        parts = parts_of(recipe)
        labelled = torch.stack([i for e in range(2) for i, _ in parts.feed.epoch(e, 0)])
        assert sorted(labelled.flatten().tolist()) == sorted(list(range(12)) * 3)
        shares = [replace(parts.feed, processes=Processes(rank, 2)) for rank in range(2)]
        for ours, a, b in zip(*(f.epoch(1, 1) for f in (parts.feed, *shares)), strict=True):
            for k in range(2):
                assert torch.equal(ours[k], torch.cat([a[k], b[k]]))

    def test_batches_hold_the_right_images_and_labels(self):
        data = toy_data()
        feed = parts_of(semi_recipe(), data).feed
        for inputs in feed.epoch(0, 0):
            batch = feed.gather(inputs)
            numbers = batch.labelled.indices
            assert torch.equal(batch.labelled.images, data.train_images[numbers])
            assert torch.equal(batch.labelled.labels, data.train_labels[numbers])
            assert torch.equal(batch.images, data.train_images[batch.indices])

    def test_an_epoch_without_a_length_is_a_pass_over_the_unlabelled_images(self):
        data, recipe = toy_data(), semi_recipe(epoch_steps=0, unlabelled_batch_size=10)
        assert parts_of(recipe, data).feed.steps == 4
        few = torch.zeros(3, 1, 16, 16, dtype=torch.uint8)
        feed = parts_of(recipe, data, unlabelled=few).feed
        assert feed.steps == 1
        assert feed.pool.shape[0] == 3
        mixture = mix(data, Split((0, 1, 2, 3)), few, recipe, ALONE, CPU)
        batch = mixture.gather(next(mixture.epoch(0, 0)))
        assert batch.images.shape == (10, 1, 16, 16)
        assert batch.labelled.images.shape == (6, 1, 16, 16)

    def test_roles_share_no_draw(self):
        assert len({seed_of(5, role) for role in Role}) == 3
        assert seed_of(5, Role.STRONG) == 5
        assert all(0 <= seed_of(2**64 - 1, role) < 2**64 for role in Role)

    def test_unlabelled_images_from_files(self, tmp_path):
        images = toy_data().train_images
        np.save(tmp_path / "more.npy", images.numpy())
        assert torch.equal(unlabelled_images(tmp_path / "more.npy"), images)
        assert torch.equal(unlabelled_images(toy_data()), images)
        result = run(semi_recipe(epochs=1), tmp_path / "run", unlabelled=tmp_path / "more.npy")
        assert result.finished

    @pytest.mark.parametrize("content", [b"", b"\x93NUMPY", None])
    def test_files_that_hold_no_images(self, tmp_path, content):
        path = tmp_path / "more.npy"
        np.save(path, np.array([None]))  # objects, which are never unpickled
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ValueError, match=r"more\.npy must be an \.npy file of images"):
            unlabelled_images(path)


class TestAverage:
    def test_against_a_loop_with_buffers_copied(self):
        network = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
        average = Average(network, 0.75)
        expected = [p.detach().clone() for p in network.parameters()]
        for step in range(5):
            with torch.no_grad():
                for p in network.parameters():
                    p.add_(step + 1.0)
            network(torch.randn(4, 3, generator=torch.Generator().manual_seed(step)))
            average.update()
            for mean, p in zip(expected, network.parameters(), strict=True):
                mean.copy_(0.75 * mean + 0.25 * p.detach())
        for mine, mean in zip(average.network.parameters(), expected, strict=True):
            torch.testing.assert_close(mine, mean)
            assert not mine.requires_grad
        for mine, theirs in zip(average.network.buffers(), network.buffers(), strict=True):
            assert torch.equal(mine, theirs)

    def test_the_average_is_what_is_evaluated_and_kept(self, tmp_path):
        recipe = semi_recipe(ema_decay=0.5)
        result = run(recipe, tmp_path / "run")
        found, _ = checkpoint.load_latest(tmp_path / "run" / "checkpoints")
        opened = open_run(tmp_path / "run").network(toy_data(), Hardware(CPU))
        parts = parts_of(recipe)
        run_steps(parts, 6)
        for name, tensor in opened.state_dict().items():
            assert torch.equal(tensor, parts.step.evaluated.state_dict()[name])
            assert torch.equal(found.optimizer[f"trained.{name}"], parts.network.state_dict()[name])
        first = "stem.weight"
        assert not torch.equal(found.model[first], found.optimizer[f"trained.{first}"])
        assert result.test is not None


class TestRuns:
    @pytest.mark.parametrize(
        "changes",
        [{}, {"ema_decay": 0.9, "objective": "fixmatch"}],
        ids=["uda", "fixmatch, average"],
    )
    @pytest.mark.parametrize("stop", [2, 4])
    def test_resumed_to_the_same_bits(self, tmp_path, changes, stop):
        recipe = semi_recipe(**changes)
        run(recipe, tmp_path / "whole")
        first = run(recipe, tmp_path / "parts", reporter=StopAfter(stop))
        assert first.step == stop
        assert run(recipe, tmp_path / "parts", resume=True).finished
        ends = [
            checkpoint.load_latest(tmp_path / name / "checkpoints")[0]
            for name in ("whole", "parts")
        ]
        for one, two in zip(*((e.model, e.optimizer) for e in ends), strict=True):
            assert one.keys() == two.keys()
            assert all(torch.equal(one[name], two[name]) for name in one)
        assert same_story(tmp_path / "whole", tmp_path / "parts")

    def test_the_record_says_what_the_unlabelled_images_did(self, tmp_path):
        run(semi_recipe(), tmp_path / "run")
        lines = read_metrics(tmp_path / "run")
        for line in lines:
            assert 0.0 <= line["confident"] <= 1.0
            whole = line["labelled_loss"] + 2.0 * line["unlabelled_loss"]
            assert line["loss"] == pytest.approx(whole, rel=1e-5)
        assert any(line["confident"] > 0 for line in lines)

    def test_a_split_of_ones_own(self, tmp_path):
        mine = Split(tuple(range(8)))
        recipe = semi_recipe(epochs=1, labels=8)
        run(recipe, tmp_path / "one", split=mine)
        again = tmp_path / "one" / "split.json"
        assert Split.read(again) == mine
        run(recipe, tmp_path / "two", split=again)
        assert same_story(tmp_path / "one", tmp_path / "two")


class TestSchedule:
    recipe = recipes.recipe("uda-paper")

    def test_the_paper_rises_from_1e_4_to_003_and_falls_to_nothing(self):
        """As in the authors' code: 120 of 6,400 short epochs, that is 1.875 per cent."""
        assert warmup_steps(self.recipe, 198_400) == 3720
        at = {step: rate_at(self.recipe, step, 198_400) for step in (0, 1860, 3720, 101_060)}
        assert at == pytest.approx({0: 1e-4, 1860: 0.01505, 3720: 0.03, 101_060: 0.015})
        assert rate_at(self.recipe, 198_400, 198_400) == pytest.approx(0.0, abs=1e-12)
        with torch.device("meta"):
            assert rate_at(self.recipe, 1860, 198_400) == at[1860]
        for labels, steps, total in ((2000, 7440, 198_400), (4000, 15_000, 200_000)):
            assert warmup_steps(recipes.relabel(self.recipe, labels), total) == steps

    def test_labels_that_are_set_bring_the_warm_up_along(self):
        for labels in (250, 4000):
            changed = recipes.override(self.recipe, [f"labels={labels}", "epochs=20"])
            assert changed == replace(recipes.relabel(self.recipe, labels), epochs=20)
            assert changed.warmup == pytest.approx(120 / 6400 * labels / 1000)
        # A warm-up of one's own is left alone, in either order; and so is one without a reason.
        for texts in (["labels=4000", "warmup=0.1"], ["warmup=0.1", "labels=4000"]):
            assert recipes.override(self.recipe, texts).warmup == 0.1
        assert recipes.override(self.recipe, ["epochs=20"]).warmup == self.recipe.warmup

    def test_all_labels_leave_a_warm_up_without_a_length(self):
        """0 stands for all, and how many these are only the dataset knows."""
        for change in (
            lambda: recipes.relabel(self.recipe, 0),
            lambda: recipes.override(self.recipe, ["labels=0"]),
            lambda: recipes.relabel(replace(self.recipe, labels=0), 1000),
        ):
            with pytest.raises(ValueError, match=r"`labels` must be a number above 0"):
                change()
        assert recipes.override(self.recipe, ["labels=0", "warmup=0.2"]).warmup == 0.2
        assert recipes.relabel(recipes.recipe("fixmatch"), 0).labels == 0
        supervised = ["objective=supervised", "labels=0", "epoch_steps=0", "annealing=none"]
        supervised += ["unlabelled_weight=1"]
        assert recipes.override(self.recipe, supervised).warmup == self.recipe.warmup

    def test_no_step_falls_back_where_the_warm_up_ends(self):
        found = rates(self.recipe, torch.arange(2000), 2000)
        top = int(found.argmax())
        assert float(found.max()) == pytest.approx(0.03)
        assert bool((found[: top + 1].diff() > 0).all())
        assert bool((found[top:].diff() <= 0).all())

    def test_seven_sixteenths_of_a_turn(self):
        modern = recipes.recipe("fixmatch")
        assert rate_at(modern, 0, 100) == pytest.approx(0.03)
        assert rate_at(modern, 100, 100) == pytest.approx(0.03 * math.cos(7 * math.pi / 16))
        assert rate_at(modern, 100, 100) / 0.03 == pytest.approx(0.195, abs=1e-3)


class TestRecipes:
    def test_uda_paper_is_the_authors_setting(self):
        one = recipes.recipe("uda-paper")
        assert one.epochs * one.epoch_steps == 200_000
        facts = {
            "objective": "uda", "model": "wide-resnet-28-2", "batch_size": 32, "labels": 1000,
            "unlabelled_batch_size": 448, "num_candidates": 4, "num_selected": 2, "space": "uda",
            "learning_rate": 0.03, "warmup_rate": 1e-4, "weight_decay": 5e-4, "grad_clip": 5.0,
            "momentum": 0.9, "nesterov": True, "temperature": 0.4, "confidence": 0.8,
            "unlabelled_weight": 5.0, "annealing": "linear", "ema_decay": 0.0,
            "joint_forward": False, "schedule": "cosine",
        }  # fmt: skip
        assert {name: getattr(one, name) for name in facts} == facts

    @pytest.mark.parametrize("name", ["uda-modern", "fixmatch"])
    def test_the_modern_ones(self, name):
        one = recipes.recipe(name)
        facts = {
            "ema_decay": 0.999,
            "learning_rate": 0.03,
            "batch_size": 64,
            "unlabelled_batch_size": 448,
            "joint_forward": True,
            "annealing": "none",
        }
        assert {field: getattr(one, field) for field in facts} == facts
        assert one.confidence == {"uda-modern": 0.8, "fixmatch": 0.95}[name]

    def test_every_family_label_count_and_method_has_one(self):
        for family in ("uda-paper", "uda-modern", "fixmatch"):
            for labels in (1000, 2000, 4000):
                for augmenter in ("randaugment-uda", "randaugment", "random", "divaug"):
                    one = recipes.RECIPES[f"{family}-{labels}-{augmenter}"]
                    assert (one.labels, one.augmenter) == (labels, augmenter)
        assert recipes.recipe("UDA-Paper") == recipes.RECIPES["uda-paper-1000-divaug"]
