"""The operations on the fly: the value of a pixel after a sub-policy's slots, pulled backwards.

The last operation reads the pixels it needs from the one before: one where it moves or maps
values, nine for Sharpness. Nothing in between is stored. Every line is the arithmetic of
`divaug.operations`, and the kernels are compiled without fused multiply-adds.

A pixel is one integer of three bytes, red lowest. Most operations move it whole.
"""

import triton
import triton.language as tl

from divaug.kernels.geometry import (
    AUTOCONTRAST,
    BRIGHTNESS,
    COLOR,
    CONTRAST,
    CUTOUT,
    EQUALIZE,
    INVERT,
    POSTERIZE,
    SAMPLE_PAIRING,
    SHARPNESS,
    SOLARIZE,
    moved,
    moves,
    within,
)
from divaug.kernels.quads import original_quads, smoothed, smoothed_quads
from divaug.operations import color
from divaug.operations.cutout import FILL_GREY, FILL_RGB

FILL = tl.constexpr(FILL_RGB[0] | FILL_RGB[1] << 8 | FILL_RGB[2] << 16)
LUMA = tl.constexpr(color.LUMA)
FILL_L = tl.constexpr(FILL_GREY[0])


@triton.jit
def channel(pixel, c: tl.constexpr):
    """One byte of a pixel."""
    return (pixel >> (8 * c)) & 255


@triton.jit
def _pixel(red, green, blue):
    return red | (green << 8) | (blue << 16)


@triton.jit
def pixels_at(source, at, inside, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr):
    """Pixels by their number; arbitrary where not `inside`, which may be None for everywhere."""
    pixel = tl.load(source + at, mask=inside).to(tl.int32)
    if C == 3:
        green = tl.load(source + at + H * W, mask=inside).to(tl.int32)
        blue = tl.load(source + at + 2 * H * W, mask=inside).to(tl.int32)
        pixel = _pixel(pixel, green, blue)
    return pixel


@triton.jit
def original(source, y, x, inside, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr):
    """The pixels of an image at (y, x); the image's first where not `inside`."""
    # Another address costs one instruction, a mask three for each channel.
    at = tl.where(inside, (y * W + x).to(tl.uint32), 0)
    return pixels_at(source, at, None, H, W, C)


@triton.jit
def _neighbours(
    source, y, x, inside, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr
):
    """Return the pixels of an image at (y, x), by fours where `BLOCK` is not 0."""
    if BLOCK > 0:
        pixel = original_quads(source, y, x, H, W, C, BLOCK)
    else:
        pixel = original(source, y, x, inside, H, W, C)
    return pixel


@triton.jit
def luma(pixel, C: tl.constexpr):
    """Pillow's grey value."""
    grey = pixel
    if C == 3:
        red, green, blue = channel(pixel, 0), channel(pixel, 1), channel(pixel, 2)
        grey = (red * LUMA[0] + green * LUMA[1] + blue * LUMA[2] + 32768) >> 16
    return grey


@triton.jit
def blend(first, second, weight):
    """Truncated `first + weight·(second − first)`, product and sum rounded separately."""
    delta = (second - first).to(tl.float32) * weight
    moved = first.to(tl.float32) + delta
    return tl.minimum(tl.maximum(moved, 0.0), 255.0).to(tl.int32)


@triton.jit
def _blend_pixels(first, second, weight, C: tl.constexpr):
    out = blend(channel(first, 0), channel(second, 0), weight)
    if C == 3:
        green = blend(channel(first, 1), channel(second, 1), weight)
        blue = blend(channel(first, 2), channel(second, 2), weight)
        out = _pixel(out, green, blue)
    return out


@triton.jit
def tabled(op):
    """Return whether an operation is a look-up table for each channel, made from the image."""
    return (op == AUTOCONTRAST) | (op == CONTRAST) | (op == EQUALIZE)


@triton.jit
def _looked_up(tables, c: tl.constexpr, value, FUSED: tl.constexpr):
    if FUSED:
        found = tl.gather(tables[c], value, 0)
    else:
        found = tl.load(tables + c * 256 + value).to(tl.int32)
    return found


@triton.jit
def _solarized(pixel, threshold, C: tl.constexpr):
    """Invert the bytes that are not below a threshold."""
    inverted = 0
    for c in tl.static_range(C):
        low = channel(pixel, c).to(tl.float32) < threshold
        inverted |= tl.where(low, 0, 0xFF << (8 * c))
    return pixel ^ inverted


@triton.jit
def _pointwise(
    pixel, y, x, inside, slot, tables,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, FUSED: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The operations that map a pixel without looking at its neighbours; `BLOCK` as below."""
    op, argument, center_y, center_x, partner = slot[0], slot[1], slot[2], slot[3], slot[4]
    if tabled(op):
        red = _looked_up(tables, 0, channel(pixel, 0), FUSED)
        if C == 3:
            green = _looked_up(tables, 1, channel(pixel, 1), FUSED)
            blue = _looked_up(tables, 2, channel(pixel, 2), FUSED)
            red = _pixel(red, green, blue)
        pixel = red
    elif op == SOLARIZE:
        pixel = _solarized(pixel, argument, C)
    elif op == BRIGHTNESS:
        pixel = _blend_pixels(pixel * 0, pixel, argument, C)
    elif op == INVERT:
        pixel = pixel ^ (0xFFFFFF if C == 3 else 0xFF)
    elif op == POSTERIZE:
        pixel = pixel & (((0xFF00 >> argument.to(tl.int32)) & 0xFF) * 0x010101)
    elif op == COLOR:
        if C == 3:
            grey = luma(pixel, C)
            pixel = _blend_pixels(_pixel(grey, grey, grey), pixel, argument, C)
    elif op == CUTOUT:
        side = tl.floor(argument.to(tl.float64) + 0.5).to(tl.int32)
        top = y - (center_y - (side >> 1))
        left = x - (center_x - (side >> 1))
        cut = (top >= 0) & (top < side) & (left >= 0) & (left < side)
        pixel = tl.where(cut, FILL if C == 3 else FILL_L, pixel)
    elif op == SAMPLE_PAIRING:
        other = _neighbours(partner, y, x, inside, H, W, C, BLOCK)
        pixel = _blend_pixels(pixel, other, argument, C)
    return pixel


@triton.jit
def _inner(y, x, H: tl.constexpr, W: tl.constexpr):
    """Return whether a pixel has all its neighbours; Sharpness leaves the others alone."""
    return (y > 0) & (x > 0) & (y < H - 1) & (x < W - 1)


@triton.jit
def _sharpened(pixel, outer, green, factor, C: tl.constexpr):
    """Blend with the smoothed pixel; `outer` holds red's sum and, 16 bits up, blue's."""
    smooth = smoothed((outer & 0xFFFF) + 4 * channel(pixel, 0))
    if C == 3:
        smooth_green = smoothed(green + 4 * channel(pixel, 1))
        smooth_blue = smoothed((outer >> 16) + 4 * channel(pixel, 2))
        smooth = _pixel(smooth, smooth_green, smooth_blue)
    return _blend_pixels(smooth, pixel, factor, C)


@triton.jit
def _sharpened_original(
    source, pixel, y, x, inside, factor, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr
):
    """Sharpness of an image in memory."""
    inner = inside & _inner(y, x, H, W)
    # All others look around pixel (1, 1), so that no neighbour needs a check.
    at = source + tl.where(inner, (y * W + x).to(tl.uint32), W + 1)
    outer = y * 0
    green = y * 0
    for row in range(3):
        line = at + (row - 1) * W
        for column in tl.static_range(3):
            outer += tl.load(line + (column - 1)).to(tl.int32)
            if C == 3:
                green += tl.load(line + (column - 1 + H * W)).to(tl.int32)
                outer += tl.load(line + (column - 1 + 2 * H * W)).to(tl.int32) << 16
    return tl.where(inner, _sharpened(pixel, outer, green, factor, C), pixel)


@triton.jit
def after_first(
    source, y, x, inside, slot, tables,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, FUSED: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The pixels at (y, x) after one operation; arbitrary where not `inside`.

    `BLOCK` is their number where each four in a row are neighbours in the image, else 0.
    """
    if moves(slot[0]):
        y_in, x_in = moved(y, x, slot)
        here = inside & within(y_in, x_in, H, W)
        pixel = tl.where(here, original(source, y_in, x_in, here, H, W, C), 0)
    else:
        pixel = _neighbours(source, y, x, inside, H, W, C, BLOCK)
        if slot[0] == SHARPNESS:
            if H > 2 and W > 2:
                if BLOCK > 0:
                    smooth = smoothed_quads(source, y, x, H, W, C, BLOCK)
                    sharp = _blend_pixels(smooth, pixel, slot[1], C)
                    pixel = tl.where(_inner(y, x, H, W), sharp, pixel)
                else:
                    pixel = _sharpened_original(source, pixel, y, x, inside, slot[1], H, W, C)
        else:
            pixel = _pointwise(pixel, y, x, inside, slot, tables, H, W, C, FUSED, BLOCK)
    return pixel


@triton.jit
def after_second(
    source, y, x, inside, slot1, tables1, slot2, tables2,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, FUSED: tl.constexpr,
    SHARP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The pixels at (y, x) after two operations; arbitrary where not `inside`.

    `SHARP` is whether the second operation may be Sharpness, which reads nine pixels of the image
    before it; all others read one. `BLOCK` as for one operation.
    """
    moving = moves(slot2[0])
    sharp = (slot2[0] == SHARPNESS) & SHARP
    y_in = y
    x_in = x
    here = inside
    if moving:
        y_in, x_in = moved(y, x, slot2)
        here = inside & within(y_in, x_in, H, W)
    outer = y * 0
    green = y * 0
    if SHARP:
        pixel = y * 0
        # A loop of nine or one keeps a single copy of the first operation's code.
        for tap in range(tl.where(sharp, 0, 4), tl.where(sharp, 9, 5)):
            yy = y_in
            xx = x_in
            at = here
            if sharp:
                yy = y + (tap // 3 - 1)
                xx = x + (tap % 3 - 1)
                at = inside & within(yy, xx, H, W)
            t = after_first(source, yy, xx, at, slot1, tables1, H, W, C, FUSED, BLOCK)
            if sharp:
                counted = tl.where(at, t, 0)
                outer += counted & 0xFF00FF
                green += (counted >> 8) & 255
            if tap == 4:
                pixel = t
    else:
        pixel = after_first(source, y_in, x_in, here, slot1, tables1, H, W, C, FUSED, 0)
    if moving:
        pixel = tl.where(here, pixel, 0)
    elif sharp:
        sharpened = _sharpened(pixel, outer, green, slot2[1], C)
        pixel = tl.where(_inner(y, x, H, W), sharpened, pixel)
    else:
        pixel = _pointwise(pixel, y, x, inside, slot2, tables2, H, W, C, FUSED, BLOCK)
    return pixel
