"""Adapters on a GPU: pinned batches go to the model's device, Lightning's precision holds."""

import lightning.pytorch as lightning
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from divaug import DivAug, default_augmentation
from divaug.adapters import AugmentedLoader, Fields, Numbered
from divaug.adapters.lightning import AugmentBatches

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore")]
PIXELS = torch.randint(
    0, 256, (32, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
)


def loader_of(**settings):
    dataset = Numbered(TensorDataset(PIXELS, torch.arange(32) % 10))
    return DataLoader(dataset, batch_size=8, **settings)


def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10)).cuda()


def divaug_of(model):
    return DivAug(model, default=default_augmentation.cifar10(), pool=PIXELS.cuda())


def test_pinned_batches_are_augmented_on_the_models_device():
    model = network()
    loader = AugmentedLoader(
        loader_of(pin_memory=True, num_workers=2), divaug_of(model), Fields(index=2)
    )
    by_hand = divaug_of(model)
    for (images, labels), (originals, truth, index) in zip(loader, loader_of(), strict=True):
        expected, repeated = by_hand(originals.cuda(), truth.cuda(), index=index.cuda())
        assert images.is_cuda
        assert torch.equal(images, expected)
        assert torch.equal(labels, repeated)


class Classifier(lightning.LightningModule):
    """A module that notes what it is given and in which precision."""

    def __init__(self):
        super().__init__()
        self.network = network()
        self.seen = []

    def forward(self, images):
        self.seen.append((self.training, images.device.type, torch.is_autocast_enabled("cuda")))
        return self.network(images)

    def training_step(self, batch):
        images, labels = batch
        assert len(images) == 32
        return F.cross_entropy(self(images), labels)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def test_lightning_asks_the_module_on_its_device_and_in_its_precision():
    module = Classifier()
    trainer = lightning.Trainer(
        accelerator="gpu",
        devices=1,
        precision="bf16-mixed",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[AugmentBatches(divaug_of(module), Fields(index=2))],
    )
    trainer.fit(module, loader_of())
    assert module.seen == [(False, "cuda", True), (True, "cuda", True)] * 4
