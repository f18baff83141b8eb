"""Compare the expansion kernels with batched PyTorch; run with TRITON_INTERPRET=1.

Triton reads that variable when it is imported, so the comparison needs a process of its own. The
interpreter truncates where it casts to bfloat16, so that dtype is compared on a GPU only.
"""

import sys

import pytest
import torch

from divaug import SubPolicies, expand, kernels, operations, policies, replay
from divaug.kernels import plan
from divaug.operations.magnitude import argument
from tests.reference import kernel_cases
from tests.reference.fenced import fenced
from tests.reference.poison import poisoned_memory


def compare(name, case, seed):
    images = kernel_cases.images_of(case, seed)
    pool = kernel_cases.images_of((9, *case[1:]), seed + 1)
    # Every other sample's number: a tensor that does not lie in memory as the kernels read it.
    # Numbers below the pool, in it and beyond it: −6, 0, 6, 12, …
    index = torch.arange(2 * len(images))[::2] * 3 - 6
    more = {"pool": pool, "index": index} if seed % 2 else {}
    expected, drawn = kernel_cases.run(case, images, "torch", seed, **more)
    with poisoned_memory():
        found, drawn_by_kernel = kernel_cases.run(case, images, "triton", seed, **more)
    assert drawn.equal(drawn_by_kernel), f"{name}: other draws"
    assert found.stride() == expected.stride(), f"{name}: another layout"
    assert torch.equal(found, expected), f"{name}: other pixels"
    again = replay(images, drawn, pool=more.get("pool"), backend="triton")
    assert torch.equal(again, replay(images, drawn, pool=more.get("pool"), backend="torch")), name


def compare_all_pairs():
    """Each operation in each slot: before Equalize, before Rotate, twice, and after Color."""
    names = operations.OPERATIONS
    pairs = [(a, b) for a in names for b in ("Equalize", "Rotate", a)] + [
        ("Color", b) for b in names
    ]
    shape = (1, len(pairs), 2)
    size = {"height": 9, "width": 8}
    strength = [[argument(n, 0.7, sign=-1, **size) or 0.0 for n in pair] for pair in pairs]
    drawn = SubPolicies(
        operation=torch.tensor([[[names.index(n) for n in p] for p in pairs]], dtype=torch.int32),
        applied=torch.ones(shape, dtype=torch.bool),
        argument=torch.tensor([strength], dtype=torch.float32),
        center=torch.full((*shape, 2), 4, dtype=torch.int32),
        partner=torch.ones(shape, dtype=torch.int64),
        probability=torch.ones(shape),
        magnitude=torch.full(shape, 0.7),
    )
    images = kernel_cases.images_of((2, 3, 9, 8), 1)
    found, expected = (
        replay(images[:1], drawn, pool=images, backend=backend) for backend in ("triton", "torch")
    )
    for i, pair in enumerate(pairs):
        assert torch.equal(found[0, i], expected[0, i]), pair


def compare_between_fences():
    """Words are read where pixels lie at an edge: none of them may lie outside of the images."""
    for policy in (policies.Single("Sharpness"), policies.Single("SamplePairing")):
        for channels, height, width, default in (
            (3, 5, 4, kernel_cases.RGB),
            (3, 6, 12, kernel_cases.WIDE),
            (1, 9, 8, kernel_cases.GREY),
        ):
            case = (1, channels, height, width, 16, policy, default, {})
            images = kernel_cases.images_of(case, 5)
            expected, _ = kernel_cases.run(case, images, "torch", 5)
            for at_the_end in (False, True):
                found, _ = kernel_cases.run(case, fenced(images, at_the_end), "triton", 5)
                assert torch.equal(found, expected)


def compare_numbers_in_tensors():
    """Step and epoch as tensors, which a captured graph reads anew, are the numbers they hold."""
    images = kernel_cases.images_of((3, 3, 4, 5), 7)
    for policy in (policies.Uniform(), policies.PBA()):
        first, second = (
            expand(images, 5, policy, step=kind(11), epoch=kind(70), backend="triton")
            for kind in (int, torch.tensor)
        )
        assert first[1].equal(second[1]), policy
        assert torch.equal(first[0], second[0]), policy


def refuse_a_schedule_without_epoch():
    with pytest.raises(ValueError, match="pass `epoch`"):
        expand(torch.zeros(1, 3, 4, 4, dtype=torch.uint8), 2, policies.PBA(), backend="triton")


def main():
    assert kernels.use_triton("triton", torch.device("cpu"))
    for seed, (name, case) in enumerate(kernel_cases.SMALL.items()):
        compare(name, case, seed)
    compare_all_pairs()
    compare_numbers_in_tensors()
    refuse_a_schedule_without_epoch()
    # The path of large images, made to serve small ones; fewer programs, since each one is slow.
    plan.FUSED_PIXELS, plan.PROGRAMS = 16, 3
    for which, share in plan.SHARES.items():
        plan.SHARES[which] = share._replace(part=1 + which % 2)
    for seed, (name, case) in enumerate(kernel_cases.APART.items()):
        compare(f"{name}, apart", case, seed)
    compare_all_pairs()
    compare_between_fences()
    compared = len(kernel_cases.SMALL) + len(kernel_cases.APART) + 2
    print("compared", compared)


if __name__ == "__main__":
    sys.exit(main())
