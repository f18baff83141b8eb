"""The order in which images are visited: a function of the seed, with no generator anywhere.

Every image index gets a 64-bit key, a bijective mix of (seed, epoch, index), and the order is the
order of the keys. The mix uses only wrapping integer arithmetic, so CPU and GPU agree to the bit;
it is a bijection of the index, so keys never tie and sorting leaves nothing to chance.
"""

import torch
from torch import Tensor

from divaug._checks import check_whole, whole

_MASK = (1 << 64) - 1
# Increment and multipliers of SplitMix64 (Steele, Lea and Flood, 2014); all odd, so each
# multiplication is a bijection of the 64-bit integers.
_GOLDEN = 0x9E3779B97F4A7C15
_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_SHIFTS = (30, 27, 31)

# What a permutation is for. Two purposes never share one even with the same seed.
VISIT, SUBSET, SPLIT, STATISTICS, PARTNERS = range(5)


def order(num_images: int, *, seed: int, epoch: int, device: torch.device | str = "cpu") -> Tensor:
    """Return the order in which an epoch visits the images.

    Stateless: the same arguments give the same order on every device and in every process, and
    no generator is read or advanced.

    Args:
        num_images: How many images there are.
        seed: Any integer.
        epoch: Any integer; another epoch has another order.
        device: Where to compute and leave the result.

    Returns:
        A permutation of ``0 … num_images − 1``, int64.

    Example:
        >>> order(6, seed=0, epoch=0).tolist()
        [0, 3, 4, 2, 1, 5]
        >>> order(6, seed=0, epoch=1).tolist()
        [5, 1, 3, 0, 4, 2]
    """
    return permutation(num_images, seed, epoch, VISIT, device=device)


def permutation(num: int, *key: int, device: torch.device | str = "cpu") -> Tensor:
    """Return the permutation of ``0 … num − 1`` that belongs to a key of integers."""
    count = check_whole("num_images", num, 0)
    start = 0
    for word in key:
        start = _mix(start ^ (_require_int(word) & _MASK))
    index = torch.arange(count, dtype=torch.int64, device=device)
    return torch.argsort(_mix_tensor(index * _signed(_GOLDEN) + _signed(start)), stable=True)


def _require_int(word: object) -> int:
    number = whole(word)
    if number is None:
        raise TypeError(f"`seed` and `epoch` must be ints, got {word!r}.")
    return number


def _mix(word: int) -> int:
    word = (word + _GOLDEN) & _MASK
    for shift, multiplier in zip(_SHIFTS, _MULTIPLIERS, strict=False):
        word = ((word ^ (word >> shift)) * multiplier) & _MASK
    return word ^ (word >> _SHIFTS[-1])


def _mix_tensor(words: Tensor) -> Tensor:
    for shift, multiplier in zip(_SHIFTS, _MULTIPLIERS, strict=False):
        words = (words ^ _logical_shift(words, shift)) * _signed(multiplier)
    return words ^ _logical_shift(words, _SHIFTS[-1])


def _logical_shift(words: Tensor, shift: int) -> Tensor:
    # int64 shifts copy the sign downwards; the mask puts the zeros back.
    return (words >> shift) & ((1 << (64 - shift)) - 1)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
