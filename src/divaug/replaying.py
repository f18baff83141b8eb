"""`replay`: sub-policies that were drawn before, applied once more."""

from dataclasses import replace

import torch
from torch import Tensor

from divaug.compilation import check_eager, outside_graphs
from divaug.expansion import pool_for, renderer_for
from divaug.operations.application import to_bytes
from divaug.operations.checks import check_images
from divaug.subpolicies import Placement, SubPolicies
from divaug.validity import check_partners, check_shapes, check_values

__all__ = ["replay"]


@outside_graphs
def replay(
    images: Tensor,
    subpolicies: SubPolicies,
    *,
    pool: Tensor | None = None,
    finished: bool = False,
    backend: str | None = None,
) -> Tensor:
    """Apply sub-policies drawn before: the same pixels on any device.

    Translations, Cutout's sides and its places are in pixels: on images of another size than those
    that they were drawn for they mean something else. The values are looked at first, for which
    the host waits.

    Args:
        images: uint8 `[B,C,H,W]`, the originals.
        subpolicies: `[B,E,K]`, on the device of `images`.
        pool: what their partners point into; None for the batch.
        finished: whether to apply the default augmentation that was drawn with them.
        backend: "torch" or "triton" to force one; None to choose.

    Returns:
        Candidates `[B,E,C,H,W]`: uint8, or float32 where they are finished.

    Raises:
        ValueError: sub-policies that nobody can have drawn, or not for such images.
    """
    check_eager()
    check_images(images)
    originals = to_bytes(images).contiguous()
    if not isinstance(subpolicies, SubPolicies):
        raise TypeError(f"`subpolicies` must be SubPolicies, got {type(subpolicies).__name__}.")
    check_shapes(subpolicies.tensors())
    if subpolicies.operation.ndim != 3 or len(subpolicies) != len(images):
        raise ValueError(
            f"`subpolicies` must be [B,E,K] with B={len(images)}, got {tuple(subpolicies.shape)}."
        )
    if not subpolicies.shape[1]:
        raise ValueError("`subpolicies` must hold at least one for each image, got E=0.")
    if subpolicies.device != images.device:
        raise ValueError(
            f"`subpolicies` are on {subpolicies.device} and `images` on {images.device}; move them "
            "with subpolicies.to(images.device)."
        )
    check_values(subpolicies.tensors(), subpolicies.operations)
    placement = _placement(subpolicies, images) if finished else None
    shared = pool_for(pool, originals)
    fitting = _fit(
        replace(subpolicies, placement=placement), len(shared), (images.shape[2], images.shape[3])
    )
    kind = torch.float32 if finished else torch.uint8
    return renderer_for(fitting, backend)(originals, fitting, shared, kind, False)


def _placement(subpolicies: SubPolicies, images: Tensor) -> Placement:
    """Return the placement, refused where the images cannot be finished by it."""
    placement = subpolicies.placement
    if placement is None:
        raise ValueError(
            "`subpolicies` hold no default augmentation; leave out `finished`, or draw them with "
            "a `default`."
        )
    placement.default.check_channels(images.shape[1])
    placement.check_size(images.shape[2], images.shape[3])
    return placement


def _fit(subpolicies: SubPolicies, pool: int, size: tuple[int, int]) -> SubPolicies:
    """The same without partners and places that nobody asks for; waits for the device.

    Raises:
        ValueError: a partner that the pool does not have, or a place outside of the images.
    """
    pairing = subpolicies.applying(lambda operation: operation.needs_partner)
    partner = torch.where(pairing, subpolicies.partner, 0)
    check_partners(partner, pool, "pass the `pool` that `subpolicies` were drawn with.")
    placed = subpolicies.applying(lambda operation: operation.needs_center)
    ends = torch.tensor(size, dtype=torch.int32, device=subpolicies.device)
    outside = placed & (subpolicies.center >= ends).any(-1)
    if bool(outside.any()):
        y, x = subpolicies.center[outside][0].tolist()
        raise ValueError(
            f"`subpolicies` place an operation at ({y}, {x}), outside of images of {size[0]}×"
            f"{size[1]}; replay them on images of the size that they were drawn for."
        )
    # On a GPU operations of one's own see all images, also those that they are not applied to.
    center = torch.where(placed[..., None], subpolicies.center, 0)
    return replace(subpolicies, partner=partner, center=center)
