"""Run a different operation on every image of a batch, each on a group of its own.

Images are grouped by operation, so nothing is computed for images that did not draw it, and groups
are cut into chunks, so the temporary tensors stay small whatever the batch.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from divaug.operations.table import Operation

__all__ = ["CHUNK_PIXELS", "transform_in_place"]

#: Pixels of one chunk. Temporaries take at most about 40 bytes per pixel of a chunk; this many
#: pixels keep them in a core's cache and still amortise the cost of a call.
CHUNK_PIXELS = 1 << 17


def _groups(operation: Tensor, count: int, chunk: int) -> Iterator[tuple[int, Tensor]]:
    """Yield (operation id, rows) chunk by chunk; rows with a negative id are left out."""
    order = operation.argsort(stable=True)
    ids = torch.arange(count + 1, device=operation.device, dtype=operation.dtype)
    # One copy to the host for the whole batch: where each operation's rows begin.
    begin = torch.searchsorted(operation[order], ids).tolist()
    for i in range(count):
        for start in range(begin[i], begin[i + 1], chunk):
            yield i, order[start : min(start + chunk, begin[i + 1])]


def _words(images: Tensor) -> Tensor:
    """The bytes of each image as a row, eight at a time where they allow: far quicker to write."""
    flat = images.view(len(images), math.prod(images.shape[1:]))
    whole = flat.shape[1] % 8 == 0 and flat.storage_offset() % 8 == 0
    return flat.view(torch.int64) if whole else flat


def _checked(name: str, result: Tensor, taken: Tensor) -> Tensor:
    """Return what an operation made of `taken`; one of the user's own may return anything."""
    fits = isinstance(result, Tensor) and result.shape == taken.shape
    if fits and result.dtype == taken.dtype and result.device == taken.device:
        return result
    wanted = f"a uint8 tensor of shape {tuple(taken.shape)} on {taken.device}, like its images"
    if not isinstance(result, Tensor):
        raise TypeError(f"{name} must return {wanted}, got {type(result).__name__}.")
    if result.dtype != taken.dtype:
        raise TypeError(
            f"{name} must return {wanted}, got {result.dtype}; round, clamp to [0, 255] and "
            "convert with .to(torch.uint8)."
        )
    raise ValueError(
        f"{name} must return {wanted}, got shape {tuple(result.shape)} on {result.device}."
    )


def transform_in_place(
    images: Tensor,
    operation: Tensor,
    argument: Tensor,
    center: Tensor | None,
    pool: Tensor | None,
    partner: Tensor | None,
    operations: Sequence[Operation],
) -> None:
    """Apply `operations[operation[i]]` to image i, overwriting `images`.

    Args:
        images: uint8 `[n,C,H,W]`, contiguous; changed in place.
        operation: integer ids `[n]`; a negative id leaves its image alone.
        argument: `[n]` in physical units.
        center: `[n,2]` (y, x), or None where no operation needs a place.
        pool: uint8 `[m,C,H,W]`, the originals that partners are taken from.
        partner: `[n]` rows of `pool`, or None where no operation needs a partner.
        operations: the table that the ids point into.
    """
    nothing = images.new_empty(0)
    rows_of = _words(images)
    chunk = max(1, CHUNK_PIXELS // max(1, images.shape[2] * images.shape[3]))
    for i, rows in _groups(operation, len(operations), chunk):
        this = operations[i]
        here = center[rows] if this.needs_center and center is not None else nothing
        other = nothing
        if this.needs_partner and pool is not None and partner is not None:
            other = pool.index_select(0, partner[rows])
        strength = argument[rows].to(torch.float64)
        taken = images.index_select(0, rows)
        result = _checked(this.name, this.transform(taken, strength, here, other), taken)
        rows_of[rows] = result.flatten(1).view(rows_of.dtype)
