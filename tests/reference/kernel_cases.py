"""Cases for comparing the expansion kernels with batched PyTorch, bit by bit."""

import torch

from divaug import expand, policies
from divaug.default_augmentation import DefaultAugmentation, cifar10, imagenet, plain
from divaug.operations import Operation
from divaug.operations.magnitude import Range

RGB = cifar10()
GREY = DefaultAugmentation((0.3,), (0.4,), padding=2, flip=0.5, cutout=4)


def _stamp(images, argument, center, partner):
    """Add the place, the partner and the argument to every value: all that an operation may use."""
    place = center.sum(1).to(torch.uint8)[:, None, None, None]
    return images + place + partner + argument.to(torch.uint8)[:, None, None, None]


# It refuses what it does not accept: candidates that did not draw it must not be handed to it as
# they are.
def _strict(images, argument, center, partner):
    assert bool(((argument >= 3) & (argument <= 9)).all())
    return _stamp(images, argument, center, partner)


STAMP = Operation("Stamp", _strict, "steps", 3.0, 9.0, needs_center=True, needs_partner=True)
OWN = policies.Uniform("uda", extra=((STAMP, Range(3.0, 6.0, "test")),))
OWN_THREE = policies.Uniform(
    operations_per_subpolicy=3, exclude=("Color",), extra=((STAMP, Range(3.0, 6.0, "test")),)
)

WIDE = DefaultAugmentation(RGB.mean, RGB.std, padding=40, flip=1.0, cutout=64)

#: Small enough for the interpreter; (batch, channels, height, width, candidates, policy, default,
#: further arguments of `expand`).
SMALL = {
    "bytes": (3, 3, 8, 8, 8, policies.Uniform(), None, {}),
    "one pixel": (2, 3, 1, 1, 16, policies.Uniform(), None, {}),
    "one pixel, grey": (2, 1, 1, 1, 16, policies.Uniform(), GREY, {}),
    "a row": (2, 1, 1, 7, 8, policies.Uniform("released"), None, {}),
    "a column": (2, 3, 11, 1, 8, policies.Uniform(), RGB, {}),
    "odd": (4, 3, 9, 7, 8, policies.Uniform(), RGB, {}),
    "odd, channels last": (4, 3, 9, 7, 8, policies.Uniform(), RGB, {"channels_last": True}),
    "grey, channels last": (4, 1, 9, 7, 8, policies.Uniform(), GREY, {"channels_last": True}),
    "half": (2, 3, 12, 10, 8, policies.Uniform(), RGB, {"dtype": torch.float16}),
    "wide padding": (2, 3, 6, 5, 8, policies.Uniform(), WIDE, {}),
    "normalisation alone": (2, 3, 6, 5, 3, policies.Uniform(), plain(RGB.mean, RGB.std), {}),
    "several tiles": (2, 3, 29, 31, 8, policies.Uniform(), RGB, {}),
    "several tiles, bytes": (2, 3, 33, 40, 16, policies.Uniform(), None, {}),
    "two rounds": (2, 3, 8, 8, 8, policies.RandAugment(3, 14), RGB, {}),
    "three rounds": (2, 3, 8, 8, 4, policies.RandAugment(5, 9), RGB, {}),
    "one operation": (2, 3, 8, 8, 16, policies.TrivialAugment(), RGB, {}),
    "timm's operations": (2, 3, 6, 5, 8, policies.TimmRandAugment("rand-m9-n1-p1.0-inc1"), RGB, {}),
    "no operation": (2, 3, 8, 8, 3, policies.Identity(), RGB, {}),
    "joint rows": (2, 3, 8, 8, 16, policies.AutoAugment(), RGB, {}),
    "many joint rows": (2, 3, 8, 8, 16, policies.FastAutoAugment("svhn"), None, {}),
    "schedule": (2, 3, 8, 8, 16, policies.PBA(), RGB, {"epoch": 150}),
    "schedule, several blocks": (5, 1, 4, 3, 7, policies.PBA("svhn"), None,
                                 {"epoch": torch.tensor(40)}),
    "schedule, before it begins": (3, 3, 4, 3, 5, policies.PBA(), RGB,
                                   {"epoch": torch.tensor(-3)}),
    "schedule, beyond its end": (3, 1, 4, 3, 5, policies.PBA("svhn", 9), GREY,
                                 {"epoch": 9 * 2**37}),
    "resized crop": (2, 3, 20, 17, 4, policies.Uniform(), imagenet(16), {}),
    "own operations": (2, 3, 6, 5, 6, OWN, RGB, {"channels_last": True}),
    "own operations, grey bytes": (2, 1, 5, 6, 6, OWN, None, {}),
    "own operations, three slots": (2, 3, 4, 4, 6, OWN_THREE, RGB, {}),
    "own operations, resized crop": (1, 3, 12, 10, 3, OWN, imagenet(8), {}),
}  # fmt: skip

#: For the kernels of large images, in the interpreter.
APART = {
    "bytes": (1, 3, 27, 40, 12, policies.Uniform(), None, {}),
    "full tiles": (1, 3, 32, 32, 8, policies.Uniform(), RGB, {}),
    "channels last": (1, 3, 9, 7, 12, policies.Uniform(), RGB, {"channels_last": True}),
    "grey": (1, 1, 23, 29, 12, policies.Uniform("released"), GREY, {}),
    "one word wide": (1, 3, 11, 4, 16, policies.Uniform(), RGB, {}),
    "turned and far off": (1, 3, 12, 8, 16, policies.Uniform(), WIDE, {"channels_last": True}),
    "grey words": (1, 1, 13, 12, 16, policies.Uniform(), GREY, {}),
    "one operation": (1, 3, 9, 12, 24, policies.TrivialAugment(), RGB, {}),
    "two rounds": (1, 3, 8, 8, 8, policies.RandAugment(3, 14), RGB, {}),
    "own operations": (1, 3, 9, 7, 6, OWN, RGB, {}),
}

#: At full size, for a GPU.
LARGE = {
    "CIFAR": (256, 3, 32, 32, 8, policies.Uniform(), RGB,
              {"dtype": torch.bfloat16, "channels_last": True}),
    "CIFAR, released": (256, 3, 32, 32, 8, policies.Uniform("released"), None, {}),
    "RandAugment": (64, 3, 32, 32, 8, policies.RandAugment(3, 14), RGB, {"dtype": torch.bfloat16}),
    "schedule": (256, 3, 32, 32, 4, policies.PBA(), RGB, {"epoch": 150, "dtype": torch.bfloat16}),
    "own operations": (256, 3, 32, 32, 4, policies.Uniform("uda"), RGB,
                       {"dtype": torch.bfloat16, "channels_last": True}),
    "70×61": (16, 3, 70, 61, 8, policies.Uniform(), RGB, {}),
    "grey, 150×130": (8, 1, 150, 130, 8, policies.Uniform(), GREY, {}),
    "ImageNet size": (16, 3, 224, 224, 8, policies.Uniform(), RGB,
                      {"dtype": torch.bfloat16, "channels_last": True}),
    "ImageNet size, contiguous": (8, 3, 224, 224, 8, policies.Uniform(), RGB, {}),
    "words, odd height": (8, 3, 133, 160, 8, policies.Uniform(), WIDE, {}),
    "words, grey": (8, 1, 130, 132, 8, policies.Uniform(), GREY, {"dtype": torch.bfloat16}),
    "odd and large": (4, 3, 301, 187, 8, policies.Uniform(), None, {}),
    "ImageNet default": (8, 3, 96, 80, 4, policies.Uniform(), imagenet(64), {}),
}  # fmt: skip


def images_of(case, seed):
    """Random originals; every other one of few values, so that histograms bite."""
    batch, channels, height, width = case[:4]
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, channels, height, width)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    images[1::2] = images[1::2] // 5 + 90
    return images


def run(case, images, backend, seed, **more):
    """Expand the case's images with the case's settings."""
    _, _, _, _, candidates, policy, default, settings = case
    return expand(
        images,
        candidates,
        policy,
        default,
        seed,
        step=seed + 3,
        backend=backend,
        **settings,
        **more,
    )
