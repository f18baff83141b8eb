"""What the rules keep, seen by a network on a GPU: what a CPU sees, with nothing left changed."""

import copy

import pytest
import torch

from divaug.lab.examine import BATCH, JUDGE, WAYS, examine
from tests.test_examining import DATA, DEFAULT, made_network

pytestmark = pytest.mark.gpu


def looked(network, device):
    return examine(
        network, DATA, DEFAULT, torch.device(device), num_candidates=6, num_selected=3, seed=5
    )


def test_a_gpu_finds_what_a_cpu_finds_and_changes_nothing():
    network = made_network()
    there = copy.deepcopy(network).to("cuda", memory_format=torch.channels_last)
    before = {name: tensor.clone() for name, tensor in there.state_dict().items()}
    allowed = torch.backends.cudnn.allow_tf32
    expected, found = looked(network, "cpu"), looked(there, "cuda")
    assert torch.backends.cudnn.allow_tf32 == allowed
    assert all(torch.equal(before[name], t) for name, t in there.state_dict().items())
    for one, other in zip(expected.candidates, found.candidates, strict=True):
        assert other.diversity == pytest.approx(one.diversity, rel=1e-3)
        assert other.best == pytest.approx(one.best, rel=1e-3)
    for one, other in zip(expected.choices, found.choices, strict=True):
        assert (other.space, other.way, other.rule) == (one.space, one.way, one.rule)
        # Sums are taken in another order; in float32 that moves next to no choice.
        rel = 1e-2 if WAYS[one.way].dtype == torch.float32 else 5e-2
        assert other.diversity == pytest.approx(one.diversity, rel=rel)
        assert other.batch_diversity == pytest.approx(one.batch_diversity, rel=rel)
        if one.way in (JUDGE, BATCH):
            assert other.agreement == pytest.approx(one.agreement, abs=0.05)
