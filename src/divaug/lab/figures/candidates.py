"""DivAug's view of images: their candidates, the model's predictions, and what is kept."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor, nn

from divaug import DivAug, SubPolicies, expand, replay, variance_diversity
from divaug._diversity import kept_by_chance
from divaug.default_augmentation import plain
from divaug.lab.datasets import Dataset
from divaug.lab.figures.canvas import INK, PAPER, SOFT, Page, fit_square
from divaug.lab.methods import RULES
from divaug.lab.train.batches import STREAMED_SIZE
from divaug.lab.train.device import Hardware
from divaug.lab.train.run import open_run
from divaug.policies import Uniform

__all__ = [
    "KEPT",
    "LARGEST",
    "NO_NETWORK",
    "Chosen",
    "Network",
    "bar_scale",
    "choose",
    "draw_candidates",
    "run_network",
]

#: Side in pixels of candidates that no network looks at; smaller images keep their size.
LARGEST = 224

#: The colour of everything that was kept.
KEPT = (214, 92, 20)
LEFT_OUT = (150, 160, 178)
CELL, GAP, BARS, TEXT, MARGIN, TITLE, FRAME = 112, 18, 56, 34, 18, 58, 4
ROW = CELL + BARS + TEXT + 44
# Beyond this many classes single bars cannot be told apart.
MOST_BARS = 100


@dataclass(frozen=True)
class Chosen:
    """The content of a picture.

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


@dataclass(frozen=True)
class Network:
    """The network of a run, with the look of its images.

    Args:
        model: the network; None for candidates that are drawn without one.
        caption: its name in a picture.
        mean: mean of its images, a number a channel.
        std: standard deviation of its images, a number a channel.
        size: side in pixels of its images.
        notes: a sentence for each newer checkpoint that could not be used.
        num_candidates: E of the run.
        num_selected: S of the run.
        method: rule of selection of the run; None where it did not choose.
        space: ranges of the magnitudes of the run.
    """

    model: nn.Module | None
    caption: str
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    size: int = LARGEST
    notes: tuple[str, ...] = ()
    num_candidates: int = 8
    num_selected: int = 4
    method: str | None = None
    space: str = "paper"


NO_NETWORK = Network(None, "a network decides which of them DivAug keeps: give --checkpoint")


def run_network(folder: Path, data: Path | None = None) -> Network:
    """Load the network of a run or of one of its checkpoints, on the CPU.

    Of images that are not square the longer side counts. Nothing is downloaded.

    Args:
        folder: the folder of the run or the checkpoint.
        data: where the run's dataset is now; None for where the run found it.

    Raises:
        FileNotFoundError: the dataset is not there.
        ValueError: the folder is no run, no checkpoint of it can be used, or the data is another
            than the run's.
    """
    opened = open_run(folder)
    found = opened.data(data, download=False)
    opened.trained_on.refuse_other(found, "use a network of this data")
    default = opened.default(found)
    seen = (STREAMED_SIZE,) * 2
    if isinstance(found, Dataset):
        seen = (found.train_images.shape[-2], found.train_images.shape[-1])
    run = opened.path.resolve().parent.parent.name
    return Network(
        opened.network(found, Hardware.choose("cpu", "float32", eager=True)),
        f"{opened.recipe.model} of {run}, {opened.path.name}",
        default.mean,
        default.std,
        max(default.output_size(*seen)),
        opened.notes,
        opened.recipe.num_candidates,
        opened.recipe.num_selected,
        RULES.get(opened.recipe.augmenter),
        opened.recipe.space,
    )


def choose(
    images: Sequence[Tensor],
    network: Network,
    *,
    num_candidates: int = 8,
    num_selected: int = 4,
    method: str = "kmeans++",
    seed: int = 0,
    space: str = "paper",
) -> Chosen:
    """Expand, score and select, keeping everything that a picture needs.

    Args:
        images: uint8 `[3,H,W]` each; the middle square of each is brought to one size.
        network: scores the candidates; `NO_NETWORK` to draw them alone.
        num_candidates: E, candidates of each image.
        num_selected: S, candidates that are kept.
        method: the rule of selection.
        seed: decides every draw.
        space: the ranges of the magnitudes.
    """
    smallest = min(min(image.shape[1:]) for image in images)
    size = network.size if network.model else min(LARGEST, smallest)
    originals = torch.stack([fit_square(image, size) for image in images])
    if len(network.mean) == 1:
        originals = originals.float().mean(1, keepdim=True).round().to(torch.uint8)
    if network.model is None:
        candidates, subpolicies = expand(originals, num_candidates, Uniform(space), seed=seed)
        nothing = torch.empty(*candidates.shape[:2], 0)
        return Chosen(originals, candidates, subpolicies, nothing, nothing[:, 0].long())
    augment = DivAug(
        network.model,
        num_candidates,
        num_selected,
        policy=Uniform(space),
        default=plain(network.mean, network.std),
        method=method,
        seed=seed,
    )
    found = augment.explain(originals)
    candidates = replay(originals, found.subpolicies)
    return Chosen(originals, candidates, found.subpolicies, found.probs, found.chosen)


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
    """Return the probability at the top of the bars: the largest one, rounded up to one digit.

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
    """Draw one bar a class; of very many classes only the most probable, in order."""
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
    """Return each operation in words, and whether its coin let it happen."""
    found = []
    for k in range(one.shape[-1]):
        i = int(one.operation[k])
        if i < 0:
            continue
        this, applied = one.operations[i], bool(one.applied[k])
        strength = f" {float(one.argument[k]):.3g}" if this.needs_argument else ""
        found.append((f"{this.name}{strength}" if applied else f"({this.name} skipped)", applied))
    return found or [("no operation", False)]
