"""Four neighbouring pixels of a row at once, where a thread's pixels are neighbours.

Bytes that are loaded one by one keep the first-level cache busy: it serves one request of a warp a
cycle, however short. Here a thread takes the words that its four pixels lie in, two of each channel
where a crop shifted them, and Sharpness sums its neighbourhoods in words of two 16-bit lanes.
"""

import triton
import triton.language as tl

__all__ = ["original_quads", "smoothed", "smoothed_quads", "split"]

_LANES = tl.constexpr(0x00FF00FF)


@triton.jit
def split(w, BLOCK: tl.constexpr):
    """Four neighbours that one thread holds, as four tensors."""
    even, odd = tl.split(tl.reshape(w, [BLOCK // 4, 2, 2]))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit
def _joined(first, second, third, fourth, BLOCK: tl.constexpr):
    """Undo `split`."""
    return tl.reshape(tl.join(tl.join(first, third), tl.join(second, fourth)), [BLOCK])


@triton.jit
def _words(source, c: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    """A channel of an image, as words of four bytes."""
    return (source + c * (H * W)).to(tl.pointer_type(tl.int32))


@triton.jit
def _shifted(low, high, bits):
    """The lower word of two after a shift to the right."""
    both = (high.to(tl.uint32).to(tl.uint64) << 32) | low.to(tl.uint32).to(tl.uint64)
    return (both >> bits).to(tl.int32)


@triton.jit
def _in_order(first, second, third, fourth, ahead, BLOCK: tl.constexpr):
    """Pixels of a row from left to right, in the order of the candidate's row."""
    return _joined(
        tl.where(ahead, first, fourth),
        tl.where(ahead, second, third),
        tl.where(ahead, third, second),
        tl.where(ahead, fourth, first),
        BLOCK,
    )


@triton.jit
def _placed(y, x, W: tl.constexpr, BLOCK: tl.constexpr):
    """Row, leftmost column and direction of each four; columns of no use are moved nearby."""
    row, _, _, _ = split(y, BLOCK)
    first, _, _, last = split(x, BLOCK)
    # Of four that lie wholly outside nothing is kept: any address near the row will do.
    left = tl.minimum(tl.maximum(tl.minimum(first, last), -3), W - 1)
    return row, left, first < last


@triton.jit
def original_quads(
    source, y, x, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr
):
    """Return the pixels of an image at (y, x), four neighbours each; arbitrary outside of it.

    W must be a multiple of four and `source` the address of a word.
    """
    row, left, ahead = _placed(y, x, W, BLOCK)
    start = tl.minimum(tl.maximum(row, 0), H - 1) * W + left
    bits = (start & 3) * 8
    low = tl.maximum(start >> 2, 0)
    high = tl.minimum((start >> 2) + 1, H * W // 4 - 1)
    p0, p1, p2, p3 = row * 0, row * 0, row * 0, row * 0
    for c in tl.static_range(C):
        words = _words(source, c, H, W)
        four = _shifted(tl.load(words + low), tl.load(words + high), bits)
        p0 |= (four & 255) << (8 * c)
        p1 |= ((four >> 8) & 255) << (8 * c)
        p2 |= ((four >> 16) & 255) << (8 * c)
        p3 |= ((four >> 24) & 255) << (8 * c)
    return _in_order(p0, p1, p2, p3, ahead, BLOCK)


@triton.jit
def smoothed(total):
    """Pillow's SMOOTH from the sum of 3x3 values of which the middle one counts five times."""
    return (2 * total + 13) // 26


@triton.jit
def _sums(words, at, last, bits, W: tl.constexpr):
    """Weighted sums of 3x3 bytes around each four pixels: first and third, second and fourth."""
    even, odd, ends, middle, after = bits * 0, bits * 0, bits * 0, bits * 0, bits * 0
    for row in tl.static_range(3):
        here = at + (row - 1) * (W // 4)
        # Only the first row may begin before the image, and only the others end behind it.
        word0 = tl.load(words + (tl.maximum(here, 0) if row == 0 else here))
        word1 = tl.load(words + (tl.minimum(here + 1, last) if row > 0 else here + 1))
        word2 = tl.load(words + (tl.minimum(here + 2, last) if row > 0 else here + 2))
        four = _shifted(word0, word1, bits)
        two = _shifted(word1, word2, bits)
        even += four & _LANES
        odd += (four >> 8) & _LANES
        ends += (two & 255) | ((two & 0xFF00) << 8)
        if row == 1:
            middle, after = four, two
    # Sums of columns, 16 bits each. Columns 0 and 2, 1 and 3, 4 and 5; then 2 and 4, 3 and 5.
    next_even = (even >> 16) | (ends << 16)
    next_odd = (odd >> 16) | (ends & -65536)
    own_even = (middle >> 8) & _LANES
    own_odd = ((middle >> 16) & 255) | ((after & 255) << 16)
    first_third = even + odd + next_even + 4 * own_even
    second_fourth = odd + next_even + next_odd + 4 * own_odd
    return first_third, second_fourth


@triton.jit
def smoothed_quads(
    source, y, x, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr
):
    """Return Pillow's SMOOTH at (y, x), four neighbours each; arbitrary at the border.

    W must be a multiple of four and `source` the address of a word.
    """
    row, left, ahead = _placed(y, x, W, BLOCK)
    start = tl.minimum(tl.maximum(row, 1), H - 2) * W + left - 1
    bits = (start & 3) * 8
    at, last = start >> 2, H * W // 4 - 1
    p0, p1, p2, p3 = row * 0, row * 0, row * 0, row * 0
    for c in tl.static_range(C):
        even, odd = _sums(_words(source, c, H, W), at, last, bits, W)
        p0 |= smoothed(even & 0xFFFF) << (8 * c)
        p1 |= smoothed(odd & 0xFFFF) << (8 * c)
        p2 |= smoothed(even >> 16) << (8 * c)
        p3 |= smoothed(odd >> 16) << (8 * c)
    return _in_order(p0, p1, p2, p3, ahead, BLOCK)
