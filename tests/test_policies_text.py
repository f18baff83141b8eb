"""Policies as text and as data files: round trips, sources, and refusals."""

import json
import math
import re
from dataclasses import dataclass, replace
from importlib import resources

import pytest

from divaug import policies
from divaug.operations import OPERATIONS
from divaug.operations.magnitude import Range, Rounding, Side, read_data
from tests.test_policies import ADD, draws

ALL = [
    policies.Uniform(),
    policies.Uniform("released", ("Invert", "Cutout"), 3),
    policies.RandAugment(3, 4.5),
    policies.RandAugment(2, 9, scale=30),
    policies.TimmRandAugment("rand-m9-n3-mstd0.5"),
    policies.AutoAugment("svhn"),
    policies.FastAutoAugment("imagenet"),
    policies.PBA("svhn", 300),
    policies.PBA(),
    policies.TrivialAugment(),
    policies.SharedLevel(3, 0.75),
    policies.Single("Cutout", 0.25, "uda"),
    policies.Identity(),
    policies.Listed(((("Rotate", 0.5, 1.0), ("Invert", 0.1, 0.0)),), "released"),
]


@pytest.mark.parametrize("policy", ALL, ids=repr)
def test_json_gives_back_an_equal_policy_that_draws_the_same(policy):
    read = policies.from_json(policy.to_json())
    assert read == policy
    assert type(read) is type(policy)
    assert draws(read, 20, epoch=80).equal(draws(policy, 20, epoch=80))
    assert policy.num_operations == draws(policy, 2, epoch=80).shape[-1]


@dataclass(frozen=True)
class Tilted(policies.Uniform):
    degrees: float = 1.0


def test_json_keeps_the_settings_of_a_policy_of_your_own():
    policy = Tilted(exclude=("Rotate",), degrees=2.0)
    assert policies.from_json(policy.to_json()) == policy
    written = json.loads(policies.Uniform().to_json())["settings"]
    assert written == {"space": "paper", "exclude": [], "operations_per_subpolicy": 2}


def test_a_policy_with_operations_of_your_own_has_no_text():
    with pytest.raises(ValueError, match=r"Add.*no JSON form"):
        policies.Uniform(extra=((ADD, Range(0.0, 1.0, "test")),)).to_json()


FITS = Range(0.0, 9.0, "test")


def test_a_relative_range_is_checked_where_the_size_is_known():
    policy = policies.Uniform(extra=((ADD, Range(0.0, 0.5, "test", side=Side.WIDTH)),))
    assert draws(policy, 3, size=(32, 18)).shape == (3, 5, 2)
    with pytest.raises(ValueError, match=r"range of Add must stay in \[0, 9\].*got 0 to 16"):
        draws(policy, 3, size=(18, 32))


def policy_text(**content):
    return json.dumps({"format": "divaug.policy/1", **content})


def listed_text(*entry):
    return policy_text(policy="Listed", settings={"subpolicies": [[list(entry)]]})


WRONG_TYPES = [
    ("RandAugment", {"m": "9"}, r"`m` must be a number in \[0, 30\], got '9'"),
    ("RandAugment", {"n": True}, r"`n` must be an int in \[1, 16\], got True"),
    ("Single", {"operation": ["Rotate"]}, "unknown operation .*Rotate.*Known: ShearX"),
    ("Uniform", {"operations_per_subpolicy": "2"}, "`operations_per_subpolicy`.*got '2'"),
    ("Uniform", {"space": 3}, "unknown space 3. Known: paper"),
    ("Uniform", {"exclude": [3]}, "unknown operation in `exclude`: 3"),
    ("Uniform", {"exclude": "Rotate"}, "`exclude` must be a tuple of names, got 'Rotate'"),
    ("Uniform", {"extra": ["Rotate"]}, r"`extra` must be a tuple of pairs \(Operation, Range\)"),
    ("AutoAugment", {"dataset": 3}, "unknown dataset of AutoAugment: 3"),
    ("PBA", {"total_epochs": "x"}, "`total_epochs` must be an int of at least 1, got 'x'"),
    ("Listed", {"subpolicies": [[["Rotate", True, 0.5]]]}, "probability of Rotate.*got True"),
]
BAD = {
    "not JSON": ("Rotate 0.5", "must be JSON"),
    "no format": (json.dumps({"policy": "Uniform"}), "divaug.policy/1"),
    "no policy": (policy_text(), "unknown policy"),
    "unknown policy": (policy_text(policy="RandAugmet"), "Did you mean 'RandAugment'"),
    "the base": (policy_text(policy="TablePolicy"), "unknown policy"),
    "unknown setting": (policy_text(policy="RandAugment", settings={"N": 2}), "unknown setting"),
    "settings that are a list": (policy_text(policy="RandAugment", settings=[2, 9]), "`settings`"),
    "unknown operation": (listed_text("Rotato", 0.5, 0.5), "Did you mean 'Rotate'"),
    "probability above 1": (listed_text("Rotate", 1.2, 0.5), r"probability of Rotate.*\[0, 1\]"),
    "probability NaN": (listed_text("Rotate", float("nan"), 0.5), r"probability of Rotate"),
    "magnitude above 1": (listed_text("Rotate", 0.5, 30), r"magnitude of Rotate.*\[0, 1\]"),
    "too few numbers": (listed_text("Rotate", 0.5), "operation, probability, magnitude"),
    "no rows": (policy_text(policy="Listed", settings={"subpolicies": []}), "at least one row"),
    "a row without entries": (
        policy_text(policy="Listed", settings={"subpolicies": [[]]}), "at least one"),
    "rows that are a number": (
        policy_text(policy="Listed", settings={"subpolicies": 3}), "`subpolicies`"),
    "rows of unequal length": (
        policy_text(policy="Listed", settings={"subpolicies": [
            [["Invert", 1, 0]], [["Invert", 1, 0], ["Invert", 1, 0]]]}), "one length"),
    "an unknown space": (policy_text(policy="Uniform", settings={"space": "papers"}), "'paper'"),
    "a single beyond 1": (
        policy_text(policy="Single", settings={"probability": 2}), r"`probability`.*\[0, 1\]"),
    **{f"{kind} with {settings}": (policy_text(policy=kind, settings=settings), message)
       for kind, settings, message in WRONG_TYPES},
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_policy_file_is_refused_with_what_is_wrong(name):
    text, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        policies.from_json(text)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: policies.Uniform(exclude=("Rotato",)), "Did you mean 'Rotate'"),
    (lambda: policies.Uniform(exclude=tuple(OPERATIONS)), "at least one"),
    (lambda: policies.Uniform(operations_per_subpolicy=0), r"\[1, 16\]"),
    (lambda: policies.Uniform(extra=((replace(ADD, name="Invert"), Range(0, 0, "")),)), "own name"),
    (lambda: policies.Uniform("uda", extra=((replace(ADD, name="SamplePairing"), FITS),)),
     "'SamplePairing', which is taken"),
    (lambda: policies.Uniform(extra=((ADD, FITS), (ADD, FITS))), "'Add', which is taken.*once"),
    (lambda: policies.Uniform(extra=(ADD, FITS)), r"write \(\(operation, range\),\)"),
    (lambda: policies.Uniform(extra=((ADD, Range(0.0, 9.5, "")),)),
     r"range of Add must stay in \[0, 9\] value, got 0 to 9.5"),
    (lambda: policies.Uniform(extra=((replace(ADD, whole=True), Range(0.0, 5.0, "")),)),
     "range of Add must give integers, got 0 to 5; .*rounding=Rounding.DOWN"),
    (lambda: policies.Uniform(extra=((replace(ADD, whole=True), Range(
        0.0, 5.0, "", rounding=Rounding.DOWN, minimum=0.5)),)), "must give integers"),
    (lambda: policies.RandAugment(0, 9), "`n`"),
    (lambda: policies.RandAugment(2, 31), "`m`"),
    (lambda: policies.RandAugment(2, 9, scale=31), "`scale` must be 10.* or 30.* got 31"),
    *((lambda config=config: policies.TimmRandAugment(config), rf"`config` must be.*{config}")
      for config in ("rand-m9-tweights", "rand-m9-mmax30", "augmix-m3-w3", "rand-n2.5", 9)),
    (lambda: policies.TimmRandAugment("rand-n0"), "`n`"),
    (lambda: policies.TimmRandAugment("rand-p1.5"), "`p`"),
    (lambda: policies.SharedLevel(2, 1.5), "`probability`"),
    (lambda: policies.AutoAugment("cifar100"), "cifar10"),
    (lambda: policies.PBA("imagenet"), "cifar10, svhn"),
    (lambda: policies.PBA("svhn", 0), "total_epochs"),
    (lambda: policies.Single("SamplePairing", 0.5, "uda"), "unknown operation"),
])  # fmt: skip
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: Range("a", "b", "c"), ValueError, "`base` of a range must be a finite.*got 'a'"),
    (lambda: Range(0.0, True, "c"), ValueError, "`slope` of a range.*got True"),
    (lambda: Range(0.0, 1.0, "c", minimum=math.inf), ValueError, "`minimum` of a range.*got inf"),
    (lambda: Range(0.0, 1.0, 2.0), TypeError, r"`source` of a range must be a str, got 2\.0"),
    (lambda: Range(0.0, 1.0, "c", side="width"), TypeError, "`side`.*a Side, got 'width'"),
])  # fmt: skip
def test_ranges_that_are_none_are_refused_at_once(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_listed_rows_may_be_lists():
    rows = [[["Rotate", 0.5, 1.0], ["Invert", 0.1, 0.0]]]
    assert policies.Listed(rows) == policies.Listed(((("Rotate", 0.5, 1.0), ("Invert", 0.1, 0.0)),))
    assert draws(policies.Listed(rows), samples=3).shape == (3, 5, 2)


# --- data files --------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "count"), [
    (policies.AutoAugment("cifar10"), 25), (policies.AutoAugment("svhn"), 25),
    (policies.AutoAugment("imagenet"), 25), (policies.AutoAugment("cifar10-95"), 95),
    (policies.FastAutoAugment("cifar10"), 493), (policies.FastAutoAugment("svhn"), 497),
    (policies.FastAutoAugment("imagenet"), 498),
])  # fmt: skip
def test_published_counts(policy, count):
    rows = policy.rows()
    assert len(rows) == count
    assert all(len(row) == 2 for row in rows)


def test_known_entries_and_repeats_of_autoaugment():
    lists = read_data("autoaugment.json")["policies"]
    assert lists["cifar10"][13] == [["Brightness", 0.9, 6], ["Color", 0.2, 8]]
    absent = [i for i, row in enumerate(lists["cifar10"]) if row not in lists["cifar10-95"]]
    assert absent == [15, 16, 17, 18, 19]
    for later, earlier in ((20, 4), (21, 1), (22, 13), (23, 14), (24, 2)):
        assert lists["imagenet"][later] == lists["imagenet"][earlier]


def test_every_data_file_has_a_source():
    folder = resources.files("divaug.policies") / "data"
    names = [entry.name for entry in folder.iterdir() if entry.name.endswith(".json")]
    assert "spaces.json" in names
    for name in names:
        assert read_data(name)["source"]


def test_lists_of_others_come_with_their_licence():
    """Apache's asks for its text, and for the names of those whose work it is."""
    folder = resources.files("divaug") / "policies" / "data"
    notice = (folder / "NOTICE.txt").read_text(encoding="utf-8")
    for name in ("autoaugment.json", "fast_autoaugment.json", "pba.json"):
        repository = re.search(r"[\w-]+/[\w-]+(?= )", read_data(name)["source"])
        part = next(part for part in notice.split("\n\n") if part.startswith(name))
        assert repository is not None
        assert repository[0] in part
        assert "Copyright 201" in part
    licence = (folder / "LICENSE-Apache-2.0.txt").read_text(encoding="utf-8")
    assert "Version 2.0, January 2004" in licence
    assert licence.rstrip().endswith("END OF TERMS AND CONDITIONS")
