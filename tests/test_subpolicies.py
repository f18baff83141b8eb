"""Sub-policies as data: indexing, joining, writing, reading, printing, and replaying."""

import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from divaug import SubPolicies, expand, follow, policies
from divaug.default_augmentation import cifar10, imagenet
from divaug.operations import OPERATIONS, TABLE, Operation
from divaug.operations.magnitude import Range
from divaug.replaying import replay as replay_drawn
from tests.reference import samples

IMAGES = samples.images(3, 12, 10, 6)
MIRROR = Operation("Mirror", lambda images, _argument, _center, _partner: images.flip(3))
WITH_MIRROR = policies.Uniform(extra=((MIRROR, Range(0.0, 0.0, "none")),))


def drawn(policy=None, candidates=5, seed=1):
    return expand(IMAGES, candidates, policy, seed=seed)[1]


def replay(subpolicies):
    return replay_drawn(IMAGES, subpolicies)


def test_dtypes_and_shapes_are_the_documented_ones():
    these = drawn()
    assert these.shape == (6, 5, 2)
    assert len(these) == 6
    assert these.device == torch.device("cpu")
    dtypes = {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in these.tensors().items()}
    assert dtypes == {
        "operation": (torch.int32, (6, 5, 2)),
        "applied": (torch.bool, (6, 5, 2)),
        "argument": (torch.float32, (6, 5, 2)),
        "center": (torch.int32, (6, 5, 2, 2)),
        "partner": (torch.int64, (6, 5, 2)),
        "probability": (torch.float32, (6, 5, 2)),
        "magnitude": (torch.float32, (6, 5, 2)),
    }


KEYS = {
    "image": 2,
    "from behind": -1,
    "slice": slice(1, 4),
    "rows": torch.tensor([5, 0, 0]),
    "mask": torch.tensor([True, False, True, False, False, True]),
    "one candidate": (3, 2),
    "a candidate of all": (slice(None), 1),
    "pairs": (torch.tensor([0, 1]), torch.tensor([4, 2])),
    "mask of candidates": torch.arange(30).view(6, 5) % 7 == 0,
}


@pytest.mark.parametrize("name", KEYS)
def test_indexing_takes_the_same_part_of_every_tensor(name):
    these, key = drawn(), KEYS[name]
    part = these[key]
    for field, tensor in these.tensors().items():
        assert torch.equal(getattr(part, field), tensor[key])
    assert part.operations is these.operations


@pytest.mark.parametrize("key", [(0, 0, 0), ..., (None, 0), (slice(None), slice(None), 1)])
def test_the_operations_of_a_sub_policy_stay_together(key):
    with pytest.raises(IndexError, match="leading axes"):
        drawn()[key]


def test_a_mask_over_the_operations_is_refused():
    with pytest.raises(IndexError, match="leading axes"):
        drawn()[torch.ones(6, 5, 2, dtype=torch.bool)]
    with pytest.raises(IndexError, match="leading axes"):
        drawn()[np.ones((6, 5, 2), dtype=bool)]
    with pytest.raises(IndexError, match="leading axes"):
        drawn()[[[[True, False]] * 5] * 6]


def test_arrays_and_lists_index_as_tensors_do():
    these, which = drawn(), torch.tensor([4, 0, 4])
    assert these[which.tolist()].equal(these[which])
    assert these[which.numpy(), 2].equal(these[which, 2])
    assert these[np.array([4, 0, 4], dtype=np.uint8)].equal(these[which])  # no mask
    assert these[np.arange(6)[::-1]].equal(these[torch.arange(5, -1, -1)])
    assert these[[]].shape == (0, 5, 2)
    with pytest.raises(IndexError, match="whole numbers or masks, got"):
        these[[0.5]]
    kept = np.arange(30).reshape(6, 5) % 4 == 0
    assert these[kept].equal(these[torch.from_numpy(kept)])


def test_flatten_makes_one_leading_axis():
    these = drawn()
    assert these.flatten().shape == (30, 2)
    assert torch.equal(these.flatten().center[7], these.center[1, 2])
    assert these[0].flatten().shape == (5, 2)
    assert these[0, 0].flatten().shape == (1, 2)


def test_concatenating_the_parts_gives_the_whole():
    these = drawn()
    assert SubPolicies.concatenate([these[:2], these[2:3], these[3:]]).equal(these)
    assert SubPolicies.concatenate(these[i : i + 1] for i in range(6)).equal(these)


def test_parts_of_different_tables_cannot_be_joined():
    with pytest.raises(ValueError, match="2 different tables"):
        SubPolicies.concatenate([drawn(), drawn(WITH_MIRROR)])


def test_joining_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        SubPolicies.concatenate([])


def test_to_moves_every_tensor():
    moved = drawn().to("meta")
    assert {tensor.device.type for tensor in moved.tensors().values()} == {"meta"}
    assert drawn().to("cpu").equal(drawn())


def test_equal_sees_any_difference():
    these = drawn()
    assert these.equal(drawn())
    assert not these.equal(drawn(seed=2))
    assert not these.equal(these[:3])
    for name, tensor in these.tensors().items():
        changed = tensor.clone()
        changed.view(-1)[-1] = ~changed.view(-1)[-1] if tensor.dtype == torch.bool else 77
        other = SubPolicies(**(these.tensors() | {name: changed}), operations=these.operations)
        assert not these.equal(other), name
    assert not these.equal(SubPolicies(**these.tensors(), operations=drawn(WITH_MIRROR).operations))


POLICIES = {
    "universal": policies.Uniform(),
    "three operations": policies.RandAugment(3, 5),
    "one operation": policies.TrivialAugment(),
    "no operation": policies.Identity(),
}


@pytest.mark.parametrize("name", POLICIES)
def test_json_gives_back_every_bit(name):
    these = drawn(POLICIES[name])
    read = SubPolicies.from_json(these.to_json())
    assert read.equal(these)
    assert read.operations == these.operations
    assert torch.equal(replay(read), replay(these))


@pytest.mark.parametrize("name", POLICIES)
def test_a_file_gives_back_every_bit(name, tmp_path):
    these = drawn(POLICIES[name])
    these.save(tmp_path / "drawn.pt")
    read = SubPolicies.load(tmp_path / "drawn.pt")
    assert read.equal(these)
    assert torch.equal(replay(read), expand(IMAGES, 5, POLICIES[name], seed=1)[0])


@pytest.mark.parametrize("default", [cifar10(), imagenet(9)], ids=["padded", "crops"])
def test_a_placement_is_kept_indexed_and_joined(default, tmp_path):
    views, these = expand(IMAGES, 3, None, default, seed=2)
    these.save(tmp_path / "drawn.pt")
    for read in (SubPolicies.from_json(these.to_json()), SubPolicies.load(tmp_path / "drawn.pt")):
        assert read.equal(these)
        assert read.placement.default == default
    parts = [these[[0]], these[1:]]
    again = SubPolicies.concatenate(parts)
    assert again.equal(these)
    assert torch.equal(replay_drawn(IMAGES, again, finished=True), views)
    assert torch.equal(replay_drawn(IMAGES, again), expand(IMAGES, 3, seed=2)[0])
    _, bare = expand(IMAGES, 3, seed=2)
    assert not bare.equal(these)
    with pytest.raises(ValueError, match="hold no default augmentation; leave out `finished`"):
        replay_drawn(IMAGES, bare, finished=True)
    with pytest.raises(ValueError, match="drawn with one default augmentation"):
        SubPolicies.concatenate([these, bare])


def test_a_placement_that_was_edited():
    text = expand(IMAGES, 3, None, cifar10())[1].to_json()
    for edit, message in (
        (lambda one: one.pop("default"), "must hold a default augmentation"),
        (lambda one: one["default"].update(padding=-1), "`padding` must be in"),
        (lambda one: one.pop("flip"), "`flip` of `placement` must be torch.bool"),
    ):
        content = json.loads(text)
        edit(content["placement"])
        with pytest.raises(ValueError, match=message):
            SubPolicies.from_json(json.dumps(content))


def test_an_operation_of_your_own_is_found_again(tmp_path):
    these = drawn(WITH_MIRROR)
    assert SubPolicies.from_json(these.to_json(), extra=[MIRROR]).operations[-1] is MIRROR
    these.save(tmp_path / "drawn.pt")
    assert SubPolicies.load(tmp_path / "drawn.pt", extra=[MIRROR]).equal(these)
    with pytest.raises(ValueError, match="unknown operation 'Mirror'"):
        SubPolicies.from_json(these.to_json())


def test_describe_says_what_happens():
    rotate, invert = OPERATIONS.index("Rotate"), OPERATIONS.index("Invert")
    these = SubPolicies(
        operation=torch.tensor([[rotate, invert], [-1, -1]], dtype=torch.int32),
        applied=torch.tensor([[True, False], [False, False]]),
        argument=torch.tensor([[-12.5, 0.0], [0.0, 0.0]]),
        center=torch.zeros(2, 2, 2, dtype=torch.int32),
        partner=torch.zeros(2, 2, dtype=torch.int64),
        probability=torch.tensor([[0.75, 0.5], [0.0, 0.0]]),
        magnitude=torch.tensor([[0.25, 0.125], [0.0, 0.0]]),
        operations=tuple(TABLE.values()),
    )  # fmt: skip
    first = "Rotate(-12.5) p=0.75 m=0.25 -> Invert p=0.50 m=0.12 skipped"
    assert these.describe() == [first, "nothing"]
    assert these[0].describe() == [first]
    assert drawn(policies.Identity())[:1].describe() == ["nothing"] * 5


def changed(**new):
    content = json.loads(drawn().to_json())
    return json.dumps({**content, **new})


def without(name):
    content = json.loads(drawn().to_json())
    del content[name]
    return json.dumps(content)


def test_wrong_text_is_refused_with_what_is_wrong():
    for text in ("[]", "{}", changed(format="divaug.policy/1")):
        with pytest.raises(ValueError, match="format"):
            SubPolicies.from_json(text)
    for name in ("applied", "center", "operations", "shape"):
        with pytest.raises(ValueError, match=f"lack `{name}`"):
            SubPolicies.from_json(without(name))
    with pytest.raises(ValueError, match=r"unknown operation 'Rotato'.*Rotate"):
        SubPolicies.from_json(changed(operations=["Rotato"]))
    with pytest.raises(ValueError, match="`operation` must lie"):
        SubPolicies.from_json(changed(operations=["Rotate"]))
    outside = torch.full((6, 5, 2), 1.5).tolist()
    with pytest.raises(ValueError, match=r"`probability` must lie in \[0, 1\]"):
        SubPolicies.from_json(changed(probability=outside))
    with pytest.raises(ValueError, match=r"`magnitude`.*shape"):
        SubPolicies.from_json(changed(magnitude=[[[0.5]]]))
    with pytest.raises(ValueError, match="`argument`"):
        SubPolicies.from_json(changed(argument="strong"))
    with pytest.raises(ValueError, match="must be JSON text"):
        SubPolicies.from_json("{")
    with pytest.raises(ValueError, match="`shape` must be a list of whole numbers, got 3"):
        SubPolicies.from_json(changed(shape=3))
    with pytest.raises(ValueError, match="`operations` must be a list of names, got 'Rotate'"):
        SubPolicies.from_json(changed(operations="Rotate"))
    with pytest.raises(ValueError, match=r"unknown operation \{\}"):
        SubPolicies.from_json(changed(operations=[{}]))
    for name, value, kind in (
        ("operation", 1.7, "whole numbers"),
        ("partner", 0.5, "whole numbers"),
        ("applied", 0.5, "true or false"),
        ("applied", 7, "true or false"),
    ):
        with pytest.raises(ValueError, match=f"`{name}` must hold {kind}, got {float(value)}"):
            SubPolicies.from_json(changed(**{name: [[[value] * 2] * 5] * 6}))


class InWorker(torch.utils.data.Dataset):
    """Draws in a worker, as the augmenters' own message advises."""

    def __len__(self):
        return 2

    def __getitem__(self, number):
        index = torch.arange(3) + 3 * number
        return expand(IMAGES[:3], 4, policies.Uniform("uda"), index=index)


def test_they_come_back_from_other_processes_and_serve_as_before():
    loader = torch.utils.data.DataLoader(InWorker(), batch_size=None, num_workers=1, timeout=60)
    for (candidates, subpolicies), expected in zip(loader, InWorker(), strict=False):
        assert torch.equal(candidates, expected[0])
        assert subpolicies.equal(expected[1])
        assert subpolicies.operations == expected[1].operations
        assert torch.equal(replay_drawn(IMAGES[:3], subpolicies), candidates)
    assert pickle.loads(pickle.dumps(drawn())).operations == tuple(TABLE.values())


def test_wrong_files_are_refused_with_what_is_wrong(tmp_path):
    path = tmp_path / "drawn.pt"
    good = drawn().tensors() | {"operations": list(OPERATIONS)}
    torch.save({n: t for n, t in good.items() if n != "partner"}, path)
    with pytest.raises(ValueError, match="`partner` is missing"):
        SubPolicies.load(path)
    torch.save(good | {"argument": good["argument"].double()}, path)
    with pytest.raises(ValueError, match=r"`argument` must be torch\.float32"):
        SubPolicies.load(path)
    torch.save(good | {"center": good["center"][..., 0]}, path)
    with pytest.raises(ValueError, match="`center` must have shape"):
        SubPolicies.load(path)
    torch.save(good | {"applied": good["applied"].tolist()}, path)
    with pytest.raises(ValueError, match=r"`applied` must be a torch\.bool tensor, got list"):
        SubPolicies.load(path)
    torch.save([1, 2], path)
    with pytest.raises(ValueError, match="does not hold sub-policies"):
        SubPolicies.load(path)


@pytest.mark.parametrize("part", ["text", "empty", "cut short"])
def test_files_that_hold_nothing_of_ours_are_refused(part, tmp_path):
    path = tmp_path / "drawn.pt"
    drawn().save(path)
    whole = path.read_bytes()
    contents = {"text": drawn().to_json().encode(), "empty": b"", "cut short": whole[:500]}
    path.write_bytes(contents[part])
    with pytest.raises(ValueError, match=r"drawn\.pt does not hold sub-policies.*from_json"):
        SubPolicies.load(path)
    with pytest.raises(FileNotFoundError):
        SubPolicies.load(tmp_path / "none.pt")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("argument", math.nan, r"`argument` of Rotate must lie in \[-360, 360\] degrees, got nan"),
        ("argument", 1e9, "`argument` of Rotate must lie in"),
        ("partner", -1, "`partner` must not be negative, got -1"),
        ("center", -500, r"`center` must not be negative, got \[-500, -500\]"),
    ],
)
def test_values_that_no_draw_could_give_are_refused_on_reading(field, value, message):
    policy = policies.Single("Rotate", 1.0)
    images = torch.zeros(1, 3, 8, 8, dtype=torch.uint8)
    _, drawn = expand(images, 2, policy)
    content = json.loads(drawn.to_json())
    spoilt = torch.tensor(content[field], dtype=torch.float64).fill_(value).tolist()
    cast = spoilt if field == "argument" else json.loads(json.dumps(spoilt).replace(".0", ""))
    with pytest.raises(ValueError, match=message):
        SubPolicies.from_json(json.dumps(content | {field: cast}))


def test_part_of_a_bit_is_refused_on_reading():
    images = torch.zeros(1, 3, 8, 8, dtype=torch.uint8)
    content = json.loads(expand(images, 2, policies.Single("Posterize", 1.0))[1].to_json())
    content["argument"] = [[[4.5], [4.0]]]
    with pytest.raises(ValueError, match=r"Posterize must be a whole number of bits, got 4\.5"):
        SubPolicies.from_json(json.dumps(content))


@pytest.mark.parametrize(
    ("operation", "change", "message"),
    [
        ("Posterize", {"argument": 9.0}, r"Posterize must lie in \[1, 8\] bits, got 9"),
        ("Posterize", {"argument": 0.0}, r"Posterize must lie in \[1, 8\] bits, got 0"),
        ("Posterize", {"argument": 4.5}, r"must be a whole number of bits, got 4\.5"),
        ("Rotate", {"argument": math.nan}, r"`argument` of Rotate must lie in .*got nan"),
        ("Rotate", {"operation": -2}, r"`operation` must lie in \[-1, 15\]"),
        ("Rotate", {"operation": 99}, r"`operation` must lie in \[-1, 15\]"),
        ("Rotate", {"probability": 1.5}, r"`probability` must lie in \[0, 1\]"),
        ("Rotate", {"probability": math.nan}, r"`probability` must lie in \[0, 1\]"),
        ("Rotate", {"partner": -1}, "`partner` must not be negative, got -1"),
        ("Rotate", {"center": -1}, r"`center` must not be negative, got \[-1, -1\]"),
    ],
)
def test_what_no_draw_could_give_is_not_replayed(operation, change, message):
    _, these = expand(IMAGES, 2, policies.Single(operation, 1.0))
    edited = {name: getattr(these, name).clone() for name in change}
    for name, value in change.items():
        edited[name][-1, -1] = value
    for use in (replay_drawn, lambda images, broken: follow(images[:, 0], broken, fill=0)):
        with pytest.raises(ValueError, match=message):
            use(IMAGES, replace(these, **edited))


def test_tensors_that_do_not_fit_together_are_refused():
    _, these = expand(IMAGES, 2, policies.Single("Rotate", 1.0))
    torn = replace(these, argument=these.argument[:, :1])
    for use in (replay_drawn, lambda images, broken: follow(images[:, 0], broken, fill=0)):
        with pytest.raises(ValueError, match=r"`argument` must have shape .*, got "):
            use(IMAGES, torn)


def test_replaying_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one for each image, got E=0"):
        replay_drawn(IMAGES, drawn()[:, :0])


def test_a_part_is_saved_without_the_rest(tmp_path):
    many = expand(samples.images(3, 8, 8, 200), 8)[1]
    for name, some in (("part", many[3:4]), ("whole", many)):
        some.save(tmp_path / name)
        assert SubPolicies.load(tmp_path / name).equal(some)
    assert (tmp_path / "part").stat().st_size * 20 < (tmp_path / "whole").stat().st_size


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_described(name):
    _, these = expand(IMAGES, 2, policies.Single(name, 1.0))
    assert all(line.startswith(name) for line in these.describe())


def test_json_that_was_read_already_is_refused():
    assert SubPolicies.from_json(drawn().to_json().encode()).equal(drawn())
    with pytest.raises(TypeError, match="JSON text, got dict; give what `to_json` returned"):
        SubPolicies.from_json(json.loads(drawn().to_json()))


def test_where_operations_of_a_kind_are_applied():
    these = drawn(candidates=40)
    for name in OPERATIONS:
        expected = these.applied & (these.operation == these.names.index(name))
        assert torch.equal(these.applying(lambda this, name=name: this.name == name), expected)
    nothing = expand(IMAGES, 2, policies.Identity())[1]
    nothing = replace(nothing, applied=torch.ones_like(nothing.applied))
    assert bool((nothing.operation == -1).all())
    assert not bool(nothing.applying(lambda _: True).any())
    without = replace(nothing, operations=())
    assert not bool(without.applying(lambda _: True).any())
    assert torch.equal(replay(without)[:, 0], IMAGES)


def test_a_clone_has_memory_of_its_own():
    these = drawn()
    own = these.clone()
    these.argument.fill_(0)
    assert own.equal(drawn())
