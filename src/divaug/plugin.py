"""`DivAug`: expand, score and select in one call, for anybody's training loop."""

import torch
from torch import Tensor, nn

from divaug.checks import check_whole
from divaug.compilation import outside_graphs
from divaug.default_augmentation import DefaultAugmentation
from divaug.expansion import check_dtype
from divaug.names import unknown_name
from divaug.policies import Policy, Uniform
from divaug.policies.base import check_policy
from divaug.records import Record
from divaug.scoring import check_model, dtype_of, score
from divaug.selection import MAX_CANDIDATES, METHODS, select
from divaug.source import Source, repeat_labels
from divaug.sourced import Sourced

__all__ = ["DivAug", "Record"]


class DivAug(Sourced):
    """Augmentation that follows the model.

    For each image it draws E sub-policies, asks the model for its predictions, keeps the S
    candidates whose predictions lie far apart, and repeats the label S times. While it asks, no
    other thread may use the model; see `score`.

    Args:
        model: the network being trained, or any other; returns logits.
        num_candidates: E, how many candidates are made of each image; at most 64.
        num_selected: S, how many of them are kept; at most E.
        policy: what sub-policies are drawn from; None for the universal set.
        default: the default augmentation; None for bytes scaled to [0, 1].
        method: the rule of selection, see `select`.
        seed: decides every draw, together with the step and the samples' numbers.
        pool: uint8 `[N,C,H,W]` originals that SamplePairing draws from, row i the sample of
            number i, which is not paired with itself; None for the batch. Give it when several
            processes share the work, so that partners do not depend on the batch.
        dtype: of the images, those that the model is asked about and those returned; None for the
            model's. Put a teacher of lower precision into a module whose forward converts them.
        channels_last: whether to return images with their channels last.
        chunk_size: most candidates scored in one forward pass.
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
        check_policy(policy)
        check_dtype(dtype)
        self.model = model
        self._num_selected = num_selected
        self._method = method
        self.dtype = dtype
        self.chunk_size = None if chunk_size is None else check_whole("chunk_size", chunk_size, 1)
        self.source = Source(
            policy or Uniform(),
            default,
            num_candidates,
            seed=seed,
            pool=pool,
            channels_last=channels_last,
            backend=backend,
        )

    def __repr__(self) -> str:
        source = self.source
        return (
            f"DivAug({type(self.model).__name__}, num_candidates={source.num_candidates}, "
            f"num_selected={self.num_selected}, policy={source.policy}, default={source.default}, "
            f"method={self.method!r}, seed={source.seed})"
        )

    @property
    def num_selected(self) -> int:
        """S, how many candidates are kept; may be set between calls, to no more than there are."""
        return self._num_selected

    @num_selected.setter
    def num_selected(self, value: int) -> None:
        E, S = _counts(self.source.num_candidates, value)
        _check_method(self._method, E, S)
        self._num_selected = S

    @property
    def method(self) -> str:
        """The rule of selection; may be set between calls."""
        return self._method

    @method.setter
    def method(self, value: str) -> None:
        _check_method(value, self.source.num_candidates, self._num_selected)
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
        """Augment a batch.

        Args:
            images: uint8 `[B,C,H,W]`.
            labels: hard `[B]`, soft `[B,D]`, or None; never changed, only repeated.
            index: int64 `[B]`, the samples' numbers in their dataset: with it a sample's
                augmentation depends neither on its place in the batch nor on the number of
                processes.
            epoch: for policies that follow a schedule.

        Returns:
            Images `[B·S,C,H,W]` and labels `[B·S,…]`, image-major: the S views of the first image,
            then those of the second.
        """
        repeated = repeat_labels(labels, images, self.num_selected)
        dtype = self.dtype or dtype_of(self.model)
        candidates, subpolicies = self.source.candidates(images, index, epoch, dtype)
        rule, probs = METHODS[self.method], None
        if rule.needs_probs and len(images):
            probs = score(self.model, candidates, chunk_size=self.chunk_size)
        chosen = select(
            _nobody_asked(candidates) if probs is None else probs,
            self.num_selected,
            self.method,
            self.source.seed,
            step=self.source.step,
            index=index,
            backend=self.source.backend if rule.kernel is not None else None,
        )
        self.source.finish(images, index, subpolicies, chosen, probs)
        return _take(candidates, chosen, self.source.channels_last), repeated


def _counts(num_candidates: object, num_selected: object) -> tuple[int, int]:
    """E and S, refused where they are none."""
    E = check_whole("num_candidates", num_candidates, 1, MAX_CANDIDATES)
    S = check_whole("num_selected", num_selected, 1)
    if S > E:
        raise ValueError(
            f"`num_selected` must lie in [1, num_candidates={E}], got {S}; draw more candidates or "
            "keep fewer."
        )
    return E, S


def _check_method(method: object, num_candidates: int, num_selected: int) -> None:
    """Refuse what is no rule of selection, and one that would have too much to try."""
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(unknown_name("method", method, tuple(METHODS)))
    METHODS[method].check(num_candidates, num_selected)


def _nobody_asked(candidates: Tensor) -> Tensor:
    """Predictions for a rule that does not look at them."""
    shape = (*candidates.shape[:2], 2)
    return torch.full(shape, 0.5, dtype=torch.float32, device=candidates.device)


def _take(candidates: Tensor, chosen: Tensor, channels_last: bool) -> Tensor:
    B, E = candidates.shape[:2]
    row = torch.arange(B, device=chosen.device)[:, None] * E + chosen
    kept = candidates.flatten(0, 1)[row.flatten()]
    return kept.contiguous(memory_format=torch.channels_last) if channels_last else kept
