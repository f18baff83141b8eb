"""Histograms of three channels, counted tile by tile.

The histogram of Triton 3.6, which comes with torch 2.11, finds equal values by ballots: some
seventy instructions a value. An atomic addition in the memory that a program's threads share is
one, with two that find its address. Barriers stand before the first tile and after the last alone;
Triton's own, also that of later versions, which adds atomically too, needs nine in every tile.
Triton has no words for this, so what `ATOMICS` chooses is PTX, NVIDIA's assembly.

* The bins are addressed by an ordinary number. Their name ends with the braces it is in,
  so the compiler may copy that code: each count uses the bins at its own address.
* Nothing here is pure, so it stays and keeps its order. The compiler may still compute a result
  again, in another layout, rather than move it. Reading a bin twice does no harm. Counting a pixel
  twice would, and has no result that is used.
* For the same reason each pixel must be with one thread alone, as it is where a tile has at least
  as many pixels as the program has threads.
"""

import triton
import triton.language as tl

from divaug.kernels.pixels import channel

__all__ = ["counted", "finished", "no_counts"]

_CHANNEL = tl.constexpr(4 * 256)  # bytes of the bins of one channel


@triton.jit
def _reserved():
    """The address of 768 bins in shared memory, in front of what Triton itself puts there."""
    return tl.inline_asm_elementwise(
        "{ .shared .align 16 .b32 bins[768]; mov.u32 $0, bins; }",
        "=r", [], dtype=tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


@triton.jit
def _clear(address):
    tl.inline_asm_elementwise(
        "{ .reg .b32 zero; mov.b32 zero, 0; st.shared.b32 [$1], zero; mov.b32 $0, zero; }",
        "=r,r,~{memory}", [address], dtype=tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


@triton.jit
def _add_one(address, where):
    # Of a constant one the compiler makes an instruction that counts the threads of a warp which
    # meet at a bin, and adds once: an image of one colour is no slower than any other.
    tl.inline_asm_elementwise(
        "{ .reg .pred p; setp.ne.b32 p, $2, 0; @p red.shared.add.u32 [$1], 1; mov.b32 $0, 0; }",
        "=r,r,r,~{memory}", [address, where.to(tl.int32)], dtype=tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


@triton.jit
def _read(address):
    return tl.inline_asm_elementwise(
        "ld.shared.b32 $0, [$1];",
        "=r,r,~{memory}", [address], dtype=tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


@triton.jit
def no_counts(C: tl.constexpr, ATOMICS: tl.constexpr):
    """Return empty counts of C channels: the address of bins, or three histograms."""
    if ATOMICS:
        counts = _reserved()
        for c in tl.static_range(C):
            _clear(counts + c * _CHANNEL + 4 * tl.arange(0, 256))
        tl.debug_barrier()  # all bins are empty
    else:
        counts = (tl.zeros([256], tl.int32),) * 3
    return counts


@triton.jit
def counted(counts, pixel, inside, C: tl.constexpr, ATOMICS: tl.constexpr):
    """Count the bytes of the pixels that are `inside` as well."""
    if ATOMICS:
        for c in tl.static_range(C):
            _add_one(counts + c * _CHANNEL + 4 * channel(pixel, c), inside)
    else:
        red, green, blue = counts[0], counts[1], counts[2]
        red += tl.histogram(channel(pixel, 0), 256, mask=inside)
        if C == 3:
            green += tl.histogram(channel(pixel, 1), 256, mask=inside)
            blue += tl.histogram(channel(pixel, 2), 256, mask=inside)
        counts = red, green, blue
    return counts


@triton.jit
def finished(counts, C: tl.constexpr, ATOMICS: tl.constexpr):
    """The histograms [256] of three channels, zero beyond C."""
    if ATOMICS:
        tl.debug_barrier()  # all threads have counted
        at = counts + 4 * tl.arange(0, 256)
        red = _read(at)
        green = tl.zeros([256], tl.int32)
        blue = tl.zeros([256], tl.int32)
        if C == 3:
            green = _read(at + _CHANNEL)
            blue = _read(at + 2 * _CHANNEL)
        tl.debug_barrier()  # all have read: the next histogram may clear the same bins
        counts = red, green, blue
    return counts
