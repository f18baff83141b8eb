"""Run a module of the tests in a process in which Triton interprets its kernels."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
#: Triton 3.6, that of torch 2.11, turns arrays into numbers in a way that newer NumPy refuses.
_KNOWN = "only 0-dimensional arrays can be converted to Python scalars"


def run_interpreted(module):
    """What the module printed, as words; Triton reads its variable when it is imported."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    path = [str(ROOT / "src"), str(ROOT), environment.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env=environment | {"PYTHONPATH": os.pathsep.join(filter(None, path))},
        capture_output=True,
        text=True,
        check=False,
    )
    if _KNOWN in done.stderr and done.returncode:
        pytest.skip(f"this Triton's interpreter does not work with this NumPy: {_KNOWN}")
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()
