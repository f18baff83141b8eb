"""Golden values of the library, through public names alone.

They are compared to the bit where every machine computes the same bits, and closely where it does
not. `python -m tests.test_golden --write` writes them anew, for an intended change.
"""

import hashlib
import json
import math
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from divaug import (
    DivAug,
    SubPolicies,
    Views,
    affinity,
    default_augmentation,
    expand,
    follow,
    loss_diversity,
    policies,
    replay,
    score,
    select,
    variance_diversity,
)
from tests.reference.interpreter import run_interpreted

GOLDEN = Path(__file__).with_name("golden.json")
VALUES = json.loads(GOLDEN.read_text())
METHODS = ("kmeans++", "uniform", "greedy", "exact")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]

RGB, GREY = (6, 3, 32, 32), (4, 1, 17, 11)
CIFAR10, SVHN = default_augmentation.cifar10(), default_augmentation.svhn()
OF_GREY = default_augmentation.DefaultAugmentation((0.3,), (0.4,), padding=2, flip=0.5, cutout=4)
LIST = ((("Rotate", 0.5, 1.0), ("Cutout", 0.9, 0.6)), (("Solarize", 1.0, 0.3), ("Color", 0.7, 0.8)))


def both(*drawn_from, **more):
    """Each policy on colours with a default augmentation, and on grey bytes."""
    ways = ((RGB, {"default": CIFAR10} | more), (GREY, more))
    return [(shape, {"policy": p} | given) for p in drawn_from for shape, given in ways]


#: Shapes and arguments of `expand`; an intended change of one policy is one entry.
CASES = {
    "Uniform": both(policies.Uniform()),
    "Uniform, released": both(policies.Uniform("released")),
    "Uniform, uda": both(policies.Uniform("uda", ("Invert",), 3)),
    "RandAugment": both(policies.RandAugment(), policies.RandAugment(3, 14)),
    "AutoAugment": both(
        *(policies.AutoAugment(name) for name in ("cifar10", "cifar10-95", "svhn", "imagenet"))
    ),
    "FastAutoAugment": both(
        *(policies.FastAutoAugment(name) for name in ("cifar10", "svhn", "imagenet"))
    ),
    "PBA": [
        case
        for epoch in (0, 60, 10**6)
        for case in both(policies.PBA(), policies.PBA("svhn", 9), epoch=epoch)
    ],
    "TrivialAugment": both(policies.TrivialAugment()),
    "SharedLevel": both(policies.SharedLevel()),
    "Single": both(policies.Single("Rotate", 0.7)),
    "Listed": both(policies.Listed(LIST)),
    "Identity": both(policies.Identity()),
    "svhn, step": [(RGB, {"default": SVHN, "step": 2**40})],
    "cifar100, seed": [(RGB, {"default": default_augmentation.cifar100(), "seed": 2**40 + 1})],
    "plain": [(RGB, {"default": default_augmentation.plain((0.5, 0.4, 0.3), (0.2, 0.3, 0.4))})],
    "grey": [(GREY, {"default": OF_GREY})],
    "imagenet": [((2, 3, 224, 160), {"default": default_augmentation.imagenet(96)})],
    "large": [((1, 3, 224, 160), {"num_candidates": 12})],
    "bfloat16": [(RGB, {"default": CIFAR10, "dtype": torch.bfloat16})],
    "channels last": [(RGB, {"default": CIFAR10, "channels_last": True})],
    # So small that Triton's interpreter takes seconds for them.
    "small": [((2, 3, 9, 7), {"default": CIFAR10, "num_candidates": 8})],
    "small, bytes": [((2, 1, 8, 8), {"policy": policies.Uniform("released")})],
    "small, schedule": [((2, 3, 8, 8), {"policy": policies.PBA(), "epoch": 150})],
    "small, list": [((2, 3, 8, 8), {"policy": policies.AutoAugment(), "default": CIFAR10})],
}
SMALL = [name for name in CASES if name.startswith("small")]
SELECTIONS = [(8, 4, 10), (4, 2, 3), (16, 5, 100), (5, 5, 2), (12, 1, 7)]  # E, S, D


def numbers(key, *shape):
    """Bytes that follow from a text, on every machine and with every release of torch."""
    raw = hashlib.shake_128(key.encode()).digest(math.prod(shape))
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(shape)


def images_of(shape, key="images"):
    """Random originals; every other one of few values, so that histograms bite."""
    images = numbers(key, *shape)
    images[1::2] = images[1::2] // 5 + 90
    return images


def digest(*values):
    """Sixteen digits that follow from tensors, sub-policies and whatever can be written."""
    sha = hashlib.sha256()
    for value in values:
        if isinstance(value, SubPolicies):
            names = ("operation", "applied", "argument", "center", "partner")
            names += ("probability", "magnitude")
            value = (value.names, digest(*(getattr(value, name) for name in names)))
        if isinstance(value, torch.Tensor):
            sha.update(repr((value.shape, value.dtype)).encode())
            positive = value + 0.0 if value.is_floating_point() else value  # no zero has a sign
            sha.update(positive.contiguous().cpu().view(torch.uint8).numpy().tobytes())
        else:
            sha.update(repr(value).encode())
    return sha.hexdigest()[:16]


def expanded(name, device="cpu", **more):
    """What follows from the draws, and what from the pixels."""
    draws, pixels = [], []
    for shape, arguments in CASES[name]:
        images = images_of(shape).to(device)
        given = {"num_candidates": 4, "seed": 3, "step": 1} | arguments | more
        pool = images_of((9, *shape[1:]), "pool").to(device)
        index = torch.arange(len(images), device=device) * 5 - 3  # before, in and behind the pool
        for further in ({}, {"pool": pool, "index": index}):
            candidates, subpolicies = expand(images, **given, **further)
            draws.append(subpolicies)
            pixels += [candidates, candidates.stride()]
    return f"{digest(*draws)}/{digest(*pixels)}"


def selected(method, device="cpu"):
    found = []
    for E, S, D in SELECTIONS:
        whole = numbers(f"probabilities {D}", 60, E, D).float() + 1
        probs = whole / whole.sum(-1, keepdim=True)  # division is exactly rounded everywhere
        probs[0] = probs[0, :1]
        probs[1, 1:], probs[2, 0], probs[3] = math.nan, math.inf, 1 / D
        index = torch.arange(60) * 7
        for more in ({}, {"seed": 5, "step": 3, "index": index.to(device)}):
            found.append(select(probs.to(device), S, method, **more))
    return digest(*found)


class Votes(nn.Module):
    """A network of whole numbers: each class is as likely as all others it likes, or impossible."""

    def forward(self, images):
        pixels = (images.double() * 64).round().long().flatten(1)
        weights = torch.arange(8 * pixels.shape[1], device=images.device) * 7919 % 5 - 2
        votes = (pixels[:, None] * weights.view(8, -1)).sum(-1) % 3
        return (votes > 0).float() * -200.0


def looped(augment, device):
    """Three steps: views, labels, sub-policies and masks of each, then the counts of what is kept.

    From the second step on another augmenter, made like the first, goes on from its state.
    """
    pool, found = images_of((18, 3, 20, 16), "loop").to(device), []
    masks = (numbers("masks", 18, 20, 16) // 64).long().to(device)
    labels = torch.arange(18, device=device) * 3
    first, state = augment(pool), None
    for step in range(3):
        index = torch.arange(6, device=device) * 2 + step
        now = first if step < 2 else augment(pool)
        if step == 2:
            now.load_state_dict(state)
        views, repeated = now(pool[index], labels[index], index=index, epoch=50 * step)
        moved = now.follow(masks[index], fill=255)
        found.append(digest(views, views.stride(), repeated, now.kept(), moved))
        state = now.state_dict()
    record = first.record()
    return found, [record.images, record.operations, record.drawn]


def loops(device="cpu"):
    chosen, counts = looped(
        lambda pool: DivAug(Votes(), 8, 4, default=CIFAR10, seed=5, pool=pool), device
    )
    pba = policies.PBA("cifar10", 130)
    drawn, others = looped(lambda _: Views(pba, SVHN, 2, seed=6, channels_last=True), device)
    return {"DivAug": chosen, "kept": counts, "Views": drawn, "drawn": others}


def replayed(device="cpu"):
    images = images_of(RGB).to(device)
    masks = (numbers("masks", 6, 2, 32, 32) / 8).to(device)
    candidates, drawn = expand(images, 4, policies.Uniform("uda"), seed=9)
    again = SubPolicies.from_json(drawn.to("cpu").to_json()).to(device)
    chosen = select(score(Votes(), candidates), 2)
    assert again.equal(drawn)
    assert torch.equal(replay(images, again), candidates)
    return digest(candidates, chosen, follow(masks, again, fill=-1.0, chosen=chosen))


def small_network():
    network = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(60), nn.Dropout(), nn.Linear(60, 4))
    with torch.no_grad():
        network[1].running_mean.copy_(torch.arange(60) / 64)
        network[3].weight.copy_((torch.arange(240).view(4, 60) * 37 % 17 - 8) / 16)
        network[3].bias.copy_(torch.arange(4) / 4)
    return network


def measured():
    """What is computed in floats, which differ in their last bits between machines."""
    candidates, labels = numbers("scored", 3, 5, 3, 5, 4), torch.tensor([2, 0, 1])
    probs = score(small_network(), candidates, chunk_size=4)
    logits = probs.log2()
    return {
        "score": probs.flatten().tolist(),
        "variance diversity": variance_diversity(probs).tolist(),
        "loss diversity": loss_diversity(logits, labels).tolist(),
        "soft labels": loss_diversity(logits, probs[:, 2]).tolist(),
        "affinity": [float(affinity(probs[:, 0], probs[:, 1:], labels))],
    }


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_expansion(name, device):
    assert expanded(name, device) == VALUES["expand"][name]


def test_kernels_in_the_interpreter():
    pytest.importorskip("triton")
    assert run_interpreted("tests.test_golden") == [VALUES["expand"][name] for name in SMALL]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("method", METHODS)
def test_selection(method, device):
    assert selected(method, device) == VALUES["select"][method]


@pytest.mark.parametrize("device", DEVICES)
def test_loops_and_their_state(device):
    assert loops(device) == VALUES["loops"]


@pytest.mark.parametrize("device", DEVICES)
def test_replay(device):
    assert replayed(device) == VALUES["replay"]


def test_scores_and_measures():
    for name, found in measured().items():
        assert found == pytest.approx(VALUES["measured"][name], rel=1e-5, abs=1e-6), name


def write():
    values = {
        "expand": {name: expanded(name) for name in CASES},
        "select": {method: selected(method) for method in METHODS},
        "loops": loops(),
        "replay": replayed(),
        "measured": measured(),
    }
    GOLDEN.write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    else:  # in Triton's interpreter
        print(*(expanded(name, backend="triton") for name in SMALL))
