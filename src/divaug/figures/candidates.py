"""What DivAug sees: the candidates of each image, the model's predictions, and what was kept."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image
from torch import Tensor

from divaug.diversity import kept_by_chance, variance_diversity
from divaug.figures.canvas import INK, PAPER, SOFT, Page
from divaug.subpolicies import SubPolicies

__all__ = ["KEPT", "Chosen", "bar_scale", "draw_candidates"]

#: The colour of everything that was kept.
KEPT = (214, 92, 20)
LEFT_OUT = (150, 160, 178)
CELL, GAP, BARS, TEXT, MARGIN, TITLE, FRAME = 112, 18, 56, 34, 18, 58, 4
ROW = CELL + BARS + TEXT + 44
# Beyond this many classes single bars cannot be told apart.
MOST_BARS = 100


@dataclass(frozen=True)
class Chosen:
    """Everything the picture shows.

    Args:
        images: uint8 `[B,C,H,W]`, the originals.
        candidates: uint8 `[B,E,C,H,W]`.
        subpolicies: `[B,E,K]`, what made the candidates.
        probs: `[B,E,D]`, the model's predictions; without a model D is 0.
        chosen: `[B,S]`, the candidates kept, in the order of choice; without a model S is 0.
    """

    images: Tensor
    candidates: Tensor
    subpolicies: SubPolicies
    probs: Tensor
    chosen: Tensor


def draw_candidates(choice: Chosen, title: str, subtitle: str = "") -> Image.Image:
    """Draw one row an image: the original, then its candidates with their predictions below.

    Kept candidates have a frame and the number of their place in the order of choice.
    """
    B, E, D = choice.probs.shape
    width = 2 * MARGIN + (E + 1) * (CELL + GAP) + GAP
    row = ROW if D else ROW - BARS
    page = Page.blank(width, TITLE + B * row + MARGIN)
    page.write(title, MARGIN, 14, 16)
    page.write(subtitle, MARGIN, 36, 12, SOFT)
    for b in range(B):
        top = TITLE + b * row + FRAME
        page.paste(choice.images[b], MARGIN, top, CELL, CELL)
        page.write("original", MARGIN, top + CELL + 10, 11, SOFT)
        for e in range(E):
            _draw_candidate(page, choice, (b, e), (_left_of(e), top), choice.chosen[b].tolist())
        if D:
            scale = bar_scale(float(choice.probs.nan_to_num(0.0).max()))
            _draw_predictions(page, choice.probs[b], choice.chosen[b], top + CELL, scale)
    return page.picture


def _left_of(e: int) -> int:
    return MARGIN + (e + 1) * (CELL + GAP) + GAP


def bar_scale(largest: float) -> float:
    """The probability at the top of the bars: the largest one, rounded up to one digit.

    Example:
        >>> bar_scale(0.113), bar_scale(0.97)
        (0.2, 1.0)
    """
    largest = max(largest, 1e-6)
    digit = 10.0 ** math.floor(math.log10(largest))
    # A float32 of 0.1 is a little above 0.1 and must not become 0.2.
    return min(1.0, round(math.ceil(largest / digit - 1e-5) * digit, 9))


def _draw_predictions(page: Page, probs: Tensor, chosen: Tensor, top: int, scale: float) -> None:
    """Draw an image's diversities and the bars of its candidates below them."""
    order = chosen.tolist()
    everything = float(variance_diversity(probs))
    chance = everything * kept_by_chance(len(probs), len(order))
    kept = float(variance_diversity(probs[chosen]))
    diversities = {"kept": kept, "by chance": chance, "all": everything}
    page.write("Variance Diversity", MARGIN, top + 26, 11, SOFT)
    for i, (name, value) in enumerate(diversities.items()):
        page.write(f"{name}: {value:.3g}", MARGIN, top + 42 + 16 * i, 11)
    for e, one in enumerate(probs.nan_to_num(0.0).tolist()):
        heights = [p / scale for p in one]
        _draw_bars(page, heights, _left_of(e), top + 12, KEPT if e in order else LEFT_OUT)
    axis = MARGIN + CELL + 2 * GAP - 5
    page.write(f"{scale:g}", axis, top + 12, 10, SOFT, "rm")
    page.write("0", axis, top + 12 + BARS, 10, SOFT, "rm")


def _draw_candidate(
    page: Page, choice: Chosen, at: tuple[int, int], corner: tuple[int, int], order: list[int]
) -> None:
    left, top = corner
    b, e = at
    page.paste(choice.candidates[b, e], left, top, CELL, CELL)
    if e in order:
        page.frame((left, top, left + CELL, top + CELL), KEPT, FRAME)
        _draw_number(page, order.index(e) + 1, left, top)
    below = top + CELL + (BARS + 20 if choice.probs.shape[-1] else 8)
    for i, (words, applied) in enumerate(_operations(choice.subpolicies[b, e])):
        page.write(words, left, below + 15 * i, 10, INK if applied else SOFT)


def _draw_number(page: Page, number: int, left: int, top: int) -> None:
    page.draw.rectangle((left, top, left + 17, top + 17), fill=KEPT)
    page.write(str(number), left + 9, top + 9, 13, PAPER, "mm")


def _draw_bars(
    page: Page, heights: Sequence[float], left: int, top: int, color: tuple[int, int, int]
) -> None:
    """One bar a class; of very many classes only the most probable, in order."""
    many = len(heights) > MOST_BARS
    shown = sorted(heights, reverse=True)[:MOST_BARS] if many else heights
    bottom = top + BARS
    page.draw.line((left, bottom, left + CELL, bottom), fill=LEFT_OUT)
    page.draw.line((left, top, left + 3, top), fill=LEFT_OUT)
    for i, h in enumerate(shown):
        start = left + i * CELL / len(shown)
        end = left + (i + 1) * CELL / len(shown) - (2 if len(shown) <= 30 else 0)
        page.draw.rectangle((start, bottom - h * BARS, max(start, end), bottom), fill=color)


def _operations(one: SubPolicies) -> list[tuple[str, bool]]:
    """Each operation in words, and whether its coin let it happen."""
    found = []
    for k in range(one.shape[-1]):
        i = int(one.operation[k])
        if i < 0:
            continue
        this, applied = one.operations[i], bool(one.applied[k])
        strength = f" {float(one.argument[k]):.3g}" if this.needs_argument else ""
        found.append((f"{this.name}{strength}" if applied else f"({this.name} skipped)", applied))
    return found or [("no operation", False)]
