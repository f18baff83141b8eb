"""The operations beyond the sixteen: Pillow's bytes, and nobody waits."""

from dataclasses import replace

import pytest
import torch

from divaug import SubPolicies, expand, policies, replay
from divaug.operations import FURTHER, OPERATIONS, Operation, apply
from divaug.operations.execution import transform_in_place, transform_where_drawn
from divaug.operations.further import EVERY
from divaug.operations.magnitude import Range
from tests.reference import samples
from tests.reference.kernel_cases import STAMP
from tests.reference.no_waiting import NoWaiting
from tests.reference.pillow_operations import FURTHER as NAMES
from tests.test_operations_pillow import SIZES, check

# The filters leave images alone that are smaller than themselves, and change one pixel of the next.
EDGES = [(2, 2), (3, 3), (3, 9), (4, 6), (5, 5), (5, 4), (6, 5)]


def test_they_are_the_agreed_ones_and_not_among_the_sixteen():
    assert tuple(FURTHER) == NAMES
    assert tuple(EVERY) == (*OPERATIONS, *NAMES)


@pytest.mark.parametrize("channels", [1, 3], ids=["grey", "rgb"])
@pytest.mark.parametrize("size", [*SIZES, *EDGES], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", NAMES)
def test_equal_to_pillow(name, size, channels):
    arguments = samples.arguments(name, *size)
    images = torch.cat(
        [samples.images(channels, *size, len(samples.KINDS), name, i) for i in range(4)]
    )
    repeated = [arguments[i % len(arguments)] for i in range(len(images))]
    if len(arguments) > len(samples.KINDS):  # every argument on every kind of image
        kinds = [samples.image(kind, channels, *size, name) for kind in samples.KINDS[1:4]]
        images = torch.stack([image for image in kinds for _ in arguments])
        repeated = arguments * len(kinds)
    check(images, name, repeated, None, None)


@pytest.mark.parametrize("size", [(32, 32), (33, 48), (40, 27)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_crops_at_random_and_at_halves(size, dtype):
    """Pillow rounds both ends of the box to the nearest pixel, halves to even."""
    g = samples.generator("crop", size)
    drawn = samples.random_arguments("CropBilinear", 40, *size, g).to(dtype).tolist()
    halves = [0.5 + i for i in range(12)]
    images = samples.images(3, *size, len(drawn) + len(halves), "crop")
    check(images, "CropBilinear", [*drawn, *halves], None, None, dtype)


def test_every_whole_crop_of_every_size():
    """All weights that an image up to 24 pixels can ask for."""
    for side in range(1, 25):
        cuts = [float(cut) for cut in range((side + 1) // 2)]
        image = samples.image("full", 1, side, side, "weights")
        check(image.expand(len(cuts), -1, -1, -1), "CropBilinear", cuts, None, None)


def test_every_half_crop_of_every_small_size():
    """Also where the shorter side is even: half a pixel more can be cut of it than whole ones."""
    cuts = [0.5 + i for i in range(6)] + [2.4999998, 3.4999998]
    for height in range(1, 13):
        for width in range(1, 13):
            image = samples.image("full", 1, height, width, "halves")
            check(image.expand(len(cuts), -1, -1, -1), "CropBilinear", cuts, None, None)


def test_arguments_are_checked_like_those_of_the_sixteen():
    images = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    with pytest.raises(ValueError, match="CropBilinear needs one, in pixels"):
        apply(images, "CropBilinear")
    with pytest.raises(ValueError, match=r"`argument` of CropBilinear must be .* in \[0, 4096\]"):
        apply(images, "CropBilinear", -1.0)
    with pytest.raises(ValueError, match="positions in OPERATIONS"):
        apply(images, torch.tensor([3, 16]))


def ids_of(drawn):
    return torch.where(drawn.applied[:, 0], drawn.operation[:, 0], -1)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_door_without_waiting_gives_what_the_groups_give(channels):
    """All operations, also those with a place and a partner, on arguments meant for others."""
    images = samples.images(channels, 12, 9, 96, "door")
    policy = policies.Uniform(
        "uda", operations_per_subpolicy=1, extra=((STAMP, Range(3.0, 6.0, "test")),)
    )
    drawn = expand(images, 1, policy, seed=2)[1].flatten()
    pool = images.flip(0).contiguous()
    place = (drawn.argument[:, 0], drawn.center[:, 0])
    grouped, masked = images.clone(), images.clone()
    table = drawn.operations
    transform_in_place(grouped, ids_of(drawn), *place, pool, drawn.partner[:, 0], table)
    transform_where_drawn(
        masked, ids_of(drawn), *place, pool, drawn.partner[:, 0], dict(enumerate(table))
    )
    assert torch.equal(grouped, masked)
    assert len(set(ids_of(drawn).tolist())) > 18


@pytest.mark.parametrize("backend", ["torch", "triton"])
def test_an_operation_may_work_in_place(backend):
    """Images that did not draw it stay as they are, on either way through."""

    def bar(images, *_):
        images[:, :, :2] = 255
        return images

    images = torch.full((12, 3, 8, 8), 100, dtype=torch.uint8)
    operation = torch.tensor([0, -1, 1] * 4)
    table = (Operation("Bar", bar), Operation("Same", lambda images, *_: images))
    others = (
        torch.zeros(12),
        torch.zeros(12, 2),
        images.clone(),
        torch.zeros(12, dtype=torch.int64),
    )
    if backend == "torch":
        transform_in_place(images, operation, *others, table)
    else:
        transform_where_drawn(images, operation, *others, dict(enumerate(table)))
    drawn = (images == 255).flatten(1).any(1)
    assert torch.equal(drawn, operation == 0)
    assert bool((images[~drawn] == 100).all())


def test_they_never_make_the_host_wait():
    images = samples.images(3, 16, 16, 30, "waiting")
    operation = torch.arange(30) % 7 + 15  # Cutout's and SamplePairing's neighbours too
    further = dict(enumerate(FURTHER.values(), len(OPERATIONS)))
    others = (torch.full((30,), 1.5), torch.zeros(30, 2), images, torch.arange(30), further)
    before = images.clone()
    with NoWaiting():
        transform_where_drawn(images, operation, *others)
    assert torch.equal(images[operation == 15], before[operation == 15])
    assert not torch.equal(images, before)


def test_an_operation_that_returns_something_else_is_named():
    images = samples.images(3, 4, 4, 2)
    wrong = Operation("Wide", lambda images, *_: images.repeat(1, 1, 1, 2))
    others = (torch.zeros(2), torch.zeros(2, 2), images, torch.zeros(2, dtype=torch.int64))
    with pytest.raises(ValueError, match="Wide must return a uint8 tensor"):
        transform_where_drawn(images, torch.tensor([0, 0]), *others, {0: wrong})


def test_sub_policies_of_the_space_are_found_again_without_help():
    images = samples.images(3, 8, 8, 6)
    candidates, drawn = expand(images, 8, policies.Uniform("uda"), seed=4)
    again = SubPolicies.from_json(drawn.to_json())
    assert set(NAMES) & {drawn.names[i] for i in drawn.operation.flatten().tolist()}
    assert torch.equal(replay(images, again), candidates)
    assert policies.from_json(policies.Uniform("uda").to_json()) == policies.Uniform("uda")


def test_the_twenty_are_drawn_alike_and_exclusion_reaches_the_five():
    images = torch.zeros(2000, 1, 1, 1, dtype=torch.uint8)
    drawn = expand(images, 2, policies.Uniform("uda"))[1]
    counts = torch.bincount(drawn.operation.flatten(), minlength=21).double()
    assert counts[OPERATIONS.index("SamplePairing")] == 0
    assert (counts[counts > 0] - 400).abs().max() < 5 * 400**0.5
    assert int((counts > 0).sum()) == 20
    without = policies.Uniform("uda", exclude=("Blur",))
    assert "Blur" not in expand(images[:1], 1, without)[1].names
    assert len(replace(without, exclude=()).rows()) == 20
