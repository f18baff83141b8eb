"""The methods that are compared, in the order of the tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from divaug._names import unknown_name
from divaug.lab.recipes import Recipe

__all__ = [
    "FEW_LABELS_BASE",
    "METHODS",
    "ROTATIONS",
    "RULES",
    "SCORERS",
    "Method",
    "method",
    "place_of",
]


@dataclass(frozen=True)
class Method:
    """A way to augment, as tables name it.

    Args:
        augmenter: its name in `divaug.lab.methods`; a name of our own where we have none.
        label: what people read; `{S}` and `{E}` become the numbers of views and candidates.
        many: whether it trains on S views of an image.
        chooses: whether it keeps some of its candidates, so that what is kept says something.
        asks: whether the network scores the candidates.
    """

    augmenter: str
    label: str
    many: bool = False
    chooses: bool = False
    asks: bool = False

    def title(self, recipe: Recipe) -> str:
        """The label with the numbers of a recipe in it.

        Example:
            >>> from divaug.lab.recipes import recipe
            >>> METHODS["random"].title(recipe("cifar10-wide-resnet-40-2-random"))
            'random 4 of 8'
        """
        return self.label.format(S=recipe.num_selected, E=recipe.num_candidates)


def _rule(augmenter: str, label: str, *, asks: bool = True) -> Method:
    return Method(augmenter, label, many=True, chooses=True, asks=asks)


_ALL = (
    Method("none", "no augmentation"),
    Method("default", "default"),
    Method("autoaugment", "AutoAugment"),
    Method("fast-autoaugment", "Fast AutoAugment"),
    Method("pba", "PBA"),
    Method("randaugment", "RandAugment"),
    Method("trivialaugment", "TrivialAugment"),
    Method("randaugment-xS", "RandAugment, {S} views", many=True),
    Method("trivialaugment-xS", "TrivialAugment, {S} views", many=True),
    _rule("random", "random {S} of {E}", asks=False),
    _rule("divaug", "DivAug (k-means++)"),
    _rule("divaug-greedy", "DivAug, greedy"),
    _rule("divaug-exact", "DivAug, exact"),
)
METHODS: Mapping[str, Method] = MappingProxyType({one.augmenter: one for one in _ALL})
"""Augmenter → method, in the order of the tables."""

ROTATIONS: Mapping[str, Method] = MappingProxyType(
    {
        f"divaug-rotate-0.{i}": _rule(f"divaug-rotate-0.{i}", f"Rotate, p = 0.{i}")
        for i in range(1, 10)
    }
)
"""The single-operation case study: Rotate alone, by its probability."""

#: RandAugment of the authors' semi-supervised code: the other column of the paper's table with few
#: labels, and in no other table.
FEW_LABELS_BASE = Method("randaugment-uda", "RandAugment, authors' draw")

#: The four rules of selection, from none to the best possible.
RULES = ("random", "divaug", "divaug-greedy", "divaug-exact")

#: Networks that measure others: trained without any augmentation, and with the default one.
SCORERS = ("none", "default")


# Rules of selection have the colours that are told apart best; rotations stand in figures of their
# own.
_COMPARED = (*RULES, FEW_LABELS_BASE.augmenter, *(name for name in METHODS if name not in RULES))
_PLACES = {name: i for group in (_COMPARED, ROTATIONS) for i, name in enumerate(group)}
# The same with several views has the same colour, and the next shape: there are so many colours.
_NEXT_SHAPE = 6
_PLACES |= {f"{one}-xS": _PLACES[one] + _NEXT_SHAPE for one in ("randaugment", "trivialaugment")}


def place_of(augmenter: str) -> int:
    """The colour and shape of a method, the same in all figures.

    Example:
        >>> [place_of(name) for name in RULES]
        [0, 1, 2, 3]
    """
    return _PLACES[augmenter]


def method(augmenter: str) -> Method:
    """Look a method up.

    Raises:
        ValueError: an unknown name, with the nearest one.
    """
    known = {**METHODS, **ROTATIONS, FEW_LABELS_BASE.augmenter: FEW_LABELS_BASE}
    if augmenter not in known:
        raise ValueError(unknown_name("method", augmenter, tuple(known)))
    return known[augmenter]
