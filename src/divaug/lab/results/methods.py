"""The methods that are compared, in the order of the tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from divaug._names import unknown_name

__all__ = ["FEW_LABELS_BASE", "METHODS", "ROTATIONS", "RULES", "SCORERS", "Method", "method"]


@dataclass(frozen=True)
class Method:
    """An augmenter, as tables name it.

    Args:
        augmenter: its name in `divaug.lab.methods`.
        label: what people read; `{S}` and `{E}` become the numbers of views and candidates.
        place: its colour and shape, the same in all figures.
        many: whether it trains on S views of an image.
        asks: whether the network scores the candidates.
    """

    augmenter: str
    label: str
    place: int
    many: bool = False
    asks: bool = False


#: The four rules of selection, from none to the best possible.
RULES = ("random", "divaug", "divaug-greedy", "divaug-exact")

#: Networks that measure others: trained without any augmentation, and with the default one.
SCORERS = ("none", "default")

#: RandAugment of the authors' semi-supervised code: the other column of the paper's table with few
#: labels, and in no other table.
FEW_LABELS_BASE = "randaugment-uda"

# Rules of selection have the colours that are told apart best. A method with several views has the
# colour of the same with one view, and the next shape.
METHODS: Mapping[str, Method] = MappingProxyType(
    {
        one.augmenter: one
        for one in (
            Method("none", "no augmentation", 5),
            Method("default", "default", 6),
            Method("autoaugment", "AutoAugment", 7),
            Method("fast-autoaugment", "Fast AutoAugment", 8),
            Method("pba", "PBA", 9),
            Method("randaugment", "RandAugment", 10),
            Method("trivialaugment", "TrivialAugment", 11),
            Method("randaugment-xS", "RandAugment, {S} views", 16, many=True),
            Method("trivialaugment-xS", "TrivialAugment, {S} views", 17, many=True),
            Method("random", "random {S} of {E}", 0, many=True),
            Method("divaug", "DivAug (k-means++)", 1, many=True, asks=True),
            Method("divaug-greedy", "DivAug, greedy", 2, many=True, asks=True),
            Method("divaug-exact", "DivAug, exact", 3, many=True, asks=True),
        )
    }
)
"""Augmenter → method, in the order of the tables."""

ROTATIONS: Mapping[str, Method] = MappingProxyType(
    {
        f"divaug-rotate-0.{i}": Method(
            f"divaug-rotate-0.{i}", f"Rotate, p = 0.{i}", i - 1, many=True, asks=True
        )
        for i in range(1, 10)
    }
)
"""The single-operation case study: Rotate alone, by its probability."""

_KNOWN = {
    **METHODS,
    **ROTATIONS,
    FEW_LABELS_BASE: Method(FEW_LABELS_BASE, "RandAugment, authors' draw", 4),
}


def method(augmenter: str) -> Method:
    """Look a method up.

    Raises:
        ValueError: an unknown name, with the nearest one.
    """
    if augmenter not in _KNOWN:
        raise ValueError(unknown_name("method", augmenter, tuple(_KNOWN)))
    return _KNOWN[augmenter]
