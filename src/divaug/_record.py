"""The record of an augmenter: counts of operations and mean diversity, summed on the device."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from divaug._diversity import largest_diversity, spread
from divaug._subpolicies import SubPolicies

__all__ = ["Record", "Sums"]


# In the order of `Sums._totals`.
_TOTALS = ("applied", "drawn", "probability", "diversity", "images")


@dataclass(frozen=True)
class Record:
    """Summary of the views kept since the last reset.

    Args:
        images: originals seen.
        operations: operation → number of kept sub-policies that applied it.
        drawn: operation → number of kept sub-policies that held it, applied or not.
        probability: operation → mean probability in kept sub-policies; NaN without any.
        diversity_kept: mean Variance Diversity of the kept candidates; NaN where the method does
            not use the model, or a prediction was not finite.
        diversity_all: mean Variance Diversity of all candidates; NaN as above.
        diversity_best: mean of the largest Variance Diversity of any S candidates; NaN as above,
            and where there are too many subsets to try.
    """

    images: int
    operations: dict[str, int]
    drawn: dict[str, int]
    probability: dict[str, float]
    diversity_kept: float
    diversity_all: float
    diversity_best: float


@dataclass
class Sums:
    """Totals on the device, so that a record needs no synchronisation.

    They are only ever changed in place: a CUDA graph that adds to them stays valid after a reset.
    """

    names: list[str]
    applied: Tensor
    drawn: Tensor
    probability: Tensor
    diversity: Tensor  # of the kept, of all, of the best choice
    images: Tensor
    asked: bool = False  # whether a model's predictions were ever added

    @staticmethod
    def zeros(names: list[str], device: torch.device) -> "Sums":
        """Return totals of 0."""
        counts = torch.zeros(len(names), dtype=torch.int64, device=device)
        total = torch.zeros(len(names), dtype=torch.float64, device=device)
        images = torch.zeros((), dtype=torch.int64, device=device)
        return Sums(names, counts, counts.clone(), total, total.new_zeros(3), images)

    @staticmethod
    def from_state(state: Mapping[str, Any]) -> "Sums":
        """Totals from what `state` gave, on the CPU.

        Raises:
            ValueError: it is no such state, or there are more or fewer numbers than totals.
        """
        wanted = {"names", "asked", *_TOTALS}
        if not isinstance(state, Mapping) or not wanted <= set(state):
            held = sorted(map(str, state)) if isinstance(state, Mapping) else repr(state)
            raise ValueError(
                f"the state of a record must hold {sorted(wanted)}, got {held}; give what "
                "`record_state` returned."
            )
        sums = Sums.zeros(list(state["names"]), torch.device("cpu"))
        sums.asked = bool(state["asked"])
        for name, total in zip(_TOTALS, sums._totals(), strict=True):
            found = torch.tensor(state[name], dtype=total.dtype, device="cpu")
            if found.shape != total.shape:
                raise ValueError(
                    f"`{name}` of the record must hold {total.numel()} numbers, got "
                    f"{found.numel()}: another release wrote it."
                )
            total.copy_(found)
        return sums

    def state(self) -> dict[str, Any]:
        """The totals as JSON can hold them; waits for the device."""
        return {
            "names": self.names,
            **{name: t.tolist() for name, t in zip(_TOTALS, self._totals(), strict=True)},
            "asked": self.asked,
        }

    def to(self, device: torch.device) -> "Sums":
        """The same totals on a device."""
        applied, drawn, probability, diversity, images = (t.to(device) for t in self._totals())
        return Sums(self.names, applied, drawn, probability, diversity, images, self.asked)

    def copy_(self, other: "Sums") -> None:
        """Take over the totals of others with the same names, in place."""
        other.check_names(self.names)
        for mine, theirs in zip(self._totals(), other._totals(), strict=True):
            mine.copy_(theirs)
        self.asked = other.asked

    def check_names(self, names: list[str]) -> None:
        """Refuse to count the operations of an augmenter that has others.

        Raises:
            ValueError: the names are not those that are counted here.
        """
        if self.names != names:
            mine = [name for name in self.names if name not in names] or self.names
            theirs = [name for name in names if name not in self.names] or names
            raise ValueError(
                "the record must be of the same operations: it has "
                f"{', '.join(mine)} and this augmenter {', '.join(theirs)} (of "
                f"{len(self.names)} and {len(names)}); give the record of this augmenter."
            )

    def _totals(self) -> tuple[Tensor, ...]:
        return (self.applied, self.drawn, self.probability, self.diversity, self.images)

    def add(self, subpolicies: SubPolicies, chosen: Tensor | None = None) -> None:
        """Count the operations of sub-policies `[B,E,K]`, or of the `chosen` [B,S] among them."""

        def kept(tensor: Tensor) -> Tensor:
            if chosen is not None:
                tensor = tensor.take_along_dim(chosen[..., None], 1)
            return tensor.flatten()

        operation = kept(subpolicies.operation).to(torch.int64)
        real = (operation >= 0).to(torch.int64)
        at = operation.clamp(min=0)
        self.drawn.scatter_add_(0, at, real)
        self.applied.scatter_add_(0, at, real * kept(subpolicies.applied))
        self.probability.scatter_add_(0, at, real * kept(subpolicies.probability).double())
        self.images += len(subpolicies)

    def add_diversity(self, probs: Tensor, chosen: Tensor) -> None:
        """Add the diversity of the chosen `[B,S]`, of all `[B,E,D]`, and of the best choice."""
        self.asked = True
        of_kept = spread(probs.take_along_dim(chosen[..., None], 1))
        of_best = largest_diversity(probs, chosen.shape[1])
        of_all = spread(probs)
        self.diversity += torch.stack([d.double().sum() for d in (of_kept, of_all, of_best)])

    def reset(self) -> None:
        """Forget everything, in place."""
        for total in self._totals():
            total.zero_()

    def to_record(self) -> Record:
        """The totals as numbers; waits for the device."""
        drawn, applied = self.drawn.tolist(), self.applied.tolist()
        mean = (self.probability / self.drawn).tolist()
        images = int(self.images)
        diversity = self.diversity if self.asked else torch.full((3,), torch.nan, device="cpu")
        diversities = (diversity / max(images, 1)).tolist()
        return Record(
            images,
            dict(zip(self.names, applied, strict=True)),
            dict(zip(self.names, drawn, strict=True)),
            dict(zip(self.names, mean, strict=True)),
            *diversities,
        )
