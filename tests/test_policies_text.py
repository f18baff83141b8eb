"""Policies as text and as data files: round trips, sources, checksums, and refusals."""

import hashlib
import io
import json
import math
import re
import subprocess
import tarfile
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import pytest
import torch

from divaug import data_files, policies
from divaug.data_files import read_data
from divaug.operations import OPERATIONS
from divaug.operations.magnitude import Range, Rounding, Side
from divaug.operations.table import Operation
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


def test_a_policy_of_your_own_does_not_take_the_name_of_one_of_ours():
    with pytest.raises(TypeError, match=r"named 'RandAugment' comes with divaug.*another name"):
        type("RandAugment", (policies.Uniform,), {"__module__": "mine"})
    assert policies.from_json(policies.RandAugment(3, 4).to_json()) == policies.RandAugment(3, 4)
    for _ in range(2):  # as when a cell of a notebook is run again
        again = type("Again", (policies.Uniform,), {"__module__": "mine"})
    assert policies.Policy.kinds.pop("Again") is again


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
    ("RandAugment", {"m": True}, "`m` must be a number.*got True"),
    ("RandAugment", {"n": True}, r"`n` must be a whole number in \[1, 16\], got True"),
    ("RandAugment", {"n": 2.0}, "`n` must be a whole number.*got 2.0"),
    ("Single", {"probability": "0.5"}, "`probability` must be a number.*got '0.5'"),
    ("Single", {"operation": ["Rotate"]}, "unknown operation .*Rotate.*Known: ShearX"),
    ("Uniform", {"operations_per_subpolicy": "2"}, "`operations_per_subpolicy`.*got '2'"),
    ("Uniform", {"operations_per_subpolicy": 2.5}, "whole number.*got 2.5"),
    ("Uniform", {"space": 3}, "unknown space 3. Known: paper"),
    ("Uniform", {"space": {}}, "unknown space {}. Known: paper"),
    ("Uniform", {"exclude": [3]}, "unknown operation in `exclude`: 3"),
    ("Uniform", {"exclude": [{}]}, "unknown operation in `exclude`: {}"),
    ("Uniform", {"exclude": "Rotate"}, "`exclude` must be a tuple of names, got 'Rotate'"),
    ("Uniform", {"exclude": None}, "`exclude` must be a tuple of names, got None"),
    ("Uniform", {"extra": ["Rotate"]}, r"`extra` must be a tuple of pairs \(Operation, Range\)"),
    ("AutoAugment", {"dataset": 3}, "unknown dataset of AutoAugment: 3"),
    ("FastAutoAugment", {"dataset": {}}, "unknown dataset of FastAutoAugment: {}"),
    ("PBA", {"dataset": 3}, "unknown dataset of PBA: 3"),
    ("PBA", {"total_epochs": "x"}, "`total_epochs` must be a whole number of at least 1, got 'x'"),
    ("PBA", {"total_epochs": 2.5}, "`total_epochs` must be a whole number"),
    ("Listed", {"subpolicies": [[["Rotate", True, 0.5]]]}, "probability of Rotate.*got True"),
    ("Listed", {"subpolicies": [[[{}, 0.5, 0.5]]]}, r"unknown operation in `subpolicies\[0\]`"),
]
BAD = {
    "not JSON": ("Rotate 0.5", "must be JSON"),
    "no object": ("[1]", "format"),
    "no format": (json.dumps({"policy": "Uniform"}), "divaug.policy/1"),
    "no policy": (policy_text(), "unknown policy"),
    "unknown policy": (policy_text(policy="RandAugmet"), "Did you mean 'RandAugment'"),
    "an unhashable policy": (policy_text(policy=["Uniform"]), "unknown policy"),
    "the base": (policy_text(policy="TablePolicy"), "unknown policy"),
    "unknown setting": (policy_text(policy="RandAugment", settings={"N": 2}), "unknown setting"),
    "settings that are a list": (policy_text(policy="RandAugment", settings=[2, 9]), "`settings`"),
    "unknown operation": (listed_text("Rotato", 0.5, 0.5), "Did you mean 'Rotate'"),
    "probability above 1": (listed_text("Rotate", 1.2, 0.5), r"probability of Rotate.*\[0, 1\]"),
    "probability below 0": (listed_text("Rotate", -0.1, 0.5), r"probability of Rotate.*\[0, 1\]"),
    "probability NaN": (listed_text("Rotate", float("nan"), 0.5), r"probability of Rotate"),
    "probability a word": (listed_text("Rotate", "often", 0.5), r"probability of Rotate"),
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
    (lambda: policies.Uniform(extra=((ADD, Range(0.0, 5.0, "", signed=True)),)), "got -5 to 5"),
    (lambda: policies.Uniform(extra=((ADD, Range(0.0, math.nan, "")),)), "`slope` of a range"),
    (lambda: policies.Uniform(extra=((replace(ADD, whole=True), Range(0.0, 5.0, "")),)),
     "range of Add must give whole numbers, got one from 0 to 5 .*rounding=Rounding.DOWN"),
    (lambda: policies.Uniform(extra=((replace(ADD, whole=True), Range(
        0.0, 5.0, "", rounding=Rounding.DOWN, minimum=0.5)),)), "must give whole numbers"),
    (lambda: policies.RandAugment(0, 9), "`n`"),
    (lambda: policies.RandAugment(2, 31), "`m`"),
    (lambda: policies.RandAugment(2, 9, scale=31), "`scale` must be 10.* or 30.* got 31"),
    *((lambda config=config: policies.TimmRandAugment(config), rf"`config` must be.*{config}")
      for config in ("rand-m9-tweights", "rand-m9-mmax30", "augmix-m3-w3", "rand-n2.5", 9)),
    (lambda: policies.TimmRandAugment("rand-n0"), "`n`"),
    (lambda: policies.TimmRandAugment("rand-p1.5"), "`p`"),
    (lambda: policies.SharedLevel(0), "`n`"),
    (lambda: policies.SharedLevel(2, 1.5), "`probability`"),
    (lambda: policies.RandAugment(2, float("nan")), "`m`"),
    (lambda: policies.AutoAugment("cifar100"), "cifar10"),
    (lambda: policies.FastAutoAugment("mnist"), "cifar10, svhn, imagenet"),
    (lambda: policies.PBA("imagenet"), "cifar10, svhn"),
    (lambda: policies.PBA("svhn", 0), "total_epochs"),
    (lambda: policies.Single("SamplePairing", 0.5, "uda"), "unknown operation"),
    (lambda: policies.Single("Rotate", -0.1), "probability"),
])  # fmt: skip
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("text", [{}, None, 3, policies.Uniform()], ids=str)
def test_a_policy_to_be_read_must_be_text(text):
    with pytest.raises(TypeError, match=rf"`text` must be JSON text.*got {type(text).__name__}"):
        policies.from_json(text)


def _two(images, _argument):
    return images


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: Operation("", ADD.transform), ValueError, "`name` must be a text.*got ''"),
    (lambda: Operation(None, ADD.transform), ValueError, "`name` must be a text.*got None"),
    (lambda: Operation("X", None), TypeError,
     r"`transform` of X .*\(images, argument, center, partner\).*got None"),
    (lambda: Operation("X", _two), TypeError, r"takes \(images, _argument\).*images, \*_:"),
    (lambda: Operation("X", lambda _a, _b, _c, _d, _e: 0), TypeError,
     r"takes \(_a, _b, _c, _d, _e\)"),
    (lambda: Operation("X", ADD.transform, "value", "a", 1.0), TypeError, "`low` of X.*got 'a'"),
    (lambda: Operation("X", ADD.transform, "value", 2, 1), ValueError, "`low` of X.*got 2 and 1"),
    (lambda: Operation("X", ADD.transform, "value", math.nan, 1), ValueError, "got nan and 1"),
    (lambda: Range("a", "b", "c"), ValueError, "`base` of a range must be a finite.*got 'a'"),
    (lambda: Range(0.0, "b", "c"), ValueError, "`slope` of a range.*got 'b'"),
    (lambda: Range(0.0, True, "c"), ValueError, "`slope` of a range.*got True"),
    (lambda: Range(0.0, 1.0, "c", minimum=math.inf), ValueError, "`minimum` of a range.*got inf"),
    (lambda: Range(0.0, 1.0, 2.0), TypeError, r"`source` of a range must be a str, got 2\.0"),
    (lambda: Range(0.0, 1.0, "c", side="width"), TypeError, "`side`.*a Side, got 'width'"),
])  # fmt: skip
def test_operations_and_ranges_that_are_none_are_refused_at_once(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("transform", [
    lambda *everything: everything[0],
    lambda images, *_: images,
    lambda images, _argument, _center=None, _partner=None: images,
    torch.nn.Identity(),
    max,  # does not tell what it takes
], ids=["*", "one and *", "defaults", "module", "in C"])  # fmt: skip
def test_whatever_takes_four_arguments_may_be_an_operation(transform):
    assert Operation("X", transform).transform is transform


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


def test_operation_counts_of_fast_autoaugment_on_cifar10():
    named = [e.operation for row in policies.FastAutoAugment().rows() for e in row]
    assert {name: named.count(name) for name in set(named)} == {
        "AutoContrast": 70, "Brightness": 54, "Color": 65, "Contrast": 66, "Cutout": 79,
        "Equalize": 74, "Invert": 75, "Posterize": 63, "Rotate": 64, "Sharpness": 62,
        "ShearX": 64, "ShearY": 63, "Solarize": 48, "TranslateX": 66, "TranslateY": 73,
    }  # fmt: skip


def test_known_entries_and_repeats_of_autoaugment():
    lists = read_data("autoaugment.json")["policies"]
    assert lists["cifar10"][13] == [["Brightness", 0.9, 6], ["Color", 0.2, 8]]
    absent = [i for i, row in enumerate(lists["cifar10"]) if row not in lists["cifar10-95"]]
    assert absent == [15, 16, 17, 18, 19]
    for later, earlier in ((20, 4), (21, 1), (22, 13), (23, 14), (24, 2)):
        assert lists["imagenet"][later] == lists["imagenet"][earlier]


def test_every_data_file_has_a_source_and_its_checksum():
    folder = resources.files("divaug.policies") / "data"
    sums = json.loads((folder / "checksums.json").read_text(encoding="utf-8"))
    files = {e.name for e in folder.iterdir() if e.name.endswith(".json")} - {"checksums.json"}
    assert files == set(sums)
    for name in files:
        content = (folder / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == sums[name]
        assert json.loads(content)["source"]


def test_a_checkout_with_windows_line_ends_has_the_same_bytes():
    root, where = Path(__file__).parents[1], "src/divaug/policies/data"
    if not (root / ".git").exists():
        pytest.skip("a copy without history")
    command = ["git", "-C", str(root), "-c", "core.autocrlf=true", "archive", "HEAD", where]
    done = subprocess.run(command, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        files = [i for i in tar if i.isfile() and i.name.endswith(".json")]
        read = {i.name.split("/")[-1]: tar.extractfile(i).read() for i in files}
    sums = json.loads(read.pop("checksums.json"))
    assert {name: hashlib.sha256(text).hexdigest() for name, text in read.items()} == sums


def test_a_damaged_data_file_is_refused(tmp_path, monkeypatch):
    real = resources.files("divaug.policies") / "data"
    folder = tmp_path / "policies" / "data"
    folder.mkdir(parents=True)
    for name in ("checksums.json", "pba.json", "spaces.json"):
        (folder / name).write_bytes((real / name).read_bytes())
    monkeypatch.setattr(data_files.resources, "files", lambda _package: tmp_path)
    for name in ("pba.json", "spaces.json"):
        assert read_data.__wrapped__(name) == read_data(name)
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content.replace(b"0.2", b"0.3", 1))
        with pytest.raises(ValueError, match=rf"{name} is damaged.*install divaug again"):
            read_data.__wrapped__(name)


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
