"""timm's loaders and networks: the bytes that its workers bring, augmented in the last moment."""

import pytest
import timm
import torch
from PIL import Image
from timm.data import FastCollateMixup, Mixup, create_loader
from timm.optim import create_optimizer_v2
from torch.nn import functional as F
from torch.utils.data import Dataset

from divaug import DivAug, Views, default_augmentation
from divaug.adapters import AugmentedLoader, Numbered
from divaug.adapters.timm import augmented, collate

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
        return self.transform(image), number % 10


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
            assert label == number % 10
            seen.add(number)
    assert len(seen) == 12


def test_a_network_of_timm_trains_on_them():
    model = timm.create_model("test_resnet.r160_in1k", pretrained=False, num_classes=10)
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
    mixup = Mixup(mixup_alpha=0.8, num_classes=10)
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
    collate = FastCollateMixup(mixup_alpha=0.8, num_classes=10)
    with pytest.raises(ValueError, match="mixes images"):
        augmented(loader_of(collate_fn=collate), Views())
    with pytest.raises(ValueError, match=r"normalises with.*\[0.5, 0.5, 0.5\].*give both the same"):
        augmented(loader_of(mean=(0.5, 0.5, 0.5)), Views())
    half = loader_of(img_dtype=torch.bfloat16)
    with pytest.raises(ValueError, match=r"of torch.float32, `loader` of torch.bfloat16; give"):
        augmented(half, Views())
    images, _ = next(iter(augmented(half, Views(dtype=torch.bfloat16))))
    assert images.dtype == torch.bfloat16
    assert augmented(half, DivAug(torch.nn.Flatten()))  # which goes by its model
    with pytest.raises(ValueError, match=r"started its workers.*collate_fn"):
        augmented(loader_of(Numbered(Pictures()), use_multi_epochs_loader=True), Views())
    with pytest.raises(ValueError, match=r"erases parts.*`re_prob`"):
        augmented(loader_of(no_aug=False, re_prob=0.5), Views())


class Noting(Views):
    """Views that note the samples' numbers."""

    numbers = ()

    def __call__(self, images, labels=None, *, index=None, epoch=None):
        self.numbers = (*self.numbers, *index.tolist())
        return super().__call__(images, labels, index=index, epoch=epoch)


@pytest.mark.parametrize("settings", [{}, {"use_multi_epochs_loader": True, "collate_fn": collate}])
def test_samples_numbers_come_through(settings):
    augment = Noting(num_views=2)
    for images, labels in augmented(loader_of(Numbered(Pictures()), **settings), augment):
        numbers = torch.tensor(augment.numbers[-4:])
        assert torch.equal((images[::2] * 255).byte(), PIXELS[numbers])
        assert torch.equal(labels[::2], numbers % 10)
    assert sorted(augment.numbers) == list(range(12))


def test_the_context_and_what_timms_script_asks_of_its_prefetcher():
    model = timm.create_model("test_resnet.r160_in1k", pretrained=False, num_classes=10)
    inside = []
    model.register_forward_hook(lambda *_: inside.append(torch.is_autocast_enabled("cpu")))
    loader = augmented(
        loader_of(), DivAug(model), context=lambda: torch.autocast("cpu", torch.bfloat16)
    )
    assert loader.mixup_enabled is False
    next(iter(loader))
    assert inside == [True]
