"""The nearest pixel along one axis: what resizes an image whose values must not be mixed."""

import torch
from torch import Tensor

__all__ = ["pick"]


def pick(images: Tensor, axis: int, start: Tensor, length: Tensor, size: int) -> Tensor:
    """Resize the `length` [n] pixels from `start` [n] on to `size` ones, along one axis.

    Args:
        images: `[n,C,H,W]` of any dtype.
        axis: 2 for rows, 3 for columns.
        start: of each image, its first pixel.
        length: of each image, one or more.
        size: how many they become.

    Example:
        >>> row = torch.tensor([[[[10, 20, 30, 40]]]])
        >>> pick(row, 3, torch.tensor([1]), torch.tensor([2]), 4).flatten().tolist()
        [20, 20, 30, 30]
    """
    # The middle of pixel i, (i + 1/2)·length/size, in whole numbers: no rounding.
    middle = (2 * torch.arange(size, device=images.device) + 1) * length.to(torch.int64)[:, None]
    source = start.to(torch.int64)[:, None] + middle.div(2 * size, rounding_mode="floor")
    shape, whole = [len(images), 1, 1, 1], list(images.shape)
    shape[axis] = whole[axis] = size
    return images.gather(axis, source.view(shape).expand(whole))
