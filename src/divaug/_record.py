"""The record of an augmenter: counts of operations and mean diversity, summed on the device."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from divaug._diversity import largest_diversity, spread
from divaug._subpolicies import SubPolicies

__all__ = ["Record", "Sums"]


@dataclass(frozen=True)
class Record:
    """Summary of the views kept since the last reset.

    Args:
        images: originals seen.
        operations: operation → number of kept sub-policies that applied it.
        drawn: operation → number of kept sub-policies that held it, applied or not.
        probability: operation → mean probability in kept sub-policies; NaN without any.
        diversity_kept: mean Variance Diversity of the kept candidates; NaN where the method does
            not score, or a prediction was not finite.
        diversity_all: mean Variance Diversity of all candidates; NaN alike.
        diversity_best: mean of the largest that any choice of as many had had; NaN alike, and
            where there are too many choices to try.
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

    Args:
        names: the operations.
        totals: `applied`, `drawn` and `probability` of each operation, `diversity` of the kept, of
            all and of the best choice, and `images`.
        scored: whether a model's predictions were ever added.
    """

    names: list[str]
    totals: dict[str, Tensor]
    scored: bool = False

    @staticmethod
    def zeros(names: list[str], device: torch.device) -> "Sums":
        """Totals of nothing."""
        kinds = {
            "applied": ((len(names),), torch.int64),
            "drawn": ((len(names),), torch.int64),
            "probability": ((len(names),), torch.float64),
            "diversity": ((3,), torch.float64),
            "images": ((), torch.int64),
        }
        totals = {
            name: torch.zeros(shape, dtype=dtype, device=device)
            for name, (shape, dtype) in kinds.items()
        }
        return Sums(names, totals)

    @staticmethod
    def from_state(state: Mapping[str, Any]) -> "Sums":
        """Totals from what `state` gave, on the CPU."""
        wanted = {"names", "asked", "applied", "drawn", "probability", "diversity", "images"}
        if not isinstance(state, Mapping) or not wanted <= set(state):
            held = sorted(map(str, state)) if isinstance(state, Mapping) else repr(state)
            raise ValueError(
                f"the state of a record must hold {sorted(wanted)}, got {held}; give what "
                "`record_state` returned."
            )
        sums = Sums.zeros(list(state["names"]), torch.device("cpu"))
        sums.scored = bool(state["asked"])
        for name, total in sums.totals.items():
            found = torch.tensor(state[name], dtype=total.dtype, device="cpu")
            if found.shape != total.shape:
                raise ValueError(
                    f"`{name}` of the record must hold {total.numel()} numbers, got "
                    f"{found.numel()}: another release wrote it."
                )
            total.copy_(found)
        return sums

    def state(self) -> dict[str, Any]:
        """Return the totals as JSON can hold them; waits for the device."""
        totals = {name: total.tolist() for name, total in self.totals.items()}
        return {"names": self.names, **totals, "asked": self.scored}

    def to(self, device: torch.device) -> "Sums":
        """Return the same totals on a device."""
        totals = {name: total.to(device) for name, total in self.totals.items()}
        return Sums(self.names, totals, self.scored)

    def copy_(self, other: "Sums") -> None:
        """Take over the totals of others with the same names, in place."""
        other.check_names(self.names)
        for name, total in self.totals.items():
            total.copy_(other.totals[name])
        self.scored = other.scored

    def check_names(self, names: list[str]) -> None:
        """Refuse the operations of another augmenter."""
        if self.names != names:
            mine = [name for name in self.names if name not in names] or self.names
            theirs = [name for name in names if name not in self.names] or names
            raise ValueError(
                f"the record must be of the same operations: it has {', '.join(mine)} and this "
                f"augmenter {', '.join(theirs)} (of {len(self.names)} and {len(names)}); give the "
                "record of this augmenter."
            )

    def add(self, subpolicies: SubPolicies, chosen: Tensor | None = None) -> None:
        """Count the operations of sub-policies `[B,E,K]`, or of the `chosen` [B,S] among them."""

        def kept(tensor: Tensor) -> Tensor:
            if chosen is not None:
                tensor = tensor.take_along_dim(chosen[..., None], 1)
            return tensor.flatten()

        operation = kept(subpolicies.operation).to(torch.int64)
        real = (operation >= 0).to(torch.int64)
        at, totals = operation.clamp(min=0), self.totals
        totals["drawn"].scatter_add_(0, at, real)
        totals["applied"].scatter_add_(0, at, real * kept(subpolicies.applied))
        probability = kept(subpolicies.probability).double()
        totals["probability"].scatter_add_(0, at, real * probability)
        totals["images"] += len(subpolicies)

    def add_diversity(self, probs: Tensor, chosen: Tensor) -> None:
        """Add the diversity of the chosen `[B,S]`, of all `[B,E,D]`, and of the best choice."""
        self.scored = True
        of_kept = spread(probs.take_along_dim(chosen[..., None], 1))
        of_best = largest_diversity(probs, chosen.shape[1])
        parts = (of_kept, spread(probs), of_best)
        self.totals["diversity"] += torch.stack([part.double().sum() for part in parts])

    def reset(self) -> None:
        """Forget everything, in place."""
        for total in self.totals.values():
            total.zero_()

    def to_record(self) -> Record:
        """Return the totals as numbers; waits for the device."""
        state = self.state()
        images, drawn = state["images"], state["drawn"]
        shares = zip(state["probability"], drawn, strict=True)
        mean = [total / n if n else float("nan") for total, n in shares]
        diversity = [
            d / max(images, 1) if self.scored else float("nan") for d in state["diversity"]
        ]
        operations, held, probability = (
            dict(zip(self.names, values, strict=True)) for values in (state["applied"], drawn, mean)
        )
        return Record(images, operations, held, probability, *diversity)
