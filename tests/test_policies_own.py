"""A policy of your own: what it draws is used as it is, and refused where it cannot be."""

import re
from dataclasses import dataclass, replace
from functools import cached_property

import pytest
import torch

import divaug
from divaug import DivAug, expand, policies
from divaug.operations import OPERATIONS
from divaug.operations.magnitude import NO_MAGNITUDE, Range
from divaug.policies import Entry
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


# --- plans -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Copied(policies.TablePolicy):
    """RandAugment as somebody might copy it into a file of their own."""

    n: int = 2

    @policies.settled
    def rows(self):
        return policies.RandAugment(self.n, 9).rows()


@dataclass(frozen=True)
class Stretched(policies.Policy):
    """Another policy's plan."""

    num_operations = 2
    needs_epoch = True

    def plan(self, height, width, device):
        return policies.PBA("svhn", 10).plan(height, width, device)


@dataclass(frozen=True)
class OwnDraw(policies.RandAugment):
    """Its own draw, although it inherits a plan."""

    def draw(self, stream, candidates, *_given):
        return drawn((len(stream.index), candidates, 2))


class Mixin:
    def draw(self, stream, candidates, *_given):
        return drawn((len(stream.index), candidates, 2))


class Mixed(Mixin, policies.PBA):
    """The same by inheritance."""


@pytest.mark.parametrize(
    ("own", "ours", "epoch"),
    [(Copied(), policies.RandAugment(2, 9), None), (Stretched(), policies.PBA("svhn", 10), 7)],
)
def test_a_plan_is_drawn_from_whoever_offers_it(own, ours, epoch):
    found, subpolicies = expand(IMAGES, 8, own, epoch=epoch)
    expected, drawn_by_ours = expand(IMAGES, 8, ours, epoch=epoch)
    assert torch.equal(found, expected)
    assert subpolicies.equal(drawn_by_ours)
    here = (12, 12, torch.device("cpu"))
    assert type(own.plan(*here)) is type(ours.plan(*here))


@pytest.mark.parametrize("policy", [OwnDraw(2, 9), Mixed()])
def test_a_draw_of_its_own_comes_before_a_plan_that_is_inherited(policy):
    assert policy.plan(12, 12, torch.device("cpu")) is None
    _, found = expand(IMAGES, 3, policy, epoch=150)
    assert (found.operation == ROTATE).all()


def test_a_policy_needs_a_plan_or_a_draw():
    class Neither(policies.Policy):
        num_operations = 1

    with pytest.raises(TypeError, match="Neither must define `plan` or `draw`"):
        expand(IMAGES, 2, Neither())


# --- tables ------------------------------------------------------------------------------------


RIGHT = Range(90.0, 0.0, "test")
NOTHING = Entry(None, NO_MAGNITUDE)


def own_table(*entries, **settings):
    """A policy with these rows."""

    class Own(policies.TablePolicy):
        def rows(self):
            return [[entry] for entry in entries]

    for name, value in settings.items():
        setattr(Own, name, value)
    return Own()


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


@dataclass(frozen=True)
class Allowing(policies.RandAugment):
    """Keeps a setting where neither equality nor JSON looks."""

    def __init__(self, n, m, allowed):
        super().__init__(n, m)
        object.__setattr__(self, "allowed", allowed)

    def rows(self):
        return [row for row in super().rows() if row[0].operation in self.allowed]


def test_policies_that_compare_equal_draw_what_each_was_asked_for():
    """Tables are kept by what the rows say, not by what equality looks at."""
    for names in (("Rotate",), ("Color",), ("Rotate", "Color")):
        policy = Allowing(2, 9, names)
        assert policy == Allowing(2, 9, ("Invert",))  # which is the trap
        for _ in range(2):
            _, found = expand(IMAGES, 32, policy)
            assert {OPERATIONS[i] for i in found.operation.unique().tolist()} == set(names)


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


@pytest.mark.parametrize(
    "make", [Copied, policies.FastAutoAugment, lambda: own_table(Entry(None, NO_MAGNITUDE))]
)
def test_equal_rows_share_one_table(make):
    """A policy made anew in every step would be copied to the device in every step."""
    tables = {id(make().table(32, 32, torch.device("cpu"))) for _ in range(3)}
    assert len(tables) == 1


# --- text --------------------------------------------------------------------------------------


class Controlled(policies.Policy):
    """Draws what a network says, which is no setting."""

    num_operations = 1

    def __init__(self, controller):
        object.__setattr__(self, "controller", controller)

    def draw(self, stream, candidates, *_given):
        angle = float(self.controller.bias.detach()[0])
        return drawn((len(stream.index), candidates, 1), argument=angle)


@pytest.mark.parametrize(
    ("policy", "name"),
    [(Allowing(2, 9, ("Color",)), "allowed"), (Controlled(torch.nn.Linear(2, 2)), "controller")],
)
def test_text_that_would_not_give_a_policy_back_is_refused(policy, name):
    expand(IMAGES, 2, policy)
    kind = type(policy).__name__
    message = rf"keeps '{name}' outside of its fields.*make {kind} a dataclass\(frozen=True\)"
    with pytest.raises(TypeError, match=message):
        policy.to_json()


@dataclass(frozen=True)
class Derived(policies.RandAugment):
    """Keeps what follows from its fields."""

    levels: tuple = (1, 2)

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "_doubled", torch.full((3,), 2 * self.m))

    @cached_property
    def kept(self):
        return [row for row in super().rows() if row[0].operation == "Rotate"]

    def rows(self):
        return self.kept


def test_what_follows_from_the_fields_may_be_kept():
    policy = Derived(2, 9, levels=(3, (4, 5)))
    for _ in range(2):  # the second time the value is there
        _, found = expand(IMAGES, 2, policy)
        assert policies.from_json(policy.to_json()) == policy
    assert (found.operation == ROTATE).all()


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


def test_names_by_which_json_finds_a_policy():
    """One that is taken draws all the same; one that is defined anew replaces the old one."""
    mine = type("RandAugment", (policies.TrivialAugment,), {"__module__": "mine"})
    expand(IMAGES, 2, mine())
    with pytest.raises(TypeError, match="named 'RandAugment' exists already; give yours another"):
        mine().to_json()
    assert policies.from_json(policies.RandAugment(3, 4).to_json()) == policies.RandAugment(3, 4)
    for _ in range(2):  # as when a cell of a notebook is run again
        again = type("Again", (policies.TrivialAugment,), {"__module__": "mine"})
    assert type(policies.from_json(again().to_json())) is again
