"""Policies that torchvision has too give the same pixels at every strength, with either sign."""

import pytest
from torchvision.transforms import InterpolationMode, TrivialAugmentWide
from torchvision.transforms.autoaugment import _apply_op
from torchvision.transforms.functional import pil_to_tensor, to_pil_image

from divaug import expand, policies
from tests.reference import samples
from tests.reference.policy_replay import ENHANCE

SIZES = pytest.mark.parametrize("size", [(32, 32), (45, 60)], ids=str)


def every_draw(policy, size):
    """(operation, magnitude, argument) → pixels, of all that 12,000 draws for one image hold."""
    image = samples.images(3, *size, 1, "torchvision")
    drawn, candidates = {}, 1000
    for step in range(12):
        made, these = expand(image, candidates, policy, step=step)
        for j in range(candidates):
            one = these[0, j]
            if bool(one.applied[0]):
                name = these.names[int(one.operation[0])]
                drawn[name, float(one.magnitude[0]), float(one.argument[0])] = made[0, j]
    return image[0], drawn


def torchvisions(image, name, magnitude):
    """What its code makes of an image; its translations move the other way."""
    magnitude = -magnitude if name in ("TranslateX", "TranslateY") else magnitude
    made = _apply_op(to_pil_image(image), name, magnitude, InterpolationMode.NEAREST, None)
    return pil_to_tensor(made)


def check_pixels(image, name, argument, magnitude, found):
    middle = 1.0 if name in ENHANCE else 0.0
    magnitude = magnitude if argument >= middle else -magnitude
    difference = (torchvisions(image, name, magnitude).int() - found.int()).abs().max()
    # Factors are kept in float32: a byte in thousands is one off.
    assert difference <= (name in ENHANCE), (name, argument, magnitude)


@SIZES
def test_trivial_augment(size):
    image, drawn = every_draw(policies.TrivialAugment(), size)
    space = TrivialAugmentWide()._augmentation_space(31)
    assert len(drawn) == 9 * 61 + 4 * 31  # zero has one sign
    for (name, level, argument), found in drawn.items():
        magnitudes, _ = space[name]
        # Its sixteenth of 31 magnitudes to 32 is 15.999999; the authors' is 16.
        this = round(float(magnitudes[round(level * 30)]), 4) if magnitudes.ndim else 0.0
        check_pixels(image, name, argument, this, found)
