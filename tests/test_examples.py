"""Every example runs, and does what it says."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "examples"


def load(name):
    return runpy.run_path(str(FOLDER / f"{name}.py"))


def test_all_examples_are_tested():
    assert {path.stem for path in FOLDER.glob("*.py")} == {"plug_in", "custom_operation"}


def test_the_plug_in_learns():
    assert load("plug_in")["main"](steps=40) > 0.4  # ten classes: chance is 0.1


def test_an_operation_of_ones_own_is_drawn():
    lines = load("custom_operation")["main"]()
    # One of sixteen operations, two slots, 512 sub-policies: 62 expected, deviation 7.6.
    assert len(lines) == pytest.approx(62, abs=5 * 7.6)
