"""Compare the lists of large images with a loop in Python; run with TRITON_INTERPRET=1."""

import itertools
import sys

import torch

from divaug.kernels.worklists import List, list_kernel
from divaug.operations import OPERATIONS

TABLED = {"AutoContrast", "Equalize", "Contrast"}


def expected(pairs):
    """What each list must hold, from the names of the operations that are applied."""
    lists = {which: set() for which in List}
    for n, names in enumerate(pairs):
        drawn = [name for name in names if name]
        tables = TABLED & set(drawn)
        if len(drawn) == 2 and names[1] == "Sharpness":
            lists[List.SHARPENED].add(n)
        elif len(drawn) == 2:
            lists[List.TWO_TABLED if tables else List.TWO].add(n)
        else:
            lists[List.ONE_TABLED if tables else List.ONE].add(n)
        for k, name in enumerate(names):
            after = k == 1 and names[0] and name in TABLED
            if name in TABLED:
                lists[List.LATER_TABLES if after else List.TABLES].add(2 * n + k)
    return lists


def main():
    pairs = list(itertools.product((None, *OPERATIONS), repeat=2))
    ids = [[OPERATIONS.index(name) if name else 3 for name in pair] for pair in pairs]
    applied = torch.tensor([[bool(name) for name in pair] for pair in pairs])
    room = 2 * len(pairs)
    lists = torch.full((len(List), room), -1, dtype=torch.int32)
    counts = torch.zeros(8, dtype=torch.int32)
    operation = torch.tensor(ids, dtype=torch.int32)
    list_kernel[(-(-len(pairs) // 64),)](
        lists, counts, operation, applied.view(torch.uint8), len(pairs), room, 0,
        K=2, SLOTS=2, BLOCK=64,
    )  # fmt: skip
    for which, wanted in expected(pairs).items():
        found = lists[which, : counts[which]].tolist()
        assert len(found) == len(set(found)), f"{which.name}: something is there twice"
        assert set(found) == wanted, which.name
    print("lists", len(List))


if __name__ == "__main__":
    sys.exit(main())
