"""Candidates from drawn sub-policies: which kernels run, on what, in which order.

A small image is the work of one program, which also takes the statistics that an operation needs.
Large candidates are sorted into lists first, and a fixed number of programs works through each. The
look-up tables are made beside the candidates that need none. The host never learns what was drawn.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from divaug.kernels import has_shared_atomics
from divaug.kernels.launching import launch
from divaug.kernels.lists import BLOCK as LIST_BLOCK
from divaug.kernels.lists import List, list_kernel
from divaug.kernels.render import render_kernel
from divaug.kernels.statistics import RECORD, table_kernel
from divaug.kernels.streams import Aside

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


@dataclass(frozen=True)
class Share:
    """How the work of a list is shared out.

    Args:
        part: tiles that a program does at a time: many where a list is long, few where it is short
            or its work slow.
        registers: most registers of a thread.
        slots: operations that are applied; of no meaning for tables.
    """

    part: int
    registers: int
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
        _Round(between, source, E, subpolicies, pool, None, None, False, first, MAX_SLOTS).run()
        source, E, first = between, 1, first + MAX_SLOTS
    _Round(
        out, source, E, subpolicies, pool, placed, settings, channels_last, first, K - first
    ).run()


def _at_a_word(images: Tensor) -> Tensor:
    """Images that begin where a word of four bytes may, where rows are whole words: see `quads`."""
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


@dataclass(frozen=True)
class _Round:
    """At most two operations in a row, applied to everything; see `render` for the arguments."""

    out: Tensor
    source: Tensor
    num_candidates: int
    subpolicies: tuple[Tensor, ...]
    pool: Tensor
    placed: tuple[Tensor, ...] | None
    settings: tuple[int, int, tuple[float, ...]] | None
    channels_last: bool
    first: int
    slots: int

    def run(self) -> None:
        """Fill `out`."""
        if not len(self.out):
            return
        height, width = self.out.shape[2:]
        if height * width <= FUSED_PIXELS or not self.slots:
            nothing = (self.source,) * 3
            self._render(len(self.out), nothing, (0, 0), Share(1, 0, self.slots), fused=True)
        else:
            self._run_lists()

    def _run_lists(self) -> None:
        n, device = len(self.out), self.out.device
        room = n * self.slots
        lists = torch.empty((len(List), room), dtype=torch.int32, device=device)
        # In this order each begins at a multiple of sixteen bytes, whatever there is room for.
        parts = (COUNTS, room * RECORD, room)
        zeros = torch.zeros(sum(parts), dtype=torch.int32, device=device)
        counts, records, arrivals = zeros.split(parts)
        tables = torch.empty((room, 3, 256), dtype=torch.uint8, device=device)
        operation, applied, *_ = sub = self._subpolicies()
        launch(
            list_kernel, -(-n // LIST_BLOCK), (lists, counts, operation, applied),
            (n, room, self.first),
            {"K": self._operations, "SLOTS": self.slots, "BLOCK": LIST_BLOCK}, {},
        )  # fmt: skip
        listed = (tables, lists, counts)
        # Three streams: tables and what waits for all of them; pairs; single operations. Each list
        # alone leaves processors idle at its end.
        aside, beside = Aside(device), Aside(device, 1)
        with aside:
            for after, which in enumerate((List.TABLES, List.LATER_TABLES)[: self.slots]):
                launch(
                    table_kernel, TABLE_PROGRAMS,
                    (tables, self.source, self.pool, *sub, records, arrivals, lists, counts),
                    (int(which), room, self.first),
                    self._sizes() | {"SLOTS": self.slots, "AFTER": after, "ATOMICS": self._atomics,
                                     "PART": SHARES[which].part, "BLOCK": self._block},
                    self._options(SHARES[which].registers),
                )  # fmt: skip
                if not after:
                    made = aside.mark()
            self._render_list(List.TWO_TABLED, listed, room)
        with beside:
            self._render_list(List.TWO, listed, room)
            beside.wait_for(made)
            self._render_list(List.SHARPENED, listed, room)
        self._render_list(List.ONE, listed, room)
        aside.wait_for(made)
        self._render_list(List.ONE_TABLED, listed, room)
        beside.join()
        aside.join()

    def _render_list(self, which: List, listed: tuple[Tensor, ...], room: int) -> None:
        if SHARES[which].slots <= self.slots:  # of one slot there are no pairs
            sharp = which is List.SHARPENED
            self._render(PROGRAMS, listed, (int(which), room), SHARES[which], sharp=sharp)

    def _render(
        self,
        programs: int,
        listed: tuple[Tensor, ...],
        place: tuple[int, int],
        share: Share,
        *,
        fused: bool = False,
        sharp: bool = False,
    ) -> None:
        padding, cutout, norm = self.settings or (0, 0, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
        where = self.placed or (self.source,) * 3
        if self.placed:
            where = (where[0], where[1].view(torch.uint8), where[2])
        launch(
            render_kernel, programs,
            (self.out, self.source, self.pool, *self._subpolicies(), *where, *listed),
            (*place, self.first, *norm),
            self._sizes() | {
                "SLOTS": share.slots, "ALL_SLOTS": self.slots, "FUSED": fused,
                "SHARP": fused or sharp, "DEFAULT": self.placed is not None, "PADDING": padding,
                "CUTOUT": cutout, "CHANNELS_LAST": self.channels_last, "ATOMICS": self._atomics,
                "PART": share.part, "BLOCK": self._block,
            },
            self._options(None if fused else share.registers),
        )  # fmt: skip

    def _subpolicies(self) -> tuple[Tensor, ...]:
        operation, applied, *others = self.subpolicies
        return (operation, applied.view(torch.uint8), *others)

    @property
    def _operations(self) -> int:
        return max(1, self.subpolicies[0].shape[-1])

    @property
    def _block(self) -> int:
        _, _, height, width = self.out.shape
        return min(BLOCK, max(32, 1 << (height * width - 1).bit_length()))

    @property
    def _atomics(self) -> bool:
        return has_shared_atomics(self.out.device)

    def _sizes(self) -> dict[str, int]:
        _, channels, height, width = self.out.shape
        return {
            "E": self.num_candidates,
            "H": height,
            "W": width,
            "C": channels,
            "K": self._operations,
        }

    def _options(self, registers: int | None) -> dict[str, Any]:
        warps = max(1, self._block // (32 * PIXELS_PER_THREAD))
        return {"num_warps": warps, "enable_fp_fusion": False, "maxnreg": registers}
