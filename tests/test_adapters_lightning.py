"""The callback for Lightning: the same weights as a loop by hand, resumed, in two processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import lightning.pytorch as lightning
import pytest
import torch
from lightning.fabric import Fabric
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from divaug import DivAug, default_augmentation
from divaug.adapters import AugmentedLoader, Fields, Numbered
from divaug.adapters.lightning import AugmentBatches

# Lightning's warnings (few workers, unused checkpoints, deprecations of torch) are not about us.
pytestmark = pytest.mark.filterwarnings("ignore")
HOOK = "on_after_batch_transfer"
PIXELS = torch.randint(
    0, 256, (24, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
)
LABELS = torch.arange(24) % 10


def loader_of(batch_size=4, number=True):
    dataset = TensorDataset(PIXELS, LABELS)
    return DataLoader(Numbered(dataset) if number else dataset, batch_size=batch_size)


def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))


class Classifier(lightning.LightningModule):
    """A module as people write it, which notes what it is given."""

    def __init__(self):
        super().__init__()
        self.network = network()
        self.trained, self.validated, self.autocast = [], [], []

    def forward(self, images):
        self.autocast.append((self.training, torch.is_autocast_enabled("cpu")))
        return self.network(images)

    def training_step(self, batch, batch_idx):
        images, labels = batch
        self.trained.append(images)
        return F.cross_entropy(self(images), labels)

    def validation_step(self, batch, batch_idx):
        self.validated.append(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def divaug_of(module, **settings):
    default = default_augmentation.DefaultAugmentation((0.5,) * 3, (0.25,) * 3, padding=2, flip=0.5)
    return DivAug(module, default=default, pool=PIXELS, **settings)


def trainer_of(*callbacks, folder=None, **settings):
    return lightning.Trainer(
        **{
            "accelerator": "cpu",
            "logger": False,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "max_epochs": 2,
            "callbacks": list(callbacks),
            "default_root_dir": folder,
        }
        | settings
    )


def by_hand(steps=12):
    """Weights and images of a loop without any framework."""
    model = network()
    augment, optimizer = divaug_of(model), torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    for step in range(steps):
        index = torch.arange(4) + step % 6 * 4
        images, labels = augment(PIXELS[index], LABELS[index], index=index)
        seen.append(images)
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
    return model, seen


def same(module, model):
    pairs = zip(module.parameters(), model.parameters(), strict=True)
    return all(torch.equal(*pair) for pair in pairs)


def test_training_ends_with_the_weights_of_a_loop_by_hand():
    module = Classifier()
    trainer = trainer_of(AugmentBatches(divaug_of(module), Fields(index=2)))
    trainer.fit(module, loader_of(), loader_of(number=False))
    model, seen = by_hand()
    assert len(module.trained) == len(seen) == 12
    assert all(torch.equal(*pair) for pair in zip(module.trained, seen, strict=True))
    assert same(module.network, model)


def test_validation_gets_what_its_loader_gives():
    module = Classifier()
    trainer = trainer_of(AugmentBatches(divaug_of(module), Fields(index=2)))
    trainer.fit(module, loader_of(), loader_of(number=False))
    assert len(module.validated) == 2 + 2 * 6  # two looks before training begins
    for images, labels in module.validated:
        assert images.dtype == torch.uint8
        assert len(images) == len(labels) == 4


def test_the_hook_is_given_back_after_training():
    module = Classifier()
    callback = AugmentBatches(divaug_of(module), Fields(index=2))
    trainer = trainer_of(callback, max_steps=1)
    for _ in range(2):  # a second fit does not augment twice
        module.trained.clear()
        trainer.fit(module, loader_of())
        assert HOOK not in vars(module)
        assert all(len(images) == 16 for images in module.trained)
        trainer.fit_loop.max_epochs = 4
        trainer.fit_loop.epoch_loop.max_steps = 3


def test_the_hook_is_given_back_after_a_failure():
    module = Classifier()
    trainer = trainer_of(AugmentBatches(divaug_of(module), Fields("images", "labels")))
    with pytest.raises(ValueError, match="no images at 'images'"):
        trainer.fit(module, loader_of())
    assert HOOK not in vars(module)


class Halving(Classifier):
    """A module with a hook of its own."""

    def on_after_batch_transfer(self, batch, dataloader_idx):
        return [part[:2] for part in batch]


def test_the_hook_of_a_module_comes_first():
    module = Halving()
    trainer_of(AugmentBatches(divaug_of(module), Fields(index=2))).fit(module, loader_of())
    assert {len(images) for images in module.trained} == {8}


class Data(lightning.LightningDataModule):
    """A data module without a hook of its own."""

    def train_dataloader(self):
        return loader_of()


class HalvingData(Data):
    """A data module with one, which Lightning prefers to that of the module."""

    def on_after_batch_transfer(self, batch, dataloader_idx):
        return [part[:2] for part in batch]


@pytest.mark.parametrize(
    ("module", "data", "views"),
    [(Classifier, Data, 16), (Classifier, HalvingData, 8), (Halving, Data, 8)],
)
def test_the_hook_that_lightning_would_call_is_the_one_it_stands_behind(
    module, data, views, recwarn
):
    module, data = module(), data()
    trainer_of(AugmentBatches(divaug_of(module), Fields(index=2))).fit(module, datamodule=data)
    assert {len(images) for images in module.trained} == {views}
    assert HOOK not in vars(data)
    both = [each for each in recwarn if "overridden `on_after_batch_transfer` in both" in str(each)]
    assert not both


def test_a_resumed_run_draws_what_the_uninterrupted_one_would_have(tmp_path):
    module = Classifier()
    first = trainer_of(AugmentBatches(divaug_of(module), Fields(index=2)), max_epochs=1)
    first.fit(module, loader_of())
    first.save_checkpoint(tmp_path / "half.ckpt")

    resumed = Classifier()
    second = trainer_of(AugmentBatches(divaug_of(resumed), Fields(index=2)))
    second.fit(resumed, loader_of(), ckpt_path=tmp_path / "half.ckpt")
    model, seen = by_hand()
    drawn = module.trained + resumed.trained
    assert all(torch.equal(*pair) for pair in zip(drawn, seen, strict=True))
    assert same(resumed.network, model)


def test_the_model_is_asked_in_the_precision_it_is_trained_in():
    module = Classifier()
    callback = AugmentBatches(divaug_of(module), Fields(index=2))
    trainer_of(callback, precision="bf16-mixed", max_steps=1).fit(module, loader_of())
    assert module.autocast == [(False, True), (True, True)]
    assert module.training


@pytest.mark.parametrize("precision", ["bf16-true", "64-true"])
def test_images_have_the_dtype_of_the_weights(precision):
    module = Classifier()
    callback = AugmentBatches(divaug_of(module), Fields(index=2))
    trainer_of(callback, precision=precision, max_steps=1).fit(module, loader_of())
    assert module.trained[0].dtype == next(module.parameters()).dtype != torch.float32


TWO = """
import json, sys
import torch
from tests.test_adapters_lightning import *

class Noting(Classifier):
    def training_step(self, batch, batch_idx):
        images, labels = batch
        self.trained.append((labels.tolist(), images.double().flatten(1).sum(1).tolist()))
        return 0 * self(images).sum()

devices, out = int(sys.argv[1]), sys.argv[2]
module = Noting()
trainer = trainer_of(
    AugmentBatches(divaug_of(module), Fields(index=2)), devices=devices, max_epochs=3,
    strategy="ddp" if devices > 1 else "auto",
)
trainer.fit(module, loader_of(24 // devices))  # all samples in one step: Lightning shuffles them
with open(f"{out}/{trainer.global_rank}.json", "w") as file:
    json.dump(module.trained, file)
"""


def drawn_by(devices, folder):
    """Of each step, each label's finished images as sums, by one process or two together."""
    folder.mkdir()
    root = str(Path(__file__).parents[1])
    script = folder / "train.py"
    script.write_text(TWO)
    path = os.pathsep.join([f"{root}/src", root])
    subprocess.run(
        [sys.executable, str(script), str(devices), str(folder)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        timeout=240,
    )
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    assert len(found) == devices
    return [
        sorted(pair for labels, sums in parts for pair in zip(labels, sums, strict=True))
        for parts in zip(*found, strict=True)
    ]


@pytest.mark.slow
def test_two_processes_draw_what_one_does(tmp_path):
    assert drawn_by(2, tmp_path / "two") == drawn_by(1, tmp_path / "one")


def test_fabric_needs_the_loader_alone():
    fabric = Fabric(accelerator="cpu", devices=1, precision="bf16-mixed")
    module = Classifier()
    model, optimizer = fabric.setup(module, module.configure_optimizers())
    loader = AugmentedLoader(
        fabric.setup_dataloaders(loader_of()), divaug_of(model), Fields(index=2)
    )
    for images, labels in loader:
        assert len(images) == 16
        optimizer.zero_grad()
        fabric.backward(F.cross_entropy(model(images), labels))
        optimizer.step()
    assert set(module.autocast) == {(False, True), (True, True)}
