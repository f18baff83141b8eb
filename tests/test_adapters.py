"""Adapters that need torch alone: fields of a batch, numbered samples, the augmented loader."""

import copy
import importlib
import pickle
import sys
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    Subset,
    TensorDataset,
    default_collate,
)
from torch.utils.data.distributed import DistributedSampler

import divaug.adapters.loader
from divaug import DivAug, policies
from divaug.adapters import AugmentedLoader, Fields, Numbered
from divaug.default_augmentation import cifar10
from divaug.views import Views


def images_of(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, 3, 16, 16), dtype=torch.uint8, generator=generator)


def network(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))


Pair = namedtuple("Pair", "first second")


class Shown:
    """An augmenter that notes what it was given and returns every image twice."""

    views = 2

    def __init__(self):
        self.calls = []

    def __call__(self, images, labels=None, *, index=None, epoch=None):
        self.calls.append((images, labels, index, epoch))
        doubled = None if labels is None else labels.repeat_interleave(2, 0)
        return images.repeat_interleave(2, 0), doubled


# Fields


@pytest.mark.parametrize("kind", [tuple, list])
def test_a_sequence_comes_back_as_what_it_was(kind):
    images, labels, weights = images_of(3), torch.tensor([4, 5, 6]), torch.rand(3, 2)
    out = Fields().augment(Shown(), kind((images, labels, weights, "train", None)))
    assert type(out) is kind
    assert torch.equal(out[0], images.repeat_interleave(2, 0))
    assert out[1].tolist() == [4, 4, 5, 5, 6, 6]
    assert torch.equal(out[2], weights.repeat_interleave(2, 0))
    assert out[3:] == kind(("train", None))


def test_a_mapping_keeps_its_order_and_repeats_what_has_an_entry_for_each_image():
    batch = {
        "name": ["a", "b", "c"],
        "y": torch.tensor([4, 5, 6]),
        "x": images_of(3),
        "classes": ["cat", "dog"],
        "scale": torch.tensor(0.5),
        "more": {"id": torch.tensor([7, 8, 9]), "anchors": torch.zeros(2, 4)},
        "weights": torch.ones(3),
        "array": np.arange(3.0),
        "pair": Pair(torch.arange(3), "of all"),
    }
    before = dict(batch)
    out = Fields("x", "y", keep=("weights",)).augment(Shown(), batch)
    assert list(out) == list(batch)
    assert out["name"] == ["a", "a", "b", "b", "c", "c"]
    assert out["classes"] == ["cat", "dog"]
    assert out["scale"].shape == ()
    assert out["more"]["id"].tolist() == [7, 7, 8, 8, 9, 9]
    assert out["more"]["anchors"].shape == (2, 4)
    assert out["weights"] is batch["weights"]
    assert out["array"].tolist() == [0, 0, 1, 1, 2, 2]
    assert type(out["pair"]) is Pair
    assert (out["pair"].first.tolist(), out["pair"].second) == ([0, 0, 1, 1, 2, 2], "of all")
    assert all(batch[name] is before[name] for name in before)  # the loader's batch is not changed


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("leaf", [str, lambda i: torch.tensor(float(i))])
def test_what_torch_collates_is_repeated_as_if_the_samples_had_been(count, leaf):
    """Also in a last batch that has as many images as each sample has parts."""
    samples = [
        (np.zeros((3, 4, 4), np.uint8), i, (leaf(i), leaf(i + 9)), ((leaf(i), leaf(i)), {"a": i}))
        for i in range(count)
    ]
    found = Fields().augment(Shown(), default_collate(samples))
    twice = default_collate([samples[i] for i in range(count) for _ in range(2)])
    assert repr(found[2:]) == repr(twice[2:])


BOXES = [torch.zeros(1, 4), torch.ones(4, 4), torch.full((2, 4), 2.0)]


@pytest.mark.parametrize("kind", [tuple, list])
@pytest.mark.parametrize("entries", [BOXES, [(box, box[0]) for box in BOXES], [{"box": 1}] * 3])
def test_entries_that_are_named_are_repeated_whole(entries, kind):
    batch = images_of(3), torch.zeros(3), kind(entries)
    found = Fields(each=(2,)).augment(Shown(), batch)[2]
    assert type(found) is kind
    assert [id(one) for one in found] == [id(one) for one in entries for _ in range(2)]


def test_lists_that_are_no_columns_must_be_named():
    scalars = [torch.tensor(1.0)] * 3
    for entries in (BOXES, [{"box": box} for box in BOXES], [("a", "b"), ("c",), ("d",)], scalars):
        batch = images_of(3), torch.zeros(3), entries
        with pytest.raises(ValueError, match=r"list at 2 must hold columns .* 3 .*Fields\(each="):
            Fields().augment(Shown(), batch)
        assert Fields(keep=(2,)).augment(Shown(), batch)[2] is entries


@pytest.mark.parametrize(("part", "got"), [([1, 2], "list"), (torch.zeros(3), "Tensor")])
def test_entries_that_are_named_must_be_there(part, got):
    with pytest.raises(ValueError, match=f"one entry for each of 3 images, got {got} at 2"):
        Fields(each=[2]).augment(Shown(), (images_of(3), torch.zeros(3), part))


def test_numbers_and_epoch_reach_the_augmenter_and_numbers_leave_the_batch():
    augment, numbers = Shown(), torch.tensor([7, 8, 9])
    out = Fields(index=2).augment(augment, (images_of(3), torch.zeros(3), numbers, "x"), epoch=4)
    assert len(out) == 3
    assert out[2] == "x"
    assert augment.calls[0][2] is numbers
    assert augment.calls[0][3] == 4


def test_no_labels():
    augment = Shown()
    out = Fields(labels=None).augment(augment, (images_of(2), torch.tensor([1, 2])))
    assert augment.calls[0][1] is None
    assert out[1].tolist() == [1, 1, 2, 2]  # not labels, but an entry for each image


def test_labels_stay_with_their_images():
    images = torch.arange(64, dtype=torch.uint8).view(64, 1, 1, 1).expand(64, 3, 8, 8)
    out, labels = Fields().augment(Views(num_views=3), (images, torch.arange(64)))
    assert torch.equal((out[:, 0, 0, 0] * 255).round().long(), labels)


def test_with_numbers_the_place_in_the_batch_does_not_matter():
    images, numbers = images_of(6), torch.arange(6) + 100
    order = torch.tensor([3, 0, 5, 1, 4, 2])

    def views(rows):
        augment = Views(policies.Uniform(), num_views=2, pool=images)
        batch = (images[rows], rows, numbers[rows])
        return Fields(index=2).augment(augment, batch)[0].unflatten(0, (6, 2))

    assert torch.equal(views(order), views(torch.arange(6))[order])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"index": 0}, r"named once, got \[0, 1, 0\]"),
        ({"keep": (1,)}, "named once"),
        ({"masks": {2: 255}, "keep": (2,)}, "named once"),
        ({"keep": "mask"}, "`keep` must be a tuple of fields.*got 'mask'"),
        ({"each": 2}, "`each` must be a tuple of fields"),
        ({"masks": (2,)}, r'`masks` must be a mapping.*\{"mask": 255\}, got \(2,\)'),
    ],
)
def test_fields_that_cannot_be(fields, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Fields(**fields)


@pytest.mark.parametrize("labels", [1, None])
def test_masks_move_with_their_images(labels):
    images = images_of(3)
    masks, depth = torch.arange(3 * 256).view(3, 16, 16), torch.rand(3, 1, 16, 16)
    batch = [images, torch.arange(3), masks, depth, torch.arange(3) + 7]
    fields = Fields(0, labels, index=4, masks={2: -1, 3: 0.5})
    out = fields.augment(Views(policies.Uniform(), cifar10(), 2), batch)
    by_hand = Views(policies.Uniform(), cifar10(), 2)
    by_hand(images, index=batch[4])
    assert (out[2] == -1).any()
    assert torch.equal(out[2], by_hand.follow(masks, fill=-1))
    assert torch.equal(out[3], by_hand.follow(depth, fill=0.5))
    assert out[1].tolist() == [0, 0, 1, 1, 2, 2]
    assert len(out) == 4


def test_a_missing_field_is_named_with_those_there_are():
    with pytest.raises(ValueError, match=r"no images at 'pixels', it has \['x'\].*Fields\(images="):
        Fields("pixels", None).augment(Shown(), {"x": images_of(1)})
    with pytest.raises(ValueError, match=r"no index at 2.*Numbered\(dataset\)"):
        Fields(index=2).augment(Shown(), (images_of(1), torch.zeros(1)))
    for named in ({"keep": (5,)}, {"masks": {5: 0}}, {"each": (5,)}):
        with pytest.raises(ValueError, match=r"no (keep|masks|each) at 5, it has \[0, 1\]"):
            Fields(**named).augment(Shown(), (images_of(1), torch.zeros(1)))


def test_batches_of_other_kinds_are_refused():
    for batch in (images_of(2), Pair(images_of(2), torch.zeros(2)), 5):
        with pytest.raises(TypeError, match="must be a tuple, a list or a mapping"):
            Fields().augment(Shown(), batch)


# Numbered


def test_numbers_go_through_a_loader_whatever_its_order():
    dataset = Numbered(TensorDataset(torch.arange(50) * 10, torch.zeros(50)))
    for values, _, numbers in DataLoader(dataset, batch_size=7, shuffle=True):
        assert torch.equal(values, numbers * 10)
    assert len(dataset) == 50


def test_samples_that_are_mappings_get_a_key_and_are_not_changed():
    samples = [{"x": 5}, {"x": 6}]
    for _ in range(2):
        batch = next(iter(DataLoader(Numbered(samples), batch_size=2)))
        assert batch["index"].tolist() == [0, 1]
    assert samples == [{"x": 5}, {"x": 6}]


def test_parts_of_a_dataset_keep_their_numbers_when_they_are_read_in_bulk():
    """torch reads several samples of a Subset at once."""
    part = Subset(TensorDataset(torch.arange(20)), [3, 5, 7, 11])
    (batch,) = DataLoader(Numbered(part), batch_size=4)
    assert [each.tolist() for each in batch] == [[3, 5, 7, 11], [0, 1, 2, 3]]
    (batch,) = DataLoader(Subset(Numbered(part.dataset), part.indices), batch_size=4)
    assert [each.tolist() for each in batch] == [[3, 5, 7, 11], [3, 5, 7, 11]]


def test_other_names_are_those_of_the_dataset_beneath():
    beneath = TensorDataset(torch.zeros(2))
    beneath.classes = ["cat", "dog"]
    dataset = Numbered(beneath)
    assert dataset.classes == ["cat", "dog"]
    for value in (str, int):  # which the dataset did not have before
        dataset.transform = value
        assert beneath.transform is dataset.transform is value
    assert copy.deepcopy(dataset).transform is int
    assert pickle.loads(pickle.dumps(dataset)).classes == ["cat", "dog"]
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = dataset.no_such_name


def test_what_cannot_be_numbered_is_refused():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(())

    with pytest.raises(TypeError, match="give its samples by number, got Stream"):
        Numbered(Stream())
    with pytest.raises(TypeError, match="must be tuples, lists or mappings, got int"):
        Numbered([3])[0]
    with pytest.raises(ValueError, match='have an "index" already'):
        Numbered([{"index": 1}])[0]


# AugmentedLoader


def loader_of(count=12, batch_size=4, **settings):
    dataset = Numbered(TensorDataset(images_of(count), torch.arange(count) % 10))
    return DataLoader(dataset, batch_size=batch_size, **settings)


def test_it_gives_what_a_loop_by_hand_gives():
    loader = AugmentedLoader(loader_of(), DivAug(network()), Fields(index=2))
    by_hand = DivAug(network())
    seen = 0
    for (images, labels), (originals, truth, index) in zip(loader, loader_of(), strict=True):
        expected, repeated = by_hand(originals, truth, index=index)
        assert torch.equal(images, expected)
        assert torch.equal(labels, repeated)
        seen += 1
    assert seen == len(loader) == 3


@pytest.mark.parametrize("num_workers", [0, 2])
def test_candidates_are_scored_with_the_weights_of_that_step(num_workers):
    """Whatever the workers have read ahead."""
    model = network()
    weights = []
    model.register_forward_hook(lambda *_: weights.append(float(model[1].bias[0])))
    loader = AugmentedLoader(loader_of(num_workers=num_workers), DivAug(model), Fields(index=2))
    with torch.no_grad():
        for step, _ in enumerate(loader):
            model[1].bias[0] = step + 1.0  # what an optimizer does between two batches
    assert weights[1:] == [1.0, 2.0]


def test_epochs_are_counted_or_set():
    augment = Shown()
    sampler = DistributedSampler(TensorDataset(torch.zeros(12)), num_replicas=2, rank=0)
    loader = AugmentedLoader(loader_of(sampler=sampler), augment, Fields(index=2))
    for _ in range(2):
        list(loader)
    loader.set_epoch(7)
    assert sampler.epoch == 7
    list(loader)
    list(loader)
    assert [epoch for *_, epoch in augment.calls] == [0, 0, 1, 1, 7, 7, 8, 8]


@pytest.mark.parametrize("sampled", [None, "alone", "by batches"])
def test_a_warning_where_each_process_reads_everything(monkeypatch, recwarn, sampled):
    two = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "get_world_size": lambda: 2,
    }
    monkeypatch.setattr(divaug.adapters.loader, "dist", SimpleNamespace(**two))
    dataset = TensorDataset(images_of(4), torch.zeros(4))
    sampler = DistributedSampler(dataset, num_replicas=2, rank=0)
    samplers = {
        None: {},
        "alone": {"sampler": sampler},
        "by batches": {"batch_sampler": BatchSampler(sampler, 2, drop_last=False)},
    }
    list(AugmentedLoader(DataLoader(dataset, **samplers[sampled]), Views()))
    warned = [each for each in recwarn if "each process reads all" in str(each.message)]
    assert len(warned) == (0 if sampled else 1)


def test_two_passes_at_once_and_an_epoch_set_within_one():
    augment = Shown()
    loader = AugmentedLoader(loader_of(), augment, Fields(index=2))
    first, second = iter(loader), iter(loader)
    next(first), next(second), next(first)
    loader.set_epoch(9)
    next(second)
    assert [epoch for *_, epoch in augment.calls] == [0, 1, 0, 1]


class Batches(BatchSampler):
    def set_epoch(self, epoch):
        self.epoch = epoch


def test_epochs_reach_the_loader_beneath_its_dataset_and_its_samplers():
    dataset = TensorDataset(torch.zeros(12))
    dataset.set_epoch = lambda epoch: setattr(dataset, "epoch", epoch)
    sampler = DistributedSampler(dataset, num_replicas=2, rank=0)
    batches = Batches(sampler, 4, drop_last=False)
    for epoch, settings in enumerate(
        ({"sampler": sampler}, {"batch_sampler": batches}, {"sampler": sampler, "batch_size": None})
    ):
        AugmentedLoader(DataLoader(dataset, **settings), Shown()).set_epoch(epoch + 3)
        assert sampler.epoch == dataset.epoch == epoch + 3
    assert batches.epoch == 4
    beneath = SimpleNamespace(set_epoch=lambda epoch: setattr(beneath, "epoch", epoch))
    AugmentedLoader(beneath, Shown()).set_epoch(6)
    assert beneath.epoch == 6


def test_a_schedule_follows_the_epochs():
    """PBA refuses to draw without one."""
    loader = AugmentedLoader(
        loader_of(), Views(policies.PBA("cifar10", total_epochs=5)), Fields(index=2)
    )
    assert len(list(loader)) == 3


def test_the_augmentation_runs_in_the_given_context():
    inside = []
    model = network()
    model.register_forward_hook(lambda *_: inside.append(torch.is_autocast_enabled("cpu")))
    beneath = loader_of(count=4)

    def autocast():
        return torch.autocast("cpu", torch.bfloat16)

    for _ in AugmentedLoader(beneath, DivAug(model), Fields(index=2), context=autocast):
        assert not torch.is_autocast_enabled("cpu")  # the loop itself is outside
    for _ in AugmentedLoader(beneath, DivAug(model), Fields(index=2)):
        pass
    assert inside == [True, False]


def test_batches_go_to_the_device_of_the_model_or_to_the_given_one():
    augment = Shown()
    batch = {"x": images_of(2), "y": torch.zeros(2), "more": [torch.zeros(2)], "name": "n"}
    batch["pair"] = Pair(torch.zeros(2), torch.zeros(2))
    batch["packed"] = nn.utils.rnn.pack_sequence([torch.zeros(2), torch.zeros(1)])
    fields = Fields("x", "y", keep=("packed",))
    (out,) = AugmentedLoader([batch], augment, fields, device="meta")
    assert augment.calls[0][0].device.type == augment.calls[0][1].device.type == "meta"
    assert out["more"][0].device.type == out["packed"].data.device.type == "meta"
    assert {part.device.type for part in out["pair"]} == {"meta"}
    assert batch["x"].device.type == "cpu"

    class Looking(DivAug):
        def __call__(self, images, labels=None, *, index=None, epoch=None):
            return images, labels

    def devices(model, **settings):
        augment = Looking(model, num_selected=1)
        (out,) = AugmentedLoader([(images_of(2), torch.zeros(2))], augment, **settings)
        return {part.device.type for part in out}

    assert devices(network().to("meta")) == devices(network(), device="meta") == {"meta"}
    assert devices(nn.Flatten()) == {"cpu"}  # no parameters: the batch stays on its device


def test_wrong_arguments_are_refused_when_they_are_given():
    with pytest.raises(TypeError, match=r"`fields` must be a Fields.*got \(0, 1\)"):
        AugmentedLoader([], Shown(), (0, 1))
    for augment in (None, network()):
        with pytest.raises(TypeError, match="`augment` must be an augmenter"):
            AugmentedLoader([], augment)


def test_other_names_are_those_of_the_loader_beneath():
    beneath = loader_of(drop_last=True)
    loader = AugmentedLoader(beneath, Shown())
    for name in ("dataset", "sampler", "batch_sampler", "batch_size", "collate_fn", "num_workers"):
        assert getattr(loader, name) is getattr(beneath, name)
    assert loader.drop_last is True
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = loader.no_such_name
    with pytest.raises(TypeError, match="len"):
        len(AugmentedLoader(iter([]), Shown()))


def test_it_can_be_copied_and_pickled():
    loader = AugmentedLoader([(images_of(2), torch.zeros(2))], Views(policies.Uniform()))
    next(iter(loader))
    others = copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))
    expected = next(iter(loader))[0]  # of the second step, which the copies are at, too
    for other in others:
        assert torch.equal(next(iter(other))[0], expected)
        assert other.epoch == 2


@pytest.mark.parametrize("framework", ["lightning", "transformers", "timm"])
def test_a_missing_framework_is_named_with_its_remedy(framework, monkeypatch):
    monkeypatch.delitem(sys.modules, f"divaug.adapters.{framework}", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match=rf"needs {framework}, .*'\.\[{framework}\]'"):
        importlib.import_module(f"divaug.adapters.{framework}")
