"""Shear, translate and rotate: Pillow's fixed-point affine transform with nearest sampling.

Pillow maps every output pixel back to an input pixel. For images of ordinary size it does so in
16.16 fixed point: the six coefficients of the affine map are rounded once, and the coordinates are
whole-number sums of them. Reproducing those six integers reproduces every pixel.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["rotate", "shear_x", "shear_y", "translate_x", "translate_y"]

ONE = 65536  # 1.0 in 16.16 fixed point
# Taylor coefficients of sin and cos; after reduction to 45 degrees the first dropped term is
# below 1e-18, so the polynomials are as good as the library's functions.
SIN_TERMS = tuple((-1) ** i / math.factorial(2 * i + 1) for i in range(9))
COS_TERMS = tuple((-1) ** i / math.factorial(2 * i) for i in range(10))


def _fixed(value: Tensor) -> Tensor:
    """Round to 16.16 fixed point the way Pillow does: half up, towards plus infinity."""
    return (value * ONE + 0.5).floor().to(torch.int32)


def _horner(x_squared: Tensor, terms: tuple[float, ...]) -> Tensor:
    total = torch.full_like(x_squared, terms[-1])
    for term in reversed(terms[:-1]):
        total = total * x_squared + term
    return total


def cos_sin_degrees(angle: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine of degrees in float64 from additions and multiplications alone.

    A device's own `sin` may differ from another's in the last bit; these do not, because every
    step is a correctly rounded operation. Multiples of 90 degrees are exact.
    """
    quarter = (angle * (1 / 90) + 0.5).floor()
    x = (angle - quarter * 90.0) * (math.pi / 180.0)
    x_squared = x * x
    sin, cos = x * _horner(x_squared, SIN_TERMS), _horner(x_squared, COS_TERMS)
    turn = quarter.to(torch.int64) & 3
    odd = (turn & 1).bool()
    cos_turned = torch.where(odd, sin, cos) * torch.where((turn == 1) | (turn == 2), -1.0, 1.0)
    sin_turned = torch.where(odd, cos, sin) * torch.where(turn >= 2, -1.0, 1.0)
    return cos_turned, sin_turned


def affine(images: Tensor, coefficients: Tensor) -> Tensor:
    """Sample `images` [n,C,H,W] at the affine map `coefficients` [n,6]; black outside."""
    n, channels, height, width = images.shape
    x = torch.arange(width, device=images.device, dtype=torch.int32)
    y = torch.arange(height, device=images.device, dtype=torch.int32)
    a = coefficients.unbind(1)

    def source(per_x: Tensor, per_y: Tensor, start: Tensor, size: int) -> Tensor:
        row = start[:, None] + per_y[:, None] * y
        place = (row[:, :, None] + (per_x[:, None] * x)[:, None, :]) >> 16
        return place.clamp_(-1, size)

    # One black pixel all around: whatever falls outside lands there, and nothing is masked.
    padded = F.pad(images, (1, 1, 1, 1)).view(n, channels, -1)
    x_in, y_in = source(a[0], a[1], a[2], width), source(a[3], a[4], a[5], height)
    flat = x_in.add_(y_in, alpha=width + 2).add_(width + 3)
    index = flat.view(n, 1, height * width).to(torch.int64).expand(n, channels, height * width)
    return padded.gather(2, index).view(images.shape)


def coefficients_of(rows: tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]) -> Tensor:
    """Pillow's six fixed-point integers for the affine rows (a, b, c, d, e, f) in float64."""
    a, b, c, d, e, f = rows
    return torch.stack(
        [
            _fixed(a),
            _fixed(b),
            _fixed(c + a * 0.5 + b * 0.5),
            _fixed(d),
            _fixed(e),
            _fixed(f + d * 0.5 + e * 0.5),
        ],
        dim=1,
    )


def shear_x(images: Tensor, factor: Tensor) -> Tensor:
    """Shear along x, anchored at the top-left corner: input x = x + factor·y."""
    zero, one = torch.zeros_like(factor), torch.ones_like(factor)
    return affine(images, coefficients_of((one, factor, zero, zero, one, zero)))


def shear_y(images: Tensor, factor: Tensor) -> Tensor:
    """Shear along y, anchored at the top-left corner: input y = y + factor·x."""
    zero, one = torch.zeros_like(factor), torch.ones_like(factor)
    return affine(images, coefficients_of((one, zero, zero, factor, one, zero)))


def _carry(fraction: Tensor, size: int) -> Tensor:
    """The first coordinate at which a running sum of ones has rounded `fraction` up to 1.

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


def _shifted(size: int, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """For each position, the one it is taken from, and whether that lies inside: `[n,size]`."""
    start = pixels + 0.5
    whole = start.floor()
    carry = _carry(start - whole, size)
    source = torch.arange(size, device=pixels.device) + whole.to(torch.int64)[:, None]
    source += source >= carry[:, None]
    inside = (source >= 0) & (source < size)
    return source * inside, inside


def translate_x(images: Tensor, pixels: Tensor) -> Tensor:
    """Move the content left by `pixels` (right where negative)."""
    source, inside = _shifted(images.shape[3], pixels)
    moved = images.gather(3, source[:, None, None].expand(images.shape))
    return moved.mul_(inside[:, None, None])


def translate_y(images: Tensor, pixels: Tensor) -> Tensor:
    """Move the content up by `pixels` (down where negative)."""
    n, channels, height, width = images.shape
    source, inside = _shifted(height, pixels)
    # Whole rows are copied: the planes of all images and channels stand below one another.
    plane = torch.arange(n * channels, device=images.device).view(n, channels, 1) * height
    rows = images.reshape(-1, width).index_select(0, (plane + source[:, None]).flatten())
    return rows.view(images.shape).mul_(inside[:, None, :, None])


def rotate(images: Tensor, degrees: Tensor) -> Tensor:
    """Rotate counter-clockwise about the image's centre, keeping the canvas."""
    height, width = images.shape[2:]
    return affine(images, coefficients_of(rotation_rows(degrees, height, width)))


def rotation_rows(
    degrees: Tensor, height: int, width: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The affine rows of a rotation about the centre, output to input."""
    # Pillow turns the angle's sign because its map runs from output to input.
    cos, sin = cos_sin_degrees(-degrees)
    center_x, center_y = width / 2.0, height / 2.0
    c = cos * -center_x + sin * -center_y + center_x
    f = -sin * -center_x + cos * -center_y + center_y
    return cos, sin, c, -sin, cos, f
