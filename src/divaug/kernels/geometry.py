"""Ids of operations, places of pixels, and the affine maps that move them in fixed point."""

import triton
import triton.language as tl

from divaug.operations import geometry
from divaug.operations.table import OPERATIONS


def _id(name: str) -> tl.constexpr:
    return tl.constexpr(OPERATIONS.index(name))


SHEAR_X, SHEAR_Y = _id("ShearX"), _id("ShearY")
TRANSLATE_X, TRANSLATE_Y, ROTATE = _id("TranslateX"), _id("TranslateY"), _id("Rotate")
AUTOCONTRAST, INVERT, EQUALIZE = _id("AutoContrast"), _id("Invert"), _id("Equalize")
SOLARIZE, POSTERIZE = _id("Solarize"), _id("Posterize")
CONTRAST, COLOR = _id("Contrast"), _id("Color")
BRIGHTNESS, SHARPNESS = _id("Brightness"), _id("Sharpness")
CUTOUT, SAMPLE_PAIRING = _id("Cutout"), _id("SamplePairing")

SIN_TERMS, COS_TERMS = tl.constexpr(geometry.SIN_TERMS), tl.constexpr(geometry.COS_TERMS)


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
def moved(y, x, slot):
    """Return the place that a geometric operation takes pixel (y, x) from."""
    x_in = (slot[5] * x + slot[6] * y + slot[7]) >> 16
    y_in = (slot[8] * x + slot[9] * y + slot[10]) >> 16
    return y_in, x_in


@triton.jit
def within(y, x, H: tl.constexpr, W: tl.constexpr):
    """Return whether (y, x) lies in the image."""
    # Negative numbers are large ones without a sign: one comparison an axis.
    return (y.to(tl.uint32) < H) & (x.to(tl.uint32) < W)


@triton.jit
def place(source, tile, W: tl.constexpr, BLOCK: tl.constexpr):
    """Number, row and column of the pixels of a tile."""
    i = tl.arange(0, BLOCK)
    p = tile * BLOCK + i
    # A store that never happens and leaves no trace in the machine code: its neighbouring addresses
    # make the compiler give neighbouring pixels to a thread, which nothing else here would.
    tl.store(source + i, i.to(tl.uint8), mask=i < 0)
    if W % 4 == 0:
        # A thread's four neighbours then share a row and one division.
        quad = tile * (BLOCK // 4) + i // 4
        y = quad // (W // 4)
        x = (quad % (W // 4)) * 4 + i % 4
    else:
        y = p // W
        x = p % W
    return p, y, x


@triton.jit
def moves(op):
    """Return whether an operation moves pixels; their ids come first."""
    return (op >= 0) & (op <= ROTATE)
