"""Each policy against a literal replay: from the published level to the last byte, with Pillow."""

import json
from importlib import resources

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from divaug import expand, policies
from divaug.operations import OPERATIONS, apply
from divaug.policies import levels
from tests.reference import policy_replay as replay
from tests.reference import samples


def published(name):
    text = (resources.files("divaug.policies") / "data" / name).read_text(encoding="utf-8")
    return json.loads(text)


def listed(name, dataset):
    return [[tuple(e) for e in row] for row in published(name)["policies"][dataset]]


def check_pixels(images, pool, candidates, subpolicies):
    for i in range(candidates.shape[0]):
        for j in range(candidates.shape[1]):
            drawn = replay.entries(subpolicies, i, j)
            expected = replay.replay(images[i], drawn, pool)
            assert torch.equal(candidates[i, j], expected), f"candidate {j} of image {i}: {drawn}"


def check_argument(name, argument, expected, about_one):
    if expected is not None:
        found = replay.strength(name, argument, about_one)
        wanted = abs(expected) if name in replay.GEOMETRIC else expected
        assert replay.close(found, wanted), f"{name}: {found} instead of {wanted}"


def drawn_batch(policy, size=(32, 32), count=24, candidates=12, channels=3, **more):
    images = samples.images(channels, *size, count, repr(policy))
    return images, *expand(images, candidates, policy, seed=7, **more)


LISTS = [
    ("AutoAugment", "cifar10", "autoaugment.json", replay.autoaugment_cifar),
    ("AutoAugment", "svhn", "autoaugment.json", replay.autoaugment_cifar),
    ("AutoAugment", "imagenet", "autoaugment.json", replay.autoaugment_imagenet),
    ("AutoAugment", "cifar10-95", "autoaugment.json", replay.autoaugment_cifar),
    ("FastAutoAugment", "cifar10", "fast_autoaugment.json", replay.fast_autoaugment),
    ("FastAutoAugment", "svhn", "fast_autoaugment.json", replay.fast_autoaugment),
    ("FastAutoAugment", "imagenet", "fast_autoaugment.json", replay.fast_autoaugment),
]


@pytest.mark.parametrize("size", [(32, 32), (21, 40)], ids=["32x32", "21x40"])
@pytest.mark.parametrize(("kind", "dataset", "file", "meaning"), LISTS)
def test_listed_policies(kind, dataset, file, meaning, size):
    rows = listed(file, dataset)
    policy = getattr(policies, kind)(dataset)
    images, candidates, subpolicies = drawn_batch(policy, size)
    check_pixels(images, images, candidates, subpolicies)
    top = 10 if kind == "AutoAugment" else 1
    by_key = {}
    for row in rows:
        key = tuple((name, np.float32(p), np.float32(level / top)) for name, p, level in row)
        by_key[key] = row
    for i in range(len(images)):
        for j in range(candidates.shape[1]):
            this, drawn = subpolicies[i, j], replay.entries(subpolicies, i, j)
            numbers = zip(drawn, this.probability.numpy(), this.magnitude.numpy(), strict=True)
            key = tuple((one[0], p, m) for one, p, m in numbers)
            assert key in by_key, f"{key} is not a published sub-policy"
            for (name, _, argument, _, _), (_, _, level) in zip(drawn, by_key[key], strict=True):
                check_argument(name, argument, meaning(name, level, *size), about_one=False)


def fast_autoaugments_square(v, height, width, random):
    """How many pixels its code fills: a corner inside the image, and Pillow's rectangle."""
    x, y = (int(max(0, random.uniform(0, size) - v / 2)) for size in (width, height))
    picture = Image.new("L", (width, height))
    ImageDraw.Draw(picture).rectangle((x, y, min(width, x + v), min(height, y + v)), 1)
    return int(np.asarray(picture).sum())


@pytest.mark.parametrize("size", [(32, 32), (48, 64)], ids=str)
@pytest.mark.parametrize("level", [0.2, 0.5, 0.7, 1.0])
def test_fast_autoaugments_squares_are_as_large_as_those_of_its_code(level, size):
    """On average less by those that are cut at the top or on the left, which theirs are not."""
    height, width = size
    side = levels.FAST_LEVELS["Cutout"](level).value(0.0, 1, *size)
    everywhere = torch.cartesian_prod(torch.arange(height), torch.arange(width))
    black = torch.zeros(len(everywhere), 1, *size, dtype=torch.uint8)
    ours = (apply(black, "Cutout", side, center=everywhere) > 0).flatten(1).sum(1)
    v, random = 0.2 * level * width, np.random.default_rng(0)
    theirs = [fast_autoaugments_square(v, *size, random) for _ in range(5000)]
    assert int(ours.max()) == max(theirs)
    assert 0.92 < float(ours.double().mean()) / np.mean(theirs) < 1.01


@pytest.mark.parametrize(("dataset", "epoch"), [
    ("cifar10", 0), ("cifar10", 20), ("cifar10", 60), ("cifar10", 130), ("cifar10", 199),
    ("svhn", 12), ("svhn", 70), ("svhn", 159),
])  # fmt: skip
def test_pba(dataset, epoch):
    segments = published("pba.json")["schedules"][dataset]["segments"]
    now = next(s for s in segments if s["start_epoch"] <= epoch < s["end_epoch"])
    allowed = {(n, np.float32(p), np.float32(level / 10)): level
               for n, p, level in now["copy_1"] + now["copy_2"] if p > 0}  # fmt: skip
    images, candidates, subpolicies = drawn_batch(policies.PBA(dataset), epoch=epoch)
    check_pixels(images, images, candidates, subpolicies)
    fired = 0
    for i in range(len(images)):
        for j in range(candidates.shape[1]):
            this = subpolicies[i, j]
            for k, (name, applied, argument, _, _) in enumerate(replay.entries(subpolicies, i, j)):
                assert applied
                key = (name, this.probability[k].numpy()[()], this.magnitude[k].numpy()[()])
                expected = replay.autoaugment_cifar(name, allowed[key], 32, 32)
                check_argument(name, argument, expected, about_one=False)
                fired += 1
    assert (fired > 0) == bool(allowed)


@pytest.mark.parametrize(("n", "m"), [(1, 0), (2, 9), (3, 5), (2, 14), (2, 10), (4, 30), (2, 7.5)])
def test_rand_augment(n, m):
    policy = policies.RandAugment(n, m)
    images, candidates, subpolicies = drawn_batch(policy)
    assert subpolicies.shape[-1] == n
    check_pixels(images, images, candidates, subpolicies)
    for i in range(len(images)):
        for j in range(candidates.shape[1]):
            for name, applied, argument, _, _ in replay.entries(subpolicies, i, j):
                assert applied
                expected = replay.autoaugment_cifar(name, m, 32, 32)
                check_argument(name, argument, expected, about_one=False)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("policy", "meaning"), [
    (policies.TrivialAugment(), replay.trivial_augment),
    (policies.Uniform("paper"), replay.universal("paper")),
    (policies.Uniform("released"), replay.universal("released")),
    (policies.Uniform("uda"), replay.universal("uda")),
    (policies.Single("Rotate", 0.6), replay.universal("paper")),
    (policies.Single("Cutout", 1.0, "released"), replay.universal("released")),
], ids=lambda value: repr(value) if isinstance(value, policies.Policy) else "")  # fmt: skip
def test_policies_that_draw_a_magnitude(policy, meaning, channels):
    images, candidates, subpolicies = drawn_batch(policy, (24, 30), 16, 8, channels)
    check_pixels(images, images, candidates, subpolicies)
    for i in range(len(images)):
        for j in range(candidates.shape[1]):
            for k, (name, _, argument, _, _) in enumerate(replay.entries(subpolicies, i, j)):
                m = float(subpolicies.magnitude[i, j, k])
                check_argument(name, argument, meaning(name, m, 24, 30), about_one=True)


@pytest.mark.parametrize(("maps", "meaning", "top"), [
    (levels.CIFAR_LEVELS, replay.autoaugment_cifar, 10),
    (levels.IMAGENET_LEVELS, replay.autoaugment_imagenet, 10),
    (levels.FAST_LEVELS, replay.fast_autoaugment, 1),
], ids=["cifar", "imagenet", "fast"])  # fmt: skip
def test_every_operation_at_every_level_also_those_no_list_uses(maps, meaning, top):
    assert set(maps) == set(OPERATIONS) - {"SamplePairing"}
    for name in maps:
        for tenth in range(11):
            expected = meaning(name, tenth * top / 10, 48, 80)
            for sign in (1, -1):
                found = maps[name](tenth * top / 10).value(0.5, sign, 48, 80)
                check_argument(name, found, expected, about_one=False)
                if name in replay.GEOMETRIC and expected:
                    assert found == pytest.approx(sign * expected)


def test_sample_pairing_takes_its_partner_from_the_pool():
    images, pool = samples.images(3, 9, 9, 6), samples.images(3, 9, 9, 40, "pool")
    policy = policies.Single("SamplePairing", 1.0)
    candidates, subpolicies = expand(images, 4, policy, seed=1, pool=pool, index=torch.arange(6))
    check_pixels(images, pool, candidates, subpolicies)
    assert subpolicies.partner.max() > 6


def test_every_operation_was_replayed_at_least_once():
    seen = set()
    for policy in (policies.Uniform("paper"), policies.AutoAugment("cifar10")):
        subpolicies = drawn_batch(policy, (24, 30), 16, 8)[2]
        seen |= set(subpolicies.operation[subpolicies.applied].tolist())
    assert seen == set(range(len(OPERATIONS)))
