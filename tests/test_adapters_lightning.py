"""The callback for Lightning: the same weights as a loop by hand, resumed, in two processes."""

import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import lightning.pytorch as lightning
import pytest
import pytorch_lightning
import torch
from lightning.fabric import Fabric
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from divaug import DivAug, default_augmentation
from divaug.adapters import AugmentedLoader, Fields, Numbered
from divaug.adapters.lightning import AugmentBatches
from divaug.views import Views

# Lightning's warnings (few workers, unused checkpoints, deprecations of torch) are not about us.
pytestmark = pytest.mark.filterwarnings("ignore")
MOVING = "batch_to_device"
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


def trainer_of(*callbacks, package=lightning, **settings):
    return package.Trainer(
        **{
            "accelerator": "cpu",
            "logger": False,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "max_epochs": 2,
            "callbacks": list(callbacks),
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


def test_a_trainer_of_the_older_package_takes_it_too():
    """`pytorch_lightning` has classes of its own, which are no relatives of `lightning`'s."""

    class Older(pytorch_lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = network()

        def forward(self, images):
            return self.network(images)

        def training_step(self, batch, batch_idx):
            return F.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    class OlderData(pytorch_lightning.LightningDataModule):
        def train_dataloader(self):
            return loader_of()

    module = Older()
    callback = AugmentBatches(divaug_of(module), Fields(index=2))
    trainer = trainer_of(callback, package=pytorch_lightning)
    trainer.fit(module, datamodule=OlderData())
    assert same(module.network, by_hand()[0])
    assert MOVING not in vars(trainer.strategy)


def test_validation_gets_what_its_loader_gives():
    module = Classifier()
    trainer = trainer_of(AugmentBatches(divaug_of(module), Fields(index=2)))
    trainer.fit(module, loader_of(), loader_of(number=False))
    assert len(module.validated) == 2 + 2 * 6  # two looks before training begins
    for images, labels in module.validated:
        assert images.dtype == torch.uint8
        assert len(images) == len(labels) == 4


def test_it_lets_go_after_training():
    module = Classifier()
    callback = AugmentBatches(divaug_of(module), Fields(index=2))
    trainer = trainer_of(callback, max_steps=1)
    for _ in range(2):  # a second fit does not augment twice
        module.trained.clear()
        trainer.fit(module, loader_of())
        assert MOVING not in vars(trainer.strategy)
        assert all(len(images) == 16 for images in module.trained)
        trainer.fit_loop.max_epochs = 4
        trainer.fit_loop.epoch_loop.max_steps = 3


def test_it_lets_go_after_a_failure():
    module = Classifier()
    trainer = trainer_of(AugmentBatches(divaug_of(module), Fields("images", "labels")))
    with pytest.raises(ValueError, match="no images at 'images'"):
        trainer.fit(module, loader_of())
    assert MOVING not in vars(trainer.strategy)


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
def test_hooks_for_batches_come_first_whosever_they_are(module, data, views):
    module = module()
    trainer_of(AugmentBatches(divaug_of(module), Fields(index=2))).fit(module, datamodule=data())
    assert {len(images) for images in module.trained} == {views}


@pytest.mark.parametrize("stage", ["validate", "test", "predict"])
def test_other_stages_get_what_their_loaders_give(stage):
    seen = []

    class Looking(Classifier):
        def look(self, batch):
            seen.extend(batch)

        validation_step = test_step = predict_step = look

    module = Looking()
    augment = divaug_of(module)
    trainer = trainer_of(AugmentBatches(augment, Fields(index=2)))
    getattr(trainer, stage)(module, loader_of(number=False))
    assert len(seen) == 12
    assert all(len(part) == 4 for part in seen)
    assert augment.state_dict()["step"] == 0


def test_schedules_follow_lightnings_epochs():
    module, epochs = Classifier(), []

    class Noting(Views):
        def __call__(self, images, labels=None, *, index=None, epoch=None):
            epochs.append(epoch)
            return super().__call__(images, labels, index=index, epoch=epoch)

    trainer_of(AugmentBatches(Noting(), Fields(index=2))).fit(module, loader_of())
    assert epochs == [0] * 6 + [1] * 6


def test_a_module_can_be_copied_and_pickled_while_it_is_fitted():
    class Copying(lightning.Callback):
        def on_train_start(self, trainer, pl_module):
            self.copy = pickle.loads(pickle.dumps(copy.deepcopy(pl_module)))

    module, copying = Classifier(), Copying()
    trainer = trainer_of(AugmentBatches(divaug_of(module), Fields(index=2)), copying)
    trainer.fit(module, loader_of())
    assert not same(copying.copy, module)  # it has not learnt


def test_what_it_could_not_augment_is_refused():
    class Another(AugmentBatches):
        pass

    module = Classifier()
    callbacks = AugmentBatches(divaug_of(module)), Another(divaug_of(module))
    trainer = trainer_of(*callbacks)
    with pytest.raises(ValueError, match="another callback already augments"):
        trainer.fit(module, loader_of())
    assert MOVING not in vars(trainer.strategy)
    with pytest.raises(TypeError, match="`augment` must be an augmenter"):
        AugmentBatches(module)
    with pytest.raises(TypeError, match="`fields` must be a Fields"):
        AugmentBatches(divaug_of(module), 2)


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
import json, sys, time
import torch
from tests.test_adapters_lightning import *

devices, strategy, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]

class Noting(Classifier):
    def training_step(self, batch, batch_idx):
        images, labels = batch
        self.trained.append((labels.tolist(), images.double().flatten(1).sum(1).tolist()))
        return 0 * self(images).sum()

    def on_train_end(self):
        with open(f"{out}/{self.global_rank}.json", "w") as file:
            json.dump(self.trained, file)

if __name__ == "__main__":
    module = Noting()
    callback = AugmentBatches(divaug_of(module), Fields(index=2))
    trainer = trainer_of(callback, devices=devices, strategy=strategy, max_epochs=3)
    # All samples in one step, because Lightning shuffles them.
    trainer.fit(module, loader_of(24 // devices))
    # Lightning leaves gloo's threads to the interpreter's exit, which at times ends in an abort.
    if torch.distributed.is_initialized():
        time.sleep(0.1)  # its threads let go of the last message
        torch.distributed.destroy_process_group()
"""


def drawn_by(devices, strategy, folder):
    """Of each step, each label's finished images as sums, by one process or two together."""
    folder.mkdir()
    root = str(Path(__file__).parents[1])
    script = folder / "train.py"
    script.write_text(TWO)
    path = os.pathsep.join([f"{root}/src", root])
    subprocess.run(
        [sys.executable, str(script), str(devices), strategy, str(folder)],
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
@pytest.mark.parametrize("strategy", ["ddp", "ddp_spawn"])
def test_two_processes_draw_what_one_does(strategy, tmp_path):
    one = drawn_by(1, "auto", tmp_path / "one")
    assert drawn_by(2, strategy, tmp_path / "two") == one


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
