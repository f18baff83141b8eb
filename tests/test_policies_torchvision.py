"""Policies that torchvision has too give the same pixels at every strength, with either sign."""

import pytest
from torchvision.transforms import InterpolationMode, RandAugment, TrivialAugmentWide
from torchvision.transforms.autoaugment import _apply_op
from torchvision.transforms.functional import pil_to_tensor, to_pil_image

from divaug import expand, policies
from tests.reference import samples
from tests.reference.policy_replay import ENHANCE


def every_draw(policy, size, steps):
    """(operation, magnitude, argument) → pixels, of all that so many hundred draws hold."""
    image = samples.image("full", 3, *size, "torchvision")[None]
    drawn = {}
    for step in range(steps):
        made, these = expand(image, 100, policy, step=step)
        for j in range(100):
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


@pytest.mark.parametrize("size", [(32, 32), (45, 60)], ids=str)
def test_trivial_augment(size):
    image, drawn = every_draw(policies.TrivialAugment(), size, 120)
    space = TrivialAugmentWide()._augmentation_space(31)
    assert len(drawn) == 9 * 61 + 4 * 31  # zero has one sign
    for (name, level, argument), found in drawn.items():
        magnitudes, _ = space[name]
        # Its sixteenth of 31 magnitudes to 32 is 15.999999; the authors' is 16.
        this = round(float(magnitudes[round(level * 30)]), 4) if magnitudes.ndim else 0.0
        check_pixels(image, name, argument, this, found)


@pytest.mark.parametrize("size", [(32, 32), (224, 192)], ids=str)
@pytest.mark.parametrize("m", [3, 4, 9, 14, 23, 30])
def test_rand_augment_with_its_scale(m, size):
    """The argument of every operation to float32, and the pixels."""
    image, drawn = every_draw(policies.RandAugment(1, m, scale=30), size, 6)
    space = RandAugment()._augmentation_space(31, size)
    assert {name for name, _, _ in drawn} == set(space) - {"Identity"}
    assert len(drawn) == 9 * 2 + 4
    for (name, _, argument), found in drawn.items():
        magnitudes, signed = space[name]
        this = float(magnitudes[m]) if magnitudes.ndim else 0.0
        if name.startswith("Translate"):
            this = int(this)
        strength = abs(argument - (name in ENHANCE)) if signed else argument
        assert strength == pytest.approx(this, rel=1e-5)
        check_pixels(image, name, argument, this, found)


def test_at_the_usual_scale_the_same_numbers_are_another_strength():
    """What they were told apart by: 27 degrees and 1 bit against 9 degrees and 7 bits."""
    for scale, degrees, bits in ((10, 27.0, 1.0), (30, 9.0, 7.0)):
        drawn = every_draw(policies.RandAugment(1, 9, scale), (8, 8), 3)[1]
        assert {abs(argument) for name, _, argument in drawn if name == "Rotate"} == {degrees}
        assert {argument for name, _, argument in drawn if name == "Posterize"} == {bits}
