"""The part that augmenters share: settings, the step, the record, and what the last call drew."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from divaug.checks import check_whole
from divaug.compilation import outside_graphs
from divaug.default_augmentation import DefaultAugmentation, plain
from divaug.expansion import check_default, check_dtype, check_pool, expand
from divaug.following import follow
from divaug.kernels import check_backend
from divaug.operations.checks import check_images
from divaug.policies import Policy
from divaug.policies.base import check_policy
from divaug.randomness import check_seed
from divaug.records import Record, Sums
from divaug.subpolicies import SubPolicies

__all__ = ["Augmenter", "Drawing", "Expansion", "check_batch", "check_size", "repeat_labels"]

# Steps are counted in int64.
_LAST_STEP = 2**63 - 1


class Augmenter(Protocol):
    """Interface of augmenters: callables from a batch to the images trained on.

    An augmenter takes uint8 images `[B,C,H,W]` and their labels, with the samples' indices and the
    epoch, and returns `views` finished images for each, image-major. `DivAug` is one; `Views`
    serves every method that does not score. A training loop treats both alike.
    """

    @property
    def views(self) -> int:
        """Images out for each image in."""

    def __call__(
        self,
        images: Tensor,
        labels: Tensor | None = None,
        *,
        index: Tensor | None = None,
        epoch: int | Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Images `[B·views,C,H,W]` and labels `[B·views,…]`, image-major."""

    def follow(self, masks: Tensor, *, fill: float) -> Tensor:
        """Masks `[B,…,H,W]` moved as the images of the last call: `[B·views,…]`."""

    def record(self) -> Record:
        """What was kept since the last reset."""

    def reset_record(self) -> None:
        """Start a new record."""

    def record_state(self) -> dict[str, Any] | None:
        """The record so far, as JSON can hold it; None before anything was augmented."""

    def load_record_state(self, state: Mapping[str, Any] | None) -> None:
        """Continue a record that `record_state` gave; None starts a new one."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where `state_dict` was taken."""


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
    """Bytes scaled to [0, 1]."""
    return plain((0.0,) * channels, (1.0,) * channels)


@dataclass(frozen=True, eq=False)
class _Last:
    """The draws behind the views of the last call.

    Args:
        subpolicies: `[B,E,K]`.
        chosen: `[B,S]`, what was kept of them; None for all.
        size: height and width of the images.
    """

    subpolicies: SubPolicies
    chosen: Tensor | None
    size: tuple[int, int]


class Drawing:
    """Base of `DivAug` and `Views`: candidates of one batch after the other, and a record of them.

    Args:
        expansion: the settings of the candidates; may be replaced between calls.
    """

    def __init__(self, expansion: Expansion) -> None:
        self.expansion = expansion
        # Counted on the device. A later call outside of inference mode adds to it.
        with torch.inference_mode(False):
            self.step = torch.zeros((), dtype=torch.int64, device="cpu")
        self._sums: Sums | None = None
        self._last: _Last | None = None

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
        check_batch(images)
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
        self._last = _Last(subpolicies, chosen, (images.shape[2], images.shape[3]))
        self.step += 1

    def _sums_for(self, subpolicies: SubPolicies) -> Sums:
        """The totals, on the device of the sub-policies."""
        names = [operation.name for operation in subpolicies.operations]
        if self._sums is None or (self._sums.empty and self._sums.names != names):
            self._sums = Sums.zeros(names, subpolicies.device)
        self._sums.check_names(names)  # a record that was loaded may be of another policy
        if self._sums.applied.device != subpolicies.device:
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
        last = self._last
        if last is None:
            raise ValueError("there is nothing to follow: augment the masks' images first.")
        check_size(masks, last.size)
        backend = self.expansion.backend
        moved = follow(masks, last.subpolicies, fill=fill, chosen=last.chosen, backend=backend)
        return moved.flatten(0, 1)

    def kept(self) -> SubPolicies:
        """The sub-policies `[B,S,K]` behind the S views of each image of the last call, in order.

        They can be printed, saved, and applied again with `divaug.replay`, given the same `pool`.
        With `finished=True` it gives the views themselves.
        """
        last = self._last
        if last is None:
            raise ValueError("nothing was augmented yet: call the augmenter first.")
        if last.chosen is None:
            return last.subpolicies.clone()  # as below: a graph that is replayed writes to its own
        row = torch.arange(len(last.chosen), device=last.chosen.device)[:, None]
        return last.subpolicies[row, last.chosen]

    def record(self) -> Record:
        """What was kept since the last `reset_record`; waits for the device."""
        if self._sums is None or not int(self._sums.images):
            raise ValueError("nothing was augmented yet: call the augmenter first.")
        return self._sums.to_record()

    def reset_record(self) -> None:
        """Start a new record."""
        if self._sums is not None:
            self._sums.reset()

    def record_state(self) -> dict[str, Any] | None:
        """The record so far, as JSON can hold it; None before anything was augmented."""
        return None if self._sums is None else self._sums.state()

    def load_record_state(self, state: Mapping[str, Any] | None) -> None:
        """Continue a record that `record_state` gave; None starts a new one.

        Raises:
            ValueError: it is none, or it is of other operations; where nothing was augmented yet,
                the first call says so.
        """
        if state is None:
            self.reset_record()
        elif self._sums is None:
            with torch.inference_mode(False):  # as the step's
                self._sums = Sums.from_state(state)
        else:
            self._sums.copy_(Sums.from_state(state))

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs to draw what the uninterrupted one would have."""
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
    """Refuse workers of a loader: their copies of the step, and of a model, are not the loop's."""
    if get_worker_info() is not None:
        raise RuntimeError(
            "an augmenter was called in a worker of a DataLoader, where a copy of it counts steps "
            "of its own and would draw the same in every epoch; call it where the model is "
            "trained, on the loader's batches (divaug.adapters.AugmentedLoader does), or draw in "
            "the worker with divaug.expand and a step that you give."
        )


def check_batch(images: object) -> None:
    """Refuse what would fail before `expand`, which checks in full, is asked."""
    if not isinstance(images, Tensor) or images.ndim != 4 or images.shape[1] not in (1, 3):
        check_images(images)


def check_size(masks: object, size: tuple[int, int]) -> None:
    """Refuse masks of another size than their images had; whatever else is wrong is said later."""
    if isinstance(masks, Tensor) and masks.ndim > 1 and tuple(masks.shape[-2:]) != size:
        raise ValueError(
            f"`masks` must have the size of their images, {size[0]} × {size[1]}, got "
            f"{masks.shape[-2]} × {masks.shape[-1]}; enlarge them to the nearest pixel first."
        )


def repeat_labels(labels: Tensor | None, images: Tensor, views: int) -> Tensor | None:
    """Each image's label `views` times, image-major; hard, soft or none, never changed."""
    if labels is None:
        return None
    check_batch(images)
    if not isinstance(labels, Tensor):
        raise TypeError(
            f"`labels` must be a tensor [B] or [B,D], or None, got {type(labels).__name__}; "
            "convert numbers with torch.as_tensor; for anything else give torch.arange(len(images))"
            ", which comes back as the number of each view's image, or tell an adapter that there "
            "are none, Fields(labels=None): it repeats whatever else a batch has."
        )
    if not labels.ndim:
        raise ValueError(
            "`labels` must be [B] or [B,D], one entry per image, got a tensor of no axes; for a "
            "single image pass labels[None]."
        )
    if len(labels) != len(images):
        raise ValueError(
            f"`labels` must have one entry per image, got {len(labels)} for {len(images)}."
        )
    if labels.ndim > 2 and labels.shape[-2:] == images.shape[-2:]:
        raise ValueError(
            f"`labels` must be [B] or [B,D], got {tuple(labels.shape)}, of the images' size: masks "
            "must move as their images do; leave them out, and then call "
            "augment.follow(masks, fill=255), or name them to an adapter, each with its fill: "
            'Fields(masks={"mask": 255}). If they are none, give torch.arange(len(images)), which '
            "comes back as the number of each view's image."
        )
    return labels.repeat_interleave(views, 0)
