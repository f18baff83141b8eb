"""Choices of the rules, described and added up over the batches of a dataset."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from divaug._diversity import Mean, kept_by_chance, largest_diversity, variance_diversity
from divaug._select import METHODS, select
from divaug.lab.ways import BATCH, JUDGE, WAYS

__all__ = ["SETTLED", "Candidates", "Choice", "Choices"]

#: An image is settled where even the most diverse choice has less Variance Diversity than this.
SETTLED = 0.01


@dataclass(frozen=True)
class Candidates:
    """All candidates of a space, before any choice; judged in float32, evaluation mode.

    Args:
        space: that they are drawn from.
        diversity: their Variance Diversity, mean over the images.
        batch_diversity: the same by predictions with the statistics of all candidates of a batch.
        best: that of the most diverse S of them; not a number where there are too many to try.
        accuracy: share of them that the network classifies as their label says.
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
    """What a rule keeps of them, by the predictions of one way.

    Of a rule that asks nobody it is the mean over all choices there are, which needs no draw.

    Args:
        space: that the candidates are drawn from.
        way: how they were scored for the choice.
        rule: of selection.
        diversity: Variance Diversity of the kept in float32, evaluation mode, mean over the images.
        batch_diversity: the same by predictions with the statistics of all candidates of a batch.
        accuracy: share of the kept that the network classifies as their label says.
        agreement: share of the kept that the rule keeps by predictions in float32 too, with the
            same random numbers.
        unrelated: the same where the predictions are those of another image: what agreement is
            worth when two scores have nothing in common.
    """

    space: str
    way: str
    rule: str
    diversity: float
    batch_diversity: float
    accuracy: float
    agreement: float
    unrelated: float


@dataclass
class _AllMeans:
    diversity: Mean = field(default_factory=Mean)
    batch_diversity: Mean = field(default_factory=Mean)
    best: Mean = field(default_factory=Mean)
    accuracy: Mean = field(default_factory=Mean)
    settled: Mean = field(default_factory=Mean)


@dataclass
class _KeptMeans:
    diversity: Mean = field(default_factory=Mean)
    batch_diversity: Mean = field(default_factory=Mean)
    accuracy: Mean = field(default_factory=Mean)
    agreement: Mean = field(default_factory=Mean)
    unrelated: Mean = field(default_factory=Mean)


def _values(means: _AllMeans | _KeptMeans) -> list[float]:
    found: list[Mean] = list(vars(means).values())
    return [float(mean.compute()) if mean.count else math.nan for mean in found]


class Choices:
    """What every rule keeps of the candidates of one space.

    Args:
        space: its name.
        num_candidates: E, candidates of each image.
        num_selected: S, how many of them are kept.
        seed: decides the draws of the rules.
    """

    def __init__(self, space: str, num_candidates: int, num_selected: int, seed: int) -> None:
        self._space, self._seed = space, seed
        self._num_candidates, self._num_selected = num_candidates, num_selected
        self._rules = _rules(num_candidates, num_selected)
        self._all = _AllMeans()
        self._kept: dict[tuple[str, str], _KeptMeans] = {}

    def candidates(self) -> Candidates:
        """All candidates so far."""
        return Candidates(self._space, *_values(self._all))

    def choices(self) -> list[Choice]:
        """What was kept of them so far, by way and rule."""
        kept = [Choice(self._space, *key, *_values(one)) for key, one in self._kept.items()]
        return [*(self._by_chance(n) for n, m in METHODS.items() if not m.needs_probs), *kept]

    def _by_chance(self, rule: str) -> Choice:
        """The mean over all choices: a pair of candidates is in each as often as any other."""
        every = self.candidates()
        factor = kept_by_chance(self._num_candidates, self._num_selected)
        diversities = (factor * every.diversity, factor * every.batch_diversity)
        return Choice(self._space, JUDGE, rule, *diversities, every.accuracy, 1.0, 1.0)

    def add(self, probs: Mapping[str, Tensor], labels: Tensor, rows: Tensor) -> None:
        """Add a batch.

        Args:
            probs: way → its predictions `[B,E,D]`, of the same candidates.
            labels: int64 `[B]`.
            rows: int64 `[B]`, the samples' numbers.
        """
        judged = probs[JUDGE]
        right = (judged.argmax(-1) == labels[:, None]).to(torch.float32)
        self._add_all(probs, right)
        for rule in self._rules:
            same = self._choose(judged, rule, rows)
            for way in WAYS:
                chosen = self._choose(probs[way], rule, rows)
                means = self._kept.setdefault((way, rule), _KeptMeans())
                _add_kept(means, probs, right, chosen)
                means.agreement.update(_shared(chosen, same))
                if len(rows) > 1:
                    others = self._choose(probs[way].roll(1, 0), rule, rows)
                    means.unrelated.update(_shared(others, same))

    def _add_all(self, probs: Mapping[str, Tensor], right: Tensor) -> None:
        best = largest_diversity(probs[JUDGE], self._num_selected)
        self._all.diversity.update(variance_diversity(probs[JUDGE]))
        self._all.batch_diversity.update(variance_diversity(probs[BATCH]))
        self._all.best.update(best)
        self._all.accuracy.update(right)
        settled = (best < SETTLED).to(best.dtype)
        self._all.settled.update(torch.where(best.isnan(), best, settled))

    def _choose(self, probs: Tensor, rule: str, rows: Tensor) -> Tensor:
        return select(probs, self._num_selected, rule, self._seed, index=rows)


def _rules(num_candidates: int, num_selected: int) -> list[str]:
    """The rules that ask and can do with so many candidates."""
    found = []
    for name, rule in METHODS.items():
        if not rule.needs_probs:
            continue
        try:
            rule.check(num_candidates, num_selected)
        except ValueError:
            continue
        found.append(name)
    return found


def _add_kept(
    means: _KeptMeans, probs: Mapping[str, Tensor], right: Tensor, chosen: Tensor
) -> None:
    for mean, judge in ((means.diversity, JUDGE), (means.batch_diversity, BATCH)):
        mean.update(variance_diversity(probs[judge].take_along_dim(chosen[..., None], 1)))
    means.accuracy.update(right.take_along_dim(chosen, 1))


def _shared(chosen: Tensor, others: Tensor) -> Tensor:
    """Which of the kept are among others, `[B,S]`."""
    return (chosen[:, :, None] == others[:, None]).any(-1).to(torch.float32)
