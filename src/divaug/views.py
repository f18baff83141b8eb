"""`Views`: augmented views drawn from a policy, for every method that never asks the model."""

import torch
from torch import Tensor

from divaug.checks import check_whole
from divaug.compilation import outside_graphs
from divaug.default_augmentation import DefaultAugmentation
from divaug.expansion import check_dtype
from divaug.policies import Identity, Policy
from divaug.policies.base import check_policy
from divaug.source import Source, repeat_labels
from divaug.sourced import Sourced

__all__ = ["Views"]


class Views(Sourced):
    """One or more augmented views of every image, drawn from a policy without asking a model.

    Args:
        policy: what sub-policies are drawn from; None for none, the default augmentation alone.
        default: the default augmentation; None for bytes scaled to [0, 1].
        num_views: views of each image.
        seed: decides every draw, together with the step and the samples' numbers.
        pool: uint8 `[N,C,H,W]` originals that SamplePairing draws from, row i the sample of
            number i; None for the batch.
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
        num_views = check_whole("num_views", num_views, 1)
        check_policy(policy)
        check_dtype(dtype)
        self.views = num_views
        self.dtype = dtype
        self.source = Source(
            policy or Identity(),
            default,
            num_views,
            seed=seed,
            pool=pool,
            channels_last=channels_last,
            backend=backend,
        )

    def __repr__(self) -> str:
        source = self.source
        return (
            f"Views(policy={source.policy}, default={source.default}, num_views={self.views}, "
            f"seed={source.seed})"
        )

    @outside_graphs
    def __call__(
        self,
        images: Tensor,
        labels: Tensor | None = None,
        *,
        index: Tensor | None = None,
        epoch: int | Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Augment a batch; see `DivAug.__call__`."""
        repeated = repeat_labels(labels, images, self.views)
        dtype = self.dtype or torch.float32
        candidates, subpolicies = self.source.candidates(images, index, epoch, dtype)
        self.source.finish(images, index, subpolicies)
        return candidates.flatten(0, 1), repeated
