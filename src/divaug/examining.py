"""`examine`: what the rules of selection keep of a network's candidates, and what that hangs on.

The same candidates are scored in several ways, every rule chooses by each of them, and all that is
kept is judged alike: in float32, in evaluation mode and as in training. So what the precision of
the probabilities, the mode of the network and the ranges of the operations do to a choice can be
told apart.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from divaug.datasets import Dataset, ImageFiles
from divaug.default_augmentation import DefaultAugmentation
from divaug.diversity import Mean, largest_diversity, variance_diversity
from divaug.expansion import expand
from divaug.policies import Uniform
from divaug.scoring import score
from divaug.selection import METHODS, select
from divaug.training.data import default_of
from divaug.training.hardware import Hardware, workers
from divaug.training.opening import Opened, open_run
from divaug.training.ordered import parts_in_order

__all__ = [
    "JUDGE",
    "SETTLED",
    "SPACES",
    "TRAINING",
    "WAYS",
    "Candidates",
    "Choice",
    "Examination",
    "Way",
    "examine",
    "examine_run",
]

#: Spaces that candidates are drawn from: the paper's ranges, and those of the authors' code. A
#: run's own comes first where it is another.
SPACES = ("paper", "released")
#: An image is settled where even the most diverse choice has less Variance Diversity than this.
SETTLED = 0.01


@dataclass(frozen=True)
class Way:
    """A way to score candidates.

    Args:
        dtype: of the network's arithmetic.
        batch_statistics: whether BatchNorm takes the statistics of the candidates at hand, as it
            does in training, instead of its running ones.
    """

    dtype: torch.dtype = torch.float32
    batch_statistics: bool = False


#: The ways that judge all choices: in evaluation mode, and as the network is while it trains.
JUDGE, TRAINING = "float32", "batch statistics"
#: Name → way, the judge first.
WAYS: Mapping[str, Way] = MappingProxyType(
    {JUDGE: Way(), "bfloat16": Way(torch.bfloat16), TRAINING: Way(batch_statistics=True)}
)


@dataclass(frozen=True)
class Candidates:
    """All candidates of a space, before any choice.

    Args:
        space: that they are drawn from.
        diversity: their Variance Diversity, mean over the images.
        best: that of the most diverse S of them; not a number where there are too many to try.
        accuracy: share of them that the network classifies as their label says.
        settled: share of the images whose most diverse S have less than `SETTLED`.
    """

    space: str
    diversity: float
    best: float
    accuracy: float
    settled: float


@dataclass(frozen=True)
class Choice:
    """What a rule keeps of them, by the predictions of one way.

    Args:
        space: that the candidates are drawn from.
        way: how they were scored for the choice.
        rule: of selection.
        diversity: Variance Diversity of the kept in evaluation mode, mean over the images.
        training: the same by predictions with batch statistics, as the network has in training.
        accuracy: share of the kept that the network classifies as their label says.
        agreement: share of the kept that the rule keeps by the judge's predictions too.
    """

    space: str
    way: str
    rule: str
    diversity: float
    training: float
    accuracy: float
    agreement: float


@dataclass(frozen=True)
class Examination:
    """What came out.

    Args:
        images: how many training images were looked at.
        candidates: of each space.
        choices: of each space, way and rule.
    """

    images: int
    candidates: tuple[Candidates, ...]
    choices: tuple[Choice, ...]


@contextmanager
def _batch_statistics(network: nn.Module) -> Iterator[None]:
    """BatchNorm without running statistics for the block: it takes those of its batch."""
    found = [
        (module, module.running_mean, module.running_var)
        for module in network.modules()
        if isinstance(module, _BatchNorm)
    ]
    try:
        for module, _, _ in found:
            module.running_mean = module.running_var = None
        yield
    finally:
        for module, mean, var in found:
            module.running_mean, module.running_var = mean, var


@contextmanager
def _whole_float32() -> Iterator[None]:
    """Convolutions and products of float32 in float32, not TF32, for the block."""
    precision, allowed = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    try:
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = False
        yield
    finally:
        torch.set_float32_matmul_precision(precision)
        torch.backends.cudnn.allow_tf32 = allowed


def _scored(network: nn.Module, candidates: Tensor, way: Way) -> Tensor:
    """Probabilities `[B,E,D]` of float32 candidates, one way."""
    lower = way.dtype != torch.float32
    kind = candidates.device.type
    with _whole_float32(), torch.autocast(kind, way.dtype, enabled=lower, cache_enabled=False):
        if not way.batch_statistics:
            return score(network, candidates.to(way.dtype))
        with _batch_statistics(network):
            return score(network, candidates.to(way.dtype))


@dataclass
class _Means:
    """What is added up of the choices of one kind."""

    diversity: Mean = field(default_factory=Mean)
    training: Mean = field(default_factory=Mean)
    accuracy: Mean = field(default_factory=Mean)
    agreement: Mean = field(default_factory=Mean)
    best: Mean = field(default_factory=Mean)
    settled: Mean = field(default_factory=Mean)


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
    """Look at what every rule of selection keeps, by predictions made in every way.

    The network stays as it was. Draws are those of the first step with that seed, so the same
    candidates are seen in all ways, and a rule that draws has the same random numbers in all.

    Args:
        network: what is asked.
        data: its training images are looked at.
        default: the default augmentation.
        device: where the network is.
        num_candidates: E, candidates of each image.
        num_selected: S, how many of them are kept.
        spaces: that candidates are drawn from.
        seed: decides every draw.
        batch_size: originals at a time; BatchNorm's own statistics are over their candidates.
        num_workers: processes that decode, for files.
    """
    part, _ = parts_in_order(data, device, num_workers=num_workers)
    pool, rules = part.pool, _rules(num_candidates, num_selected)
    of_all, kept = dict[str, _Means](), dict[tuple[str, str, str], _Means]()
    for space in spaces:
        of_all[space] = _Means()
        for images, labels, rows in part.batches(batch_size):
            candidates, _ = expand(
                images, num_candidates, Uniform(space), default, seed, rows, pool=pool
            )
            probs = {name: _scored(network, candidates, way) for name, way in WAYS.items()}
            right = (probs[JUDGE].argmax(-1) == labels[:, None]).to(torch.float32)
            _add_all(of_all[space], probs[JUDGE], right, num_selected)
            for rule in rules:
                same = select(probs[JUDGE], num_selected, rule, seed, index=rows)
                # A rule that does not ask keeps the same however the network would answer.
                for way in WAYS if METHODS[rule].needs_probs else (JUDGE,):
                    chosen = select(probs[way], num_selected, rule, seed, index=rows)
                    means = kept.setdefault((space, way, rule), _Means())
                    _add(means, probs, right, chosen, same)
    return Examination(
        len(part),
        tuple(_candidates(space, means) for space, means in of_all.items()),
        tuple(_choice(*key, means) for key, means in kept.items()),
    )


def _rules(num_candidates: int, num_selected: int) -> list[str]:
    """The rules that can do with so many candidates."""
    found = []
    for name, rule in METHODS.items():
        try:
            rule.check(num_candidates, num_selected)
        except ValueError:
            continue
        found.append(name)
    return found


def _add_all(means: _Means, judged: Tensor, right: Tensor, num_selected: int) -> None:
    best = largest_diversity(judged, num_selected)
    means.diversity.update(variance_diversity(judged))
    means.accuracy.update(right)
    means.best.update(best)
    means.settled.update(torch.where(best.isnan(), best, (best < SETTLED).to(best.dtype)))


def _add(
    means: _Means, probs: Mapping[str, Tensor], right: Tensor, chosen: Tensor, same: Tensor
) -> None:
    for mean, judge in ((means.diversity, JUDGE), (means.training, TRAINING)):
        mean.update(variance_diversity(probs[judge].take_along_dim(chosen[..., None], 1)))
    means.accuracy.update(right.take_along_dim(chosen, 1))
    shared = (chosen[:, :, None] == same[:, None]).any(-1)
    means.agreement.update(shared.to(torch.float32))


def _candidates(space: str, means: _Means) -> Candidates:
    found = (means.diversity, means.best, means.accuracy, means.settled)
    return Candidates(space, *(float(one.compute()) for one in found))


def _choice(space: str, way: str, rule: str, means: _Means) -> Choice:
    found = (means.diversity, means.training, means.accuracy, means.agreement)
    return Choice(space, way, rule, *(float(one.compute()) for one in found))


def examine_run(
    run: str | Path | Opened,
    *,
    data: str | Path | Dataset | ImageFiles | None = None,
    images: int = 0,
    device: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Examination:
    """Examine the choice at the settings of a run, by the network of one of its checkpoints.

    Args:
        run: the folder of a run or of a checkpoint, or one that is open.
        data: a dataset, or where to find it; None for where the run found its own.
        images: size of a balanced part of the training images to look at; 0 for all.
        device: where; None for a GPU where there is one.
        say: told what happens, a line at a time.
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
        default_of(recipe.dataset, found),
        hardware.device,
        num_candidates=recipe.num_candidates,
        num_selected=recipe.num_selected,
        spaces=tuple(dict.fromkeys((recipe.space, *SPACES))),
        seed=recipe.seed,
        num_workers=workers(recipe.num_workers),
    )
