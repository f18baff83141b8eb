"""Augmenters: one kind of thing, whatever the method."""

import copy
import json
import math

import pytest
import torch
from torch import nn

import divaug
from divaug import augmenters, default_augmentation, policies
from divaug.augmenters import AUGMENTERS, Settings
from divaug.views import Views

ROTATING = [f"divaug-rotate-0.{tenths}" for tenths in range(1, 10)]
MANY = {"randaugment-xS", "trivialaugment-xS", "random", "divaug", "divaug-greedy", "divaug-exact",
        *ROTATING}  # fmt: skip


@pytest.fixture
def images():
    return torch.randint(
        0, 256, (6, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(1)
    )


def settings(**changes):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 5))
    default = default_augmentation.DefaultAugmentation(
        (0.5,) * 3, (0.25,) * 3, padding=2, flip=0.5, cutout=4
    )
    return Settings(
        **({"model": model, "default": default, "num_candidates": 4, "num_selected": 2} | changes)
    )


def test_augmenters_show_their_settings_in_one_line():
    augment = divaug.DivAug(nn.Flatten(), 6, 3, method="greedy", seed=7)
    augment.num_selected = 2  # what holds now
    assert repr(augment) == (
        "DivAug(Flatten, num_candidates=6, num_selected=2, policy=Uniform(space='paper', "
        "exclude=(), operations_per_subpolicy=2), default=None, method='greedy', seed=7)"
    )
    views = Views(policies.RandAugment(2, 5), num_views=3, seed=1)
    assert repr(views) == f"Views(policy={views.source.policy}, default=None, num_views=3, seed=1)"


class AugmentedInWorkers(torch.utils.data.Dataset):
    """What must not be: an augmenter inside of a dataset."""

    def __init__(self, augment):
        self.augment = augment

    def __len__(self):
        return 4

    def __getitem__(self, i):
        image = torch.zeros(1, 3, 16, 16, dtype=torch.uint8)
        return self.augment(image, index=torch.tensor([i]))[0]


@pytest.mark.parametrize("name", ["trivialaugment", "divaug"])
def test_an_augmenter_in_a_worker_of_a_loader_is_refused(name):
    """Its copy there would begin with the same step in every epoch."""
    dataset = AugmentedInWorkers(augmenters.build(name, settings()))
    assert len(list(torch.utils.data.DataLoader(dataset))) == 4  # in the loop's own process
    loader = torch.utils.data.DataLoader(dataset, num_workers=1, timeout=60)
    with pytest.raises(RuntimeError, match=r"in a worker of a DataLoader.*AugmentedLoader"):
        next(iter(loader))


@pytest.mark.parametrize("name", AUGMENTERS)
def test_every_augmenter_returns_its_views_image_major_with_the_labels_repeated(name, images):
    augment = augmenters.build(name, settings(dataset="cifar10", total_epochs=10))
    labels = torch.arange(6)
    x, y = augment(images, labels, index=torch.arange(6), epoch=torch.tensor(3))
    assert augment.views == (2 if name in MANY else 1)
    assert x.shape == (6 * augment.views, 3, 16, 16)
    assert x.dtype == torch.float32
    assert y.tolist() == labels.repeat_interleave(augment.views).tolist()
    soft = torch.eye(6)
    _, repeated = augment(images, soft, index=torch.arange(6), epoch=torch.tensor(3))
    assert torch.equal(repeated, soft.repeat_interleave(augment.views, 0))


@pytest.mark.parametrize("name", AUGMENTERS)
def test_a_sample_is_augmented_alike_wherever_it_stands(name, images):
    """With a pool and the samples' numbers neither batch nor place matter."""
    given = settings(pool=images, total_epochs=10)
    whole, part = (augmenters.build(name, given) for _ in range(2))
    everything, _ = whole(images, index=torch.arange(6), epoch=1)
    rows = torch.tensor([4, 1])
    some, _ = part(images[rows], index=rows, epoch=1)
    split = everything.view(6, whole.views, 3, 16, 16)
    assert torch.equal(some.view(2, whole.views, 3, 16, 16), split[rows])


@pytest.mark.parametrize("name", AUGMENTERS)
def test_restored_state_draws_what_the_uninterrupted_run_would(name, images):
    given = settings(total_epochs=10)
    first, second = (augmenters.build(name, given) for _ in range(2))
    first(images, epoch=0)
    state = first.state_dict()
    expected, _ = first(images, epoch=0)
    second.load_state_dict(state)
    found, _ = second(images, epoch=0)
    assert torch.equal(found, expected)


def test_steps_differ_and_the_same_seed_repeats_them(images):
    first, second = (augmenters.build("randaugment", settings()) for _ in range(2))
    a, b = first(images)[0], first(images)[0]
    assert not torch.equal(a, b)
    assert torch.equal(second(images)[0], a)
    other = augmenters.build("randaugment", settings(seed=1))
    assert not torch.equal(other(images)[0], a)


def test_none_is_normalisation_alone(images):
    x, _ = augmenters.build("none", settings())(images)
    torch.testing.assert_close(x, (images / 255 - 0.5) / 0.25)


def test_default_is_what_expand_gives_without_operations(images):
    given = settings()
    x, _ = augmenters.build("default", given)(images, index=torch.arange(6))
    expected, _ = divaug.expand(images, 1, policies.Identity(), given.default)
    assert torch.equal(x, expected[:, 0])
    assert not torch.equal(x, augmenters.build("none", given)(images)[0])


@pytest.mark.parametrize(("name", "probability"), [(ROTATING[0], 0.1), (ROTATING[8], 0.9)])
def test_the_case_study_draws_rotate_alone_at_its_probability(name, probability, images):
    augment = augmenters.build(name, settings())
    for _ in range(40):
        augment(images)
    record = augment.record()
    kept = 40 * 6 * 2
    assert {n for n, count in record.drawn.items() if count} == {"Rotate"}
    assert record.drawn["Rotate"] == kept
    assert record.probability["Rotate"] == pytest.approx(probability)
    # What is kept is chosen and not drawn, so its share of applied operations only lies near p.
    assert abs(record.operations["Rotate"] / kept - probability) < 0.3


def test_pba_follows_the_epoch(images):
    given = settings(total_epochs=200)
    early, late = (
        augmenters.build("pba", given)(images.repeat(8, 1, 1, 1), epoch=e)[0] for e in (0, 199)
    )
    assert not torch.equal(early, late)


def test_pba_has_no_schedule_for_imagenet():
    with pytest.raises(ValueError, match="no published schedule for ImageNet"):
        augmenters.build("pba", settings(dataset="imagenet"))


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="Did you mean 'randaugment'"):
        augmenters.build("randaugmnt", settings())


@pytest.mark.parametrize("name", ["randaugment-xS", "divaug", "random"])
def test_records_count_what_was_kept_and_reset_in_place(name, images):
    augment = augmenters.build(name, settings())
    with pytest.raises(ValueError, match="nothing was augmented"):
        augment.record()
    augment(images)
    tensors = augment.source.sums.applied
    augment(images)
    record = augment.record()
    per_view = 3 if name == "randaugment-xS" else 2
    assert record.images == 12
    kept = 12 * 2 * per_view
    # RandAugment's list holds the identity, which is no operation and not counted.
    assert sum(record.drawn.values()) <= kept
    if name != "randaugment-xS":
        assert sum(record.drawn.values()) == kept
    assert all(record.operations[o] <= record.drawn[o] for o in record.drawn)
    assert math.isnan(record.diversity_kept) == (name != "divaug")
    augment.reset_record()
    assert augment.source.sums.applied is tensors  # a captured graph still writes to these
    with pytest.raises(ValueError, match="nothing was augmented"):
        augment.record()
    augment(images)
    assert augment.record().images == 6


@pytest.mark.parametrize("name", ["randaugment-xS", "divaug"])
def test_a_record_goes_on_where_its_state_was_taken(name, images):
    """As text, into an augmenter that has done nothing yet and, in place, into one that has."""
    whole, fresh, used = (augmenters.build(name, settings()) for _ in range(3))
    assert whole.record_state() is None
    whole(images)
    state = json.loads(json.dumps(whole.record_state()))
    step = whole.state_dict()
    whole(images)
    used(images.flip(0))
    tensors = used.source.sums.applied
    for other in (fresh, used):
        other.load_state_dict(step)
        other.load_record_state(state)
        other(images)
        assert json.dumps(other.record_state()) == json.dumps(whole.record_state())
        assert str(other.record()) == str(whole.record())  # NaN is not equal to itself
    assert used.source.sums.applied is tensors
    used.load_record_state(None)
    with pytest.raises(ValueError, match="nothing was augmented"):
        used.record()
    with pytest.raises(ValueError, match="of the same operations"):
        used.load_record_state(state | {"names": [*state["names"][1:], "Mirror"]})
    with pytest.raises(ValueError, match="`diversity` of the record must hold 3 numbers, got 2"):
        fresh.load_record_state(state | {"diversity": [0.0, 0.0]})


def test_records_equal_counts_by_hand(images):
    """Views' record against the sub-policies that `expand` reports for the same draws."""
    policy = policies.Uniform()
    augment = Views(policy, settings().default, 3, seed=5)
    augment(images)
    _, drawn = divaug.expand(images, 3, policy, settings().default, seed=5)
    record = augment.record()
    for i, operation in enumerate(drawn.operations):
        here = drawn.operation == i
        assert record.drawn[operation.name] == int(here.sum())
        assert record.operations[operation.name] == int((here & drawn.applied).sum())


@pytest.mark.parametrize("views", [0, -1, True, 1.5])
def test_a_wrong_number_of_views_is_refused(views):
    with pytest.raises(ValueError, match="`num_views`"):
        Views(num_views=views)


@pytest.mark.parametrize(("name", "value"), [("default", "cifar10"), ("dtype", "float32")])
def test_wrong_settings_of_views_are_refused_at_once(name, value):
    with pytest.raises(TypeError, match=f"`{name}` must be .* got '{value}'"):
        Views(**{name: value})


def test_a_backend_that_there_is_not_is_refused_at_once():
    with pytest.raises(ValueError, match=r"`backend`.*got 'cuda'"):
        Views(backend="cuda")


def test_labels_must_be_as_many_as_images(images):
    with pytest.raises(ValueError, match="one entry per image"):
        Views()(images, torch.arange(5))


def test_a_foreign_state_is_refused():
    with pytest.raises(ValueError, match="`step` and `seed`"):
        Views().load_state_dict({"step": 1})


def test_a_state_that_is_refused_changes_nothing():
    augment = Views(seed=3)
    for bad in ({"step": 2**63, "seed": 0}, {"step": 5, "seed": "0"}):
        with pytest.raises((TypeError, ValueError)):
            augment.load_state_dict(bad)
        assert augment.state_dict() == {"step": 0, "seed": 3}
    augment.load_state_dict({"step": 2**63 - 1, "seed": 4})
    assert augment.state_dict() == {"step": 2**63 - 1, "seed": 4}


def test_a_record_of_other_operations_is_refused_also_before_the_first_call(images):
    other = Views(policies.Uniform("uda"), num_views=2)
    other(images)
    augment = Views(policies.Uniform(), num_views=2)
    augment.load_record_state(other.record_state())  # its own operations are not known yet
    with pytest.raises(ValueError, match=r"of the same operations: it has .*CropBilinear.* and"):
        augment(images)
    for bad in ({"a": 1}, ["names"], "names"):
        with pytest.raises(ValueError, match=r"must hold \['applied', 'asked', .*`record_state`"):
            Views().load_record_state(bad)


def test_a_policy_may_draw_from_other_operations_with_a_new_record(images):
    augment = Views(policies.Uniform(), num_views=2)
    augment(images)
    augment.source.policy = policies.Uniform("uda")
    with pytest.raises(ValueError, match=r"with reset_record\(\) where its policy draws from"):
        augment(images)
    augment.reset_record()
    augment(images)
    assert len(augment.record().operations) == 21
    assert sum(augment.record().drawn.values()) == 2 * 2 * len(images)
    augment.source.policy = policies.Uniform()  # what was counted since is not thrown away
    with pytest.raises(ValueError, match=r"with reset_record\(\) where its policy draws from"):
        augment(images)


def test_a_record_that_was_reset_and_saved_may_be_of_other_operations_too(images):
    saved, loaded, known = (Views(policies.Uniform(), num_views=2) for _ in range(3))
    saved(images)
    saved.reset_record()
    loaded.load_record_state(saved.record_state())
    known(images)
    known.load_record_state(saved.record_state())
    moved = copy.deepcopy(known)
    moved.source.sums = moved.source.sums.to(torch.device("cpu"))
    for augment in (loaded, known, moved):
        augment.source.policy = policies.Uniform("uda")
        augment(images)
        assert len(augment.record().operations) == 21


@pytest.mark.parametrize("name", AUGMENTERS)
def test_those_that_ask_the_model_are_named(name, images):
    one, asked = settings(dataset="cifar10", total_epochs=10), []
    one.model.register_forward_hook(lambda *_: asked.append(1))
    augmenters.build(name, one)(images, epoch=3)
    assert bool(asked) == (name in augmenters.ASKING)
