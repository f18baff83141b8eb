"""timm's strings: its operations, how often, at which magnitudes, with which arguments."""

import random

import pytest
import torch
from PIL import Image
from scipy import stats
from timm.data.auto_augment import rand_augment_transform
from torchvision.transforms.functional import pil_to_tensor, to_pil_image

from divaug import expand, policies
from tests.reference import samples
from tests.reference.policy_replay import ENHANCE
from tests.test_policies import RARE, assert_evenly_spread, assert_frequency, draws

# Its training script's strings and others.
CONFIGS = [
    "rand-m9-mstd0.5-inc1", "rand-m9-n3-mstd0.5", "rand-m7-p0.25-n1-inc1", "rand-inc1",
    "rand-m1-mstd2.0-inc0-p1.0", "rand-m15-mstd0.5-inc1", "rand-m5-mstd101-inc1",
]  # fmt: skip


def timms(config):
    """Its own operations by our names, which move pixels as ours do, and how many it applies."""
    hparams = {"interpolation": Image.Resampling.NEAREST, "img_mean": (0, 0, 0)}
    made = rand_augment_transform(config, hparams)
    names = [op.name.removesuffix("Increasing").removesuffix("Rel") for op in made.ops]
    return dict(zip(names, made.ops, strict=True)), made.num_layers


@pytest.mark.parametrize("config", CONFIGS)
def test_operations_and_magnitudes_are_drawn_as_by_timm(config):
    theirs, n = timms(config)
    these = draws(policies.TimmRandAugment(config))
    assert these.shape[-1] == n
    counts = torch.bincount(these.operation.flatten(), minlength=len(these.names))
    assert {these.names[i] for i in counts.nonzero().flatten()} == set(theirs)
    assert_evenly_spread(counts[counts > 0])
    assert_frequency(these.applied.sum(), these.applied.numel(), theirs["Rotate"].prob)
    drawn = []
    random.seed(3)
    for op in theirs.values():
        op.level_fn = lambda magnitude, _hparams: drawn.append(magnitude) or ()
        op.aug_fn = lambda image, **_: image
        for _ in range(300):
            op(None)
    ours = 10 * these.magnitude.double().flatten()
    assert stats.ks_2samp([round(m, 4) for m in drawn], ours.numpy().round(4)).pvalue > RARE
    assert float(ours.mean()) == pytest.approx(sum(drawn) / len(drawn), abs=0.15)


@pytest.mark.parametrize("size", [(32, 32), (40, 224)], ids=str)
@pytest.mark.parametrize("inc", [0, 1])
@pytest.mark.parametrize("strength", ["m9-mstd0.5", "m5-mstd101", "m0", "m3", "m9", "m10"])
def test_arguments_and_pixels_are_timms(strength, inc, size):
    config = f"rand-{strength}-n1-p1.0-inc{inc}"
    theirs, _ = timms(config)
    image = samples.image("full", 3, *size, "timm")[None]
    made, these = expand(image, 200, policies.TimmRandAugment(config))
    random.seed(4)
    for j in range(200):
        name, argument = these.names[these.operation[0, j, 0]], float(these.argument[0, j, 0])
        op, given = theirs[name], ()
        if op.level_fn is not None:
            level = 10 * float(these.magnitude[0, j, 0]) if op.magnitude_std else op.magnitude
            unit = {"TranslateX": size[1], "TranslateY": size[0]}.get(name, 1)
            both = [op.level_fn(level, op.hparams)[0] for _ in range(20)]  # with either sign
            given = min(both, key=lambda one, unit=unit: abs(one * unit - argument))
            given = (max(1, given) if name == "Posterize" else given,)  # Pillow refuses 0 bits
            assert given[0] * unit == pytest.approx(argument, rel=1e-5, abs=1e-6), name
        changed = pil_to_tensor(op.aug_fn(to_pil_image(image[0]), *given, **op.kwargs))
        # Factors are kept in float32: a byte in thousands is one off.
        difference = (changed.int() - made[0, j].int()).abs().max()
        assert difference <= (name in ENHANCE), (name, argument)
