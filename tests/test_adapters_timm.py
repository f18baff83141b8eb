"""timm's loaders and networks: the bytes that its workers bring, augmented in the last moment."""

import pytest
import timm
import torch
from PIL import Image
from timm.data import FastCollateMixup, Mixup, create_loader
from timm.models import resume_checkpoint
from timm.optim import create_optimizer_v2
from timm.utils import CheckpointSaver
from torch import nn
from torch.nn import functional as F
from torch.utils.data import Dataset

from divaug import DefaultAugmentation, DivAug, default_augmentation, policies
from divaug.adapters import AugmentedLoader, Numbered
from divaug.adapters.timm import augmented
from divaug.views import Views

PIXELS = torch.randint(
    0, 256, (12, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
)
# timm pins memory, which without a GPU is a warning; others are those of torch about timm.
pytestmark = pytest.mark.filterwarnings("ignore")


class Pictures(Dataset):
    """Pillow's images with the attribute that timm sets."""

    transform = None

    def __len__(self):
        return len(PIXELS)

    def __getitem__(self, number):
        image = Image.fromarray(PIXELS[number].permute(1, 2, 0).numpy())
        return self.transform(image), number


CROPPING = DefaultAugmentation((0.0,) * 3, (1.0,) * 3, padding=4, flip=0.5)


def loader_of(dataset=None, **settings):
    return create_loader(
        dataset or Pictures(),
        **{
            "input_size": (3, 32, 32),
            "batch_size": 4,
            "is_training": True,
            "no_aug": True,
            "num_workers": 0,
            "persistent_workers": False,
            "pin_memory": False,
            "device": torch.device("cpu"),
            "mean": (0.0, 0.0, 0.0),
            "std": (1.0, 1.0, 1.0),
        }
        | settings,
    )


def test_the_bytes_reach_the_augmenter_and_are_normalised_once():
    loader = augmented(loader_of(), Views(num_views=2))
    assert isinstance(loader, AugmentedLoader)
    assert len(loader) == 3
    seen = set()
    for images, labels in loader:
        for image, label in zip(images, labels, strict=True):
            number = next(n for n in range(12) if torch.equal((image * 255).byte(), PIXELS[n]))
            assert label == number
            seen.add(number)
    assert len(seen) == 12


def test_a_network_of_timm_trains_on_them():
    model = timm.create_model("test_resnet.r160_in1k", pretrained=False, num_classes=12)
    default = default_augmentation.cifar10()
    beneath = loader_of(mean=default.mean, std=default.std)
    loader = augmented(beneath, DivAug(model, default=default))
    optimizer = create_optimizer_v2(model, "sgd", lr=0.01)
    before = [part.clone() for part in model.parameters()]
    for images, labels in loader:
        assert images.shape == (16, 3, 32, 32)
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert any(not torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))


def test_mixup_goes_on_top():
    mixup = Mixup(mixup_alpha=0.8, num_classes=12)
    for images, labels in augmented(loader_of(), Views(num_views=2)):
        mixed, soft = mixup(images, labels)
        assert mixed.shape == (8, 3, 32, 32)
        assert torch.allclose(soft.sum(1), torch.ones(8))


def test_a_prefetcher_on_another_device_keeps_it():
    loader = loader_of()
    loader.device = torch.device("meta")
    assert augmented(loader, Views()).device == torch.device("meta")


def test_loaders_that_would_go_wrong_are_refused():
    with pytest.raises(TypeError, match=r"must have timm's prefetcher.*use_prefetcher=True"):
        augmented(loader_of(use_prefetcher=False), Views())
    collate = FastCollateMixup(mixup_alpha=0.8, num_classes=12)
    with pytest.raises(ValueError, match="mixes images"):
        augmented(loader_of(collate_fn=collate), Views())
    with pytest.raises(ValueError, match=r"normalises with.*\[0.5, 0.5, 0.5\].*give both the same"):
        augmented(loader_of(mean=(0.5, 0.5, 0.5)), Views())
    with pytest.raises(ValueError, match=r"erases parts.*`re_prob`"):
        augmented(loader_of(no_aug=False, re_prob=0.5), Views())


class Noting(Views):
    """Views that note the samples' numbers."""

    numbers = ()

    def __call__(self, images, labels=None, *, index=None, epoch=None):
        self.numbers = (*self.numbers, *index.tolist())
        return super().__call__(images, labels, index=index, epoch=epoch)


@pytest.mark.parametrize("reread", [False, True])
def test_samples_numbers_come_through(reread):
    settings = {"use_multi_epochs_loader": reread}
    if reread:  # before this version it starts its workers when it is made
        pytest.importorskip("timm", minversion="1.0.31")
    augment = Noting(num_views=2)
    for images, labels in augmented(loader_of(Numbered(Pictures()), **settings), augment):
        numbers = torch.tensor(augment.numbers[-4:])
        assert torch.equal((images[::2] * 255).byte(), PIXELS[numbers])
        assert torch.equal(labels[::2], numbers)
    assert sorted(augment.numbers) == list(range(12))


def test_the_context_and_what_timms_script_asks_of_its_prefetcher():
    model = timm.create_model("test_resnet.r160_in1k", pretrained=False, num_classes=12)
    inside = []
    model.register_forward_hook(lambda *_: inside.append(torch.is_autocast_enabled("cpu")))
    loader = augmented(
        loader_of(), DivAug(model), context=lambda: torch.autocast("cpu", torch.bfloat16)
    )
    assert loader.mixup_enabled is False
    next(iter(loader))
    assert inside == [True]


def test_images_that_timm_has_augmented_are_a_warning(recwarn):
    augmented(loader_of(Numbered(Pictures())), Views())
    assert not any("augmented twice" in str(each.message) for each in recwarn)
    loader = loader_of(Numbered(Pictures()), no_aug=False, auto_augment="rand-m9")
    found = r"with RandomResizedCropAndInterpolation, RandomHorizontalFlip, RandAugment, so"
    with pytest.warns(UserWarning, match=found + r".*augmented twice.*no_aug=True"):
        augmented(loader, Views())


def of_two_processes(monkeypatch, rank):
    """Let samplers be made as they are on one of two processes."""
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: rank)


@pytest.mark.parametrize("dataset", [Pictures(), Numbered(Pictures())])
@pytest.mark.parametrize("repeats", [2, 3])
def test_every_occurrence_of_repeated_augmentation_draws_for_itself(monkeypatch, dataset, repeats):
    """Two repeats come to two processes, three to one of them twice."""
    views = {}
    for rank in (0, 1):
        of_two_processes(monkeypatch, rank)
        beneath = loader_of(dataset, batch_size=3, distributed=True, num_aug_repeats=repeats)
        loader = augmented(beneath, Views(policies.Uniform(), CROPPING, pool=PIXELS))
        for step, (images, labels) in enumerate(loader):
            for image, label in zip(images, labels.tolist(), strict=True):
                views.setdefault((step, label), []).append(tuple(image.flatten().tolist()))
    assert sum(map(len, views.values())) == 12
    assert max(map(len, views.values())) == repeats
    assert all(len(set(each)) == len(each) for each in views.values())


def test_the_epoch_that_timms_script_sets_reaches_the_sampler(monkeypatch):
    """It looks at a loader's dataset, then at its `batch_sampler`, then at its `sampler`."""
    of_two_processes(monkeypatch, 0)
    loader = augmented(loader_of(distributed=True), Views())
    listening = [
        each
        for each in (loader.dataset, loader.batch_sampler, loader.sampler)
        if hasattr(each, "set_epoch")
    ]
    assert listening == [loader.sampler]
    loader.set_epoch(5)
    assert loader.sampler.epoch == 5


def trained(folder, epochs, resume=False):
    """Images, weights and last step of a training that timm's functions save and resume."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 12))
        optimizer = create_optimizer_v2(model, "sgd", lr=0.01)
        saver = CheckpointSaver(model, optimizer, checkpoint_dir=str(folder))
        loader = augmented(loader_of(), DivAug(model, default=CROPPING))
        path = str(folder / "last.pth.tar")
        start = resume_checkpoint(model, path, optimizer) if resume else 0
        seen = []
        for epoch in range(start, epochs):
            torch.manual_seed(epoch)  # for the order of the samples
            loader.set_epoch(epoch)
            for images, labels in loader:
                seen.append(images)
                F.cross_entropy(model(images), labels).backward()
                optimizer.step()
                optimizer.zero_grad()
            saver.save_checkpoint(epoch, metric=epoch)
    return seen, list(model.parameters()), loader.augment.state_dict()["step"]


def test_a_run_that_timm_resumes_draws_what_the_uninterrupted_one_does(tmp_path):
    whole, weights, last = trained(tmp_path, 3)
    trained(tmp_path, 2)
    rest, resumed, step = trained(tmp_path, 3, resume=True)
    assert step == last == len(whole) == 9
    for one, other in zip(rest + resumed, whole[6:] + weights, strict=True):
        assert torch.equal(one, other)
