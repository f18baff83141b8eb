"""Hugging Face's Trainer and Accelerate: the same weights as a loop by hand, and resumed."""

import copy

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

from divaug import DivAug, default_augmentation
from divaug.adapters import AugmentedLoader, Fields, Numbered
from divaug.adapters.transformers import PIXEL_VALUES, AugmentingTrainer
from divaug.views import Views

# Warnings of the frameworks (no GPU to pin memory for, deprecations of torch) are not about us.
pytestmark = pytest.mark.filterwarnings("ignore")
NUMBERED = Fields("pixel_values", "labels", "index")
PIXELS = torch.randint(
    0, 256, (24, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
)
LABELS = torch.arange(24) % 10


@pytest.fixture(autouse=True)
def fresh():
    """Accelerate keeps the first accelerator's settings for the life of the process."""
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


class Images(Dataset):
    """Samples as Hugging Face's collator takes them."""

    def __len__(self):
        return len(PIXELS)

    def __getitem__(self, number):
        return {"pixel_values": PIXELS[number], "labels": int(LABELS[number])}


class Classifier(nn.Module):
    """A classifier that Hugging Face's Trainer takes; it divides by the items it is told of."""

    def __init__(self):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))
        self.seen, self.items, self.autocast = [], [], []

    def forward(self, pixel_values, labels=None, num_items_in_batch=None, **kwargs):
        self.autocast.append((self.training, torch.is_autocast_enabled("cpu")))
        logits = self.network(pixel_values.to(next(self.parameters()).dtype))
        if labels is None:
            return (logits,)
        self.seen.append((self.training, pixel_values, labels))
        self.items.append(num_items_in_batch)
        items = len(labels) if num_items_in_batch is None else num_items_in_batch
        return {"loss": F.cross_entropy(logits, labels, reduction="sum") / items, "logits": logits}


def divaug_of(model, num_selected=4):
    default = default_augmentation.DefaultAugmentation((0.5,) * 3, (0.25,) * 3, padding=2, flip=0.5)
    return DivAug(model, num_selected=num_selected, default=default, pool=PIXELS)


class Noting:
    """An augmenter that notes the batches it is given, for a loop by hand to repeat."""

    def __init__(self, augment):
        self.augment, self.calls = augment, []

    def __getattr__(self, name):
        return getattr(self.augment, name)

    def __call__(self, images, labels=None, *, index=None, epoch=None):
        self.calls.append((images, labels, index, epoch))
        return self.augment(images, labels, index=index, epoch=epoch)


def trainer_of(model, augment, folder, fields=NUMBERED, **settings):
    arguments = TrainingArguments(
        **{
            "output_dir": str(folder),
            "per_device_train_batch_size": 4,
            "num_train_epochs": 2,
            "remove_unused_columns": False,
            "report_to": [],
            "use_cpu": True,
            "save_strategy": "no",
            "disable_tqdm": True,
            "max_grad_norm": 0.0,
            "logging_strategy": "no",
        }
        | settings
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steady = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)
    return AugmentingTrainer(
        model,
        arguments,
        train_dataset=Numbered(Images()),
        eval_dataset=Images(),
        optimizers=(optimizer, steady),
        augment=augment,
        fields=fields,
    )


def by_hand(calls, accumulate=1):
    """A loop without any framework over the same batches."""
    model = Classifier()
    augment, optimizer = divaug_of(model), torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (originals, truth, index, _) in enumerate(calls, 1):
        images, labels = augment(originals, truth, index=index)
        (F.cross_entropy(model(images)[0], labels) / accumulate).backward()
        if step % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    return model


def close(model, other):
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    return all(torch.allclose(*pair, rtol=1e-5, atol=1e-6) for pair in pairs)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_training_ends_with_the_weights_of_a_loop_by_hand(tmp_path, accumulate):
    model = Classifier()
    augment = Noting(divaug_of(model))
    trainer_of(model, augment, tmp_path, gradient_accumulation_steps=accumulate).train()
    assert len(augment.calls) == 12
    assert [epoch for *_, epoch in augment.calls] == [0] * 6 + [1] * 6
    assert all(torch.equal(PIXELS[index], images) for images, _, index, _ in augment.calls)
    trained = [images for training, images, _ in model.seen if training]
    assert {images.shape for images in trained} == {(16, 3, 16, 16)}
    assert close(model, by_hand(augment.calls, accumulate))


def test_the_items_of_a_batch_are_its_views(tmp_path):
    """Hugging Face counts labels before there are views; a loss that divides by it would be S
    times too large."""
    model = Classifier()
    augment = divaug_of(model, num_selected=3)
    trainer_of(model, augment, tmp_path, gradient_accumulation_steps=2, max_steps=1).train()
    assert [int(items) for items in model.items] == [24, 24]


def test_evaluation_gets_what_its_dataset_gives(tmp_path):
    model = Classifier()
    augment = Noting(divaug_of(model))
    trainer = trainer_of(model, augment, tmp_path)
    trainer.evaluate([{"pixel_values": each / 255, "labels": 1} for each in PIXELS])
    assert not augment.calls
    assert torch.equal(torch.cat([images for _, images, _ in model.seen]), PIXELS / 255)
    with pytest.raises(ValueError, match=r"to evaluate on must be normalised.*got uint8"):
        trainer.evaluate()


@pytest.mark.parametrize("restore", [False, True])
def test_a_resumed_run_draws_what_the_uninterrupted_one_would_have(tmp_path, restore):
    whole = Classifier()
    saving = {"save_strategy": "steps", "save_steps": 5}
    trainer_of(whole, divaug_of(whole), tmp_path, **saving).train()

    resumed = Classifier()
    augment = divaug_of(resumed)
    trainer = trainer_of(
        resumed, augment, tmp_path, restore_callback_states_from_checkpoint=restore
    )
    trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-5"))
    assert len(resumed.seen) == 7
    assert augment.state_dict()["step"] == 12
    for (_, images, labels), (_, again, truth) in zip(whole.seen[5:], resumed.seen, strict=True):
        assert torch.equal(images, again)
        assert torch.equal(labels, truth)
    assert close(resumed, whole)


def test_a_second_training_goes_on_and_does_not_begin_again(tmp_path):
    model = Classifier()
    augment = divaug_of(model)
    trainer_of(model, augment, tmp_path, max_steps=3).train()
    trainer_of(model, augment, tmp_path, max_steps=3).train()
    assert augment.state_dict()["step"] == 6


def test_the_model_is_asked_in_the_precision_it_is_trained_in(tmp_path):
    model = Classifier()
    trainer_of(model, divaug_of(model), tmp_path, bf16=True, max_steps=1).train()
    assert model.autocast == [(False, True), (True, True)]


def test_numbers_that_would_be_taken_out_are_refused(tmp_path):
    model = Classifier()
    with pytest.raises(ValueError, match=r"'index'.*remove_unused_columns=False"):
        trainer_of(model, divaug_of(model), tmp_path, remove_unused_columns=True)


def test_a_model_made_anew_for_every_training_cannot_be_asked(tmp_path):
    arguments = TrainingArguments(str(tmp_path), report_to=[], use_cpu=True)
    with pytest.raises(ValueError, match=r"`model_init` makes anew; give `model`"):
        AugmentingTrainer(args=arguments, model_init=Classifier, augment=divaug_of(Classifier()))
    trainer = AugmentingTrainer(args=arguments, model_init=Classifier, augment=Views())
    assert trainer.fields is PIXEL_VALUES  # who asks no model may have one made


def test_wrong_arguments_are_refused_when_they_are_given():
    with pytest.raises(TypeError, match="`augment` must be an augmenter"):
        AugmentingTrainer(Classifier(), augment=None)
    with pytest.raises(TypeError, match="`fields` must be a Fields"):
        AugmentingTrainer(Classifier(), augment=Views(), fields=("x", "y"))


def test_a_vision_transformer_without_numbers(tmp_path):
    config = ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        image_size=16, patch_size=8, num_labels=10,
    )  # fmt: skip
    model = ViTForImageClassification(config)
    before = copy.deepcopy(model.state_dict())
    augment = Noting(divaug_of(model))
    trainer = trainer_of(
        model, augment, tmp_path, PIXEL_VALUES, max_steps=2, remove_unused_columns=True
    )
    trainer.train_dataset = Images()
    trainer.train()
    assert len(augment.calls) == 2
    assert any(not torch.equal(before[name], each) for name, each in model.state_dict().items())


def test_a_trainer_of_ones_own(tmp_path):
    class Counting(Trainer):
        losses = 0

        def compute_loss(self, *args, **kwargs):
            self.losses += 1
            return super().compute_loss(*args, **kwargs)

        def _prepare_inputs(self, inputs):  # called before the augmenter looks for the images
            inputs = dict(inputs)
            inputs["pixel_values"] = inputs.pop("picture", inputs.get("pixel_values"))
            return super()._prepare_inputs(inputs)

    class Mine(AugmentingTrainer, Counting):
        pass

    model = Classifier()
    arguments = TrainingArguments(
        str(tmp_path), max_steps=2, report_to=[], use_cpu=True, save_strategy="no",
        remove_unused_columns=False, per_device_train_batch_size=4,
    )  # fmt: skip
    pictures = [{"picture": PIXELS[n], "labels": n % 10} for n in range(24)]
    trainer = Mine(model, arguments, train_dataset=pictures, augment=divaug_of(model))
    trainer.train()
    assert trainer.losses == 2
    assert len(model.seen[0][1]) == 16


# Accelerate: the loader, and the augmenter among what checkpoints hold.


def accelerated(accelerator, model, steps, folder=None):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    beneath = DataLoader(Numbered(TensorDataset(PIXELS, LABELS)), batch_size=4)
    model, optimizer, beneath = accelerator.prepare(model, optimizer, beneath)
    augment = divaug_of(model)
    accelerator.register_for_checkpointing(augment)
    if folder is not None:
        accelerator.load_state(folder)
    drawn = []
    loader = AugmentedLoader(beneath, augment, Fields(index=2))
    for (images, labels), _ in zip(loader, range(steps), strict=False):
        drawn.append(images)
        accelerator.backward(F.cross_entropy(model(images)[0], labels))
        optimizer.step()
        optimizer.zero_grad()
    return drawn


def test_accelerate_needs_the_loader_alone(tmp_path):
    model = Classifier()
    accelerator = Accelerator(cpu=True)
    drawn = accelerated(accelerator, model, 6)
    index = torch.arange(24).view(6, 4)
    other = by_hand([(PIXELS[rows], LABELS[rows], rows, None) for rows in index])
    assert close(model, other)
    accelerator.save_state(tmp_path / "saved")

    # A second pass after a checkpoint goes on where the first ended.
    again = accelerated(Accelerator(cpu=True), Classifier(), 6, tmp_path / "saved")
    assert not any(torch.equal(*pair) for pair in zip(drawn, again, strict=True))
    hand = divaug_of(model)
    hand.load_state_dict({"step": 6, "seed": 0})
    assert torch.equal(again[0], hand(PIXELS[:4], index=index[0])[0])


def test_accelerate_skips_batches_of_the_loader_beneath():
    accelerator, index = Accelerator(cpu=True), torch.arange(24).view(6, 4)
    beneath = accelerator.prepare(DataLoader(Numbered(TensorDataset(PIXELS, LABELS)), 4))
    skipped = accelerator.skip_first_batches(beneath, 4)
    loader = AugmentedLoader(skipped, Views(num_views=2), Fields(index=2))
    for (images, labels), rows in zip(loader, index[4:], strict=True):
        assert torch.equal((images * 255).round().byte(), PIXELS[rows].repeat_interleave(2, 0))
        assert torch.equal(labels, LABELS[rows].repeat_interleave(2, 0))


def test_accelerate_cannot_make_a_loader_that_would_not_augment():
    accelerator = Accelerator(cpu=True)
    loader = AugmentedLoader(DataLoader(TensorDataset(PIXELS, LABELS), batch_size=4), Views())
    for make in (accelerator.skip_first_batches, accelerator.prepare_data_loader):
        with pytest.raises(TypeError, match=r"would not augment; prepare .* or skip its batches"):
            make(loader)


def test_accelerates_precision_holds_where_the_model_is_asked():
    model = Classifier()
    accelerated(Accelerator(cpu=True, mixed_precision="bf16"), model, 1)
    assert model.autocast[:2] == [(False, True), (True, True)]
