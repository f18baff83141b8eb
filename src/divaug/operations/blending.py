"""Blends of two images in Pillow's arithmetic, and the operations that are such blends."""

import torch
from torch import Tensor

__all__ = ["blend", "blend_values", "color", "luma", "sample_pairing", "sharpness", "smooth"]


#: Pillow's weights of red, green and blue in a grey value, in units of 2**-16.
LUMA = (19595, 38470, 7471)


def blend_values(first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
    """`first + weight·(second − first)` truncated to uint8, on float32 tensors of whole numbers.

    The product and the sum are rounded one after the other: a fused multiply-add gives other
    bytes than Pillow's.
    """
    moved = ((second - first) * weight.to(torch.float32)).add_(first)
    # By way of int16: on a CPU the direct conversion is several times slower.
    return moved.clamp_(0, 255).to(torch.int16).to(torch.uint8)


def blend(first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
    """`Image.blend` on uint8 batches `[n,C,H,W]` with one weight per image."""
    return blend_values(first.to(torch.float32), second, weight[:, None, None, None])


def luma(images: Tensor) -> Tensor:
    """Pillow's grey version of uint8 images: int32 `[n,H,W]`."""
    if images.shape[1] == 1:
        return images[:, 0].to(torch.int32)
    red, green, blue = images.to(torch.int32).unbind(1)
    return (red * LUMA[0] + green * LUMA[1] + blue * LUMA[2] + 32768) >> 16


def color(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with the grey version; a grey image is its own grey version and stays."""
    if images.shape[1] == 1:
        return images
    grey = luma(images).to(torch.float32)[:, None]
    return blend_values(grey.expand(images.shape), images, factor[:, None, None, None])


def smooth(images: Tensor) -> Tensor:
    """Pillow's 3×3 SMOOTH filter of the inner pixels: float32 `[n,C,H−2,W−2]` of whole numbers."""
    x = images.to(torch.float32)
    rows = x[:, :, :-2] + x[:, :, 1:-1] + x[:, :, 2:]
    box = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]
    # Sums of whole numbers are exact, and n/13 + 1/2 is never nearer to a whole number than 1/26:
    # the rounding of this line cannot change the floor.
    return box.add_(x[:, :, 1:-1, 1:-1], alpha=4).mul_(1 / 13).add_(0.5).floor_()


def sharpness(images: Tensor, factor: Tensor) -> Tensor:
    """Blend the inner pixels with their smoothed version; the one-pixel border stays."""
    height, width = images.shape[2:]
    if height < 3 or width < 3:
        return images
    out = images.clone()
    inner = images[:, :, 1:-1, 1:-1]
    out[:, :, 1:-1, 1:-1] = blend_values(smooth(images), inner, factor[:, None, None, None])
    return out


def sample_pairing(images: Tensor, weight: Tensor, partner: Tensor) -> Tensor:
    """Blend with another image; the label is no business of this function."""
    return blend(images, partner, weight)
