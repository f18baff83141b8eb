"""However a batch lies in memory, and however its arguments are written, the answer is the same."""

import pytest
import torch

from divaug.operations import apply
from tests.reference import samples
from tests.test_operations_laws import NAMES, example, run


def _sliced(images):
    wide = images.repeat_interleave(2, dim=2).repeat_interleave(3, dim=3)
    return wide[:, :, 1::2, 1::3]


LAYOUTS = {
    "channels-last": lambda images: images.to(memory_format=torch.channels_last),
    "sliced": _sliced,
    "transposed": lambda images: images.transpose(2, 3).contiguous().transpose(2, 3),
    "batch inside": lambda images: images.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2),
    "every second": lambda images: images.repeat_interleave(2, dim=0)[::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [1, 3])
def test_the_layout_in_memory_does_not_matter(layout, channels):
    lay = LAYOUTS[layout]
    for name in NAMES:
        images, _, argument, centers, partners = example(name, channels=channels)
        laid = lay(images)
        assert torch.equal(laid, images)
        answer = run(laid, name, argument, centers.T.contiguous().T, lay(partners))
        assert torch.equal(answer, run(images, name, argument, centers, partners)), name


@pytest.mark.parametrize("name", NAMES)
def test_one_image_expanded_to_a_batch(name):
    images, _, argument, centers, partners = example(name)
    one, partner = images[4:5], partners[3:4]
    answer = run(one.expand_as(images), name, argument, centers, partner.expand_as(images))
    full = run(one.repeat(12, 1, 1, 1), name, argument, centers, partner.repeat(12, 1, 1, 1))
    assert torch.equal(answer, full)


def test_a_number_a_whole_tensor_and_a_float_tensor_say_the_same():
    images = samples.images(3, 9, 9, 6)
    answer = apply(images, "Posterize", 3)
    for value in (3.0, torch.full((6,), 3), torch.full((6,), 3.0), torch.full((6,), 3.0).double()):
        assert torch.equal(apply(images, "Posterize", value), answer)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16], ids=str)
def test_channels_last_in_channels_last_out(dtype):
    images = samples.images(3, 9, 7, 6).clamp(max=1).to(dtype)
    laid = images.to(memory_format=torch.channels_last)
    for name, argument in (("Invert", None), ("Brightness", 1.0), ("Rotate", 30.0)):
        answer = apply(laid, name, argument)
        assert answer.is_contiguous(memory_format=torch.channels_last)
        assert apply(images, name, argument).is_contiguous()
