"""Shear, translate and rotate: Pillow's fixed-point affine transform with nearest sampling.

Pillow maps every output pixel back to an input pixel. For images of ordinary size it does so in
16.16 fixed point: the six coefficients of the affine map are rounded once, and the coordinates are
whole-number sums of them. Reproducing those six integers reproduces every pixel.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["flip_lr", "flip_ud", "rotate", "shear_x", "shear_y", "translate_x", "translate_y"]

ONE = 65536  # 1.0 in 16.16 fixed point
# Taylor coefficients of sin and cos; after reduction to 45 degrees the first dropped term is
# below 1e-18, so the polynomials are as good as the library's functions.
SIN_TERMS = tuple((-1) ** i / math.factorial(2 * i + 1) for i in range(9))
COS_TERMS = tuple((-1) ** i / math.factorial(2 * i) for i in range(10))
# Sums of up to 2**13 lose bits below 2**-39: a smaller fraction of a pixel never becomes a whole.
NEARLY_ONE = 1 - 2.0**-40


def _fixed(value: Tensor) -> Tensor:
    """Round to 16.16 fixed point the way Pillow does: half up, towards plus infinity."""
    return (value * ONE + 0.5).floor().to(torch.int32)


def cos_sin_degrees(angle: Tensor) -> tuple[Tensor, Tensor]:
    """Compute cosine and sine of degrees in float64 by additions and multiplications alone.

    A device's own `sin` may differ from another's in the last bit; these do not, because every
    step is a correctly rounded operation. Multiples of 90 degrees are exact.
    """
    quarter = (angle * (1 / 90) + 0.5).floor()
    x = (angle - quarter * 90.0) * (math.pi / 180.0)
    # Both series in one tensor, the sine's with a last term of zero.
    series = torch.tensor((COS_TERMS, (*SIN_TERMS, 0.0)), dtype=x.dtype, device=x.device)
    *terms, last = series[:, :, None].unbind(1)
    x_squared = x * x
    total = last.expand(2, len(x)).clone()
    for term in reversed(terms):
        total.mul_(x_squared).add_(term)
    cos, sin = total.unbind()
    sin = sin * x
    turn = quarter.to(torch.int64) & 3
    odd = (turn & 1).bool()
    # 1, −1, −1, 1 and 1, 1, −1, −1: signs of cosine and sine in the four quarters.
    cos_sign, sin_sign = 1 - ((turn + 1) & 2), 1 - (turn & 2)
    return torch.where(odd, sin, cos) * cos_sign, torch.where(odd, cos, sin) * sin_sign


def affine(images: Tensor, coefficients: Tensor) -> Tensor:
    """Sample `images` [n,C,H,W] at the affine map `coefficients` [6,n,1]; black outside."""
    height, width = images.shape[2:]
    x = torch.arange(width, device=images.device, dtype=torch.int32)
    y = torch.arange(height, device=images.device, dtype=torch.int32)
    a = coefficients.unbind(0)

    def source(per_x: Tensor, per_y: Tensor, start: Tensor, size: int) -> Tensor:
        row = (start + ONE) + per_y * y  # counted from the black border
        place = row[:, :, None] + (per_x * x)[:, None, :]
        place >>= 16
        return place.clamp_(0, size + 1)

    x_in, y_in = source(a[0], a[1], a[2], width), source(a[3], a[4], a[5], height)
    # One black pixel all around: whatever falls outside lands there, and nothing is masked.
    return _sample(F.pad(images, (1, 1, 1, 1)), x_in.add_(y_in, alpha=width + 2), images.shape)


def _sample(padded: Tensor, place: Tensor, shape: torch.Size) -> Tensor:
    """Return the pixels `place` [n,H,W] of every channel's plane."""
    n, channels, height, width = shape
    index = place.view(n, 1, height * width).to(torch.int64).expand(n, channels, height * width)
    return padded.flatten(2).gather(2, index).view(shape)


def coefficients_of(a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor, f: Tensor) -> Tensor:
    """Return Pillow's six fixed-point integers `[6,n,1]` of an affine map in float64."""
    center_x, center_y = c + a * 0.5 + b * 0.5, f + d * 0.5 + e * 0.5
    return _fixed(torch.stack([a, b, center_x, d, e, center_y]))[:, :, None]


def _slope(factor: Tensor, size: int) -> Tensor:
    """Return by how many pixels a shear moves each row or column: int32 `[n,size]`."""
    step, start = _fixed(torch.stack([factor, 0.5 + factor * 0.5]))[:, :, None].unbind()
    return (start + step * torch.arange(size, device=factor.device, dtype=torch.int32)) >> 16


def _move_rows(images: Tensor, shift: Tensor) -> Tensor:
    """Return row y of image i becomes its pixels from `shift[i, y]` on; black outside.

    Args:
        images: uint8 `[n,C,H,W]`.
        shift: int64 `[n,H]` or `[n,1]`, pixels.
    """
    n, channels, height, width = images.shape
    return _windows(images, width, shift[:, None, :].expand(n, channels, height))


def _move_planes(images: Tensor, shift: Tensor) -> Tensor:
    """Return every plane of image i becomes its rows from `shift[i]` on; black outside."""
    n, channels, height, width = images.shape
    rows = shift.clamp(-height, height) * width
    return _windows(images, height * width, rows[:, None].expand(n, channels))


def _windows(images: Tensor, length: int, shift: Tensor) -> Tensor:
    """Cut the images' bytes into runs of `length`, each read from `shift` bytes on."""
    count = math.prod(shift.shape)
    # As much black before and after each run: a window that leaves the run on either side reads
    # black, and never another run.
    padded = images.new_zeros((2 * count + 1) * length)
    padded[length:].view(count, 2, length)[:, 0] = images.reshape(count, length)
    begin = torch.arange(length, 2 * count * length, 2 * length, device=images.device)
    begin = begin.view(shift.shape) + shift.clamp(-length, length)
    windows = padded.as_strided((2 * count * length + 1, length), (1, 1))
    return windows.index_select(0, begin.flatten()).view(images.shape)


def shear_x(images: Tensor, factor: Tensor, *_: Tensor) -> Tensor:
    """Shear along x, anchored at the top-left corner: input x = x + factor·y."""
    return _move_rows(images, _slope(factor, images.shape[2]))


def shear_y(images: Tensor, factor: Tensor, *_: Tensor) -> Tensor:
    """Shear along y, anchored at the top-left corner: input y = y + factor·x."""
    height, width = images.shape[2:]
    y = torch.arange(1, height + 1, device=images.device, dtype=torch.int32)
    # A black row above and one below take what falls outside.
    row = (y[:, None] + _slope(factor, width)[:, None, :]).clamp_(0, height + 1)
    x = torch.arange(width, device=images.device, dtype=torch.int32)
    return _sample(F.pad(images, (0, 0, 1, 1)), torch.add(x, row, alpha=width), images.shape)


def _carry(fraction: Tensor, size: int) -> Tensor:
    """Return the first coordinate at which a running sum of ones has rounded `fraction` up to 1.

    Without shear Pillow samples at pixel centres in float64 and adds 1 from pixel to pixel. Adding
    1 rounds only where the sum reaches a power of two, so a fraction just below 1 (a translation
    just short of a half) becomes 1 at one of them, and from there on the shift is a pixel larger.
    """
    carry = torch.where(fraction >= 1, 0, size)
    for exponent in range(size.bit_length()):
        steps = 2.0 ** (52 - exponent)
        fraction = (fraction * steps).round() / steps
        carry = torch.where(fraction >= 1, carry.clamp(max=1 << exponent), carry)
    return carry


def _translate(images: Tensor, pixels: Tensor, axis: int) -> Tensor:
    """Move the content along an axis by `pixels` towards its start."""
    size = images.shape[axis]
    start = pixels + 0.5
    whole = start.floor()
    fraction = start - whole
    shift = whole.to(torch.int64)
    if bool((fraction >= NEARLY_ONE).any()):
        return _look_up(images, shift, _carry(fraction, size), axis)
    return _move_rows(images, shift[:, None]) if axis == 3 else _move_planes(images, shift)


def _look_up(images: Tensor, shift: Tensor, carry: Tensor, axis: int) -> Tensor:
    """Translation where the shift grows by a pixel from the position `carry` [n] on."""
    size = images.shape[axis]
    source = torch.arange(size, device=images.device) + shift[:, None]
    source += source >= carry[:, None]
    inside = (source >= 0) & (source < size)
    shape = [len(images), 1, 1, 1]
    shape[axis] = size
    moved = images.gather(axis, (source * inside).view(shape).expand(images.shape))
    return moved.mul_(inside.view(shape))


def translate_x(images: Tensor, pixels: Tensor, *_: Tensor) -> Tensor:
    """Move the content left by `pixels` (right where negative)."""
    return _translate(images, pixels, 3)


def translate_y(images: Tensor, pixels: Tensor, *_: Tensor) -> Tensor:
    """Move the content up by `pixels` (down where negative)."""
    return _translate(images, pixels, 2)


def rotate(images: Tensor, degrees: Tensor, *_: Tensor) -> Tensor:
    """Rotate counter-clockwise about the image's centre, keeping the canvas."""
    height, width = images.shape[2:]
    return affine(images, coefficients_of(*rotation_rows(degrees, height, width)))


def rotation_rows(
    degrees: Tensor, height: int, width: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the affine rows of a rotation about the centre, output to input."""
    # Pillow turns the angle's sign because its map runs from output to input.
    cos, sin = cos_sin_degrees(-degrees)
    center_x, center_y = width / 2.0, height / 2.0
    c = cos * -center_x + sin * -center_y + center_x
    f = -sin * -center_x + cos * -center_y + center_y
    return cos, sin, c, -sin, cos, f


def flip_lr(images: Tensor, *_: Tensor) -> Tensor:
    """Mirror left and right."""
    return images.flip(3)


def flip_ud(images: Tensor, *_: Tensor) -> Tensor:
    """Mirror top and bottom."""
    return images.flip(2)
