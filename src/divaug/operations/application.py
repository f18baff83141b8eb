"""Operations on batches: `apply` with all inputs checked, and two ways to run drawn operations.

Images are grouped by operation, so nothing is computed for images that did not draw it, and groups
are cut into chunks, so the temporary tensors stay small whatever the batch. Where the host must not
wait for the device, an operation is computed for all images and kept where it was drawn.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from divaug.operations.checks import (
    check_argument,
    check_center,
    check_images,
    check_partner,
    operation_ids,
)
from divaug.operations.table import EVERY, Operation

__all__ = ["apply", "from_bytes", "to_bytes", "transform_in_place", "transform_where_drawn"]

#: Pixels of one chunk: four images of 224×224. Temporaries take at most about 40 bytes per pixel of
#: a chunk; this many pixels keep them in the caches and still amortise the cost of a call.
CHUNK_PIXELS = 4 * 224 * 224
#: Pixels that are worked on at a time where all images are: enough to keep a GPU busy.
MASKED_CHUNK_PIXELS = 1 << 21


def to_bytes(images: Tensor) -> Tensor:
    """Float images in [0,1] as uint8, rounded half up; uint8 images as they are."""
    if images.dtype == torch.uint8:
        return images
    return images.to(torch.float32).mul(255).add_(0.5).floor_().to(torch.uint8)


def from_bytes(transformed: Tensor, quantised: Tensor, images: Tensor) -> Tensor:
    """Back to the dtype of `images`; what the operation did not change keeps its very bits."""
    if images.dtype == torch.uint8:
        return transformed
    changed = (transformed != quantised).flatten(1).any(1)
    # A tensor as divisor: division by a number is a product with its reciprocal on some devices.
    full = torch.full((), 255.0, dtype=torch.float32, device=images.device)
    scaled = (transformed.to(torch.float32) / full).to(images.dtype)
    return torch.where(changed[:, None, None, None], scaled, images)


def apply(
    images: Tensor,
    operation: str | Tensor,
    argument: float | Tensor | None = None,
    *,
    center: Tensor | None = None,
    partner: Tensor | None = None,
) -> Tensor:
    """Apply one operation to a batch, or a different one to every image.

    The pixels equal Pillow's to the last bit. Nothing is drawn, clamped or changed in place, but
    for CropBilinear, which cuts no more than leaves a pixel. No gradient flows through it.

    Args:
        images: uint8 `[B,C,H,W]` with 1 or 3 channels; or float32, float16 or bfloat16 in [0,1],
            which is quantised to 8 bits for the operation and returned in its dtype.
        operation: a name of `OPERATIONS` or of `FURTHER`, or an integer tensor `[B]` of positions
            in `OPERATIONS`.
        argument: a number or a tensor `[B]` in physical units: shear factor, pixels (a positive
            translation moves the content left or up), degrees counter-clockwise, threshold, bits,
            factor, side in pixels, weight of the partner, pixels cut from every side
            (CropBilinear). AutoContrast, Invert, Equalize, the flips, Blur and Smooth take none.
        center: integer `[B,2]`, the (y, x) of Cutout's square.
        partner: the second images of SamplePairing, like `images`.

    Returns:
        A new batch of the shape, dtype and memory format of `images`.

    Raises:
        TypeError: for something that is not a tensor of an accepted dtype.
        ValueError: for a wrong shape, an unknown operation or an argument out of its range.

    Example:
        >>> from divaug.operations import OPERATIONS
        >>> images = torch.arange(12, dtype=torch.uint8).view(1, 1, 3, 4)
        >>> apply(images, "TranslateX", 1)[0, 0]
        tensor([[ 1,  2,  3,  0],
                [ 5,  6,  7,  0],
                [ 9, 10, 11,  0]], dtype=torch.uint8)
        >>> both = images.repeat(2, 1, 1, 1)
        >>> ids = torch.tensor([OPERATIONS.index("Invert"), OPERATIONS.index("Posterize")])
        >>> apply(both, ids, torch.tensor([0.0, 6.0]))[:, 0, 0]
        tensor([[255, 254, 253, 252],
                [  0,   0,   0,   0]], dtype=torch.uint8)
    """
    # Bytes have no gradient: that of images which happen to stay as they are would mislead.
    images = check_images(images).detach()
    batch, _, height, width = images.shape
    ids = operation_ids(operation, batch, images.device)
    values = check_argument(argument, ids, max(height, width))
    places = check_center(center, ids, height, width)
    pool = check_partner(partner, images, ids)
    quantised = to_bytes(images)
    out = quantised.clone(memory_format=torch.contiguous_format)
    transform_in_place(
        out,
        ids,
        values,
        places,
        None if pool is None else to_bytes(pool),
        torch.arange(batch, device=images.device),
        tuple(EVERY.values()),
    )
    result = from_bytes(out, quantised, images)
    channels_last = images.is_contiguous(memory_format=torch.channels_last)
    if channels_last and not images.is_contiguous():
        return result.contiguous(memory_format=torch.channels_last)
    return result


def _groups(ids: Tensor, count: int, chunk: int) -> Iterator[tuple[int, slice]]:
    """Yield (operation id, its part of the sorted `ids`) chunk by chunk, without negative ids."""
    first = torch.arange(count + 1, device=ids.device, dtype=ids.dtype)
    # One copy to the host for the whole batch: where each operation's images begin.
    begin = torch.searchsorted(ids, first).tolist()
    for i in range(count):
        for start in range(begin[i], begin[i + 1], chunk):
            yield i, slice(start, min(start + chunk, begin[i + 1]))


def _words(images: Tensor) -> Tensor:
    """View each image as a row, of eight bytes at a time where possible: faster to write."""
    flat = images.view(len(images), math.prod(images.shape[1:]))
    whole = flat.shape[1] % 8 == 0 and flat.storage_offset() % 8 == 0
    return flat.view(torch.int64) if whole else flat


def _checked(name: str, result: Tensor, taken: Tensor) -> Tensor:
    """Return the result of an operation; a user's operation may return anything."""
    fits = isinstance(result, Tensor) and result.shape == taken.shape
    if fits and result.dtype == taken.dtype and result.device == taken.device:
        return result
    got: object = type(result).__name__
    if isinstance(result, Tensor):
        got = f"{result.dtype} {tuple(result.shape)} on {result.device}"
    raise TypeError(
        f"{name} must return a uint8 tensor of shape {tuple(taken.shape)} on {taken.device}, like "
        f"its images, got {got}."
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
