"""A policy of your own: what it draws is used as it is, and refused where it cannot be."""

import re
from dataclasses import dataclass, replace
from functools import cached_property

import pytest
import torch

import divaug
from divaug import DivAug, expand, policies
from divaug.operations import OPERATIONS
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


class Undecorated(policies.RandAugment):
    """Keeps a setting where neither equality nor JSON looks."""

    def __init__(self, n, m, allowed):
        super().__init__(n, m)
        object.__setattr__(self, "allowed", allowed)

    def rows(self):
        return [row for row in super().rows() if row[0].operation in self.allowed]


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


def test_settings_that_are_no_fields_are_refused():
    """They would draw what another of the class was asked for, and be lost in JSON."""
    policy = Undecorated(2, 9, ("Rotate",))
    assert policy == Undecorated(2, 9, ("Color",))  # which is why
    said = r"'allowed' outside of its fields.*make Undecorated a dataclass\(frozen=True\)"
    for refused in (lambda: expand(IMAGES, 2, policy), policy.to_json):
        with pytest.raises(TypeError, match=said):
            refused()


@pytest.mark.parametrize("kind", [OtherRows, Derived])
def test_what_follows_from_the_fields_may_be_kept(kind):
    policy = kind(2, 9)
    for _ in range(2):  # the second time the value is there
        _, drawn_now = expand(IMAGES, 2, policy)
        assert policies.from_json(policy.to_json()) == policy
    if kind is OtherRows:
        assert set(drawn_now.operation.flatten().tolist()) == {ROTATE}
