"""Drawn operations on a batch: in groups, and without waiting for the device."""

import pytest
import torch

from divaug import expand, policies
from divaug.operations import FURTHER, OPERATIONS, Operation
from divaug.operations.application import transform_in_place, transform_where_drawn
from divaug.operations.magnitude import Range
from tests.reference import samples
from tests.reference.kernel_cases import STAMP
from tests.reference.no_waiting import NoWaiting


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


WRONG = {
    "shape": lambda images: images[..., 1:],
    "one image": lambda images: images[0],
    "dtype": lambda images: images * 0.5,
    "array": lambda images: images.numpy(),
    "nothing": lambda _images: None,
}


@pytest.mark.parametrize("name", WRONG)
def test_an_operation_that_returns_something_else_is_named(name):
    images = samples.images(3, 4, 4, 2)
    wrong = Operation("Wrong", lambda images, *_: WRONG[name](images))
    others = (torch.zeros(2), torch.zeros(2, 2), images, torch.zeros(2, dtype=torch.int64))
    message = r"Wrong must return a uint8 tensor of shape \(2, 3, 4, 4\)"
    with pytest.raises(TypeError, match=message):
        transform_where_drawn(images, torch.tensor([0, 0]), *others, {0: wrong})
    with pytest.raises(TypeError, match=message):
        transform_in_place(images, torch.tensor([0, 0]), *others, (wrong,))
