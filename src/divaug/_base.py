"""The part that augmenters share: settings, the step, the record, and what the last call drew."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from divaug._checks import check_whole, outside_graphs
from divaug._expand import check_default, check_dtype, check_pool, expand
from divaug._follow import follow
from divaug._random import check_seed
from divaug._record import Record, Sums
from divaug._subpolicies import SubPolicies
from divaug.default_augmentation import DefaultAugmentation, plain
from divaug.kernels import check_backend
from divaug.operations.checks import check_images
from divaug.policies import Policy
from divaug.policies.base import check_policy

__all__ = ["Augmenter", "Expansion", "check_size", "repeat_labels"]

# Steps are counted in int64.
_LAST_STEP = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Expansion:
    """Settings of the candidates that an augmenter draws.

    Args:
        policy: what sub-policies are drawn from.
        default: the default augmentation; None for bytes scaled to [0, 1].
        num_candidates: candidates of each image.
        pool: uint8 `[N,C,H,W]` originals that SamplePairing draws from, row i the sample of
            number i; None for the batch.
        dtype: of the images; None for what the augmenter prefers.
        channels_last: whether candidates are stored with their channels last.
        backend: "torch" or "triton" to force one; None to choose.
        seed: decides every draw, together with the step and the samples' numbers.
    """

    policy: Policy
    default: DefaultAugmentation | None
    num_candidates: int
    pool: Tensor | None = field(repr=False)
    dtype: torch.dtype | None
    channels_last: bool
    backend: str | None
    seed: int

    def __post_init__(self) -> None:
        check_policy(self.policy)
        check_default(self.default)
        check_dtype(self.dtype)
        check_backend(self.backend)
        check_pool(self.pool)
        object.__setattr__(self, "seed", check_seed(self.seed))

    def candidates(
        self,
        images: Tensor,
        index: Tensor | None,
        step: Tensor,
        epoch: int | Tensor | None,
        dtype: torch.dtype,
    ) -> tuple[Tensor, SubPolicies]:
        """Draw and render candidates `[B,E,C,H,W]`, in `dtype` unless the settings name one."""
        return expand(
            images,
            self.num_candidates,
            self.policy,
            self.default or _scaled(images.shape[1]),
            self.seed,
            index,
            step=step,
            epoch=epoch,
            pool=self.pool,
            dtype=self.dtype or dtype,
            channels_last=self.channels_last,
            backend=self.backend,
        )


@lru_cache(maxsize=2)
def _scaled(channels: int) -> DefaultAugmentation:
    """Return bytes scaled to [0, 1]."""
    return plain((0.0,) * channels, (1.0,) * channels)


class Augmenter(ABC):
    """Interface and base of augmenters: callables from a batch to the images trained on.

    `DivAug` is one; `Views` serves every method that does not score. A training loop treats both
    alike.

    Args:
        expansion: the settings of the candidates; may be replaced between calls.
    """

    def __init__(self, expansion: Expansion) -> None:
        self.expansion = expansion
        # Counted on the device. A later call outside of inference mode adds to it.
        with torch.inference_mode(False):
            self.step = torch.zeros((), dtype=torch.int64, device="cpu")
        self._sums: Sums | None = None
        # The sub-policies of the last call, what was kept of them, and the size of the images.
        self._last: tuple[SubPolicies, Tensor | None, tuple[int, int]] | None = None

    @property
    @abstractmethod
    def views(self) -> int:
        """Images out for each image in."""

    @abstractmethod
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

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}  # a copy has augmented nothing

    def __setstate__(self, state: dict[str, Any]) -> None:
        # torch hands a CPU tensor to another process as memory that both write to.
        self.__dict__.update(state)
        with torch.inference_mode(False):  # as when it is made
            self.step = self.step.clone()
            self._sums = copy.deepcopy(self._sums)

    def _candidates(
        self,
        images: Tensor,
        index: Tensor | None,
        epoch: int | Tensor | None,
        dtype: torch.dtype,
    ) -> tuple[Tensor, SubPolicies]:
        """Make the candidates of this step, `[B,E,C,H,W]`, and their sub-policies."""
        _check_process()
        check_images(images)
        with torch.inference_mode(False):  # as when it is made
            self.step = self.step.to(images.device)
        return self.expansion.candidates(images, index, self.step, epoch, dtype)

    def _finish(
        self,
        images: Tensor,
        subpolicies: SubPolicies,
        chosen: Tensor | None = None,
        probs: Tensor | None = None,
    ) -> None:
        """Add what was kept to the record and go on to the next step.

        Args:
            images: the originals.
            subpolicies: `[B,E,K]`.
            chosen: `[B,S]`, what was kept of them; None for all.
            probs: `[B,E,D]`, the predictions the choice was made by; None without any.
        """
        with torch.inference_mode(False):  # as the step's
            sums = self._sums_for(subpolicies)
        sums.add(subpolicies, chosen)
        if probs is not None and chosen is not None:
            sums.add_diversity(probs, chosen)
        self._last = (subpolicies, chosen, (images.shape[2], images.shape[3]))
        self.step += 1

    def _sums_for(self, subpolicies: SubPolicies) -> Sums:
        """Return the totals, on the device of the sub-policies."""
        names = [operation.name for operation in subpolicies.operations]
        if self._sums is None:
            self._sums = Sums.zeros(names, subpolicies.device)
        self._sums.check_names(names)  # a record that was loaded may be of another policy
        if self._sums.totals["images"].device != subpolicies.device:
            self._sums = self._sums.to(subpolicies.device)
        return self._sums

    @outside_graphs
    def follow(self, masks: Tensor, *, fill: float) -> Tensor:
        """Move masks as the images of the last call were moved.

        Args:
            masks: `[B,H,W]` or `[B,C,H,W]` of any dtype, of the size of those images.
            fill: what a mask has where no pixel of its image is, such as the class that a loss
                ignores.

        Returns:
            `[B·S,…]`, for S views of each image in their order; see `divaug.follow`.
        """
        if self._last is None:
            raise ValueError("there is nothing to follow: augment the masks' images first.")
        subpolicies, chosen, size = self._last
        check_size(masks, size)
        backend = self.expansion.backend
        return follow(masks, subpolicies, fill=fill, chosen=chosen, backend=backend).flatten(0, 1)

    def kept(self) -> SubPolicies:
        """Return the sub-policies `[B,S,K]` behind the views of the last call, in order.

        They can be printed, saved, and applied again with `divaug.replay`, given the same `pool`.
        With `finished=True` it gives the views themselves.
        """
        if self._last is None:
            raise ValueError("nothing was augmented yet: call the augmenter first.")
        subpolicies, chosen, _ = self._last
        if chosen is None:
            return subpolicies.clone()  # as below: a graph that is replayed writes to its own
        row = torch.arange(len(chosen), device=chosen.device)[:, None]
        return subpolicies[row, chosen]

    def record(self) -> Record:
        """Return a summary of what was kept since the last `reset_record`; synchronises."""
        if self._sums is None or not int(self._sums.totals["images"]):
            raise ValueError("nothing was augmented yet: call the augmenter first.")
        return self._sums.to_record()

    def reset_record(self) -> None:
        """Start a new record."""
        if self._sums is not None:
            self._sums.reset()

    def record_state(self) -> dict[str, Any] | None:
        """Return the record so far as JSON values; None before the first call."""
        return None if self._sums is None else self._sums.state()

    def load_record_state(self, state: Mapping[str, Any] | None) -> None:
        """Continue a record from `record_state`; None starts a new one.

        Raises:
            ValueError: the state is no record, or one of other operations; before the first call of
                the augmenter, that call raises it.
        """
        if state is None:
            self.reset_record()
        elif self._sums is None:
            with torch.inference_mode(False):  # as the step's
                self._sums = Sums.from_state(state)
        else:
            self._sums.copy_(Sums.from_state(state))

    def state_dict(self) -> dict[str, Any]:
        """Return the step and the seed, with which a resumed run draws as the uninterrupted one."""
        return {"step": int(self.step), "seed": self.expansion.seed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where `state_dict` was taken."""
        if not isinstance(state, Mapping) or set(state) != {"step", "seed"}:
            held = sorted(state) if isinstance(state, Mapping) else type(state).__name__
            raise ValueError(f"the state must hold `step` and `seed`, got {held}.")
        step = check_whole("step", state["step"], 0, _LAST_STEP)
        self.expansion = replace(self.expansion, seed=state["seed"])
        self.step.fill_(step)
        self._last = None  # drawn with another step


def _check_process() -> None:
    """Refuse a loader's workers: their copies of the step and the model are not the loop's."""
    if get_worker_info() is not None:
        raise RuntimeError(
            "an augmenter was called in a worker of a DataLoader, where its copy draws the same in "
            "every epoch; call it on the loader's batches, as divaug.adapters.AugmentedLoader does."
        )


def check_size(masks: object, size: tuple[int, int]) -> None:
    """Refuse masks of another size than their images had."""
    if isinstance(masks, Tensor) and masks.ndim > 1 and tuple(masks.shape[-2:]) != size:
        raise ValueError(
            f"`masks` must have the size of their images, {size[0]} × {size[1]}, got "
            f"{masks.shape[-2]} × {masks.shape[-1]}; enlarge them to the nearest pixel first."
        )


def repeat_labels(labels: Tensor | None, images: Tensor, views: int) -> Tensor | None:
    """Return each image's label `views` times, image-major; hard, soft or none, never changed."""
    if labels is None:
        return None
    check_images(images)
    if not isinstance(labels, Tensor):
        raise TypeError(
            f"`labels` must be a tensor [B] or [B,D], or None, got {type(labels).__name__}; for "
            "anything but numbers give torch.arange(len(images)) and index by what comes back."
        )
    if not labels.ndim or len(labels) != len(images):
        raise ValueError(
            f"`labels` must have one entry per image, got {tuple(labels.shape)} for {len(images)}."
        )
    if labels.ndim > 2 and labels.shape[-2:] == images.shape[-2:]:
        raise ValueError(
            f"`labels` must be [B] or [B,D], got {tuple(labels.shape)}, of the images' size; for "
            "masks call augment.follow(masks, fill=255) afterwards, in an adapter give "
            'Fields(masks={"mask": 255}).'
        )
    return labels.repeat_interleave(views, 0)
