"""Masks go where the pixels of their images go: against Pillow, loops and the images."""

import copy
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from PIL import Image

from divaug import DivAug, Views, _follow, expand, follow, policies, score, select
from divaug._photometric import Photometric
from divaug.default_augmentation import DefaultAugmentation, cifar10, imagenet
from divaug.lab.bench.device import waits_forbidden
from divaug.lab.methods import Settings, build
from divaug.operations import OPERATIONS, Operation
from divaug.operations.magnitude import Range
from divaug.operations.resample import pick
from tests.reference import samples
from tests.reference.interpreter import run_interpreted
from tests.reference.pillow_operations import from_pillow, pillow_apply, to_pillow
from tests.reference.policy_replay import GEOMETRIC, entries
from tests.reference.small_models import network

IGNORED = 255
GEOMETRY = policies.Uniform(exclude=tuple(n for n in OPERATIONS if n not in GEOMETRIC))
STILL = policies.Uniform(exclude=GEOMETRIC)
IMAGES = samples.images(3, 12, 12, 6)
SCALED = DefaultAugmentation((0.0,) * 3, (1.0,) * 3, padding=3, flip=0.5)
PADDED = DefaultAugmentation((0.5, 0.4, 0.3), (0.2, 0.3, 0.4), padding=3, flip=0.5, cutout=5)


def classes(height, width, count=6, most=250):
    return torch.randint(0, most, (count, height, width), generator=samples.generator("masks"))


def positions(height, width, count):
    """Masks that say which pixel is which."""
    return torch.arange(height * width).view(1, height, width).expand(count, -1, -1).contiguous()


# --- against Pillow ----------------------------------------------------------------------------


def pillow_mask(mask, subpolicy):
    """The operations that move pixels, one after the other, on a mask whose 0 is outside."""
    shifted = to_pillow((mask + 1).to(torch.uint8)[None])
    for name, applied, argument, *_ in subpolicy:
        if applied and name in GEOMETRIC:
            shifted = pillow_apply(shifted, name, argument)
    moved = from_pillow(shifted)[0].long()
    return torch.where(moved == 0, IGNORED, moved - 1)


@pytest.mark.parametrize("policy", [
    policies.Uniform(), policies.Uniform("released"), policies.RandAugment(3, 20),
    policies.AutoAugment(), policies.TrivialAugment(),
], ids=lambda policy: type(policy).__name__)  # fmt: skip
@pytest.mark.parametrize("size", [(12, 12), (9, 17), (1, 1)], ids=str)
def test_equal_to_pillow(policy, size):
    images, masks = samples.images(3, *size, 6), classes(*size)
    _, subpolicies = expand(images, 8, policy, seed=4)
    found = follow(masks, subpolicies, fill=IGNORED)
    assert found.shape == (6, 8, *size)
    for i, j in np.ndindex(6, 8):
        drawn = entries(subpolicies, i, j)
        assert torch.equal(found[i, j], pillow_mask(masks[i], drawn)), drawn


# --- against the images ------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(12, 12), (7, 18)], ids=str)
@pytest.mark.parametrize("default", [None, PADDED, replace(PADDED, padding=0)],
                         ids=["bytes", "padded", "flipped"])  # fmt: skip
def test_images_that_follow_themselves_are_their_candidates(default, size):
    """Where all operations move pixels, an image is a mask of its own."""
    images, index = samples.images(3, *size, 6), torch.tensor([7, 70, 1, 0, 12, 5])
    bare = None if default is None else replace(default, cutout=0)
    more = {"index": index, "step": 3}
    candidates, _ = expand(images, 8, GEOMETRY, bare, 9, **more)
    _, subpolicies = expand(images, 8, GEOMETRY, default, 9, **more)
    found = follow(images, subpolicies, fill=0)
    if bare is not None:
        scale, bias = (torch.tensor(v).view(3, 1, 1) for v in bare.scale_and_bias())
        found = found.float().mul(scale).add(bias)
    assert torch.equal(found, candidates)


def test_what_leaves_pixels_in_their_places_leaves_masks_alone():
    """Cutout of the default augmentation, and the operations that change colours, are such."""
    masks = classes(12, 12)
    still = DefaultAugmentation((0.5,) * 3, (0.5,) * 3, cutout=6)
    _, subpolicies = expand(IMAGES, 16, STILL, still)
    drawn = {subpolicies.names[i] for i in subpolicies.operation.unique().tolist()}
    assert drawn == set(OPERATIONS) - set(GEOMETRIC)
    found = follow(masks, subpolicies, fill=IGNORED)
    assert torch.equal(found, masks[:, None].expand(-1, 16, -1, -1))


@pytest.mark.parametrize("size", [(12, 12), (9, 17)], ids=str)
def test_flips_and_crops_of_the_uda_space(size):
    images, masks = samples.images(3, *size, 24), positions(*size, 24)
    _, subpolicies = expand(images, 8, policies.Uniform("uda"), seed=2)
    found = follow(masks, subpolicies, fill=-1)
    seen = set()
    for i, j in np.ndindex(24, 8):
        moving = [(name, argument) for name, applied, argument, *_ in entries(subpolicies, i, j)
                  if applied and name in (*GEOMETRIC, *UDA_MOVES)]  # fmt: skip
        if len(moving) == 1 and moving[0][0] in UDA_MOVES:
            name, argument = moving[0]
            assert torch.equal(found[i, j], UDA_MOVES[name](masks[i], argument)), moving
            seen.add(name)
    assert seen == set(UDA_MOVES)


def cropped(mask, pixels):
    height, width = mask.shape
    low = round(pixels)
    return nearest(mask, low, low, round(height - pixels) - low, round(width - pixels) - low,
                   height, width)  # fmt: skip


def nearest(mask, top, left, high, wide, height, width):
    """The pixel whose square holds the middle of each new one, in fractions."""
    rows = [top + math.floor(Fraction(2 * y + 1, 2) * high / height) for y in range(height)]
    columns = [left + math.floor(Fraction(2 * x + 1, 2) * wide / width) for x in range(width)]
    return mask[rows][:, columns]


UDA_MOVES = {
    "FlipLR": lambda mask, _: mask.flip(1),
    "FlipUD": lambda mask, _: mask.flip(0),
    "CropBilinear": cropped,
}


def test_resized_crops_take_the_nearest_pixel():
    default = replace(imagenet(10), flip=0.5)
    images, masks = samples.images(3, 23, 17, 5), positions(23, 17, 5)
    _, subpolicies = expand(images, 6, policies.Identity(), default, 5, step=2)
    found = follow(masks, subpolicies, fill=-1)
    assert found.shape == (5, 6, 10, 10)
    drawn = subpolicies.placement
    for i, j in np.ndindex(5, 6):
        expected = nearest(masks[i], *drawn.box[i, j].tolist(), 10, 10)
        assert torch.equal(found[i, j], expected.flip(1) if drawn.flip[i, j] else expected)


def test_resized_crops_take_the_same_part_as_the_image():
    """A ramp of brightness, resized bilinearly, is where the mask says it was."""
    ramp = torch.arange(64, dtype=torch.uint8).mul(4).expand(3, 64, 64)
    images = torch.stack([ramp, ramp.transpose(1, 2)]).contiguous()
    default = DefaultAugmentation((0.0,) * 3, (1.0,) * 3, flip=0.5,
                                  photometric=Photometric(48, jitter=0, lighting=0))  # fmt: skip
    candidates, subpolicies = expand(images, 8, policies.Identity(), default)
    found = follow(images[:, 0].float(), subpolicies, fill=-1)
    # Half a pixel is two steps of brightness; at its edges a crop repeats its last pixel.
    assert (candidates[:, :, 0] * 255 - found).abs().max() <= 4.0


def test_nearest_pixels_are_pillows_unless_two_are_as_near():
    for size, inside in ((7, 12), (12, 5), (31, 8), (8, 31)):
        row = torch.arange(inside, dtype=torch.uint8).view(1, 1, 1, inside)
        found = pick(row, 3, torch.tensor([0]), torch.tensor([inside]), size).flatten()
        image = Image.fromarray(row[0, 0].numpy()).resize((size, 1), Image.Resampling.NEAREST)
        tie = [((2 * x + 1) * inside) % (2 * size) == 0 for x in range(size)]
        same = found.numpy() == np.asarray(image)[0]
        assert all(same | np.array(tie))


# --- any kind of mask --------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "fill"), [
    (torch.bool, True), (torch.bool, 0), (torch.uint8, 255), (torch.int8, -128), (torch.int16, -1),
    (torch.int64, -100), (torch.uint16, 65535), (torch.uint32, 2**32 - 2), (torch.uint64, 2**63),
    (torch.bool, np.True_), (torch.float32, math.nan), (torch.float32, 0.5), (torch.float16, -1),
    (torch.float64, math.inf),
])  # fmt: skip
def test_every_dtype_and_any_planes(dtype, fill):
    masks = (classes(12, 12) % 100).view(6, 1, 12, 12).expand(-1, 5, -1, -1).clone()
    masks += torch.arange(5).view(5, 1, 1)
    masks = masks.to(dtype)
    _, subpolicies = expand(IMAGES, 8, GEOMETRY, PADDED)
    found = follow(masks, subpolicies, fill=fill)
    where = follow(positions(12, 12, 6), subpolicies, fill=-1)
    assert (where < 0).any()
    assert (where >= 0).any()
    assert found.dtype == dtype
    assert found.shape == (6, 8, 5, 12, 12)
    for i, j in np.ndindex(6, 8):
        expected = masks[i].numpy().reshape(5, -1)[:, where[i, j].clamp(min=0)]
        expected[:, where[i, j].numpy() < 0] = fill
        np.testing.assert_array_equal(found[i, j].numpy(), expected)


def test_pixels_beyond_two_bytes():
    """Rows of a large image: numbers that need the third byte."""
    images, masks = torch.zeros(1, 1, 300, 260, dtype=torch.uint8), positions(300, 260, 1)
    _, subpolicies = expand(images, 2, policies.Single("TranslateY", 1.0))
    found = follow(masks, subpolicies, fill=-1)
    for j in range(2):
        down = round(float(-subpolicies.argument[0, j, 0]))
        kept = masks[0, max(0, -down) : 300 - max(0, down)]
        assert torch.equal(found[0, j, max(0, down) : 300 - max(0, -down)], kept)
        assert int((found[0, j] == -1).sum()) == abs(down) * 260


@pytest.mark.parametrize("chunk", [1, 12 * 12 * 8, 12 * 12 * 8 * 4])
def test_chunks_do_not_matter(monkeypatch, chunk):
    masks = classes(12, 12)
    _, subpolicies = expand(IMAGES, 8, None, PADDED)
    expected = follow(masks, subpolicies, fill=IGNORED)
    monkeypatch.setattr(_follow, "CHUNK_CANDIDATE_PIXELS", chunk)
    assert torch.equal(follow(masks, subpolicies, fill=IGNORED), expected)


def test_what_was_made_in_inference_mode_serves_outside_of_it():
    augment, masks = Views(GEOMETRY, num_views=2), torch.rand(1, 12, 12)
    with torch.inference_mode():
        augment(IMAGES[:1])
        inside = augment.follow(masks, fill=0)
    learned = masks.clone().requires_grad_()
    outside = augment.follow(learned, fill=0)
    assert torch.equal(outside, inside)
    outside.sum().backward()
    shown = augment.follow(positions(12, 12, 1), fill=-1) >= 0
    assert learned.grad.sum() == shown.sum()


def test_no_images():
    _, subpolicies = expand(torch.zeros(0, 3, 8, 8, dtype=torch.uint8), 4, None, PADDED)
    assert follow(torch.zeros(0, 8, 8), subpolicies, fill=0).shape == (0, 4, 8, 8)


# --- operations of one's own -------------------------------------------------------------------


def _turn(images, *_):
    return images.flip(2, 3)


@pytest.mark.parametrize("moving", [_turn, None], ids=["moving", "still"])
def test_operations_of_ones_own_say_how_they_move(moving):
    turn = Operation("Turn", _turn, moving=moving)
    policy = policies.Uniform(operations_per_subpolicy=1, extra=((turn, Range(0, 0, "test")),))
    masks = classes(12, 12)
    _, subpolicies = expand(IMAGES, 64, policy)
    found = follow(masks, subpolicies, fill=IGNORED)
    turned = ((subpolicies.operation == 16) & subpolicies.applied)[..., 0].nonzero().tolist()
    assert turned
    for i, j in turned:
        assert torch.equal(found[i, j], masks[i].flip(0, 1) if moving else masks[i])


def test_what_an_operation_of_ones_own_fills_in_is_no_pixel():
    """A shift that leaves grey, and one that leaves what a second image has there."""

    def grey(images, *_):
        return torch.cat([torch.full_like(images[..., :4], 128), images[..., :-4]], -1)

    def paste(images, _argument, _center, partner):
        return torch.cat([partner[..., :4], images[..., :-4]], -1)

    for operation in (Operation("Grey", grey, moving=grey),
                      Operation("Paste", paste, moving=paste, needs_partner=True)):  # fmt: skip
        policy = policies.Uniform(exclude=OPERATIONS, operations_per_subpolicy=1,
                                  extra=((operation, Range(0, 0, "test")),))  # fmt: skip
        # Partners of another pool than the pixels have.
        _, subpolicies = expand(IMAGES[:2], 24, policy, pool=IMAGES)
        assert int(subpolicies.partner.max()) > 1
        moved = follow(positions(12, 12, 2), subpolicies, fill=-1)[subpolicies.applied[..., 0]]
        assert len(moved)
        assert (moved[..., :4] == -1).all()
        assert torch.equal(moved[..., 4:], positions(12, 12, len(moved))[..., :-4])


# --- the augmenters ----------------------------------------------------------------------------


@pytest.mark.parametrize("default", [None, SCALED], ids=["bytes", "padded"])
@pytest.mark.parametrize("index", [None, torch.tensor([4, 40, 1, 0, 9, 3])], ids=["", "numbered"])
def test_views_of_divaug_and_their_masks(default, index):
    """A mask that is the image itself, where pixels are moved and not changed."""
    augment = DivAug(network(5), 8, 4, policy=GEOMETRY, default=default)
    for _ in range(3):
        views, _ = augment(IMAGES, index=index)
        moved = augment.follow(IMAGES, fill=0)
        assert torch.equal(moved, (views * 255).round().to(torch.uint8))


@pytest.mark.parametrize(
    "default", [None, cifar10(), imagenet(9)], ids=["bytes", "padded", "crops"]
)
def test_masks_of_divaug_are_those_of_the_chosen(default):
    masks = classes(12, 12)
    model = network(5)
    augment = DivAug(model, 8, 4, default=default, seed=3)
    for step in range(3):
        augment(IMAGES)
        candidates, subpolicies = expand(IMAGES, 8, None, default, 3, step=step)
        chosen = select(score(model, candidates), 4, seed=3, step=step)
        every = follow(masks, subpolicies, fill=IGNORED)
        expected = torch.stack([every[b, chosen[b]] for b in range(6)])
        assert torch.equal(augment.follow(masks, fill=IGNORED), expected.flatten(0, 1))
        assert torch.equal(follow(masks, subpolicies, fill=IGNORED, chosen=chosen), expected)


def test_without_augmentation_masks_are_cut_as_images_are():
    images, masks = samples.images(3, 12, 14, 2), classes(12, 14, 2)
    augment = build("none", Settings(network(5), imagenet(8)))
    with pytest.raises(ValueError, match="nothing to follow"):
        augment.follow(masks, fill=IGNORED)
    augment(images)
    with pytest.raises(ValueError, match=r"got \(12,\)"):
        augment.follow(masks[0, :, 0], fill=IGNORED)
    with pytest.raises(ValueError, match="the size of their images, 12 × 14, got 10 × 10"):
        augment.follow(masks[:, :10, :10], fill=IGNORED)
    with pytest.raises(TypeError, match="got list; stack"):
        augment.follow([masks], fill=IGNORED)
    assert torch.equal(augment.follow(masks, fill=IGNORED), masks[:, 2:10, 3:11])


def test_there_is_nothing_to_follow_before_the_first_call_nor_after_a_state_was_loaded():
    masks = classes(12, 12)
    augment = DivAug(network(5), 4, 2)
    for _ in range(2):
        with pytest.raises(ValueError, match="nothing to follow: augment the masks' images first"):
            augment.follow(masks, fill=IGNORED)
        augment(IMAGES)
        augment.follow(masks, fill=IGNORED)
        augment.load_state_dict(augment.state_dict())


def test_copies_have_nothing_to_follow_and_do_not_disturb():
    masks = classes(12, 12)
    augment = Views(GEOMETRY, num_views=2)
    augment(IMAGES)
    before = augment.follow(masks, fill=IGNORED)
    for other in (copy.deepcopy(augment), pickle.loads(pickle.dumps(augment))):
        with pytest.raises(ValueError, match="nothing to follow"):
            other.follow(masks, fill=IGNORED)
        other(IMAGES)
    assert torch.equal(augment.follow(masks, fill=IGNORED), before)


def test_masks_are_no_labels():
    augment = Views(GEOMETRY, num_views=2)
    for masks in (classes(12, 12), classes(12, 12)[:, None]):
        with pytest.raises(ValueError, match=r"of the images' size.*augment\.follow\(masks"):
            augment(IMAGES, masks)
    other = torch.zeros(6, 4, 12)  # whatever it is, it does not lie over the image
    assert augment(IMAGES, other)[1].shape == (12, 4, 12)
    soft = torch.rand(12, 12)  # as many images, and classes, as pixels
    assert augment(IMAGES.repeat(2, 1, 1, 1), soft)[1].shape == (24, 12)


# --- what is refused ---------------------------------------------------------------------------

SIX = classes(12, 12)


@pytest.mark.parametrize(("masks", "fill", "error", "message"), [
    ([SIX], 255, TypeError, "tensor .*got list; stack"),
       (SIX[:, :0], 0, ValueError, "from 1 to 16,777,215 pixels, got 0 × 12"),
    (SIX.expand(2, 1, 6, 12, 12), 255, ValueError, r"masks.flatten\(1, -3\)"),
    (SIX[0], 255, ValueError, r"\[B,H,W\] or \[B,C,H,W\], got \(12, 12\); pass masks"),
    (SIX[:5], 255, ValueError, "one for each of 6 images, got 5"),
    (SIX.to("meta"), 255, ValueError, "on meta and the images were on cpu"),
    (SIX, "255", TypeError, "`fill` must be a number.*got '255'"),
    (SIX, None, TypeError, "`fill` must be a number.*got None"),
    (SIX, True, TypeError, "`fill` must be a number"),
    (SIX, 0.5, ValueError, "an int in .*got 0.5"),
    (SIX.to(torch.uint8), -100, ValueError, r"in \[0, 255\] for masks of torch.uint8, got -100"),
    (SIX.to(torch.uint8), 256, ValueError, r"in \[0, 255\].*masks.long\(\)"),
    (SIX > 3, 2, ValueError, r"in \[0, 1\] for masks of torch.bool, got 2"),
    (torch.zeros(1).expand(6, 4096, 4096), 0, ValueError, "to 16,777,215 pixels, got 4096 × 4096"),
])  # fmt: skip
def test_errors_say_what_to_do(masks, fill, error, message):
    _, subpolicies = expand(IMAGES, 2)
    with pytest.raises(error, match=message):
        follow(masks, subpolicies, fill=fill)


@pytest.mark.parametrize(("chosen", "error", "message"), [
    ([[0]] * 6, TypeError, "integer tensor .B,S., got list"),
    (torch.zeros(6, 1), TypeError, "got torch.float32"),
    (torch.zeros(6, dtype=torch.int64), ValueError, r"\[B,S\] with B=6 and .* got \(6,\)"),
    (torch.zeros(1, 2, dtype=torch.int64), ValueError, r"with B=6 and .* got \(1, 2\)"),
    (torch.zeros(6, 0, dtype=torch.int64), ValueError, r"S ≥ 1, .* got \(6, 0\)"),
    (torch.full((6, 1), -1), ValueError, r"lie in \[0, E=4\), got -1 to -1"),
    (torch.full((6, 1), 4), ValueError, "got 4 to 4"),
])  # fmt: skip
def test_a_choice_that_names_no_candidates(chosen, error, message):
    _, subpolicies = expand(IMAGES, 4)
    with pytest.raises(error, match=message):
        follow(SIX, subpolicies, fill=IGNORED, chosen=chosen)


@pytest.mark.parametrize("dtype", [
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.uint16, torch.uint32, torch.uint64,
], ids=str)  # fmt: skip
def test_a_choice_of_any_width(dtype):
    _, subpolicies = expand(IMAGES, len(IMAGES))
    chosen = torch.tensor([[1, 0]] * len(IMAGES))
    expected = follow(SIX, subpolicies, fill=IGNORED, chosen=chosen)
    assert torch.equal(follow(SIX, subpolicies, fill=IGNORED, chosen=chosen.to(dtype)), expected)
    nothing = follow(SIX[:0], subpolicies[:0], fill=IGNORED, chosen=chosen[:0].to(dtype))
    assert nothing.shape == (0, 2, *SIX.shape[1:])


def test_sub_policies_that_are_none_or_of_other_images():
    _, subpolicies = expand(IMAGES, 2)
    with pytest.raises(ValueError, match="at least one for each image, got E=0"):
        follow(SIX, subpolicies[:, :0], fill=IGNORED)
    for wrong in (None, "text", subpolicies[0]):
        with pytest.raises(TypeError, match=r"SubPolicies \[B,E,K\] that `expand` returned"):
            follow(SIX, wrong, fill=IGNORED)
    _, crops = expand(IMAGES, 2, None, imagenet(8))
    with pytest.raises(ValueError, match="outside of images of 3×3"):
        follow(SIX[:, :3, :3], crops, fill=IGNORED)


# --- on a GPU ----------------------------------------------------------------------------------


def test_equal_in_kernels_in_the_interpreter():
    pytest.importorskip("triton")
    assert run_interpreted("tests.reference.run_follow_kernel") == ["followed", "6"]


@pytest.mark.gpu
def test_on_a_gpu_masks_are_the_same_and_nobody_waits():
    images, masks = samples.images(3, 32, 32, 16), classes(32, 32, 16)
    model = network(5)
    here = DivAug(model, 8, 4, default=cifar10(), method="uniform")
    there = DivAug(copy.deepcopy(model).cuda(), 8, 4, default=cifar10(), method="uniform")
    far_images, far_masks = images.cuda(), masks.cuda()
    # Kernels are compiled, and numbers that never change copied, once: the first call waits.
    there(far_images)
    there.follow(far_masks, fill=IGNORED)
    here(images)
    for _ in range(2):
        here(images)
        there(far_images)
        with waits_forbidden():
            far = there.follow(far_masks, fill=IGNORED)
        assert torch.equal(far.cpu(), here.follow(masks, fill=IGNORED))
