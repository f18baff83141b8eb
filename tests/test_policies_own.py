"""A policy of your own: what it draws is used as it is, and refused where it cannot be."""

import gc
import re
import weakref
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
import torch

import divaug
from divaug import DivAug, expand, policies
from divaug.operations import OPERATIONS, Operation
from divaug.operations.magnitude import Range
from divaug.policies.table import Entry
from tests.reference import samples
from tests.reference.small_models import network

IMAGES = samples.images(3, 12, 12, 4)
ROTATE, POSTERIZE = OPERATIONS.index("Rotate"), OPERATIONS.index("Posterize")


def drawn(shape, operation=ROTATE, argument=90.0, partner=0):
    return divaug.SubPolicies(
        operation=torch.full(shape, operation, dtype=torch.int32),
        applied=torch.ones(shape, dtype=torch.bool),
        argument=torch.full(shape, argument),
        center=torch.zeros(*shape, 2, dtype=torch.int32),
        partner=torch.full(shape, partner, dtype=torch.int64),
        probability=torch.ones(shape),
        magnitude=torch.ones(shape),
    )


@dataclass(frozen=True)
class Own(policies.Policy):
    """Draws whatever a test wants, by a function of [B,E,K]."""

    what: object
    num_operations = 1

    def draw(self, stream, candidates, *_given):
        return self.what((len(stream.index), candidates, self.num_operations))


def test_what_it_draws_is_applied():
    candidates, subpolicies = expand(IMAGES, 3, Own(drawn))
    turned = divaug.operations.apply(IMAGES, "Rotate", 90.0)
    assert torch.equal(candidates, turned[:, None].expand_as(candidates))
    assert subpolicies.shape == (4, 3, 1)


def fewer(shape):
    return drawn((shape[0], shape[1] - 1, shape[2]))


def other(name, value):
    return lambda shape: replace(drawn(shape), **{name: value(shape)})


WRONG = {
    "nothing": (lambda _: None, TypeError, "SubPolicies, got NoneType"),
    "fewer candidates": (fewer, ValueError, "[B,E,K] = (4, 3, 1), got (4, 2, 1)"),
    "one axis too many": (lambda s: drawn((*s, 1)), ValueError, "got (4, 3, 1, 1)"),
    "another device": (
        lambda s: drawn(s).to("meta"), ValueError,
        "all must be on cpu as `stream.index` is, got {'meta'}",
    ),
    "half of it elsewhere": (
        other("partner", lambda s: torch.zeros(s, dtype=torch.int64, device="meta")),
        ValueError, "got {'meta'}",
    ),
    "another dtype": (
        other("operation", lambda s: torch.full(s, ROTATE)), ValueError,
        "`operation` must be torch.int32, got torch.int64",
    ),
    "another shape": (
        other("center", lambda s: torch.zeros(s, dtype=torch.int32)), ValueError,
        "`center` must have shape (4, 3, 1, 2)",
    ),
    "no operation": (lambda s: drawn(s, len(OPERATIONS)), ValueError, "`operation` must lie in"),
    "no argument": (lambda s: drawn(s, argument=float("nan")), ValueError, "`argument` of Rotate"),
    "no such bits": (lambda s: drawn(s, POSTERIZE, 99.0), ValueError, "`argument` of Posterize"),
    "no such partner": (
        lambda s: drawn(s, partner=len(IMAGES)), ValueError,
        "`partner` lies in [4, 4], and the pool has 4 images; draw below `partners.count`",
    ),
    "no tensor": (other("argument", lambda _: [1.0]), ValueError, "`argument` must be a"),
    "none where one must be": (other("operation", lambda _: None), ValueError, "got NoneType"),
    "names of operations": (
        other("operations", lambda _: ("Rotate",)), ValueError, "must hold Operations"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_applied_is_refused_by_the_name_of_the_policy(case):
    what, error, message = WRONG[case]
    with pytest.raises(error, match=r"Own\.draw must return .*" + re.escape(message)):
        expand(IMAGES, 3, Own(what))
    with pytest.raises(error, match=r"Own\.draw"):
        DivAug(network(), 3, 2, policy=Own(what))(IMAGES)


class Allowing:
    """Keeps a setting where neither equality nor JSON looks."""

    def __init__(self, n, m, allowed):
        super().__init__(n, m)
        object.__setattr__(self, "allowed", allowed)

    def rows(self):
        return [row for row in super().rows() if row[0].operation in self.allowed]


class Undecorated(Allowing, policies.RandAugment):
    """In its __dict__."""


class WithDefault(Undecorated):
    """Where a class has the attribute too."""

    allowed = ("Rotate",)

    def __init__(self, n, m, allowed=("Rotate",)):
        super().__init__(n, m, allowed)


class Slotted(Undecorated):
    """Where no __dict__ has it."""

    __slots__ = ("allowed",)


@dataclass(frozen=True)
class OwnInit(Allowing, policies.RandAugment):
    """A dataclass that is not made of its fields."""

    __init__ = Allowing.__init__


class OtherRows(policies.RandAugment):
    """Has no setting of its own, and a value that is made once."""

    @cached_property
    def kept(self):
        return [row for row in super().rows() if row[0].operation == "Rotate"]

    def rows(self):
        return self.kept


@dataclass(frozen=True)
class Derived(policies.RandAugment):
    """Keeps what follows from its fields."""

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "_doubled", 2 * self.m)


class Lazy(policies.RandAugment):
    """Keeps by hand what was made once."""

    def rows(self):
        if "_rows" not in vars(self):
            rows = [row for row in super().rows() if row[0].operation == "Rotate"]
            object.__setattr__(self, "_rows", rows)
        return self._rows


class Further(Derived):
    """Adds nothing."""


@dataclass(frozen=True)
class Weighed(policies.RandAugment):
    """Keeps a tensor that follows from its fields."""

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "_weights", torch.full((3,), float(self.m)))


class Controlled(policies.Policy):
    """Draws what a network says, which is no setting."""

    num_operations = 1

    def __init__(self, controller):
        object.__setattr__(self, "controller", controller)

    def draw(self, stream, candidates, *_given):
        angle = float(self.controller.bias.detach()[0])
        return drawn((len(stream.index), candidates, 1), argument=angle)


OUTSIDE = [Undecorated, WithDefault, Slotted, OwnInit]


@pytest.mark.parametrize("kind", OUTSIDE)
def test_policies_that_compare_equal_draw_what_each_was_asked_for(kind):
    """Tables are kept by what the rows say, not by what equality looks at."""
    for names in (("Rotate",), ("Color",), ("Rotate", "Color")):
        policy = kind(2, 9, names)
        assert policy == kind(2, 9, ("Invert",))  # which is the trap
        for _ in range(2):
            _, found = expand(IMAGES, 32, policy)
            drawn_names = {OPERATIONS[i] for i in found.operation.unique().tolist()}
            assert drawn_names == set(names)


@pytest.mark.parametrize("kind", OUTSIDE)
def test_text_that_would_not_give_a_policy_back_is_refused(kind):
    said = rf"outside of its fields.*make {kind.__name__} a dataclass\(frozen=True\)"
    with pytest.raises(TypeError, match=said):
        kind(2, 9, ("Color",)).to_json()


def test_a_policy_that_asks_a_network_draws_and_is_not_written():
    policy = Controlled(torch.nn.Linear(2, 2))
    _, found = expand(IMAGES, 3, policy)
    assert (found.argument == policy.controller.bias[0]).all()
    with pytest.raises(TypeError, match=r"has settings outside of its fields.*controller"):
        policy.to_json()


@dataclass(frozen=True)
class Switched(policies.Policy):
    """One policy until an epoch, then the others in turn."""

    needs_epoch = True
    first: policies.Policy
    then: tuple[policies.Policy, ...]
    switch: int = 5
    num_operations = 2

    def draw(self, stream, candidates, size, partners, epoch=None):
        later = self.then[epoch % len(self.then)]
        policy = self.first if epoch < self.switch else later
        return policy.draw(stream, candidates, size, partners, epoch)


def test_policies_within_a_policy_are_written_with_it():
    policy = Switched(policies.Uniform("released"), (policies.RandAugment(2, 9), policies.PBA()))
    again = policies.from_json(policy.to_json())
    assert again == policy
    for epoch in (0, 6, 7):
        _, found = expand(IMAGES, 4, again, epoch=epoch)
        _, expected = expand(IMAGES, 4, policy, epoch=epoch)
        assert all(map(torch.equal, found.tensors().values(), expected.tensors().values()))
    text = policy.to_json().replace('"RandAugment"', '"RandAugmnet"')
    with pytest.raises(ValueError, match="Did you mean 'RandAugment'"):
        policies.from_json(text)


def own_table(*entries, **settings):
    """A policy of one's own with these rows, and whatever else."""

    class Own(policies.TablePolicy):
        def rows(self):
            return [[entry] for entry in entries]

    for name, value in settings.items():
        setattr(Own, name, value)
    return Own()


RIGHT = Range(90.0, 0.0, "test")


def test_a_policy_that_changes_draws_what_it_says_now():
    """As one does whose probabilities are learned."""

    class Learned(policies.TablePolicy):
        def rows(self):
            return [[Entry("Rotate", RIGHT, (self.p, self.p))]]

    policy = Learned()
    for p in (0.0, 1.0, 0.25):
        object.__setattr__(policy, "p", p)
        _, found = expand(IMAGES, 64, policy)
        assert (found.probability == p).all()
        assert bool(found.applied.any()) == (p > 0)
    with pytest.raises(TypeError, match="keeps 'p' outside of its fields"):
        policy.to_json()


def test_policies_are_not_kept_alive():
    class Asking(policies.RandAugment):
        def rows(self):
            return [row for row in super().rows() if self.network is not None]

    gone = []
    for _ in range(5):
        policy, network = Asking(2, 9), torch.nn.Linear(2, 2)
        object.__setattr__(policy, "network", network)
        expand(IMAGES, 2, policy)
        gone.append(weakref.ref(network))
        del policy, network
    gc.collect()
    assert [each() for each in gone] == [None] * 5


def test_rows_may_hold_lists():
    free = Entry("Rotate", RIGHT, [0.5, 0.5], [0.0, 1.0])
    _, found = expand(IMAGES, 8, own_table(free, extra_operations=lambda _: []))
    assert (found.probability == 0.5).all()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (lambda: Entry("Rotate", RIGHT, (0.5,)), r"`probability` of an entry must be \(lowest, h"),
        (lambda: Entry("Rotate", RIGHT, (0.5, 1.2)), r"must lie in \[0, 1\], the lower end first"),
        (lambda: Entry("Rotate", RIGHT, (0.5, 0.2)), r"must lie in \[0, 1\], the lower end first"),
        (lambda: Entry("Rotat", RIGHT), "Did you mean 'Rotate'"),
        (lambda: Entry("Posterize", Range(0, 0, "t")), r"range of Posterize must stay in \[1, 8\]"),
        (lambda: Entry("Posterize", Range(8, -8, "t"), magnitude=(0, 1)), "Posterize must stay in"),
        (lambda: Entry("Rotate", Range(0, 360, "t"), magnitude=(0, 2)), "range of Rotate must st"),
    ],
)
def test_entries_that_no_operation_accepts_are_refused_when_they_are_drawn(entry, message):
    """On any device: later only a CPU would notice."""
    with pytest.raises(ValueError, match=message):
        expand(IMAGES, 2, own_table(entry()))


def test_an_entry_is_asked_for_its_own_magnitudes_only():
    entry = Entry("Rotate", Range(0, 720, "test"), magnitude=(0.1, 0.25))
    _, found = expand(IMAGES, 64, own_table(entry))
    assert 72 <= float(found.argument.min()) <= float(found.argument.max()) <= 180


def test_operations_must_be_hashable():
    @dataclass
    class Shift:
        by: int = 3

        def __call__(self, images, *_):
            return images + self.by

    with pytest.raises(TypeError, match=r"`transform` of Shift must be hashable.*got a Shift"):
        Operation("Shift", Shift())


@dataclass(frozen=True)
class Listing(policies.RandAugment):
    """Fields that JSON holds otherwise, and what follows from them."""

    levels: Any = (1, 2)
    options: Any = None

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "_t", [torch.full((2,), float(v)) for v in self.levels])
        object.__setattr__(self, "_a", {"a": np.arange(len(self.levels))})


@pytest.mark.parametrize(
    ("levels", "options"),
    [([1, 2], None), ((3, 4, 5), {"a": (1, 2), "b": {"policy": "x"}}), ((), [True, "x"])],
)
def test_fields_of_any_kind_that_json_has_are_written(levels, options):
    again = policies.from_json(Listing(levels=levels, options=options).to_json())
    assert again.levels == tuple(levels)
    assert again.options in (options, {"a": [1, 2], "b": {"policy": "x"}}, (True, "x"))


@pytest.mark.parametrize(
    ("kept", "again"),
    [
        (torch.zeros(2), torch.zeros(3)),
        (torch.zeros(2), torch.ones(2)),
        (torch.zeros(2), np.zeros(2)),
        ([torch.zeros(2)], [torch.zeros(2), torch.zeros(2)]),
        ({"a": np.zeros(2)}, {"a": np.ones(2)}),
        ({"a": 1}, {"b": 1}),
    ],
)
def test_what_is_kept_beside_the_fields_must_come_back(kept, again):
    values = iter([kept, again])

    class Keeping(policies.SharedLevel):
        def __init__(self, n, probability):
            super().__init__(n, probability)
            object.__setattr__(self, "kept", next(values))

    with pytest.raises(TypeError, match="keeps 'kept' outside of its fields"):
        Keeping(2, 0.5).to_json()


def test_equal_rows_share_one_table():
    """A policy made anew in every step would be copied to the device in every step."""
    device, kinds = torch.device("cpu"), (Further, policies.FastAutoAugment)
    for kind in kinds:
        settings = () if kind is policies.FastAutoAugment else (2, 9)
        tables = {id(kind(*settings).table(32, 32, device)) for _ in range(3)}
        assert len(tables) == 1


@pytest.mark.parametrize("kind", [OtherRows, Lazy, Derived, Further, Weighed])
def test_what_follows_from_the_fields_may_be_kept(kind):
    policy = kind(2, 9)
    for _ in range(2):  # the second time the value is there
        _, drawn_now = expand(IMAGES, 2, policy)
        assert policies.from_json(policy.to_json()) == policy
    if kind in (OtherRows, Lazy):
        assert set(drawn_now.operation.flatten().tolist()) == {ROTATE}
