"""Adapters that need torch alone: fields of a batch, numbered samples, the augmented loader."""

import copy
import importlib
import pickle
import sys
import warnings
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
from divaug import DivAug, Views, policies
from divaug.adapters import AugmentedLoader, Fields, Numbered
from divaug.default_augmentation import cifar10


def images_of(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, 3, 16, 16), dtype=torch.uint8, generator=generator)


def network(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))


Pair = namedtuple("Pair", "first second")


class Shown:
    """An augmenter that notes what it was shown and returns every image twice."""

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
        "path": ("d", "e", "f"),  # what torch collates strings of tuples to
        "y": torch.tensor([4, 5, 6]),
        "x": images_of(3),
        "classes": ["cat", "dog"],
        "scale": torch.tensor(0.5),
        "more": {"id": torch.tensor([7, 8, 9]), "boxes": [torch.arange(3), torch.zeros(2)]},
        "weights": torch.ones(3),
        "array": np.arange(3.0),
        "number": np.array(7),
        "pair": Pair(torch.arange(3), "of all"),
    }
    before = dict(batch)
    out = Fields("x", "y", keep=("weights",)).augment(Shown(), batch)
    assert list(out) == list(batch)
    assert out["name"] == ["a", "a", "b", "b", "c", "c"]
    assert out["path"] == ("d", "d", "e", "e", "f", "f")
    assert out["classes"] == ["cat", "dog"]
    assert out["scale"].shape == ()
    assert out["more"]["id"].tolist() == [7, 7, 8, 8, 9, 9]
    assert [len(part) for part in out["more"]["boxes"]] == [6, 2]
    three = [torch.arange(3)] * 3  # as many columns as images
    assert [len(part) for part in Fields().augment(Shown(), [images_of(3), *three])] == [6] * 4
    nested = Fields().augment(Shown(), (images_of(3), torch.zeros(3), three))[2]
    assert [len(part) for part in nested] == [6, 6, 6]
    assert out["weights"] is batch["weights"]
    assert out["array"].tolist() == [0, 0, 1, 1, 2, 2]
    assert out["number"] == 7
    assert type(out["pair"]) is Pair
    assert (out["pair"].first.tolist(), out["pair"].second) == ([0, 0, 1, 1, 2, 2], "of all")
    assert all(batch[name] is before[name] for name in before)  # the loader's batch is not changed


@pytest.mark.parametrize("rows", [(1, 4, 2), (1, 3, 2), (3, 3, 2), (0, 0, 0)])
def test_tensors_of_variable_length_belong_to_their_images(rows):
    """Boxes, for instance: also where one image happens to have as many as there are images."""
    boxes = [torch.full((n, 4), float(i)) for i, n in enumerate(rows)]
    found = Fields().augment(Shown(), (images_of(3), torch.zeros(3), boxes))[2]
    assert [id(one) for one in found] == [id(one) for one in boxes for _ in range(2)]
    pair = Fields().augment(Shown(), (images_of(2), torch.zeros(2), [torch.zeros(2, 5), None]))[2]
    assert (pair[0].shape, pair[1]) == ((4, 5), None)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_texts_that_were_collated_are_repeated_column_by_column(count):
    """Two texts a sample: also in the last batch, which may have as many images as texts."""
    samples = [
        (np.zeros((3, 4, 4), np.uint8), i, (f"path{i}", f"caption{i}")) for i in range(count)
    ]
    found = Fields().augment(Shown(), default_collate(samples))[2]
    twice = [i for i in range(count) for _ in range(2)]
    assert found == [tuple(f"{what}{i}" for i in twice) for what in ("path", "caption")]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("leaf", [str, lambda i: torch.tensor(float(i))])
def test_what_was_collated_two_levels_deep_is_repeated_column_by_column(count, leaf):
    """Two pairs a sample, in a batch of as many images, too."""

    def nested(i):
        return ((leaf(i), leaf(i + 10)), (leaf(i + 20), leaf(i + 30)))

    samples = [(np.zeros((3, 4, 4), np.uint8), i, nested(i)) for i in range(count)]
    found = Fields().augment(Shown(), default_collate(samples))[2]
    twice = [samples[i] for i in range(count) for _ in range(2)]
    for ours, expected in zip(found, default_collate(twice)[2], strict=True):
        for one, other in zip(ours, expected, strict=True):
            assert list(one) == list(other)


@pytest.mark.parametrize(
    "entry",
    [
        lambda n: (torch.zeros(n, 2), torch.ones(n)),  # as many key points as images
        lambda _: (torch.zeros(1, 4), torch.ones(1)),  # one box, in a batch of one
    ],
)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_tuples_of_tensors_belong_to_their_images(entry, count):
    """Collating would have made lists of them."""
    entries = [entry(count) for _ in range(count)]
    found = Fields().augment(Shown(), (images_of(count), torch.zeros(count), entries))[2]
    assert len(found) == 2 * count
    assert all(one is entries[i // 2] for i, one in enumerate(found))


def test_texts_that_are_no_columns_belong_to_their_images():
    """Captions, for instance, of which every image has its own number."""
    captions = [("a", "b"), ("c",)]
    batch = (images_of(2), torch.zeros(2), captions)
    assert Fields().augment(Shown(), batch)[2] == [captions[0]] * 2 + [captions[1]] * 2
    batch = (images_of(2), torch.zeros(2), [("a", "b"), ("c", "d")])
    assert Fields(each=(2,)).augment(Shown(), batch)[2] == [("a", "b")] * 2 + [("c", "d")] * 2
    mixed = Fields().augment(Shown(), (images_of(2), torch.zeros(2), [torch.zeros(2), ()]))[2]
    assert (len(mixed[0]), mixed[1]) == (4, ())


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("kind", [tuple, list])
def test_entries_that_are_named_are_repeated_whole_whatever_they_hold(count, kind):
    """Also where each of them has as many rows as there are images."""
    boxes = kind(torch.full((count, 4), float(i)) for i in range(count))
    found = Fields(each=(2,)).augment(Shown(), (images_of(count), torch.zeros(count), boxes))[2]
    assert type(found) is kind
    assert [id(one) for one in found] == [id(one) for one in boxes for _ in range(2)]


@pytest.mark.parametrize(
    ("part", "got"),
    [
        ([1, 2], "2 entries"),
        (torch.zeros(3), "a Tensor"),
        ("abc", "a str"),
        (namedtuple("Three", "a b c")(1, 2, 3), "a Three"),
    ],
)
def test_entries_that_are_named_must_be_there(part, got):
    with pytest.raises(ValueError, match=f"`each` names 2.* each of 3 images, got {got}"):
        Fields(each=[2]).augment(Shown(), (images_of(3), torch.zeros(3), part))
    with pytest.raises(ValueError, match="`each` must name fields of the batch"):
        Fields(each=(4,)).augment(Shown(), (images_of(3), torch.zeros(3), part))


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
        ({"images": None}, "`images` must be a position or a key, got None"),
        ({"images": True}, "`images` must be a position or a key"),
        ({"labels": 1.5}, "`labels` must be a position or a key"),
        ({"index": -1}, "`index` must be 0 or more, got -1"),
        ({"images": "x"}, "all positions or all keys"),
        ({"index": 0}, "must be different ones"),
        ({"keep": (1,)}, "must be different ones"),
        ({"keep": (None,)}, r"`keep\[0\]` must be a position or a key"),
        ({"keep": 2}, r"`keep` must be a tuple.*write keep=\(2,\)"),
        ({"images": "x", "labels": "y", "keep": "mask"}, r"got 'mask'.*write keep=\('mask',\)"),
        ({"masks": (2,)}, r'`masks` must say of each field.*\{"mask": 255\}, got \(2,\)'),
        ({"masks": {2: "255"}}, r"`masks\[2\]` must be a number, such as 255, got '255'"),
        ({"masks": {2: None}}, "must be a number"),
        ({"masks": {1: 255}}, "must be different ones"),
        ({"masks": {2: 255}, "keep": (2,)}, "must be different ones"),
        ({"masks": {"mask": 255}}, "all positions or all keys"),
        ({"each": 2}, r"`each` must be a tuple.*write each=\(2,\)"),
        ({"each": (2,), "keep": (2,)}, "must be different ones"),
    ],
)
def test_fields_that_cannot_be(fields, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Fields(**fields)


def test_fields_are_values():
    """Equal ones are equal, can be looked up, and do not change with what they were made of."""
    fills = {2: 255}
    fields = Fields(masks=fills, keep=[3])
    fills[4] = 0
    assert fields == Fields(masks={2: 255}, keep=(3,))
    assert fields != Fields(masks={2: 0}, keep=(3,))
    assert {fields: "found"}[Fields(masks={2: 255}, keep=(3,))] == "found"


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
    with pytest.raises(ValueError, match=r"no labels at 1, it has \[0\]"):
        Fields().augment(Shown(), (images_of(1),))
    with pytest.raises(ValueError, match=r"no index at 2.*Numbered\(dataset\)"):
        Fields(index=2).augment(Shown(), (images_of(1), torch.zeros(1)))
    with pytest.raises(ValueError, match=r"`keep` must name fields.*\[0, 1\], got \(5,\)"):
        Fields(keep=(5,)).augment(Shown(), (images_of(1), torch.zeros(1)))
    with pytest.raises(ValueError, match=r"`masks` must name fields.*\[0, 1\], got \(5,\)"):
        Fields(masks={5: 0}).augment(Shown(), (images_of(1), torch.zeros(1)))


def test_numbers_that_were_left_as_a_list():
    augment = Shown()
    Fields(index=2).augment(augment, (images_of(2), torch.zeros(2), [4, 9]))
    assert augment.calls[0][2].tolist() == [4, 9]


def test_batches_of_other_kinds_are_refused():
    pair = namedtuple("Pair", "x y")
    for batch in (images_of(2), pair(images_of(2), torch.zeros(2)), 5):
        with pytest.raises(TypeError, match="must be a tuple, a list or a mapping"):
            Fields().augment(Shown(), batch)


# Numbered


def test_numbers_go_through_a_loader_whatever_its_order():
    dataset = Numbered(TensorDataset(torch.arange(50) * 10, torch.zeros(50)))
    for values, _, numbers in DataLoader(dataset, batch_size=7, shuffle=True):
        assert torch.equal(values, numbers * 10)
    assert len(dataset) == 50


def test_samples_that_are_mappings_get_a_key():
    batch = next(iter(DataLoader(Numbered([{"x": 5}, {"x": 6}]), batch_size=2)))
    assert batch["index"].tolist() == [0, 1]


def test_samples_themselves_are_not_changed():
    samples = [{"x": 5}]
    for _ in range(2):
        assert Numbered(samples)[0] == {"x": 5, "index": 0}
    assert samples == [{"x": 5}]


def test_one_sample_has_one_number():
    dataset = Numbered([(5,), (6,), (7,)])
    assert dataset[-1] == dataset[2] == dataset[torch.tensor(2)] == (7, 2)
    for number in (3, -4):
        with pytest.raises(IndexError, match=f"there are 3 samples, got number {number}"):
            dataset[number]
    with pytest.raises(TypeError, match=r"one by one, got slice\(0, 2"):
        dataset[0:2]


def test_parts_of_a_dataset_keep_their_numbers_when_they_are_read_in_bulk():
    """torch asks a Subset for several samples at once."""
    part = Subset(TensorDataset(torch.arange(20)), [3, 5, 7, 11])
    (batch,) = DataLoader(Numbered(part), batch_size=4)
    assert [each.tolist() for each in batch] == [[3, 5, 7, 11], [0, 1, 2, 3]]
    (batch,) = DataLoader(Subset(Numbered(part.dataset), part.indices), batch_size=4)
    assert [each.tolist() for each in batch] == [[3, 5, 7, 11], [3, 5, 7, 11]]


def test_other_names_are_those_of_the_dataset_beneath():
    beneath = TensorDataset(torch.zeros(2))
    beneath.classes, beneath.transform = ["cat", "dog"], None
    dataset = Numbered(beneath)
    assert dataset.classes == ["cat", "dog"]
    dataset.transform = str
    assert beneath.transform is dataset.transform is str
    dataset.target_transform = int
    assert beneath.target_transform is int
    assert set(vars(dataset)) == {"dataset"}

    class Cached(Numbered):
        limit = 3

        def __init__(self, dataset):
            self.before = 1
            super().__init__(dataset)
            self.cache = {}
            self.limit = 4

    cached = Cached([(1,)])
    assert (cached.before, cached.cache, cached.limit) == (1, {}, 4)
    assert copy.deepcopy(dataset).transform is str
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = dataset.no_such_name
    assert len(pickle.loads(pickle.dumps(Numbered([(1,), (2,)])))) == 2


def test_what_cannot_be_numbered_is_refused():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(())

    with pytest.raises(TypeError, match="give its samples by number, got Stream"):
        Numbered(Stream())
    with pytest.raises(TypeError, match="by number, got set"):
        Numbered({1, 2})
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
def test_the_model_is_asked_with_the_weights_of_that_step(num_workers):
    """Whatever the workers have read ahead."""
    model = network()
    weights = []
    model.register_forward_hook(lambda *_: weights.append(float(model[1].bias[0])))
    loader = AugmentedLoader(loader_of(num_workers=num_workers), DivAug(model), Fields(index=2))
    with torch.no_grad():
        for step, _ in enumerate(loader):
            model[1].bias[0] = step + 1.0  # what an optimizer does between two batches
    assert weights[1:] == [1.0, 2.0]


def test_epochs_are_counted_or_said():
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
def test_processes_that_each_read_everything_are_told(monkeypatch, recwarn, sampled):
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
    warnings.simplefilter("always")
    list(AugmentedLoader(DataLoader(dataset, **samplers[sampled]), Views()))
    told = [str(each.message) for each in recwarn if "each process reads all" in str(each.message)]
    assert len(told) == (0 if sampled else 1)
    assert all("unless they are a part of its own" in each for each in told)


def test_a_pass_that_was_left_early_counts_as_an_epoch():
    augment = Shown()
    loader = AugmentedLoader(loader_of(), augment, Fields(index=2))
    next(iter(loader))
    next(iter(loader))
    assert [epoch for *_, epoch in augment.calls] == [0, 1]


def test_two_passes_at_once_and_an_epoch_said_within_one():
    augment = Shown()
    loader = AugmentedLoader(loader_of(), augment, Fields(index=2))
    first, second = iter(loader), iter(loader)
    next(first), next(second), next(first)
    loader.set_epoch(9)
    next(second)
    assert [epoch for *_, epoch in augment.calls] == [0, 1, 0, 1]


def test_a_loader_beneath_that_listens_to_epochs_is_told():
    class Listening(list):
        epoch = None

        def set_epoch(self, epoch):
            self.epoch = epoch

    beneath = Listening()
    beneath.sampler = Listening()  # which the loader tells itself, if it wants to
    AugmentedLoader(beneath, Shown()).set_epoch(3)
    assert beneath.epoch == 3
    assert beneath.sampler.epoch is None

    class Batches(BatchSampler):
        epoch = None

        def set_epoch(self, epoch):
            self.epoch = epoch

    batches = Batches(range(12), 4, drop_last=False)
    dataset = TensorDataset(torch.zeros(12))
    AugmentedLoader(DataLoader(dataset, batch_sampler=batches), Shown()).set_epoch(5)
    assert batches.epoch == 5
    sampler = DistributedSampler(dataset, num_replicas=2, rank=0)
    within = BatchSampler(sampler, 4, drop_last=False)
    AugmentedLoader(DataLoader(dataset, batch_sampler=within), Shown()).set_epoch(6)
    assert sampler.epoch == 6

    class Shard(BatchSampler):
        def __init__(self, batch_sampler):
            self.batch_sampler = batch_sampler

        def __len__(self):
            raise TypeError("no len")

    AugmentedLoader(SimpleNamespace(batch_sampler=Shard(within)), Shown()).set_epoch(7)
    assert sampler.epoch == 7
    one_by_one = DataLoader(dataset, sampler=sampler, batch_size=None)
    AugmentedLoader(one_by_one, Shown()).set_epoch(8)
    assert sampler.epoch == 8
    AugmentedLoader([], Shown()).set_epoch(3)  # one that does not listen


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
    batch["pair"] = Pair(torch.zeros(2), torch.zeros(3))
    batch["packed"] = nn.utils.rnn.pack_sequence([torch.zeros(2), torch.zeros(1)])
    fields = Fields("x", "y", keep=("packed",))
    (out,) = AugmentedLoader([batch], augment, fields, device="meta")
    assert augment.calls[0][0].device.type == augment.calls[0][1].device.type == "meta"
    assert out["more"][0].device.type == "meta"
    assert {part.device.type for part in out["pair"]} == {"meta"}
    assert out["packed"].data.device.type == "meta"
    with pytest.raises(TypeError, match=r"packed sequence cannot be repeated.*Fields\(keep="):
        Fields("x", "y").augment(augment, batch)
    assert batch["x"].device.type == "cpu"

    class Looking(DivAug):
        def __call__(self, images, labels=None, *, index=None, epoch=None):
            return images, labels

    (out,) = AugmentedLoader(
        [(images_of(2), torch.zeros(2))], Looking(network().to("meta"), num_selected=1)
    )
    assert {part.device.type for part in out} == {"meta"}
    (out,) = AugmentedLoader(
        [(images_of(2), torch.zeros(2))], Looking(network(), num_selected=1), device="meta"
    )
    assert {part.device.type for part in out} == {"meta"}
    without = nn.Flatten()  # no parameters, so no device: the batch stays where it is
    (out,) = AugmentedLoader([(images_of(2), torch.zeros(2))], Looking(without, num_selected=1))
    assert {part.device.type for part in out} == {"cpu"}


def test_wrong_arguments_are_refused_when_they_are_given():
    with pytest.raises(TypeError, match=r"`fields` must be a Fields.*got \(0, 1\)"):
        AugmentedLoader([], Shown(), (0, 1))
    for augment in (None, network()):
        with pytest.raises(TypeError, match="`augment` must be an augmenter"):
            AugmentedLoader([], augment)
    for context in (None, torch.autocast("cpu")):
        with pytest.raises(TypeError, match=r"`context` must make a context.*`lambda:`"):
            AugmentedLoader([], Shown(), context=context)
    with pytest.raises(TypeError, match=r"must have a method `follow\(masks, fill=\.\.\.\)`"):
        AugmentedLoader([], Shown(), Fields(masks={2: 255}))


def test_what_scripts_ask_of_a_loader():
    beneath = loader_of()
    loader = AugmentedLoader(beneath, Shown())
    assert loader.dataset is beneath.dataset
    assert loader.sampler is beneath.sampler
    assert loader.batch_size == 4
    # Tools that make another loader of one would lose the augmentation: they find too little.
    assert not hasattr(loader, "batch_sampler")
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
    with pytest.raises(ImportError, match=rf"needs {framework}, .*'divaug\[{framework}\]'"):
        importlib.import_module(f"divaug.adapters.{framework}")
