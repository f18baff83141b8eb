"""The selection kernel chooses what batched PyTorch chooses, index by index."""

import pytest
import torch

from divaug import select
from divaug._select import METHODS
from tests.reference.interpreter import run_interpreted
from tests.test_selection import awkward, realistic

pytest.importorskip("triton")


def test_equal_to_torch_in_the_interpreter():
    printed = run_interpreted("tests.reference.run_select_kernel")
    assert printed == ["compared", "72"]


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
