"""Measures of an augmenter on a GPU: what a CPU measures, with the network left as it was."""

import copy

import pytest
import torch

from divaug.lab import methods as augmenters
from divaug.lab import models
from divaug.lab.measure import measure
from divaug.lab.methods import AUGMENTERS, Settings
from divaug.lab.train import Hardware
from tests.test_measuring import DATA, DEFAULT

pytestmark = pytest.mark.gpu

FLOAT32 = Hardware(torch.device("cuda"))
BFLOAT16 = Hardware(torch.device("cuda"), torch.bfloat16)


def measured(name, network, hardware):
    """As `measure_run` does it: images in the precision and layout of the hardware."""

    def make(pool):
        return augmenters.build(
            name,
            Settings(
                network,
                DEFAULT,
                num_candidates=6,
                num_selected=4,
                total_epochs=10,
                seed=2,
                pool=pool,
                dtype=hardware.dtype,
                channels_last=hardware.channels_last,
            ),
        )

    return measure(network, DATA, make, DEFAULT, hardware, views=4, epochs=(1, 8), batch_size=5)


@pytest.mark.parametrize("name", AUGMENTERS)
def test_a_gpu_measures_what_a_cpu_measures(name, monkeypatch):
    """Draws and pixels are equal to the bit, so what is left is the network's arithmetic."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    network = models.build("tiny-resnet-8", 4, 1, seed=1).eval()
    there = copy.deepcopy(network).to("cuda", memory_format=torch.channels_last)
    before = {key: tensor.clone() for key, tensor in there.state_dict().items()}
    expected = measured(name, network, Hardware(torch.device("cpu")))
    for hardware, rel in ((FLOAT32, 1e-3), (BFLOAT16, 0.1)):
        found = measured(name, there, hardware)
        assert found.variance_diversity == pytest.approx(
            expected.variance_diversity, rel=rel, abs=1e-8
        )
        assert found.loss_diversity == pytest.approx(expected.loss_diversity, rel=rel)
        # A view near the border between two classes may fall to either side of it.
        assert found.clean_accuracy == pytest.approx(expected.clean_accuracy, abs=1 / 8)
        assert found.augmented_accuracy == pytest.approx(expected.augmented_accuracy, abs=4 / 32)
        assert (found.train_images, found.test_images, found.epochs) == (12, 8, 2)
    assert all(torch.equal(before[key], tensor) for key, tensor in there.state_dict().items())
