"""`examine`: what the rules of selection keep of a network's candidates, and what that depends on.

The same candidates are scored in several ways, every rule chooses by each of them, and all choices
are evaluated alike. This separates the effects of the precision of the probabilities, the
statistics of BatchNorm and the ranges of the operations.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from divaug._checks import check_whole
from divaug._diversity import Mean, kept_by_chance, largest_diversity, variance_diversity
from divaug._expand import expand
from divaug._score import check_model, dtype_of, score
from divaug._select import MAX_CANDIDATES, METHODS, select
from divaug.default_augmentation import DefaultAugmentation
from divaug.lab.datasets import Dataset, ImageFiles
from divaug.lab.train.batches import parts_in_order
from divaug.lab.train.device import Hardware
from divaug.lab.train.run import Opened, open_run
from divaug.policies import Uniform

__all__ = [
    "BATCH",
    "JUDGE",
    "SETTLED",
    "SPACES",
    "WAYS",
    "Candidates",
    "Choice",
    "Examination",
    "Way",
    "examine",
    "examine_run",
    "scored",
]


@dataclass(frozen=True)
class Way:
    """A way to score candidates; all are in evaluation mode otherwise.

    Args:
        dtype: precision of the network.
        batch_statistics: True for BatchNorm with the statistics of the candidates at hand, as in
            training, instead of its running ones.
    """

    dtype: torch.dtype = torch.float32
    batch_statistics: bool = False


#: The way that others are compared with, and the one that is nearest to training.
JUDGE, BATCH = "float32", "batch statistics"
#: Name → way, the judge first.
WAYS: Mapping[str, Way] = MappingProxyType(
    {JUDGE: Way(), "bfloat16": Way(torch.bfloat16), BATCH: Way(batch_statistics=True)}
)
#: Spaces that candidates are drawn from: the paper's ranges, and those of the authors' code. A
#: run's own comes first where it is another.
SPACES = ("paper", "released")
#: An image is settled where even the most diverse choice has less Variance Diversity than this.
SETTLED = 0.01


@dataclass(frozen=True)
class Candidates:
    """All candidates of a space, before any choice; predicted in float32, evaluation mode.

    Args:
        space: name of the space.
        diversity: their Variance Diversity, mean over the images.
        batch_diversity: the same by predictions with the statistics of all candidates of a batch.
        best: that of the most diverse S of them; NaN where there are too many to try.
        accuracy: share of them that the network classifies correctly.
        settled: share of the images whose most diverse S have less than `SETTLED`.
    """

    space: str
    diversity: float
    batch_diversity: float
    best: float
    accuracy: float
    settled: float


@dataclass(frozen=True)
class Choice:
    """The candidates that a rule keeps, by the predictions of one way.

    For a rule that needs no predictions it is the mean over all choices, which needs no draw.

    Args:
        space: space of the candidates.
        way: scoring that the rule chose by.
        rule: rule of selection.
        diversity: Variance Diversity of the kept in float32, evaluation mode, mean over the images.
        batch_diversity: the same by predictions with the statistics of all candidates of a batch.
        accuracy: share of the kept that the network classifies correctly.
        agreement: share of the kept that the rule keeps by predictions in float32 too, with the
            same random numbers.
        unrelated: the same where the predictions are those of another image: the agreement of two
            scores that have nothing in common. NaN with a single image.
    """

    space: str
    way: str
    rule: str
    diversity: float
    batch_diversity: float
    accuracy: float
    agreement: float
    unrelated: float = math.nan


@dataclass(frozen=True)
class Examination:
    """The result of `examine`.

    Args:
        images: number of training images.
        candidates: one entry for each space.
        choices: one entry for each space, rule and way.
    """

    images: int
    candidates: tuple[Candidates, ...]
    choices: tuple[Choice, ...]


def scored(network: nn.Module, candidates: Tensor, way: Way) -> Tensor:
    """Score float32 candidates to probabilities `[B,E,D]`; the network stays as it was.

    Example:
        >>> network = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(12), nn.Linear(12, 5))
        >>> scored(network, torch.rand(2, 8, 3, 2, 2), WAYS["batch statistics"]).shape
        torch.Size([2, 8, 5])
    """
    lower, device = way.dtype != torch.float32, candidates.device
    with (
        _whole_float32(device),
        _statistics(network, of_batch=way.batch_statistics),
        torch.autocast(device.type, way.dtype, enabled=lower, cache_enabled=False),
    ):
        return score(network, candidates.to(way.dtype))


@contextmanager
def _statistics(network: nn.Module, *, of_batch: bool) -> Iterator[None]:
    """Drop BatchNorm's running statistics for the block: it takes those of its batch."""
    found = [
        (module, module.running_mean, module.running_var)
        for module in network.modules()
        if of_batch and isinstance(module, _BatchNorm)
    ]
    try:
        for module, _, _ in found:
            module.running_mean = module.running_var = None
        yield
    finally:
        for module, mean, var in found:
            module.running_mean, module.running_var = mean, var


@contextmanager
def _whole_float32(device: torch.device) -> Iterator[None]:
    """On a GPU, compute float32 convolutions and products without TF32, for the block."""
    if device.type != "cuda":
        yield
        return
    precision, allowed = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    try:
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = False
        yield
    finally:
        torch.set_float32_matmul_precision(precision)
        torch.backends.cudnn.allow_tf32 = allowed


class _Choices:
    """The candidates of one space and the choices of every rule, added up over batches."""

    def __init__(self, space: str, num_candidates: int, num_selected: int, seed: int) -> None:
        self._space, self._seed = space, seed
        self._num_candidates, self._num_selected = num_candidates, num_selected
        self._rules = [name for name, rule in METHODS.items() if rule.needs_probs]
        for name in list(self._rules):  # some cannot do with so many candidates
            try:
                METHODS[name].check(num_candidates, num_selected)
            except ValueError:
                self._rules.remove(name)
        self._all = defaultdict[str, Mean](Mean)
        self._kept: dict[tuple[str, str], defaultdict[str, Mean]] = {}

    def candidates(self) -> Candidates:
        """Return the means over all candidates so far."""
        return Candidates(self._space, **_values(self._all))

    def choices(self) -> list[Choice]:
        """Return the means over the kept so far, by way and rule."""
        every = self.candidates()
        # A pair of candidates is in a choice by chance as often as any other.
        factor = kept_by_chance(self._num_candidates, self._num_selected)
        chance = (factor * every.diversity, factor * every.batch_diversity, every.accuracy)
        return [
            *(
                Choice(self._space, JUDGE, name, *chance, 1.0, 1.0)
                for name, rule in METHODS.items()
                if not rule.needs_probs
            ),
            *(
                Choice(self._space, way, rule, **_values(one))
                for (way, rule), one in self._kept.items()
            ),
        ]

    def add(self, probs: Mapping[str, Tensor], labels: Tensor, rows: Tensor) -> None:
        """Add a batch.

        Args:
            probs: way → its predictions `[B,E,D]`, of the same candidates.
            labels: int64 `[B]`.
            rows: int64 `[B]`, the samples' indices.
        """
        judged = probs[JUDGE]
        right = (judged.argmax(-1) == labels[:, None]).to(torch.float32)
        best = largest_diversity(judged, self._num_selected)
        settled = (best < SETTLED).to(best.dtype)
        self._all["diversity"].update(variance_diversity(judged))
        self._all["batch_diversity"].update(variance_diversity(probs[BATCH]))
        self._all["best"].update(best)
        self._all["accuracy"].update(right)
        self._all["settled"].update(torch.where(best.isnan(), best, settled))
        for rule in self._rules:
            same = self._choose(judged, rule, rows)
            for way in WAYS:
                chosen = self._choose(probs[way], rule, rows)
                kept = self._kept.setdefault((way, rule), defaultdict(Mean))
                for name, judge in (("diversity", JUDGE), ("batch_diversity", BATCH)):
                    of_kept = probs[judge].take_along_dim(chosen[..., None], 1)
                    kept[name].update(variance_diversity(of_kept))
                kept["accuracy"].update(right.take_along_dim(chosen, 1))
                kept["agreement"].update(_shared(chosen, same))
                if len(rows) > 1:
                    others = self._choose(probs[way].roll(1, 0), rule, rows)
                    kept["unrelated"].update(_shared(others, same))

    def _choose(self, probs: Tensor, rule: str, rows: Tensor) -> Tensor:
        return select(probs, self._num_selected, rule, self._seed, index=rows)


def _values(means: Mapping[str, Mean]) -> dict[str, float]:
    return {name: float(mean.compute()) for name, mean in means.items()}


def _shared(chosen: Tensor, others: Tensor) -> Tensor:
    """Mark the kept that are among others, `[B,S]`."""
    return (chosen[:, :, None] == others[:, None]).any(-1).to(torch.float32)


@torch.no_grad()
def examine(
    network: nn.Module,
    data: Dataset | ImageFiles,
    default: DefaultAugmentation,
    device: torch.device,
    *,
    num_candidates: int = 8,
    num_selected: int = 4,
    spaces: Sequence[str] = SPACES,
    seed: int = 0,
    batch_size: int = 128,
    num_workers: int = 0,
) -> Examination:
    """Examine the choices of every rule of selection, by predictions made in every way.

    The network stays as it was. Draws are those of the first step with that seed, so all ways
    score the same candidates, and a rule that draws has the same random numbers in all.

    Args:
        network: network in float32.
        data: its training images are examined, in an order that follows from the seed.
        default: the default augmentation.
        device: device of the network.
        num_candidates: E, number of candidates of each image.
        num_selected: S, number of them that are kept; at most E.
        spaces: spaces of the candidates.
        seed: seed of every draw.
        batch_size: originals at a time; statistics of a batch are over all their candidates.
        num_workers: processes that decode, for files.
    """
    _check(network, num_candidates, num_selected, spaces)
    part, _ = parts_in_order(_shuffled(data, seed), device, num_workers=num_workers)
    pool, found = part.pool, list[_Choices]()
    for name in spaces:
        found.append(_Choices(name, num_candidates, num_selected, seed))
        for images, labels, rows in part.batches(batch_size):
            candidates, _ = expand(
                images, num_candidates, Uniform(name), default, seed, rows, pool=pool
            )
            probs = {way: scored(network, candidates, WAYS[way]) for way in WAYS}
            found[-1].add(probs, labels, rows)
    return Examination(
        len(part),
        tuple(one.candidates() for one in found),
        tuple(choice for one in found for choice in one.choices()),
    )


def _check(network: nn.Module, num_candidates: int, num_selected: int, spaces: object) -> None:
    check_model(network)
    if dtype_of(network) != torch.float32:
        raise ValueError(
            f"`network` must have float32 parameters, got {dtype_of(network)}: lower precisions "
            "are examined beside it; give network.float()."
        )
    check_whole("num_candidates", num_candidates, 1, MAX_CANDIDATES)
    check_whole("num_selected", num_selected, 1, num_candidates)
    if not spaces:
        raise ValueError(f"`spaces` must name at least one space, got none; give {SPACES}.")


def _shuffled(data: Dataset | ImageFiles, seed: int) -> Dataset | ImageFiles:
    """Shuffle the training images: a batch of one class has other statistics."""
    labels = data.train_labels if isinstance(data, Dataset) else data.train.labels
    chance = torch.Generator("cpu").manual_seed(seed)
    order = torch.randperm(len(labels), generator=chance, device="cpu")
    if isinstance(data, ImageFiles):
        return replace(data, train=data.train.take(order))
    return replace(data, train_images=data.train_images[order], train_labels=labels[order])


def examine_run(
    run: str | Path | Opened,
    *,
    data: str | Path | Dataset | ImageFiles | None = None,
    images: int = 0,
    device: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Examination:
    """Examine the choice at the settings of a run, by the network of one of its checkpoints.

    A run with an average of weights has that as its network, though another one chose.

    Args:
        run: folder of a run or of a checkpoint, or an opened run.
        data: a dataset, or its place; None for the place that the run found its own in.
        images: size of a balanced part of the training images; 0 for all.
        device: device; None for a GPU if there is one.
        say: called with each line of the log.
    """
    opened = run if isinstance(run, Opened) else open_run(run)
    for note in opened.notes:
        say(note)
    recipe = opened.recipe
    hardware = Hardware.choose(device, "float32", eager=True)
    found = opened.data(data, say=say)
    part = found.subset(images) if images else found
    return examine(
        opened.network(found, hardware),
        part,
        opened.default(found),
        hardware.device,
        num_candidates=recipe.num_candidates,
        num_selected=recipe.num_selected,
        spaces=tuple(dict.fromkeys((recipe.space, *SPACES))),
        seed=recipe.seed,
        batch_size=recipe.originals_per_step,
        num_workers=recipe.num_workers,
    )
