"""Where an augmenter gets its candidates: `expand` with its settings, a step and a record."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from divaug.checks import check_whole
from divaug.default_augmentation import DefaultAugmentation, plain
from divaug.expansion import check_default, check_pool, expand
from divaug.following import follow
from divaug.kernels import check_backend
from divaug.operations.checks import check_images
from divaug.policies import Policy
from divaug.randomness import check_seed
from divaug.records import Record, Sums
from divaug.subpolicies import SubPolicies

__all__ = ["Source", "check_batch", "check_size", "repeat_labels"]


# Steps are counted in int64.
_LAST_STEP = 2**63 - 1


@dataclass(frozen=True, eq=False)
class _Last:
    """What the views of the last call were made from, for masks that follow them.

    Args:
        subpolicies: `[B,E,K]`.
        chosen: `[B,S]`, what was kept of them; None for all.
        size: height and width of the images.
    """

    subpolicies: SubPolicies
    chosen: Tensor | None
    size: tuple[int, int]


class Source:
    """Candidates of one batch after the other, the step counted on the device.

    Args:
        policy: what sub-policies are drawn from.
        default: the default augmentation; None for bytes scaled to [0, 1].
        num_candidates: candidates of each image.
        seed: decides every draw, together with the step and the samples' numbers.
        pool: uint8 `[N,C,H,W]` originals that SamplePairing draws from, row i the sample of
            number i; None for the batch.
        channels_last: whether candidates are stored with their channels last.
        backend: "torch" or "triton" to force one; None to choose.
    """

    def __init__(
        self,
        policy: Policy,
        default: DefaultAugmentation | None,
        num_candidates: int,
        *,
        seed: int,
        pool: Tensor | None,
        channels_last: bool,
        backend: str | None,
    ) -> None:
        check_default(default)
        check_backend(backend)
        check_pool(pool)
        self.policy = policy
        self.default = default
        self.num_candidates = num_candidates
        self.seed = check_seed(seed)
        self.pool = pool
        self.channels_last = channels_last
        self.backend = backend
        with torch.inference_mode(False):  # a later call outside that mode adds to it
            self.step = torch.zeros((), dtype=torch.int64, device="cpu")
        self.sums: Sums | None = None
        self._last: _Last | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}  # a copy has augmented nothing

    def __setstate__(self, state: dict[str, Any]) -> None:
        # torch hands a CPU tensor to another process as memory that both write to.
        self.__dict__.update(state)
        with torch.inference_mode(False):  # as when it is made
            self.step = self.step.clone()
            self.sums = copy.deepcopy(self.sums)

    def candidates(
        self,
        images: Tensor,
        index: Tensor | None,
        epoch: int | Tensor | None,
        dtype: torch.dtype,
    ) -> tuple[Tensor, SubPolicies]:
        """The candidates of this step, `[B,E,C,H,W]`, and their sub-policies."""
        _check_process()
        check_batch(images)
        with torch.inference_mode(False):  # as when it is made
            self.step = self.step.to(images.device)
        return expand(
            images,
            self.num_candidates,
            self.policy,
            self.default or _scaled(images.shape[1]),
            self.seed,
            index,
            step=self.step,
            epoch=epoch,
            pool=self.pool,
            dtype=dtype,
            channels_last=self.channels_last,
            backend=self.backend,
        )

    def finish(
        self,
        images: Tensor,
        subpolicies: SubPolicies,
        chosen: Tensor | None = None,
        probs: Tensor | None = None,
    ) -> None:
        """Note what was kept and go on to the next step.

        Args:
            images: the originals.
            subpolicies: `[B,E,K]`.
            chosen: `[B,S]`, what was kept of them; None for all.
            probs: `[B,E,D]`, the predictions the choice was made by; None where nobody asked.
        """
        with torch.inference_mode(False):  # as the step's
            sums = self._sums_for(subpolicies)
        sums.add(subpolicies, chosen)
        if probs is not None and chosen is not None:
            sums.add_diversity(probs, chosen)
        self._last = _Last(subpolicies, chosen, (images.shape[2], images.shape[3]))
        self.step += 1

    def follow(self, masks: Tensor, fill: float) -> Tensor:
        """Masks `[B,…,H,W]` moved as the views of the last call were: `[B·S,…]`."""
        last = self._last
        if last is None:
            raise ValueError("there is nothing to follow: augment the masks' images first.")
        check_size(masks, last.size)
        moved = follow(masks, last.subpolicies, fill=fill, chosen=last.chosen, backend=self.backend)
        return moved.flatten(0, 1)

    def kept(self) -> SubPolicies:
        """The sub-policies `[B,S,K]` behind the views of the last call."""
        last = self._last
        if last is None:
            raise ValueError("nothing was augmented yet: call the augmenter first.")
        if last.chosen is None:
            return last.subpolicies.clone()  # as below: a graph that is replayed writes to its own
        row = torch.arange(len(last.chosen), device=last.chosen.device)[:, None]
        return last.subpolicies[row, last.chosen]

    def _sums_for(self, subpolicies: SubPolicies) -> Sums:
        """The totals, on the device of the sub-policies."""
        names = [operation.name for operation in subpolicies.operations]
        if self.sums is None or (self.sums.empty and self.sums.names != names):
            self.sums = Sums.zeros(names, subpolicies.device)
        self.sums.check_names(names)  # a record that was loaded may be of another policy
        if self.sums.applied.device != subpolicies.device:
            self.sums = self.sums.to(subpolicies.device)
        return self.sums

    def record(self) -> Record:
        """What was kept since the last `reset_record`; waits for the device."""
        if self.sums is None or not int(self.sums.images):
            raise ValueError("nothing was augmented yet: call the augmenter first.")
        return self.sums.to_record()

    def reset_record(self) -> None:
        """Start a new record."""
        if self.sums is not None:
            self.sums.reset()

    def record_state(self) -> dict[str, Any] | None:
        """The record so far, as JSON can hold it; None before anything was augmented."""
        return None if self.sums is None else self.sums.state()

    def load_record_state(self, state: Mapping[str, Any] | None) -> None:
        """Continue a record that `record_state` gave; None starts a new one.

        Raises:
            ValueError: it is none, or it is of other operations; where nothing was augmented yet,
                the first call says so.
        """
        if state is None:
            self.reset_record()
        elif self.sums is None:
            with torch.inference_mode(False):  # as the step's
                self.sums = Sums.from_state(state)
        else:
            self.sums.copy_(Sums.from_state(state))

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs to draw what the uninterrupted one would have."""
        return {"step": int(self.step), "seed": self.seed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where `state_dict` was taken."""
        if not isinstance(state, Mapping) or set(state) != {"step", "seed"}:
            held = sorted(state) if isinstance(state, Mapping) else type(state).__name__
            raise ValueError(f"the state must hold `step` and `seed`, got {held}.")
        step = check_whole("step", state["step"], 0, _LAST_STEP)
        self.seed = check_seed(state["seed"])
        self.step.fill_(step)
        self._last = None  # drawn with another step


@lru_cache(maxsize=2)
def _scaled(channels: int) -> DefaultAugmentation:
    """Bytes scaled to [0, 1]."""
    return plain((0.0,) * channels, (1.0,) * channels)


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
