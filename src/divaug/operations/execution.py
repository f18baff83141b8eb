"""Run a different operation on every image of a batch: in groups, or without asking who drew what.

Images are grouped by operation, so nothing is computed for images that did not draw it, and groups
are cut into chunks, so the temporary tensors stay small whatever the batch. Where the host must not
wait for the device, an operation is computed for all images and kept where it was drawn.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from divaug.operations.table import Operation

__all__ = ["CHUNK_PIXELS", "MASKED_CHUNK_PIXELS", "transform_in_place", "transform_where_drawn"]

#: Pixels of one chunk: four images of 224×224. Temporaries take at most about 40 bytes per pixel of
#: a chunk; this many pixels keep them in the caches and still amortise the cost of a call.
CHUNK_PIXELS = 4 * 224 * 224
#: Pixels that are worked on at a time where all images are: enough to keep a GPU busy.
MASKED_CHUNK_PIXELS = 1 << 21


def _groups(ids: Tensor, count: int, chunk: int) -> Iterator[tuple[int, slice]]:
    """Yield (operation id, its part of the sorted `ids`) chunk by chunk, without negative ids."""
    first = torch.arange(count + 1, device=ids.device, dtype=ids.dtype)
    # One copy to the host for the whole batch: where each operation's images begin.
    begin = torch.searchsorted(ids, first).tolist()
    for i in range(count):
        for start in range(begin[i], begin[i + 1], chunk):
            yield i, slice(start, min(start + chunk, begin[i + 1]))


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
    # Everything in the order of the operations, once: each chunk is then a slice.
    ids, order = operation.sort(stable=True)
    strength = argument[order].to(torch.float64)
    place = nothing if center is None else center[order]
    other = nothing if partner is None else partner[order]
    for i, part in _groups(ids, len(operations), chunk):
        this, rows = operations[i], order[part]
        here = place[part] if this.needs_center else nothing
        second = nothing
        if this.needs_partner and pool is not None:
            second = pool.index_select(0, other[part])
        taken = images.index_select(0, rows)
        result = _checked(this.name, this.transform(taken, strength[part], here, second), taken)
        rows_of[rows] = result.flatten(1).contiguous().view(rows_of.dtype)


def transform_where_drawn(
    images: Tensor,
    operation: Tensor,
    argument: Tensor,
    center: Tensor,
    pool: Tensor,
    partner: Tensor,
    operations: Mapping[int, Operation],
) -> None:
    """Apply `operations[operation[i]]` to image i, overwriting `images`, with no word to the host.

    What is computed does not depend on what was drawn, so a CUDA graph can hold it. Images whose id
    is not in `operations` stay.

    Args:
        images: uint8 `[n,C,H,W]`; changed in place.
        operation: integer ids `[n]`.
        argument: `[n]` in physical units.
        center: `[n,2]` (y, x).
        pool: uint8 `[m,C,H,W]`, the originals that partners are taken from.
        partner: `[n]` rows of `pool`.
        operations: id → operation.
    """
    nothing = images.new_empty(0)
    chunk = max(1, MASKED_CHUNK_PIXELS // max(1, images.shape[2] * images.shape[3]))
    for start in range(0, len(images), chunk):
        these = slice(start, start + chunk)
        taken = images[these]
        for i, this in operations.items():
            drawn = operation[these] == i
            # Others have drawn their arguments for other operations: they get a harmless one.
            harmless = min(max(0.0, this.low), this.high)
            strength = torch.where(drawn, argument[these].to(torch.float64), harmless)
            here = center[these] if this.needs_center else nothing
            other = pool.index_select(0, partner[these]) if this.needs_partner else nothing
            # A copy, as where images are grouped: one of the user's own may work in place.
            made = this.transform(taken.clone(), strength, here, other)
            result = _checked(this.name, made, taken)
            taken.copy_(torch.where(drawn[:, None, None, None], result, taken))
