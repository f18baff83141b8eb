"""Compare masks that follow in kernels with those in batched PyTorch; run with TRITON_INTERPRET=1.

Nothing there may wait for the device, so every call is made where waiting is an error.
"""

import sys
from unittest import mock

import torch

from divaug import _follow, expand, follow, policies
from divaug._subpolicies import Placement
from divaug.default_augmentation import imagenet
from tests.reference import kernel_cases
from tests.reference.no_waiting import NoWaiting

#: (batch, channels, height, width, candidates, policy, default).
CASES = {
    "bytes": (3, 3, 8, 8, 8, policies.Uniform(), None),
    "one pixel": (2, 3, 1, 1, 16, policies.Uniform(), kernel_cases.RGB),
    "a row": (2, 1, 1, 7, 8, policies.Uniform("released"), None),
    "odd": (4, 3, 9, 7, 8, policies.RandAugment(3, 14), kernel_cases.RGB),
    "resized crop": (2, 3, 20, 17, 4, policies.Uniform(), imagenet(16)),
    "further operations": (2, 3, 12, 10, 16, policies.Uniform("uda"), imagenet(8)),
}


def main():
    for seed, (name, case) in enumerate(CASES.items()):
        images = kernel_cases.images_of(case, seed)
        candidates, policy, default = case[4:7]
        _, drawn = expand(images, candidates, policy, default, seed, backend="torch")
        masks = images[:, 0].long() * 1000
        expected, found = (_moved(masks, drawn, backend) for backend in ("torch", "triton"))
        assert torch.equal(found, expected), name
    print("followed", len(CASES))


def _moved(masks, drawn, backend):
    if backend == "torch":
        return follow(masks, drawn, fill=-1, backend=backend)
    # What was drawn is looked at on a CPU only, which this is.
    ours = mock.patch.object(_follow, "check_values")
    with ours, mock.patch.object(Placement, "check_size"), NoWaiting():
        return follow(masks, drawn, fill=-1, backend=backend)


if __name__ == "__main__":
    sys.exit(main())
