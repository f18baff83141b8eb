"""Candidates from drawn sub-policies: which kernels run, on what, in which order.

A small image is the work of one program, which also takes the statistics that an operation needs.
Large candidates are sorted into lists first, and a fixed number of programs works through each. The
look-up tables are made beside the candidates that need none. The host never learns what was drawn.
"""

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from divaug.kernels import has_shared_atomics
from divaug.kernels.launch import Launcher
from divaug.kernels.lookup_tables import RECORD, table_kernel
from divaug.kernels.render import render_kernel
from divaug.kernels.worklists import BLOCK as LIST_BLOCK
from divaug.kernels.worklists import List, list_kernel

__all__ = ["FUSED_PIXELS", "MAX_SLOTS", "jitter", "render"]

#: Up to this many pixels a candidate is the work of one program.
FUSED_PIXELS = 128 * 128
MAX_SLOTS = 2
BLOCK = 512  # pixels of a tile
PIXELS_PER_THREAD = 4
COUNTS = 8  # one for each list, and one to spare
PROGRAMS = 4224  # programs that work through a list: 32 for each of 132 processors
#: Fewer for the tables: their programs wait for memory more than they compute, and leave room for
#: those beside them.
TABLE_PROGRAMS = 792
LAUNCHERS = 256  # kept for sizes and settings that come again


class Share(NamedTuple):
    """The division of a list's work among programs.

    Args:
        part: tiles that a program does at a time: many where a list is long, few where it is short
            or its work slow.
        registers: most registers of a thread; None where the compiler chooses.
        slots: operations that are applied; of no meaning for tables.
    """

    part: int
    registers: int | None
    slots: int = 0


SHARES = {
    List.ONE: Share(7, 64, 1),
    List.TWO: Share(7, 80, 2),
    List.ONE_TABLED: Share(7, 64, 1),
    List.TWO_TABLED: Share(4, 80, 2),
    List.SHARPENED: Share(1, 80, 2),
    List.TABLES: Share(7, 80),
    List.LATER_TABLES: Share(4, 96),
}


def render(
    out: Tensor,
    originals: Tensor,
    num_candidates: int,
    subpolicies: tuple[Tensor, ...],
    pool: Tensor,
    placed: tuple[Tensor, ...] | None,
    settings: tuple[int, int, tuple[float, ...]] | None,
    channels_last: bool,
) -> None:
    """Fill `out` with candidates.

    Args:
        out: `[N,C,H,W]`, N = B·E, contiguous or with channels last.
        originals: uint8 `[B,C,H,W]`, contiguous.
        num_candidates: E.
        subpolicies: operation, applied, argument, center and partner, `[…,K]`, contiguous.
        pool: uint8 `[M,C,H,W]`, where partners are.
        placed: offset `[…,2]`, flip and Cutout's centre `[…,2]`; None to store bytes.
        settings: padding, Cutout's side, and three scales and three biases; with `placed`.
        channels_last: the layout of `out`.
    """
    K = subpolicies[0].shape[-1]
    pool = _at_a_word(pool)
    source, E = _at_a_word(originals), num_candidates
    first = 0
    while K - first > MAX_SLOTS:
        # More operations than a kernel holds: the first ones make bytes for the next to start from.
        between = torch.empty_like(out, dtype=torch.uint8, memory_format=torch.contiguous_format)
        _run(between, source, E, subpolicies, pool, None, None, False, first, MAX_SLOTS)
        source, E, first = between, 1, first + MAX_SLOTS
    _run(out, source, E, subpolicies, pool, placed, settings, channels_last, first, K - first)


def _at_a_word(images: Tensor) -> Tensor:
    """Return images that begin at a multiple of four bytes, if their rows do: see `quads`."""
    read_by_words = images.shape[-1] % 4 == 0
    return images.clone() if read_by_words and images.data_ptr() % 4 else images


def jitter(images: Tensor, operation: Tensor, factor: Tensor) -> Tensor:
    """Apply K operations `[n,K]` with factors to every image, as `jitter_in_groups` does."""
    out = torch.empty_like(images)
    n, K = operation.shape
    sub = (
        operation.to(torch.int32),
        torch.ones((n, K), dtype=torch.bool, device=images.device),
        factor,
        torch.zeros((n, K, 2), dtype=torch.int32, device=images.device),
        torch.zeros((n, K), dtype=torch.int64, device=images.device),
    )
    render(out, images, 1, sub, images, None, None, False)
    return out


class _Sizes(NamedTuple):
    """The compile-time constants that all kernels of a round share."""

    E: int
    H: int
    W: int
    C: int
    K: int

    @property
    def block(self) -> int:
        """Pixels of a tile."""
        return min(BLOCK, max(32, 1 << (self.H * self.W - 1).bit_length()))

    def options(self, registers: int | None) -> dict[str, int | bool | None]:
        """Return options of the compiler."""
        warps = max(1, self.block // (32 * PIXELS_PER_THREAD))
        return {"num_warps": warps, "enable_fp_fusion": False, "maxnreg": registers}


class _Finish(NamedTuple):
    """The kernel's constants for the steps after the operations and for storing."""

    DEFAULT: bool
    PADDING: int
    CUTOUT: int
    CHANNELS_LAST: bool


@lru_cache(maxsize=64)
def _stream(device: torch.device, number: int) -> torch.cuda.Stream:
    # The first has high priority: the others wait for its work.
    return torch.cuda.Stream(device, priority=-1 if number == 0 else 0)


class Lane:
    """A further stream; `fork` makes it, and it must be joined. Also in a CUDA graph.

    All tensors used there must live until after `join`.

    Args:
        device: where.
        stream: itself; None where the device is no GPU and everything runs in order.
    """

    def __init__(self, device: torch.device, stream: torch.cuda.Stream | None) -> None:
        self.stream = stream
        self._device = device

    def mark(self) -> torch.cuda.Event | None:
        """Mark how far this lane has come."""
        return None if self.stream is None else self.stream.record_event()

    def wait_for(self, mark: torch.cuda.Event | None) -> None:
        """Let this lane wait until another has come to a mark."""
        if self.stream is not None and mark is not None:
            self.stream.wait_event(mark)

    def join(self) -> None:
        """Let the current stream wait for all that was launched here; the host does not."""
        wait_for(self.mark(), self._device)


def fork(device: torch.device, lanes: int) -> list[Lane]:
    """So many streams that begin where the current one is now."""
    if device.type != "cuda":
        return [Lane(device, None) for _ in range(lanes)]
    begin = torch.cuda.current_stream(device).record_event()
    streams = [_stream(device, number) for number in range(lanes)]
    for stream in streams:
        stream.wait_event(begin)
    return [Lane(device, stream) for stream in streams]


def wait_for(mark: torch.cuda.Event | None, device: torch.device) -> None:
    """Let the current stream wait until a lane has come to a mark."""
    if mark is not None:
        torch.cuda.current_stream(device).wait_event(mark)


@lru_cache(maxsize=LAUNCHERS)
def _lister(K: int, slots: int) -> Launcher:
    return Launcher(list_kernel, {"K": K, "SLOTS": slots, "BLOCK": LIST_BLOCK}, {})


@lru_cache(maxsize=LAUNCHERS)
def _tabler(sizes: _Sizes, slots: int, after: int, share: Share, atomics: bool) -> Launcher:
    constants = {
        "SLOTS": slots, "AFTER": after, "ATOMICS": atomics, "PART": share.part,
        "BLOCK": sizes.block,
    }  # fmt: skip
    return Launcher(table_kernel, sizes._asdict() | constants, sizes.options(share.registers))


@lru_cache(maxsize=LAUNCHERS)
def _renderer(
    sizes: _Sizes,
    slots: int,
    share: Share,
    finish: _Finish,
    atomics: bool,
    fused: bool,
    sharp: bool,
) -> Launcher:
    constants = {
        "SLOTS": share.slots, "ALL_SLOTS": slots, "FUSED": fused, "SHARP": sharp,
        **finish._asdict(), "ATOMICS": atomics, "PART": share.part, "BLOCK": sizes.block,
    }  # fmt: skip
    return Launcher(render_kernel, sizes._asdict() | constants, sizes.options(share.registers))


def _run(
    out: Tensor,
    source: Tensor,
    num_candidates: int,
    subpolicies: tuple[Tensor, ...],
    pool: Tensor,
    placed: tuple[Tensor, ...] | None,
    settings: tuple[int, int, tuple[float, ...]] | None,
    channels_last: bool,
    first: int,
    slots: int,
) -> None:
    """Apply at most two operations in a row to everything; see `render` for the arguments."""
    count, channels, height, width = out.shape
    if not count:
        return
    device, atomics = out.device, has_shared_atomics(out.device)
    sizes = _Sizes(num_candidates, height, width, channels, max(1, subpolicies[0].shape[-1]))
    padding, cutout, norm = settings or (0, 0, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    finish = _Finish(placed is not None, padding, cutout, channels_last)
    read = (source, pool, *subpolicies)
    tensors = (out, *read, *(placed or (source,) * 3))
    if height * width <= FUSED_PIXELS or not slots:
        renderer = _renderer(sizes, slots, Share(1, None, slots), finish, atomics, True, True)
        renderer(count, (*tensors, *(source,) * 3), (0, 0, first, *norm))
        return
    room = count * slots
    lists = torch.empty((len(List), room), dtype=torch.int32, device=device)
    # In this order each begins at a multiple of sixteen bytes, whatever there is room for.
    parts = (COUNTS, room * RECORD, room)
    zeros = torch.zeros(sum(parts), dtype=torch.int32, device=device)
    counts, records, arrivals = zeros.split(parts)
    tables = torch.empty((room, 3, 256), dtype=torch.uint8, device=device)

    def make_tables(which: List, after: int, stream: torch.cuda.Stream | None) -> None:
        tabler = _tabler(sizes, slots, after, SHARES[which], atomics)
        given = (tables, *read, records, arrivals, lists, counts)
        tabler(TABLE_PROGRAMS, given, (which.value, room, first), stream)

    def render_list(which: List, stream: torch.cuda.Stream | None) -> None:
        sharp = which is List.SHARPENED
        renderer = _renderer(sizes, slots, SHARES[which], finish, atomics, False, sharp)
        given = (*tensors, tables, lists, counts)
        renderer(PROGRAMS, given, (which.value, room, first, *norm), stream)

    _lister(sizes.K, slots)(
        -(-count // LIST_BLOCK), (lists, counts, *subpolicies[:2]), (count, room, first)
    )
    # Three streams: tables and what waits for all of them; pairs; single operations. Each list
    # alone leaves processors idle at its end.
    aside, beside = fork(device, 2)
    make_tables(List.TABLES, 0, aside.stream)
    made = aside.mark()
    if slots > 1:
        make_tables(List.LATER_TABLES, 1, aside.stream)
        render_list(List.TWO_TABLED, aside.stream)
        render_list(List.TWO, beside.stream)
        beside.wait_for(made)
        render_list(List.SHARPENED, beside.stream)
    render_list(List.ONE, None)
    wait_for(made, device)
    render_list(List.ONE_TABLED, None)
    beside.join()
    aside.join()
