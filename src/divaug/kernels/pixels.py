"""The operations on the fly: the value of a pixel after a sub-policy's slots, pulled backwards.

An output pixel asks the last operation, which asks the one before for the pixels it needs: one
where it moves or maps values, nine for Sharpness. Nothing in between is ever stored. Every line is
the arithmetic of `divaug.operations`, and the kernels are compiled without fused multiply-adds.
"""

import triton
import triton.language as tl

from divaug.operations import geometry
from divaug.operations.occlusion import FILL_GREY, FILL_RGB
from divaug.operations.table import OPERATIONS

__all__ = ["after_first", "after_second", "blend", "luma", "original", "plan", "value_before"]


def _id(name: str) -> tl.constexpr:
    return tl.constexpr(OPERATIONS.index(name))


SHEAR_X, SHEAR_Y = _id("ShearX"), _id("ShearY")
TRANSLATE_X, TRANSLATE_Y, ROTATE = _id("TranslateX"), _id("TranslateY"), _id("Rotate")
AUTOCONTRAST, INVERT, EQUALIZE = _id("AutoContrast"), _id("Invert"), _id("Equalize")
SOLARIZE, POSTERIZE = _id("Solarize"), _id("Posterize")
CONTRAST, COLOR = _id("Contrast"), _id("Color")
BRIGHTNESS, SHARPNESS = _id("Brightness"), _id("Sharpness")
CUTOUT, SAMPLE_PAIRING = _id("Cutout"), _id("SamplePairing")
FILL_0, FILL_1, FILL_2 = (tl.constexpr(value) for value in FILL_RGB)
SIN_TERMS, COS_TERMS = tl.constexpr(geometry.SIN_TERMS), tl.constexpr(geometry.COS_TERMS)
FILL_L = tl.constexpr(FILL_GREY[0])


@triton.jit
def _fixed(value):
    """Round float64 to 16.16 fixed point, halves up."""
    return tl.floor(value * 65536.0 + 0.5).to(tl.int32)


@triton.jit
def _cos_sin(angle):
    """Cosine and sine of degrees; see `geometry.cos_sin_degrees`."""
    quarter = tl.floor(angle * 0.011111111111111112 + 0.5)
    x = (angle - quarter * 90.0) * 0.017453292519943295
    s = x * x
    sin = s * 0.0 + SIN_TERMS[8]
    for i in tl.static_range(8):
        sin = sin * s + SIN_TERMS[7 - i]
    sin = x * sin
    cos = s * 0.0 + COS_TERMS[9]
    for i in tl.static_range(9):
        cos = cos * s + COS_TERMS[8 - i]
    turn = quarter.to(tl.int32) & 3
    odd = (turn & 1) == 1
    cos_turned = tl.where(odd, sin, cos) * tl.where((turn == 1) | (turn == 2), -1.0, 1.0)
    sin_turned = tl.where(odd, cos, sin) * tl.where(turn >= 2, -1.0, 1.0)
    return cos_turned, sin_turned


@triton.jit
def plan(op, argument, H: tl.constexpr, W: tl.constexpr):
    """The six fixed-point coefficients of an operation's affine map; the identity for most."""
    v = argument.to(tl.float64)
    a0 = op * 0 + 65536
    a1 = op * 0
    a2 = op * 0 + 32768
    a3 = op * 0
    a4 = op * 0 + 65536
    a5 = op * 0 + 32768
    if op == SHEAR_X:
        a1 = _fixed(v)
        a2 = _fixed(0.5 + v * 0.5)
    elif op == SHEAR_Y:
        a3 = _fixed(v)
        a5 = _fixed(v * 0.5 + 0.5)
    elif op == TRANSLATE_X:
        a2 = a2 + tl.floor(v + 0.5).to(tl.int32) * 65536
    elif op == TRANSLATE_Y:
        a5 = a5 + tl.floor(v + 0.5).to(tl.int32) * 65536
    elif op == ROTATE:
        cos, sin = _cos_sin(-v)
        cx = (op * 0 + W).to(tl.float64) * 0.5
        cy = (op * 0 + H).to(tl.float64) * 0.5
        c = cos * -cx + sin * -cy + cx
        f = -sin * -cx + cos * -cy + cy
        a0 = _fixed(cos)
        a1 = _fixed(sin)
        a2 = _fixed(c + cos * 0.5 + sin * 0.5)
        a3 = _fixed(-sin)
        a4 = _fixed(cos)
        a5 = _fixed(f + -sin * 0.5 + cos * 0.5)
    return a0, a1, a2, a3, a4, a5


@triton.jit
def original(source, y, x, inside, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr):
    """The three channels of an image at (y, x); arbitrary where not `inside`.

    A grey image gives its one channel thrice.
    """
    at = y * W + x
    v0 = tl.load(source + at, mask=inside).to(tl.int32)
    v1 = v0
    v2 = v0
    if C == 3:
        v1 = tl.load(source + at + H * W, mask=inside).to(tl.int32)
        v2 = tl.load(source + at + 2 * H * W, mask=inside).to(tl.int32)
    return v0, v1, v2


@triton.jit
def luma(v0, v1, v2, C: tl.constexpr):
    """Pillow's grey value."""
    grey = v0
    if C == 3:
        grey = (v0 * 19595 + v1 * 38470 + v2 * 7471 + 32768) >> 16
    return grey


@triton.jit
def blend(first, second, weight):
    """Truncated `first + weight·(second − first)`, product and sum rounded separately."""
    delta = (second - first).to(tl.float32) * weight
    moved = first.to(tl.float32) + delta
    return tl.minimum(tl.maximum(moved, 0.0), 255.0).to(tl.int32)


@triton.jit
def _toned(op):
    """Whether an operation is a look-up table; their ids lie together but for Color's."""
    return (op >= AUTOCONTRAST) & (op <= BRIGHTNESS) & (op != COLOR)


@triton.jit
def _pointwise(
    v0, v1, v2, y, x, inside, slot, tables, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr
):
    """The operations that map a pixel's values without looking at its neighbours."""
    op, argument, center_y, center_x, partner = slot[0], slot[1], slot[2], slot[3], slot[4]
    if _toned(op):
        # A pixel outside may hold any bits; its place in the table must still be one of 256.
        v0 = tl.gather(tables[0], v0 & 255, 0)
        if C == 3:
            v1 = tl.gather(tables[1], v1 & 255, 0)
            v2 = tl.gather(tables[2], v2 & 255, 0)
    elif op == COLOR:
        grey = luma(v0, v1, v2, C)
        v0 = blend(grey, v0, argument)
        v1 = blend(grey, v1, argument)
        v2 = blend(grey, v2, argument)
    elif op == CUTOUT:
        side = tl.floor(argument.to(tl.float64) + 0.5).to(tl.int32)
        top = y - (center_y - (side >> 1))
        left = x - (center_x - (side >> 1))
        cut = (top >= 0) & (top < side) & (left >= 0) & (left < side)
        if C == 3:
            v0 = tl.where(cut, FILL_0, v0)
            v1 = tl.where(cut, FILL_1, v1)
            v2 = tl.where(cut, FILL_2, v2)
        else:
            v0 = tl.where(cut, FILL_L, v0)
    elif op == SAMPLE_PAIRING:
        p0, p1, p2 = original(partner, y, x, inside, H, W, C)
        v0 = blend(v0, p0, argument)
        v1 = blend(v1, p1, argument)
        v2 = blend(v2, p2, argument)
    return v0, v1, v2


@triton.jit
def _moved(y, x, slot):
    """Where a geometric operation takes pixel (y, x) from."""
    x_in = (slot[5] * x + slot[6] * y + slot[7]) >> 16
    y_in = (slot[8] * x + slot[9] * y + slot[10]) >> 16
    return y_in, x_in


@triton.jit
def _within(y, x, H: tl.constexpr, W: tl.constexpr):
    # Negative numbers are large ones without a sign: one comparison an axis.
    return (y.to(tl.uint32) < H) & (x.to(tl.uint32) < W)


@triton.jit
def _sharpened(v, total, inner, factor):
    """Blend a value with its smoothed version, from the sum of its 3×3 neighbourhood."""
    return tl.where(inner, blend((2 * (total + 4 * v) + 13) // 26, v, factor), v)


@triton.jit
def after_first(
    source, y, x, inside, slot, tables, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr
):
    """The values at (y, x) after one operation; arbitrary where not `inside`."""
    moving = (slot[0] >= 0) & (slot[0] <= ROTATE)
    if moving:
        y_in, x_in = _moved(y, x, slot)
        here = inside & _within(y_in, x_in, H, W)
        v0, v1, v2 = original(source, y_in, x_in, here, H, W, C)
        v0 = tl.where(here, v0, 0)
        v1 = tl.where(here, v1, 0)
        v2 = tl.where(here, v2, 0)
    else:
        v0, v1, v2 = original(source, y, x, inside, H, W, C)
        v0, v1, v2 = _pointwise(v0, v1, v2, y, x, inside, slot, tables, H, W, C)
    if slot[0] == SHARPNESS:
        s0 = v0 * 0
        s1 = s0
        s2 = s0
        for tap in range(9):
            yy = y + (tap // 3 - 1)
            xx = x + (tap % 3 - 1)
            here = inside & _within(yy, xx, H, W)
            t0, t1, t2 = original(source, yy, xx, here, H, W, C)
            s0 += tl.where(here, t0, 0)
            s1 += tl.where(here, t1, 0)
            s2 += tl.where(here, t2, 0)
        inner = (y > 0) & (x > 0) & (y < H - 1) & (x < W - 1)
        v0 = _sharpened(v0, s0, inner, slot[1])
        v1 = _sharpened(v1, s1, inner, slot[1])
        v2 = _sharpened(v2, s2, inner, slot[1])
    return v0, v1, v2


@triton.jit
def after_second(
    source, y, x, inside, slot1, tables1, slot2, tables2,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """The values at (y, x) after two operations; arbitrary where not `inside`."""
    moving = (slot2[0] >= 0) & (slot2[0] <= ROTATE)
    sharp = slot2[0] == SHARPNESS
    y_in = y
    x_in = x
    here = inside
    if moving:
        y_in, x_in = _moved(y, x, slot2)
        here = inside & _within(y_in, x_in, H, W)
    v0 = y * 0
    v1 = v0
    v2 = v0
    s0 = v0
    s1 = v0
    s2 = v0
    # Sharpness asks for nine pixels of the image before it, everything else for one: a loop of
    # nine or one keeps a single copy of the first operation's code.
    for tap in range(tl.where(sharp, 0, 4), tl.where(sharp, 9, 5)):
        yy = y_in
        xx = x_in
        at = here
        if sharp:
            yy = y + (tap // 3 - 1)
            xx = x + (tap % 3 - 1)
            at = inside & _within(yy, xx, H, W)
        t0, t1, t2 = after_first(source, yy, xx, at, slot1, tables1, H, W, C)
        if sharp:
            s0 += tl.where(at, t0, 0)
            s1 += tl.where(at, t1, 0)
            s2 += tl.where(at, t2, 0)
        if tap == 4:
            v0 = t0
            v1 = t1
            v2 = t2
    if moving:
        v0 = tl.where(here, v0, 0)
        v1 = tl.where(here, v1, 0)
        v2 = tl.where(here, v2, 0)
    elif sharp:
        inner = (y > 0) & (x > 0) & (y < H - 1) & (x < W - 1)
        v0 = _sharpened(v0, s0, inner, slot2[1])
        v1 = _sharpened(v1, s1, inner, slot2[1])
        v2 = _sharpened(v2, s2, inner, slot2[1])
    else:
        v0, v1, v2 = _pointwise(v0, v1, v2, y, x, inside, slot2, tables2, H, W, C)
    return v0, v1, v2


@triton.jit
def value_before(
    source, y, x, inside, slot1, tables1,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, SLOT: tl.constexpr,
):  # fmt: skip
    """The values at (y, x) that a slot finds: the original's, or those after the first slot."""
    if SLOT == 0:
        v0, v1, v2 = original(source, y, x, inside, H, W, C)
    else:
        v0, v1, v2 = after_first(source, y, x, inside, slot1, tables1, H, W, C)
    return v0, v1, v2
