"""Tables say how good the networks are that measured, and when they are not those of the runs."""

from dataclasses import replace

import pytest

from divaug.reproduction.options import PAPER_ROW, Options, recipe_of
from divaug.reproduction.records import MeasurementRecord
from tests.reproduction_helpers import PLACE
from tests.test_reproduction_records import MEASUREMENT
from tests.test_reproduction_relations import outcome, run


def asked(scorer, accuracy, seed=0, name="divaug", row=PAPER_ROW):
    values = replace(MEASUREMENT.values, clean_accuracy=accuracy)
    return MeasurementRecord(recipe_of(row, scorer, seed, Options()), name, values, PLACE)


def notes(target, runs, measurements):
    return " ".join(outcome(target, runs, measurements).sheets[0].notes)


AGAIN = "second training"


def test_the_networks_of_the_runs_are_named_once():
    told = notes("diversity", [run("none", 0, 0.8965)], [asked("none", 0.8965)])
    assert "asked networks on the test images: no augmentation 89.65 %." in told
    assert AGAIN not in told


def test_networks_that_were_trained_again_stand_beside_their_runs():
    runs = [run("none", 0, 0.9036), run("default", 0, 0.9617)]
    told = notes("affinity", runs, [asked("none", 0.8965), asked("default", 0.9617)])
    assert "test images: no augmentation 89.65 %, default augmentation 96.17 %." in told
    # Only what differs is told of the runs.
    assert "Of their runs: no augmentation 90.36 %. Where" in told
    assert AGAIN in told


def test_every_network_counts_once_and_only_runs_with_its_seed():
    measurements = [
        asked("none", accuracy, seed, name)
        for seed, accuracy in ((0, 0.80), (1, 0.82))
        for name in ("divaug", "randaugment", "random")
    ]
    runs = [run("none", seed, accuracy) for seed, accuracy in ((0, 0.81), (1, 0.82), (2, 0.2))]
    told = notes("diversity", runs, measurements)
    assert "no augmentation 81.00 ± 1.41 %." in told
    assert "Of their runs: no augmentation 81.50 ± 0.71 %." in told


def test_two_networks_with_one_seed_are_two():
    measurements = [asked("none", 0.80, name="divaug"), asked("none", 0.82, name="random")]
    assert "no augmentation 81.00 ± 1.41 %" in notes("diversity", [], measurements)


@pytest.mark.parametrize("target", ["diversity", "affinity", "rotate"])
def test_without_measurements_no_network_is_spoken_of(target):
    assert "asked networks on" not in notes(target, [run("none", 0, 0.9)], [])


def test_the_case_study_tells_it_too():
    told = notes("rotate", [], [asked("none", 0.9, name="divaug-rotate-0.5")])
    assert "asked networks on the test images: no augmentation 90.00 %." in told
