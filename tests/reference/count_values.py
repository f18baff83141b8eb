"""Histograms from the kernels' own functions, by many programs at once and several times each."""

import torch
import triton
import triton.language as tl

from divaug.kernels.histogram import counted, finished, no_counts


@triton.jit
def count_kernel(
    out, pixels, n_pixels,
    ROUNDS: tl.constexpr, TILES: tl.constexpr, C: tl.constexpr, ATOMICS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Each program counts every pixel, `ROUNDS` times with the same bins."""
    v = tl.arange(0, 256)
    for turn in range(ROUNDS):
        counts = no_counts(C, ATOMICS)
        for tile in range(TILES):
            at = tile * BLOCK + tl.arange(0, BLOCK)
            inside = at < n_pixels
            pixel = tl.load(pixels + at, mask=inside, other=0)
            counts = counted(counts, pixel, inside, C, ATOMICS)
        done = finished(counts, C, ATOMICS)
        row = out + (tl.program_id(0) * ROUNDS + turn) * 768
        for c in tl.static_range(3):
            tl.store(row + c * 256 + v, done[c])


def count(values, atomics, programs, rounds, block):
    """Histograms `[programs, rounds, 3, 256]` of values uint8 `[C,n]`, zero beyond C."""
    channels, n = values.shape
    shift = torch.arange(0, 8 * channels, 8, device=values.device)[:, None]
    pixels = (values.int() << shift).sum(0, dtype=torch.int32)
    out = torch.full((programs, rounds, 3, 256), -1, dtype=torch.int32, device=values.device)
    count_kernel[(programs,)](
        out, pixels, n, ROUNDS=rounds, TILES=triton.cdiv(n, block), C=channels, ATOMICS=atomics,
        BLOCK=block, num_warps=max(1, block // 128),
    )  # fmt: skip
    return out
