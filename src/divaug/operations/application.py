"""`apply`: one operation for a batch, or another one for every image, with all inputs checked."""

import torch
from torch import Tensor

from divaug.operations.checks import (
    check_argument,
    check_center,
    check_images,
    check_partner,
    operation_ids,
)
from divaug.operations.execution import transform_in_place
from divaug.operations.further import EVERY

__all__ = ["apply", "from_bytes", "to_bytes"]


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
