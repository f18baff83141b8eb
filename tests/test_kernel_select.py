"""The selection kernel chooses what batched PyTorch chooses, index by index."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from divaug import select
from divaug.selection import METHODS
from tests.test_selection import awkward, realistic

ROOT = Path(__file__).parent.parent
pytest.importorskip("triton")


def test_equal_to_torch_in_the_interpreter():
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    path = [str(ROOT / "src"), str(ROOT), environment.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.reference.run_select_kernel"],
        cwd=ROOT,
        env=environment | {"PYTHONPATH": os.pathsep.join(filter(None, path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["compared", "72"]


@pytest.mark.gpu
@pytest.mark.parametrize("method", [m for m, rule in METHODS.items() if rule.kernel is not None])
@pytest.mark.parametrize("make", [realistic, awkward])
@pytest.mark.parametrize(
    ("E", "S", "D"), [(1, 1, 2), (5, 3, 7), (8, 4, 10), (8, 4, 1000), (64, 9, 3)]
)
def test_equal_to_torch_on_the_device(method, make, E, S, D):
    probs = make(500, E, D)
    expected = select(probs, S, method=method, seed=4, step=6)
    for backend in ("torch", "triton"):
        found = select(probs.cuda(), S, method=method, seed=4, step=6, backend=backend)
        assert torch.equal(found.cpu(), expected)
