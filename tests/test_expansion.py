"""Expansion: shapes and layouts, what a candidate depends on, memory, and refusals."""

import dataclasses
import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from divaug import SubPolicies, _expand, _render, expand, policies, replay
from divaug.default_augmentation import DefaultAugmentation, cifar10, imagenet
from divaug.operations import OPERATIONS, Operation, apply
from divaug.operations.magnitude import Range
from tests.reference import samples

IMAGES = samples.images(3, 16, 12, 10)
POOL = samples.images(3, 16, 12, 60, "pool")
PAIRING = policies.Uniform(exclude=tuple(n for n in OPERATIONS if n != "SamplePairing"))


@pytest.mark.parametrize("E", [1, 3, 8])
@pytest.mark.parametrize("channels", [1, 3])
def test_without_a_default_augmentation_candidates_are_bytes(E, channels):
    images = samples.images(channels, 9, 7, 4)
    candidates, subpolicies = expand(images, E)
    assert candidates.shape == (4, E, channels, 9, 7)
    assert candidates.dtype == torch.uint8
    assert candidates.is_contiguous()
    assert subpolicies.shape == (4, E, 2)


def test_an_empty_batch_gives_no_candidates():
    candidates, subpolicies = expand(IMAGES[:0], 4, None, cifar10())
    assert candidates.shape == (0, 4, 3, 16, 12)
    assert subpolicies.shape == (0, 4, 2)


def test_float_images_are_quantised_once():
    candidates, _ = expand(IMAGES.float() / 255, 3, seed=1)
    assert torch.equal(candidates, expand(IMAGES, 3, seed=1)[0])


def test_images_of_any_layout_give_the_same_candidates():
    last = IMAGES.contiguous(memory_format=torch.channels_last)
    strided = IMAGES.repeat_interleave(2, 3)[..., ::2]
    assert not strided.is_contiguous()
    expected = expand(IMAGES, 3)[0]
    assert torch.equal(expand(last, 3)[0], expected)
    assert torch.equal(expand(strided, 3)[0], expected)


def test_originals_and_pool_are_untouched():
    images, pool = IMAGES.clone(), POOL.clone()
    expand(images, 8, None, cifar10(), pool=pool)
    assert torch.equal(images, IMAGES)
    assert torch.equal(pool, POOL)


def test_the_first_operation_comes_first():
    rows = ((("Invert", 1.0, 0.0), ("Solarize", 1.0, 0.5)),)
    candidates, _ = expand(IMAGES, 1, policies.Listed(rows))
    expected = apply(apply(IMAGES, "Invert"), "Solarize", 128.0)
    assert torch.equal(candidates[:, 0], expected)
    assert not torch.equal(expected, apply(apply(IMAGES, "Solarize", 128.0), "Invert"))


def test_the_partner_is_an_original_and_not_an_augmented_image():
    rows = ((("Invert", 1.0, 0.0), ("SamplePairing", 1.0, 1.0)),)
    candidates, subpolicies = expand(IMAGES, 2, policies.Listed(rows), seed=4)
    for j in range(2):
        partner = IMAGES[subpolicies.partner[:, j, 1]]
        expected = apply(255 - IMAGES, "SamplePairing", 0.4, partner=partner)
        weight = subpolicies.argument[:, j, 1]
        assert torch.equal(
            candidates[:, j], apply(255 - IMAGES, "SamplePairing", weight, partner=partner)
        )
        assert (candidates[:, j].int() - expected.int()).abs().max() <= 1


DEFAULTS = {"bytes": None, "cifar": cifar10(), "imagenet": imagenet(10)}


@pytest.mark.parametrize("default", DEFAULTS)
@pytest.mark.parametrize("pixels", [1, 16 * 12 * 4, 16 * 12 * 4 * 3 + 5])
def test_the_size_of_a_chunk_changes_nothing(default, pixels, monkeypatch):
    whole, subpolicies = expand(IMAGES, 4, None, DEFAULTS[default], seed=2)
    monkeypatch.setattr(_render, "CHUNK_CANDIDATE_PIXELS", pixels)
    parts, again = expand(IMAGES, 4, None, DEFAULTS[default], seed=2)
    assert torch.equal(parts, whole)
    assert again.equal(subpolicies)


@pytest.mark.parametrize("default", DEFAULTS)
@pytest.mark.parametrize("policy", [None, PAIRING], ids=["universal", "pairing"])
def test_a_sample_is_augmented_alike_in_any_batch(default, policy):
    """Shuffled, split, among others, or alone: with `index` and a pool nothing else counts."""
    index = torch.tensor([7, 3, 22, 41, 58, 0, 11, 30, 2, 19])
    key = {"policy": policy, "default": DEFAULTS[default], "seed": 5, "step": 9, "pool": POOL}
    images = POOL[index]
    whole, subpolicies = expand(images, 4, index=index, **key)
    order = torch.tensor([4, 9, 0, 2, 1, 3, 8, 7, 6, 5])
    shuffled, _ = expand(images[order], 4, index=index[order], **key)
    assert torch.equal(shuffled, whole[order])
    parts = [expand(images[i : i + 3], 4, index=index[i : i + 3], **key) for i in range(0, 10, 3)]
    assert torch.equal(torch.cat([part[0] for part in parts]), whole)
    assert type(subpolicies).concatenate([part[1] for part in parts]).equal(subpolicies)
    changed = images.clone()
    changed[1:] = 255 - changed[1:]
    assert torch.equal(expand(changed, 4, index=index, **key)[0][0], whole[0])


def test_more_candidates_begin_with_the_same_ones():
    few, _ = expand(IMAGES, 3, None, cifar10(), seed=5)
    many, _ = expand(IMAGES, 8, None, cifar10(), seed=5)
    assert torch.equal(many[:, :3], few)


def test_seed_step_and_index_all_matter():
    base = expand(IMAGES, 4, seed=1, step=1)[1]
    assert not base.equal(expand(IMAGES, 4, seed=2, step=1)[1])
    assert not base.equal(expand(IMAGES, 4, seed=1, step=2)[1])
    assert not base.equal(expand(IMAGES, 4, seed=1, step=1, index=torch.arange(1, 11))[1])
    assert base.equal(expand(IMAGES, 4, seed=1, step=torch.tensor(1))[1])


def test_replay_gives_the_pixels_again():
    candidates, subpolicies = expand(IMAGES, 4, seed=3, pool=POOL)
    assert torch.equal(replay(IMAGES, subpolicies, pool=POOL), candidates)
    read = SubPolicies.from_json(subpolicies.to_json())
    assert torch.equal(replay(IMAGES, read, pool=POOL), candidates)
    with pytest.raises(ValueError, match="B=3"):
        replay(IMAGES[:3], subpolicies, pool=POOL)


# --- memory ------------------------------------------------------------------------------------


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of all storages that operations have made and that are still alive.

    A view of what was given shares its storage, which is not counted.
    """

    def __init__(self, *given):
        super().__init__()
        self.alive, self.now, self.peak = {}, 0, 0
        self.given = {tensor.untyped_storage()._cdata for tensor in given}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self._add(leaf.untyped_storage())
        return result

    def _add(self, storage):
        key = storage._cdata
        if key not in self.alive and key not in self.given:
            self.alive[key] = storage.nbytes()
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._drop, key)

    def _drop(self, key):
        self.now -= self.alive.pop(key, 0)


def peak_extra_bytes(batch, candidates, default, side=32):
    images = torch.randint(
        0, 256, (batch, 3, side, side), dtype=torch.uint8, generator=samples.generator(0)
    )
    expand(images[:2], candidates, None, default)  # fills the caches of tables
    with LiveBytes(images) as live:
        result, subpolicies = expand(images, candidates, None, default)
    own = result.nbytes + sum(tensor.nbytes for tensor in subpolicies.tensors().values())
    return live.peak - own


@pytest.mark.parametrize("default", [None, cifar10()], ids=["bytes", "cifar"])
def test_memory_beyond_the_result_is_bounded_by_the_chunk(default, monkeypatch):
    """At most 24 bytes for each pixel of a chunk, and 512 for the draws of each candidate.

    So with the default chunk of 2**21 pixels 48 MiB, whatever the batch: one chunk in floats and
    the bytes and coordinates that it is made from.
    """
    monkeypatch.setattr(_render, "CHUNK_CANDIDATE_PIXELS", 1 << 16)
    small = peak_extra_bytes(32, 8, default)
    large = peak_extra_bytes(256, 8, default)
    assert large <= 24 * (1 << 16) + 512 * 256 * 8
    # Eight times the images: only the draws grow.
    assert large - small <= 512 * (256 - 32) * 8


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("change", "error", "message"), [
    ({"num_candidates": 0}, ValueError, "num_candidates"),
    ({"num_candidates": 1 << 16}, ValueError, "num_candidates"),
    ({"num_candidates": 2.0}, TypeError, "num_candidates"),
    ({"index": torch.arange(9)}, ValueError, r"index.*\(10,\)"),
    ({"index": torch.arange(10.0)}, TypeError, "index"),
    ({"seed": -1}, ValueError, "seed"),
    ({"seed": 0.5}, TypeError, "seed"),
    ({"pool": POOL[:, :, :8]}, ValueError, "pool"),
    ({"pool": POOL[:0]}, ValueError, "pool"),
    ({"pool": POOL[0]}, ValueError, "pool"),
    ({"pool": POOL.float()}, TypeError, "pool"),
    ({"pool": POOL.to("meta")}, ValueError, "meta"),
    ({"dtype": torch.float16}, ValueError, "`dtype` goes with `default`"),
    ({"dtype": torch.int64, "default": cifar10()}, ValueError, "`dtype`"),
    ({"default": DefaultAugmentation((0.5,), (0.5,))}, ValueError, "1 channels.*3 of each"),
    ({"policy": policies.PBA()}, ValueError, "epoch"),
    ({"epoch": "x"}, ValueError, "`epoch`"),
    ({"epoch": torch.zeros(2)}, ValueError, "`epoch`"),
    ({"policy": "RandAugment"}, TypeError, "`policy`"),
    ({"images": IMAGES[0]}, ValueError, "four axes"),
    ({"images": IMAGES.int()}, TypeError, "uint8"),
    ({"images": IMAGES.float()}, ValueError, r"\[0, 1\]"),
    ({"images": IMAGES.permute(0, 2, 3, 1)}, ValueError, "channels"),
    ({"backend": "cuda"}, ValueError, "backend"),
], ids=str)  # fmt: skip
def test_wrong_arguments_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        expand(**({"images": IMAGES, "num_candidates": 2} | change))


@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        (1.5, TypeError, "`step` must be an int or an integer tensor, got float"),
        (torch.tensor([1, 2]), ValueError, r"one integer without axes, got \(2,\)"),
        (torch.tensor(1.0), ValueError, "one integer without axes"),
    ],
)
def test_a_step_that_is_none(step, error, message):
    with pytest.raises(error, match=message):
        expand(IMAGES, 2, step=step)


def test_replay_wants_partners_of_the_pool():
    _, drawn = expand(IMAGES, 2, pool=POOL, index=torch.arange(len(IMAGES)))
    far = dataclasses.replace(drawn, partner=drawn.partner + len(POOL))
    with pytest.raises(ValueError, match="pass the `pool` that `subpolicies` were drawn with"):
        replay(IMAGES, far, pool=POOL)
    with pytest.raises(TypeError, match="`subpolicies` must be SubPolicies, got NoneType"):
        replay(IMAGES, None)


# Where tensors have no memory


@pytest.mark.parametrize("shape", [(4, 3, 9, 9), (4, 1, 16, 12), (4, 3, 12, 16)])
def test_a_pool_of_other_images_is_refused(shape):
    pool = torch.zeros(shape, dtype=torch.uint8)
    with pytest.raises(ValueError, match=r"originals of shape \(3, 16, 12\), got"):
        expand(IMAGES, 4, pool=pool)
    with pytest.raises(ValueError, match=r"originals of shape \(3, 16, 12\), got"):
        replay(IMAGES, expand(IMAGES, 4)[1], pool=pool)


@pytest.mark.parametrize("policy", [policies.Single("Rotate", 1.0), policies.Uniform("uda")])
def test_partners_that_nobody_asks_for_need_no_pool(policy):
    _, drawn = expand(IMAGES, 4, policy)
    whole = replay(IMAGES, drawn)
    for b in range(len(IMAGES)):
        assert torch.equal(replay(IMAGES[b : b + 1], drawn[b : b + 1]), whole[b : b + 1])


def test_a_partner_that_is_asked_for_needs_its_pool():
    _, drawn = expand(IMAGES, 4, PAIRING, pool=POOL)
    applied = dataclasses.replace(drawn, applied=torch.ones_like(drawn.applied))
    with pytest.raises(ValueError, match="pass the `pool`"):
        replay(IMAGES[:1], applied[:1])
    idle = dataclasses.replace(drawn, applied=torch.zeros_like(drawn.applied))
    assert torch.equal(replay(IMAGES[:1], idle[:1])[0, 0], IMAGES[0])


def test_a_place_outside_of_the_images_is_refused():
    _, drawn = expand(IMAGES, 8, policies.Single("Cutout", 1.0))
    with pytest.raises(ValueError, match=r"outside of images of 4×4; replay them on images of the"):
        replay(IMAGES[:, :, :4, :4], drawn)
    turned = IMAGES.transpose(2, 3)
    with pytest.raises(ValueError, match="outside of images of 12×16"):
        replay(turned, drawn)
    idle = dataclasses.replace(drawn, applied=torch.zeros_like(drawn.applied))
    assert torch.equal(replay(turned, idle)[:, 0], turned)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((16, 0), r"at \(16, 0\), outside of images of 16×12"),
        ((0, 12), r"at \(0, 12\), outside of images of 16×12"),
        ((-1, 0), r"`center` must not be negative, got \[-1, 0\]"),
        ((0, -1), r"`center` must not be negative, got \[0, -1\]"),
    ],
)
def test_places_begin_at_0_and_end_before_the_size(place, message):
    _, drawn = expand(IMAGES, 1, policies.Single("Cutout", 1.0))
    put = dataclasses.replace(drawn, center=torch.zeros_like(drawn.center))
    put.center[3, 0, 0] = torch.tensor([15, 11])
    replay(IMAGES, put)
    put.center[3, 0, 0] = torch.tensor(place)
    with pytest.raises(ValueError, match=message):
        replay(IMAGES, put)


def _marks(images, _argument, center, partner):
    """A pixel at a place, and beside it one of the partner."""
    marked = images.clone()
    rows = torch.arange(len(images))
    marked[rows, :, center[:, 0], center[:, 1]] = partner[:, :, 0, 0]
    return marked


def test_operations_of_ones_own_see_places_and_partners_that_there_are():
    """Also of images that they are not applied to: on a GPU they are shown all."""
    mark = Operation("Mark", _marks, needs_center=True, needs_partner=True)
    policy = policies.Uniform(extra=((mark, Range(0.0, 0.0, "none")),), exclude=tuple(OPERATIONS))
    _, drawn = expand(IMAGES, 8, policy, pool=POOL)
    small = IMAGES[:, :, :8, :6]
    inside = (drawn.center < torch.tensor([8, 6])).all(-1)
    fitting = dataclasses.replace(
        drawn,
        applied=inside & (drawn.partner < len(small)),
    )
    assert not bool(inside.all())
    found = _expand._fit(fitting, len(small), (8, 6))
    assert bool((found.center < torch.tensor([8, 6])).all())
    assert int(found.partner.max()) < len(small)
    assert torch.equal(replay(small, fitting), replay(small, found))
    for wrong in (inside, drawn.partner < len(small)):
        with pytest.raises(ValueError, match=r"outside of images of 8×6|pass the `pool`"):
            replay(small, dataclasses.replace(drawn, applied=wrong))
