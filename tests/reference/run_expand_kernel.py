"""Compare the expansion kernels with batched PyTorch; run with TRITON_INTERPRET=1.

Triton reads that variable when it is imported, so the comparison needs a process of its own. The
interpreter truncates where it casts to bfloat16, so that dtype is compared on a GPU only.
"""

import sys

import torch

from divaug import kernels, replay
from divaug.kernels import render
from tests.reference import kernel_cases
from tests.reference.poison import poisoned_memory


def compare(name, case, seed):
    images = kernel_cases.images_of(case, seed)
    pool = kernel_cases.images_of((9, *case[1:]), seed + 1)
    more = {"pool": pool, "index": torch.arange(len(images)) * 3} if seed % 2 else {}
    expected, drawn = kernel_cases.run(case, images, "torch", seed, **more)
    with poisoned_memory():
        found, drawn_by_kernel = kernel_cases.run(case, images, "triton", seed, **more)
    assert drawn.equal(drawn_by_kernel), f"{name}: other draws"
    assert found.stride() == expected.stride(), f"{name}: another layout"
    assert torch.equal(found, expected), f"{name}: other pixels"
    again = replay(images, drawn, pool=more.get("pool"), backend="triton")
    assert torch.equal(again, replay(images, drawn, pool=more.get("pool"), backend="torch")), name


def main():
    assert kernels.use_triton("triton", torch.device("cpu"))
    for seed, (name, case) in enumerate(kernel_cases.SMALL.items()):
        compare(name, case, seed)
    # The path of large images, made to serve small ones; fewer programs, since each one is slow.
    render.FUSED_PIXELS, render.PROGRAMS, render.PARTS = 16, 2, (2, 2)
    for seed, (name, case) in enumerate(kernel_cases.APART.items()):
        compare(f"{name}, apart", case, seed)
    compared = len(kernel_cases.SMALL) + len(kernel_cases.APART)
    print("compared", compared)


if __name__ == "__main__":
    sys.exit(main())
