"""The augmenters: `DivAug` scores candidates and selects, `Views` draws from a policy alone."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from divaug._base import Augmenter, Expansion, repeat_labels
from divaug._checks import check_whole, outside_graphs
from divaug._names import unknown_name
from divaug._score import check_model, dtype_of, score
from divaug._select import MAX_CANDIDATES, METHODS, select
from divaug._subpolicies import SubPolicies
from divaug.default_augmentation import DefaultAugmentation
from divaug.policies import Identity, Policy, Uniform

__all__ = ["DivAug", "Explanation", "Views"]


@dataclass(frozen=True, eq=False)
class Explanation:
    """The candidates of a batch and the choice among them.

    Args:
        candidates: `[B,E,C,H,W]`, finished.
        subpolicies: `[B,E,K]`, the draws behind them.
        probs: float32 `[B,E,D]`, the model's predictions.
        chosen: int64 `[B,S]`, the candidates kept, in the order of choice.
    """

    candidates: Tensor
    subpolicies: SubPolicies
    probs: Tensor
    chosen: Tensor


class DivAug(Augmenter):
    """Augmentation chosen by the model's predictions.

    Each image becomes E candidates. The model scores them, the S whose predictions lie far apart
    are kept, and the label is repeated S times. While it scores, no other thread may use the model.

    Args:
        model: the network being trained, or another one; must return logits.
        num_candidates: E, candidates of each image; at most 64.
        num_selected: S, candidates kept; at most E.
        policy: distribution of sub-policies; None for the universal set.
        default: the default augmentation; None for bytes scaled to [0, 1].
        method: rule of selection, see `select`.
        seed: determines every draw, with the step and the samples' indices.
        pool: uint8 `[N,C,H,W]` originals that SamplePairing draws from, row i the sample of
            number i, which is not paired with itself; None for the batch. Give it when several
            processes share the work, so that partners do not depend on the batch.
        dtype: of the images, scored and returned; None for the model's. Wrap a teacher of lower
            precision in a module whose forward converts them.
        channels_last: whether to return images with their channels last.
        chunk_size: maximum number of candidates in one forward pass.
        backend: "torch" or "triton" to force one; None to choose.

    Example:
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10))
        >>> augment = DivAug(model, num_candidates=8, num_selected=4)
        >>> images = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
        >>> images, labels = augment(images, torch.tensor([3, 7]))
        >>> images.shape, labels.tolist()
        (torch.Size([8, 3, 32, 32]), [3, 3, 3, 3, 7, 7, 7, 7])
    """

    def __init__(
        self,
        model: nn.Module,
        num_candidates: int = 8,
        num_selected: int = 4,
        *,
        policy: Policy | None = None,
        default: DefaultAugmentation | None = None,
        method: str = "kmeans++",
        seed: int = 0,
        pool: Tensor | None = None,
        dtype: torch.dtype | None = None,
        channels_last: bool = False,
        chunk_size: int | None = None,
        backend: str | None = None,
    ) -> None:
        check_model(model)
        num_candidates, num_selected = _counts(num_candidates, num_selected)
        _check_method(method, num_candidates, num_selected)
        drawn_from = Uniform() if policy is None else policy
        super().__init__(
            Expansion(
                drawn_from, default, num_candidates, pool, dtype, channels_last, backend, seed
            )
        )
        self.model = model
        self._num_selected = num_selected
        self._method = method
        self.chunk_size = None if chunk_size is None else check_whole("chunk_size", chunk_size, 1)

    def __repr__(self) -> str:
        drawn = self.expansion
        return (
            f"DivAug({type(self.model).__name__}, num_candidates={drawn.num_candidates}, "
            f"num_selected={self.num_selected}, policy={drawn.policy}, default={drawn.default}, "
            f"method={self.method!r}, seed={drawn.seed})"
        )

    @property
    def num_selected(self) -> int:
        """S, how many candidates are kept; may be set between calls, to no more than there are."""
        return self._num_selected

    @num_selected.setter
    def num_selected(self, value: int) -> None:
        E, S = _counts(self.expansion.num_candidates, value)
        _check_method(self._method, E, S)
        self._num_selected = S

    @property
    def method(self) -> str:
        """The rule of selection; may be set between calls."""
        return self._method

    @method.setter
    def method(self, value: str) -> None:
        _check_method(value, self.expansion.num_candidates, self._num_selected)
        self._method = value

    @property
    def views(self) -> int:
        """Images out for each image in: S."""
        return self.num_selected

    @outside_graphs
    def __call__(
        self,
        images: Tensor,
        labels: Tensor | None = None,
        *,
        index: Tensor | None = None,
        epoch: int | Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Augment a batch; see `Augmenter.__call__`."""
        repeated = repeat_labels(labels, images, self.num_selected)
        scoring = METHODS[self.method].needs_probs
        candidates, subpolicies, probs, chosen = self._choose(images, index, epoch, scoring)
        self._finish(images, subpolicies, chosen, probs)
        return _take(candidates, chosen, self.expansion.channels_last), repeated

    @outside_graphs
    def explain(
        self,
        images: Tensor,
        *,
        index: Tensor | None = None,
        epoch: int | Tensor | None = None,
    ) -> Explanation:
        """Show the choice that the next call makes of a batch, without counting a step.

        The model scores the candidates also where the rule of selection needs no predictions.

        Args:
            images: uint8 `[B,C,H,W]`, one or more.
            index: int64 `[B]`, the samples' numbers in their dataset.
            epoch: for policies that follow a schedule.
        """
        candidates, subpolicies, probs, chosen = self._choose(images, index, epoch, True)
        if probs is None:
            raise ValueError("`images` is empty: there is nothing to explain.")
        return Explanation(candidates, subpolicies, probs, chosen)

    def _choose(
        self, images: Tensor, index: Tensor | None, epoch: int | Tensor | None, scoring: bool
    ) -> tuple[Tensor, SubPolicies, Tensor | None, Tensor]:
        """Expand, score where wanted, and select; None for predictions that were not made."""
        dtype = dtype_of(self.model)
        candidates, subpolicies = self._candidates(images, index, epoch, dtype)
        probs = None
        if scoring and len(images):
            probs = score(self.model, candidates, chunk_size=self.chunk_size)
        chosen = select(
            _unscored(candidates) if probs is None else probs,
            self.num_selected,
            self.method,
            self.expansion.seed,
            step=self.step,
            index=index,
            backend=self.expansion.backend if METHODS[self.method].kernel is not None else None,
        )
        return candidates, subpolicies, probs, chosen


class Views(Augmenter):
    """One or more augmented views of every image, drawn from a policy without a model.

    Args:
        policy: distribution of sub-policies; None for the default augmentation alone.
        default: the default augmentation; see `DivAug`, also for the other arguments.
        num_views: views of each image.
        seed: see `DivAug`.
        pool: see `DivAug`.
        dtype: of the images returned; None for float32.
        channels_last: see `DivAug`.
        backend: see `DivAug`.

    Example:
        >>> from divaug import default_augmentation, policies
        >>> augment = Views(policies.TrivialAugment(), default_augmentation.cifar10(), num_views=2)
        >>> images, labels = augment(
        ...     torch.zeros(3, 3, 32, 32, dtype=torch.uint8), torch.tensor([4, 5, 6])
        ... )
        >>> images.shape, labels.tolist()
        (torch.Size([6, 3, 32, 32]), [4, 4, 5, 5, 6, 6])
    """

    def __init__(
        self,
        policy: Policy | None = None,
        default: DefaultAugmentation | None = None,
        num_views: int = 1,
        *,
        seed: int = 0,
        pool: Tensor | None = None,
        dtype: torch.dtype | None = None,
        channels_last: bool = False,
        backend: str | None = None,
    ) -> None:
        num_views = check_whole("num_views", num_views, 1)
        drawn_from = Identity() if policy is None else policy
        super().__init__(
            Expansion(drawn_from, default, num_views, pool, dtype, channels_last, backend, seed)
        )

    def __repr__(self) -> str:
        drawn = self.expansion
        return (
            f"Views(policy={drawn.policy}, default={drawn.default}, num_views={self.views}, "
            f"seed={drawn.seed})"
        )

    @property
    def views(self) -> int:
        """Images out for each image in."""
        return self.expansion.num_candidates

    @outside_graphs
    def __call__(
        self,
        images: Tensor,
        labels: Tensor | None = None,
        *,
        index: Tensor | None = None,
        epoch: int | Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Augment a batch; see `Augmenter.__call__`."""
        repeated = repeat_labels(labels, images, self.views)
        candidates, subpolicies = self._candidates(images, index, epoch, torch.float32)
        self._finish(images, subpolicies)
        return candidates.flatten(0, 1), repeated


def _counts(num_candidates: object, num_selected: object) -> tuple[int, int]:
    """Return E and S after checking them."""
    E = check_whole("num_candidates", num_candidates, 1, MAX_CANDIDATES)
    S = check_whole("num_selected", num_selected, 1)
    if S > E:
        raise ValueError(
            f"`num_selected` must lie in [1, num_candidates={E}], got {S}; draw more candidates or "
            "keep fewer."
        )
    return E, S


def _check_method(method: object, num_candidates: int, num_selected: int) -> None:
    """Refuse an unknown rule of selection, and one with too many subsets to try."""
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(unknown_name("method", method, tuple(METHODS)))
    METHODS[method].check(num_candidates, num_selected)


def _unscored(candidates: Tensor) -> Tensor:
    """Make predictions for a rule that needs none."""
    shape = (*candidates.shape[:2], 2)
    return torch.full(shape, 0.5, dtype=torch.float32, device=candidates.device)


def _take(candidates: Tensor, chosen: Tensor, channels_last: bool) -> Tensor:
    B, E = candidates.shape[:2]
    row = torch.arange(B, device=chosen.device)[:, None] * E + chosen
    kept = candidates.flatten(0, 1)[row.flatten()]
    return kept.contiguous(memory_format=torch.channels_last) if channels_last else kept
