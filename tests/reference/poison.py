"""Fill memory that nobody has written yet, so that a kernel that leaves a hole is found out."""

from contextlib import contextmanager
from unittest import mock

import torch

PATTERN = 0xA5


@contextmanager
def poisoned_memory():
    """Inside the block, `torch.empty` and `torch.empty_like` return a pattern, not zeros."""
    empty, empty_like = torch.empty, torch.empty_like

    def fill(tensor):
        # As bytes of the storage: also the layout with channels last is filled as a whole.
        if tensor.numel():
            torch.tensor([], dtype=torch.uint8, device=tensor.device).set_(
                tensor.untyped_storage()
            ).fill_(PATTERN)
        return tensor

    with (
        mock.patch.object(torch, "empty", lambda *a, **k: fill(empty(*a, **k))),
        mock.patch.object(torch, "empty_like", lambda *a, **k: fill(empty_like(*a, **k))),
    ):
        yield
