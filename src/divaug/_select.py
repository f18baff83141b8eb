"""`select`: keep the S candidates whose predictions lie far apart (Algorithms 1 and 2).

Distances are integers. Probabilities are rounded to multiples of 2**-26, so that a squared
distance is an exact sum of exact squares, in any order, on any device: the same probabilities and
the same seed give the same choice on a CPU, on a GPU and in a kernel.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from divaug import kernels
from divaug._checks import outside_graphs, whole
from divaug._names import unknown_name
from divaug._products import LARGEST_SUM, products_and_sums
from divaug._random import Purpose, Stream, check_index, check_seed, check_step

__all__ = [
    "MAX_CANDIDATES",
    "MAX_SUBSETS",
    "METHODS",
    "Method",
    "select",
    "squared_distances",
]

#: The most candidates that are chosen from.
MAX_CANDIDATES = 64
#: The most subsets that are tried one by one.
MAX_SUBSETS = 20_000


def squared_distances(probs: Tensor) -> tuple[Tensor, Tensor]:
    """Squared distances `[B,E,E]` in units of 2**-52, and which of them are finite."""
    distance, usable = _distances(torch, products_and_sums(probs))
    return distance.permute(2, 0, 1), usable.permute(2, 0, 1)


# Below, arrays have their images on the last axis, [E,B], where both libraries are fast: the other
# axes are short.


def _distances(xp: Any, products: Any) -> tuple[Any, Any]:
    """Squared distances `[E,E,B]` from products `[E,E+1,B]`, and which are finite."""
    probable = products[:, -1] <= LARGEST_SUM
    # |a − b|² = a·a + b·b − 2·a·b, each product exact in whatever order its sum is taken. What is
    # not a number becomes an arbitrary one: it is not usable.
    with np.errstate(invalid="ignore"):
        whole = {"dtype": xp.int64, "copy": True, "device": products.device}
        dot = xp.asarray(products[:, :-1], **whole)
    # A view: places in a tensor of their own would have to be brought to the device.
    square = dot.diagonal(0, 0, 1).T
    distance = square[:, None] + square[None] - 2 * dot
    return distance, probable[:, None] & probable[None]


def _pick(weight: Any, word: Any) -> Any:
    """Draw j `[B]` with probability proportional to the integers `weight` [E,B]."""
    total = weight.cumsum(0)
    last = total[-1]
    # floor(word · total / 2**32) without leaving 64 bits: split the total at bit 32.
    high, low = last >> 32, last & 0xFFFFFFFF
    point = word * high + (((word * low) >> 32) & 0xFFFFFFFF)
    return (total <= point).sum(0).clip(max=len(weight) - 1)


def _distance_weight(_xp: Any, nearest: Any) -> Any:
    return nearest


def _farthest_weight(xp: Any, nearest: Any) -> Any:
    position = xp.arange(len(nearest), device=nearest.device)
    return xp.where(position[:, None] == nearest.argmax(0), nearest, 0)


def _uniform(xp: Any, probs: Tensor, S: int, words: Any) -> Any:
    """Choose S candidates at random, without replacement."""
    free = xp.ones((probs.shape[1], len(probs)), dtype=xp.int64, device=words.device)
    position = xp.arange(len(free), device=words.device)[:, None]
    chosen = []
    for t in range(S):
        chosen.append(_pick(free, words[t]))
        free = free * (position != chosen[-1])
    return xp.stack(chosen, 1)


def _seeding(xp: Any, probs: Tensor, S: int, words: Any, weigh: Callable[[Any, Any], Any]) -> Any:
    """Algorithm 2: the first centre uniform, each next one drawn by `weigh`."""
    distance, usable = _distances(xp, _arrays(xp, products_and_sums(probs)))
    far = int(xp.iinfo(xp.int64).max)
    flat = xp.where(usable, distance, far).reshape(-1)
    free = xp.ones(tuple(distance.shape[1:]), dtype=xp.int64, device=words.device)
    position = xp.arange(len(free), device=words.device)[:, None]
    place = xp.arange(len(free) * free.shape[1], device=words.device)
    chosen = [_pick(free, words[0])]
    nearest = xp.full_like(free, far)  # E_t²(x): squared distance to the nearest centre so far
    for t in range(1, S):
        others = position != chosen[-1]
        free = free * others
        # Row c of the distances, c another one for each image.
        nearest = xp.minimum(nearest, flat[chosen[-1] * len(place) + place.reshape(free.shape)])
        # A centre is at no distance from itself, so it is never chosen again.
        nearest = nearest * others
        weight = weigh(xp, xp.where(nearest == far, 0, nearest))
        # Nothing left is at any distance (or finite): uniform among those not yet chosen.
        none = weight.sum(0) == 0
        chosen.append(_pick(xp.where(none, free, weight), words[t]))
    return xp.stack(chosen, 1)


def _kmeanspp(xp: Any, probs: Tensor, S: int, words: Any) -> Any:
    return _seeding(xp, probs, S, words, _distance_weight)


def _greedy(xp: Any, probs: Tensor, S: int, words: Any) -> Any:
    return _seeding(xp, probs, S, words, _farthest_weight)


@lru_cache(maxsize=32)
def _subsets(E: int, S: int, device: torch.device) -> Tensor:
    return torch.tensor(list(itertools.combinations(range(E), S)), device=device)


def _check_subsets(E: int, S: int) -> None:
    """Refuse more subsets than can be tried one by one."""
    if math.comb(E, S) > MAX_SUBSETS:
        raise ValueError(
            f'method="exact" would try {math.comb(E, S):,} subsets for E={E}, S={S}, more than '
            f'{MAX_SUBSETS:,}; use "kmeans++" or "greedy", or a smaller E.'
        )


def _exact(_xp: Any, probs: Tensor, S: int, _words: Any) -> Any:
    """Return the subset of largest Variance Diversity; the first of equal ones."""
    distance, usable = squared_distances(probs)
    # Room for the sum over all pairs; for few of them there is enough.
    largest = math.comb(S, 2) * 2 * LARGEST_SUM**2
    distance = torch.where(usable, distance, 0) >> max(0, largest.bit_length() - 63)
    subsets = _subsets(probs.shape[1], S, probs.device)
    total = torch.zeros((len(probs), len(subsets)), dtype=torch.int64, device=probs.device)
    for i, j in itertools.combinations(range(S), 2):
        total += distance[:, subsets[:, i], subsets[:, j]]
    return subsets[total.argmax(1)]


#: (NumPy or torch, probabilities `[B,E,D]`, S, random words `[S,B]` of it) → indices `[B,S]`.
#: Rules by losses would take them as a further argument, which `select` and `DivAug` hand on.
Rule: TypeAlias = Callable[[Any, Tensor, int, Any], Any]


@dataclass(frozen=True)
class Method:
    """A rule of selection.

    Args:
        run: the rule.
        needs_probs: whether it looks at the probabilities; else the model is not called.
        kernel: the number of the same rule in the selection kernel; None where it has none.
        check: refuses an E and an S that are too much for the rule.
    """

    run: Rule
    needs_probs: bool = True
    kernel: int | None = None
    check: Callable[[int, int], None] = lambda _E, _S: None


METHODS: dict[str, Method] = {
    "kmeans++": Method(_kmeanspp, kernel=0),
    "uniform": Method(_uniform, needs_probs=False, kernel=1),
    "greedy": Method(_greedy, kernel=2),
    "exact": Method(_exact, check=_check_subsets),
}
"""Name → rule. A new rule is a function and a row here."""


@outside_graphs
def select(
    probs: Tensor,
    num_selected: int = 4,
    method: str = "kmeans++",
    seed: int = 0,
    *,
    step: int | Tensor = 0,
    index: Tensor | None = None,
    backend: str | None = None,
) -> Tensor:
    """Choose S of E candidates for every image.

    Args:
        probs: `[B,E,D]`, the probability vectors of the candidates, not logits: take
            `logits.softmax(-1)`. Values are not checked, which would synchronise. Numbers below 0
            count as 0 and those above 1 as 1. A vector that is not finite, or whose entries then
            sum to more than 1.0625, has distance 0 from all others.
        num_selected: S, candidates kept of each image; at most E.
        method: "kmeans++" (the paper's), "uniform" (the random baseline, without replacement),
            "greedy" (always the farthest) or "exact" (the subset of largest Variance Diversity).
        seed: determines the draws, with `step` and `index`.
        step: the step or epoch; an int, or an integer tensor on the device. Without it every
            call draws the same.
        index: int64 `[B]`, the samples' indices; None for 0 to B − 1.
        backend: "torch" or "triton" to force one; None to choose.

    Returns:
        int64 `[B,S]`, distinct indices in the order of choice. Where all remaining distances are
        zero or not finite, the choice among the rest is uniform; "exact" takes the first of equal
        subsets.

    Example:
        >>> probs = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
        >>> sorted(select(probs, num_selected=2, method="exact")[0].tolist())
        [0, 2]
    """
    num_selected = _check(probs, num_selected)
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(unknown_name("method", method, tuple(METHODS)))
    rule = METHODS[method]
    rule.check(probs.shape[1], num_selected)
    when = check_step(step, probs.device)
    stream = Stream(check_seed(seed), when, check_index(index, len(probs), probs.device))
    lacking = f'method="{method}" has no kernel' if rule.kernel is None else None
    if kernels.use_triton(backend, probs.device, lacking):
        from divaug.kernels.select import select_kernel

        return select_kernel(probs, num_selected, rule.kernel or 0, stream)
    # The same lines run in either library: many small steps cost NumPy a fraction of torch's time.
    xp = np if probs.device.type == "cpu" else torch
    words = stream.words(Purpose.SELECTION, 1, num_selected)[0][:, 0]
    chosen = rule.run(xp, probs, num_selected, _arrays(xp, words.T))
    return torch.as_tensor(chosen, device=probs.device)


def _arrays(xp: Any, tensor: Tensor) -> Any:
    """Return a tensor as an array of the library; the memory is shared."""
    return tensor.numpy() if xp is np else tensor


def _check(probs: Tensor, num_selected: object) -> int:
    """Return S; check it and the probabilities, but for their values."""
    if not isinstance(probs, Tensor) or probs.ndim != 3:
        shape = tuple(probs.shape) if isinstance(probs, Tensor) else type(probs).__name__
        raise ValueError(f"`probs` must have three axes [B,E,D], got {shape}.")
    if not probs.is_floating_point():
        raise TypeError(f"`probs` must hold floats, got {probs.dtype}.")
    _, E, D = probs.shape
    if D < 2:
        raise ValueError(f"`probs` must have at least two classes on its last axis, got D={D}.")
    if not 1 <= E <= MAX_CANDIDATES:
        raise ValueError(f"`probs` must have 1 to {MAX_CANDIDATES} candidates, got E={E}.")
    S = whole(num_selected)
    if S is None:
        raise TypeError(f"`num_selected` must be an int, got {type(num_selected).__name__}.")
    if not 1 <= S <= E:
        raise ValueError(
            f"`num_selected` must lie in [1, E={E}], got {S}; draw more candidates or keep fewer."
        )
    return S
