"""Compare the selection kernel with batched PyTorch; run with TRITON_INTERPRET=1.

Triton reads that variable when it is imported, so the comparison needs a process of its own.
"""

import itertools
import warnings

import torch

from divaug import select
from divaug._select import METHODS
from tests.test_selection import awkward, realistic

# B of 8 runs once through everything that `awkward` makes.
SHAPES = [(1, 1, 1, 2), (3, 2, 1, 2), (8, 3, 3, 3), (8, 5, 2, 7), (8, 8, 4, 10), (3, 8, 2, 300),
          (8, 13, 3, 17), (1, 33, 2, 65), (1, 64, 2, 70)]  # fmt: skip


def compare(probs, S, method, **keys):
    ours = select(probs, S, method=method, backend="torch", **keys)
    kernel = select(probs, S, method=method, backend="triton", **keys)
    case = (tuple(probs.shape), S, method, probs.dtype, keys)
    assert torch.equal(ours, kernel), f"{case}: {ours.tolist()} and {kernel.tolist()}"


def main():
    compared = 0
    warnings.filterwarnings("ignore", message="overflow encountered in cast")  # 1e300 below
    for method, rule in METHODS.items():
        if rule.kernel is None:
            continue
        for (B, E, S, D), make in itertools.product(SHAPES, (realistic, awkward)):
            index = torch.arange(2 * B)[::2] * 40_503_001 + 2**31
            compare(make(B, E, D), S, method, seed=2**63 + 5, step=2**32 - 1, index=index)
            compared += 1
        probs = realistic(4, 8, 10)
        compare(probs, 4, method, seed=3, step=torch.tensor(7))
        compare(probs.transpose(1, 2), 4, method)
        compare(probs.to(torch.bfloat16), 4, method)
        compare(torch.eye(64).expand(2, -1, -1), 3, method)
        huge = probs.double()
        huge[:, 2] = 0.0
        huge[:, 2, 0] = 1e300
        compare(huge, 4, method)
        compare(probs[:0], 4, method)
        compared += 6
    print("compared", compared)


if __name__ == "__main__":
    main()
