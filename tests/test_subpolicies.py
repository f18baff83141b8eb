"""Sub-policies as data: indexing, joining, writing, reading, printing, and replaying."""

import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from divaug import SubPolicies, expand, follow, policies
from divaug._expand import replay as replay_drawn
from divaug.default_augmentation import cifar10, imagenet
from divaug.operations import OPERATIONS, TABLE, Operation
from divaug.operations.magnitude import Range
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


@pytest.mark.parametrize("key", [
    (0, 0, 0), ..., (None, 0), (slice(None), slice(None), 1), np.ones((6, 5, 2), dtype=bool),
    torch.ones(6, 5, 2, dtype=torch.bool),
])  # fmt: skip
def test_the_operations_of_a_sub_policy_stay_together(key):
    with pytest.raises(IndexError, match="leading axes"):
        drawn()[key]


def test_arrays_and_lists_index_as_tensors_do():
    these, which = drawn(), torch.tensor([4, 0, 4])
    assert these[which.tolist()].equal(these[which])
    assert these[which.numpy(), 2].equal(these[which, 2])
    assert these[np.array([4, 0, 4], dtype=np.uint8)].equal(these[which])  # no mask
    assert these[np.arange(6)[::-1]].equal(these[torch.arange(5, -1, -1)])
    assert these[[]].shape == (0, 5, 2)
    with pytest.raises(IndexError, match="ints or masks, got"):
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


def test_what_cannot_be_joined():
    with pytest.raises(ValueError, match="2 different tables"):
        SubPolicies.concatenate([drawn(), drawn(WITH_MIRROR)])
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
def test_text_and_files_give_back_every_bit(name, tmp_path):
    these = drawn(POLICIES[name])
    these.save(tmp_path / "drawn.pt")
    for read in (
        SubPolicies.from_json(these.to_json()),
        SubPolicies.from_json(these.to_json().encode()),
        SubPolicies.load(tmp_path / "drawn.pt"),
    ):
        assert read.equal(these)
        assert read.operations == these.operations
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


def test_text_that_is_none():
    with pytest.raises(TypeError, match="JSON text, got dict; give what `to_json` returned"):
        SubPolicies.from_json(json.loads(drawn().to_json()))
    for text, message in (("{", "must be JSON text"), ("[]", "format"), ("{}", "format")):
        with pytest.raises(ValueError, match=message):
            SubPolicies.from_json(text)


@pytest.mark.parametrize(("name", "value", "message"), [
    ("format", "divaug.policy/1", "format"),
    ("applied", None, "lack `applied`"),
    ("shape", None, "`shape` must be a list of ints, got None"),
    ("shape", 3, "`shape` must be a list of ints, got 3"),
    ("operations", ["Rotato"], r"unknown operation 'Rotato'.*Rotate"),
    ("operations", ["Rotate"], "`operation` must lie"),
    ("operations", "Rotate", "`operations` must be a list of names, got 'Rotate'"),
    ("operations", [{}], r"unknown operation \{\}"),
    ("magnitude", [[[0.5]]], r"`magnitude`.*shape"),
    ("argument", "strong", "`argument`"),
    ("probability", 1.5, r"`probability` must lie in \[0, 1\]"),
    ("operation", 1.7, "`operation` must hold ints, got 1.7"),
    ("partner", 0.5, "`partner` must hold ints, got 0.5"),
    ("partner", -1, "`partner` must not be negative, got -1"),
    ("applied", 7, "`applied` must hold bools, got 7.0"),
    ("placement", {}, "must hold a default augmentation"),
    ("placement", {"default": {"mean": [0.5], "std": [0.5], "padding": -1}}, "`padding` must be"),
    ("placement", {"default": {"mean": [0.5], "std": [0.5]}}, "`offset` must be a .* tensor"),
])  # fmt: skip
def test_text_with_what_is_wrong(name, value, message):
    content = json.loads(drawn().to_json())
    if isinstance(value, int | float) and name != "shape":
        value = [[[value] * 2] * 5] * 6
    content[name] = value
    with pytest.raises(ValueError, match=message):
        SubPolicies.from_json(json.dumps({n: v for n, v in content.items() if v is not None}))


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


def test_files_with_what_is_wrong(tmp_path):
    path = tmp_path / "drawn.pt"
    good = drawn().tensors() | {"operations": list(OPERATIONS)}
    for content, message in (
        ({n: t for n, t in good.items() if n != "partner"}, "lack `partner`"),
        (good | {"argument": good["argument"].double()}, r"`argument` must be torch\.float32"),
        (good | {"center": good["center"][..., 0]}, "`center` must have shape"),
        (good | {"applied": [True]}, r"`applied` must be a torch\.bool tensor, got list"),
        ([1, 2], "does not hold sub-policies"),
    ):
        torch.save(content, path)
        with pytest.raises(ValueError, match=message):
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
    ("operation", "change", "message"),
    [
        ("Posterize", {"argument": 9.0}, r"Posterize must lie in \[1, 8\] bits, got 9"),
        ("Posterize", {"argument": 0.0}, r"Posterize must lie in \[1, 8\] bits, got 0"),
        ("Posterize", {"argument": 4.5}, r"must be an integer number of bits, got 4\.5"),
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
        with pytest.raises(ValueError, match=r"`argument` must have shape .*, got "):
            use(IMAGES, replace(these, argument=these.argument[:, :1]))
    with pytest.raises(ValueError, match="at least one for each image, got E=0"):
        replay_drawn(IMAGES, these[:, :0])


def test_a_part_is_saved_without_the_rest(tmp_path):
    many = expand(samples.images(3, 8, 8, 200), 8)[1]
    for name, some in (("part", many[3:4]), ("whole", many)):
        some.save(tmp_path / name)
        assert SubPolicies.load(tmp_path / name).equal(some)
    assert (tmp_path / "part").stat().st_size * 20 < (tmp_path / "whole").stat().st_size


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
