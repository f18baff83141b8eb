"""Selection one image at a time, in plain Python: the oracle of `select`.

Probabilities are whole multiples of 2**-26, as the library documents, so that squared distances are
exact; everything else is Algorithm 2 of the paper, word for word.
"""

import itertools
import math
from fractions import Fraction

import numpy as np

from tests.reference import philox_python

SELECTION = 4  # the purpose of these words
LARGEST_SUM = Fraction(17, 16)  # a vector that sums to more is no probability vector


def _points(probs):
    """One list of whole numbers per candidate; None where it is no probability vector."""
    points = []
    for vector in np.asarray(probs, dtype=np.float32):
        if not all(math.isfinite(p) for p in vector.tolist()):
            points.append(None)
            continue
        whole = [math.floor(min(max(p, 0.0), 1.0) * 2**26) for p in vector.tolist()]
        points.append(whole if Fraction(sum(whole), 2**26) <= LARGEST_SUM else None)
    return points


def _distance(first, second):
    if first is None or second is None:
        return None
    return sum((a - b) ** 2 for a, b in zip(first, second, strict=True))


def _weights(points, chosen):
    """Squared distance to the nearest chosen point, 0 for the chosen and the broken ones."""
    weights = []
    for i, point in enumerate(points):
        known = [d for c in chosen if (d := _distance(point, points[c])) is not None]
        weights.append(min(known) if known and i not in chosen else 0)
    return weights


def _pick(weights, word):
    point = word * sum(weights) // 2**32
    for i, bound in enumerate(itertools.accumulate(weights)):
        if point < bound:
            return i
    raise AssertionError("a word is below 2**32, so the point is below the sum")


def _farthest(weights, _word):
    return weights.index(max(weights))


def _uniform(count, chosen):
    return [int(i not in chosen) for i in range(count)]


def _choose(probs, S, seed, step, sample, rule):
    points, chosen = _points(probs), []
    for turn in range(S):
        word = philox_python.words(seed, step, sample, 0, turn, SELECTION)[0]
        weights = _weights(points, chosen)
        if sum(weights) == 0:  # nothing is at any distance: uniform among those not yet chosen
            chosen.append(_pick(_uniform(len(points), chosen), word))
        else:
            chosen.append(rule(weights, word))
    return chosen


def kmeans_plus_plus(probs, S, seed, step, sample):
    """Algorithm 2: the first uniform, each next one by squared distance."""
    return _choose(probs, S, seed, step, sample, _pick)


def greedy(probs, S, seed, step, sample):
    """The first uniform, each next one the farthest."""
    return _choose(probs, S, seed, step, sample, _farthest)


def uniform(probs, S, seed, step, sample):
    """S without replacement, whatever the probabilities."""
    chosen = []
    for turn in range(S):
        word = philox_python.words(seed, step, sample, 0, turn, SELECTION)[0]
        chosen.append(_pick(_uniform(len(probs), chosen), word))
    return chosen


LOOPS = {"kmeans++": kmeans_plus_plus, "greedy": greedy, "uniform": uniform}


def distribution(probs, S):
    """The exact chance of every ordered choice of k-means++, by enumeration."""
    points = _points(probs)
    chances = {(): Fraction(1)}
    for _ in range(S):
        longer = {}
        for chosen, chance in chances.items():
            weights = _weights(points, chosen)
            if sum(weights) == 0:
                weights = _uniform(len(points), chosen)
            for i, weight in enumerate(weights):
                if weight:
                    longer[(*chosen, i)] = chance * Fraction(weight, sum(weights))
        chances = longer
    return {chosen: float(chance) for chosen, chance in chances.items()}


def variance_diversity(probs):
    """Equation 4 in float64."""
    vectors = np.asarray(probs, dtype=np.float64)
    centre = vectors.mean(0)
    return sum(float(((v - centre) ** 2).sum()) for v in vectors) / len(vectors)


def best_subset(probs, S):
    """The largest Variance Diversity of any S of the candidates."""
    subsets = itertools.combinations(range(len(probs)), S)
    return max(variance_diversity([probs[i] for i in subset]) for subset in subsets)
