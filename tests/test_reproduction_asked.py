"""Tables say how good the networks are that measured, and when they are not those of the runs."""

import hashlib
import json
from dataclasses import replace

import pytest
import torch

from divaug.lab.reproduce.asked_network import AskedNetwork, read_asked_network
from divaug.lab.reproduce.formats import from_text, to_text
from divaug.lab.reproduce.options import DEMO_ROW, PAPER_ROW, Options, recipe_of
from divaug.lab.reproduce.records import MeasurementRecord
from divaug.lab.train import checkpoint
from divaug.lab.train.checkpoint import Checkpoint
from tests.reproduction_helpers import PLACE
from tests.test_reproduction_records import MEASUREMENT
from tests.test_reproduction_relations import outcome, run

FIRST, SECOND, THIRD = ({**PLACE, "started": f"2026-01-0{day}T00:00:00Z"} for day in (1, 2, 3))
AGAIN = "Of another training than the run in the tables with the same recipe and seed: "
SEVERAL = "networks were asked: differences"


def ran(scorer, accuracy, seed=0, row=PAPER_ROW, place=FIRST):
    return replace(run(scorer, seed, accuracy, row=row), starts=(place,))


def asked(scorer, clean, seed=0, name="divaug", row=PAPER_ROW, network=None, place=PLACE):
    values = replace(MEASUREMENT.values, clean_accuracy=clean)
    recipe = recipe_of(row, scorer, seed, Options())
    return MeasurementRecord(recipe, name, values, place, None, network)


def network(accuracy, weights="a" * 16, place=FIRST):
    return AskedNetwork(accuracy, weights, (place,))


def notes(target, runs, measurements, row=None):
    options = Options((row,)) if row else None
    return " ".join(outcome(target, runs, measurements, options).sheets[0].notes)


@pytest.mark.parametrize("clean", [0.9036, 0.9031])  # evaluated eagerly, it rounds otherwise
def test_the_network_of_the_run_is_told_by_its_training_not_by_its_accuracy(clean):
    found = asked("none", clean, network=network(0.9036))
    told = notes("diversity", [ran("none", 0.9036)], [found])
    assert f"asked networks on the test images: no augmentation {100 * clean:.2f} %." in told
    assert AGAIN not in told
    assert SEVERAL not in told


@pytest.mark.parametrize("accuracy", [0.8970, 0.9036])  # also where it came to the same number
def test_a_network_that_was_trained_again_stands_beside_its_run(accuracy):
    found = asked("none", 0.8965, network=network(accuracy, place=SECOND | {"commit": "123456"}))
    told = notes("diversity", [ran("none", 0.9036)], [found])
    assert "test images: no augmentation 89.65 %. " + AGAIN + "1 of 1" in told
    each = f"(no augmentation, seed 0: {100 * accuracy:.2f} % at its end, the run 90.36 %)."
    assert each in told
    # Where that training was done is told as of any other.
    assert "1 training on Some CPU, 2 threads; commit 123456;" in told


def test_only_what_was_trained_again_is_told_and_each_once():
    networks = [network(0.897, "b" * 16, SECOND), network(0.96, "c" * 16, THIRD)]
    measurements = [
        asked(scorer, one.accuracy, name=name, network=one)
        for scorer, one in zip(("none", "default"), networks, strict=True)
        for name in ("divaug", "random")
    ]
    runs = [ran("none", 0.9036), ran("default", 0.96, place=THIRD)]
    told = notes("affinity", runs, measurements)
    assert "no augmentation 89.70 %, default augmentation 96.00 %." in told
    assert told.count("seed 0") == 1
    assert AGAIN + "1 of 2" in told
    assert "1 training on" in told


def test_every_seed_that_was_trained_again_is_told():
    runs = [ran("none", 0.9, seed) for seed in (0, 1)]
    measurements = [
        asked("none", 0.8, seed, network=network(0.8 + seed / 100, str(seed) * 16, SECOND))
        for seed in (0, 1)
    ]
    told = notes("diversity", runs, measurements)
    each = "seed 0: 80.00 % at its end, the run 90.00 %; no augmentation, seed 1: 81.00 % at its"
    assert each in told
    assert AGAIN + "2 of 2" in told
    assert "2 trainings on" in told


def test_a_seed_without_a_run_and_records_without_a_network_claim_nothing():
    measurements = [asked("none", 0.8, seed=1, network=network(0.8)), asked("none", 0.7)]
    told = notes("diversity", [ran("none", 0.9, place=SECOND)], measurements)
    assert "no augmentation 75.00 ± 7.07 %." in told
    assert AGAIN not in told


def test_the_precision_of_a_measurement_hides_no_second_training():
    other = {**PLACE, "precision": "bfloat16"}
    found = asked("none", 0.7, network=network(0.7, place=SECOND), place=other)
    assert AGAIN in notes("diversity", [ran("none", 0.8)], [found])


def test_every_network_counts_once_also_where_two_are_as_good():
    measurements = [
        asked("none", accuracy, seed, name)
        for seed, accuracy in ((0, 0.80), (1, 0.80), (2, 0.83))
        for name in ("divaug", "randaugment", "random")
    ]
    told = notes("diversity", [], measurements)
    assert "no augmentation 81.00 ± 1.73 %." in told
    assert SEVERAL not in told


def test_two_networks_with_one_seed_are_warned_of():
    networks = [network(0.8, "b" * 16), network(0.82, "c" * 16)]
    measurements = [
        asked(scorer, one.accuracy, seed, name=name, network=one)
        for scorer, seed in (("none", 0), ("default", 1))
        for name, one in zip(("divaug", "random"), networks, strict=True)
    ]
    told = notes("affinity", [], measurements)
    assert "no augmentation 81.00 ± 1.41 %, default augmentation 81.00 ± 1.41 %." in told
    assert f"Of no augmentation, seed 0, 2 {SEVERAL}" in told
    assert f"Of default augmentation, seed 1, 2 {SEVERAL}" in told


def test_a_record_that_does_not_know_its_network_is_taken_for_the_known_one():
    measurements = [
        asked("none", 0.9037, name="divaug"),  # older, and rounded otherwise
        asked("none", 0.9036, name="random", network=network(0.9036)),
    ]
    told = notes("diversity", [ran("none", 0.9036)], measurements)
    assert "no augmentation 90.36 %." in told
    assert SEVERAL not in told


def test_a_run_that_went_on_is_still_the_training_of_its_network():
    found = asked("none", 0.9, network=network(0.9))
    resumed = replace(ran("none", 0.9), starts=(FIRST, SECOND))
    assert AGAIN not in notes("diversity", [resumed], [found])


def test_an_accuracy_that_is_no_number_is_no_second_network():
    measurements = [asked("none", float("nan"), name=name) for name in ("divaug", "random")]
    told = notes("diversity", [ran("none", 0.9)], measurements)
    assert "no augmentation not known." in told
    assert SEVERAL not in told


def test_each_row_speaks_of_its_own_networks():
    measurements = [asked("none", 0.8), asked("none", 0.6, row=DEMO_ROW)]
    assert "no augmentation 60.00 %." in notes("diversity", [], measurements, DEMO_ROW)


@pytest.mark.parametrize("target", ["diversity", "affinity", "rotate"])
def test_without_measurements_no_network_is_spoken_of(target):
    assert "asked networks on" not in notes(target, [ran("none", 0.9)], [])


def test_the_case_study_tells_it_too():
    found = asked("none", 0.9, name="divaug-rotate-0.5", network=network(0.9, place=SECOND))
    told = notes("rotate", [ran("none", 0.8)], [found])
    assert "asked networks on the test images: no augmentation 90.00 %. " + AGAIN + "1 of 1" in told


def test_a_record_keeps_the_network_and_stays_the_same_measurement():
    plain = asked("none", 0.9)
    named = replace(plain, network=network(0.897))
    assert from_text(to_text(named)) == named
    assert from_text(to_text(plain)).network is None
    assert named.hash == plain.hash


def test_the_last_network_of_a_run_is_read_without_paths_of_this_machine(tmp_path):
    for step, value in ((5, 1.0), (10, 2.0)):
        tensors = {"w": torch.tensor([value])}
        last = checkpoint.save(tmp_path / "checkpoints", Checkpoint(step, tensors, {}, {}))
    lines = [
        {"kind": "epoch", "step": 5, "epoch": 0, "test_accuracy": 0.5},
        {"kind": "epoch", "step": 10, "epoch": 1, "test_accuracy": 0.75},
        {"kind": "end", "step": 10},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    starts = [FIRST | {"command": ["divaug", "--data", "/home/me/a.npz"]}, SECOND]
    (tmp_path / "environment.json").write_text(json.dumps(starts))
    found = read_asked_network(tmp_path)
    assert found.accuracy == 0.75
    weights = hashlib.sha256((last / "model.safetensors").read_bytes()).hexdigest()
    assert found.weights == weights[:16]
    assert found.began == FIRST["started"]
    assert found.starts[0]["command"] == ["divaug", "--data", "a.npz"]


@pytest.mark.parametrize(
    "change",
    [{"accuracy": "high"}, {"weights": 7}, {"starts": []}, {"starts": "2026"}, {"starts": [1]}],
)
def test_a_network_that_is_none_is_refused(change):
    line = json.loads(to_text(asked("none", 0.9, network=network(0.897))))
    line["network"] |= change
    with pytest.raises(ValueError, match="is no record"):
        from_text(json.dumps(line))
