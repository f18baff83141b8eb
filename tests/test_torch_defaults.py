"""torch's defaults are the program's, and none of our business: every bit stays the same."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def digests(dtype, device="cpu"):
    """One line for each output."""
    command = [sys.executable, "-m", "tests.reference.whatever_the_default", dtype, device]
    place = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    done = subprocess.run(
        command, cwd=ROOT, env=place, capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def usual():
    return digests("float32")


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_every_bit_is_the_same_under_another_default_dtype(dtype, usual):
    assert len(usual) > 200
    assert digests(dtype) == usual


def test_nothing_lands_on_another_default_device(usual):
    """Tensors on this one have no values, so that anything made there by chance fails."""
    assert digests("float32", "meta") == usual
