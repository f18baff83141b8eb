"""`Views`: augmented views drawn from a policy, for every method that never asks the model."""

from typing import Any

import torch
from torch import Tensor

from divaug.default_augmentation import DefaultAugmentation, plain
from divaug.expansion import expand
from divaug.policies import Identity, Policy
from divaug.randomness import check_seed
from divaug.records import Record, Sums

__all__ = ["Views"]


class Views:
    """One or more augmented views of every image, drawn from a policy without asking a model.

    Args:
        policy: what sub-policies are drawn from; None for none, the default augmentation alone.
        default: the default augmentation; None for bytes scaled to [0, 1].
        num_views: views of each image.
        seed: decides every draw, together with the step and the samples' numbers.
        pool: uint8 `[N,C,H,W]` originals that SamplePairing draws from; None for the batch.
        dtype: of the images returned; float32 unless given.
        channels_last: whether to return images with their channels last.
        backend: "torch" or "triton" to force one; None to choose.

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
        if isinstance(num_views, bool) or not isinstance(num_views, int) or num_views < 1:
            raise ValueError(
                f"`num_views` must be a whole number of at least 1, got {num_views!r}."
            )
        self.policy = policy or Identity()
        self.default = default
        self.views = num_views
        self.seed = check_seed(seed)
        self.pool = pool
        self.dtype = dtype
        self.channels_last = channels_last
        self.backend = backend
        self._step = torch.zeros((), dtype=torch.int64)
        self._sums: Sums | None = None

    def __call__(
        self,
        images: Tensor,
        labels: Tensor | None = None,
        *,
        index: Tensor | None = None,
        epoch: int | Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Augment a batch; see `DivAug.__call__`."""
        if labels is not None and len(labels) != len(images):
            raise ValueError(
                f"`labels` must have one entry per image, got {len(labels)} for {len(images)}."
            )
        self._step = self._step.to(images.device)
        candidates, subpolicies = expand(
            images,
            self.views,
            self.policy,
            self.default or plain((0.0,) * images.shape[1], (1.0,) * images.shape[1]),
            self.seed,
            index,
            step=self._step,
            epoch=epoch,
            pool=self.pool,
            dtype=self.dtype or torch.float32,
            channels_last=self.channels_last,
            backend=self.backend,
        )
        if self._sums is None or self._sums.applied.device != images.device:
            names = [operation.name for operation in subpolicies.operations]
            self._sums = Sums.zeros(names, images.device)
        self._sums.add(subpolicies)
        self._step += 1
        repeated = None if labels is None else labels.repeat_interleave(self.views, 0)
        return candidates.flatten(0, 1), repeated

    def record(self) -> Record:
        """What was applied since the last `reset_record`; waits for the device."""
        if self._sums is None or not int(self._sums.images):
            raise ValueError("nothing was augmented yet: call the augmenter first.")
        return self._sums.to_record()

    def reset_record(self) -> None:
        """Start a new record."""
        if self._sums is not None:
            self._sums.reset()

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs to draw what the uninterrupted one would have."""
        return {"step": int(self._step), "seed": self.seed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where `state_dict` was taken."""
        if set(state) != {"step", "seed"}:
            raise ValueError(f"the state must hold `step` and `seed`, got {sorted(state)}.")
        self.seed = check_seed(int(state["seed"]))
        self._step.fill_(int(state["step"]))
