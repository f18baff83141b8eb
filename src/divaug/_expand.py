"""`expand` and `replay`: each original image becomes E candidates (Algorithm 1, lines 1 to 6)."""

from dataclasses import replace

import torch
from torch import Tensor

from divaug import kernels
from divaug._checks import outside_graphs, whole
from divaug._random import Stream, check_index, check_seed, check_step
from divaug._render import (
    Renderer,
    draw,
    render,
    render_around_own,
    render_in_kernels,
)
from divaug._subpolicies import Placement, SubPolicies, check_partners, check_shapes, check_values
from divaug.default_augmentation import DefaultAugmentation
from divaug.operations.application import to_bytes
from divaug.operations.checks import check_images
from divaug.operations.table import TABLE
from divaug.policies import Policy, Uniform
from divaug.policies.base import check_policy
from divaug.policies.table import Partners, check_epoch, needed_epoch

__all__ = ["check_default", "check_dtype", "check_pool", "expand", "renderer_for", "replay"]


_UNIVERSAL = Uniform()
_SIXTEEN = tuple(TABLE.values())


@outside_graphs
def expand(
    images: Tensor,
    num_candidates: int = 8,
    policy: Policy | None = None,
    default: DefaultAugmentation | None = None,
    seed: int = 0,
    index: Tensor | None = None,
    *,
    step: int | Tensor = 0,
    epoch: int | Tensor | None = None,
    pool: Tensor | None = None,
    dtype: torch.dtype | None = None,
    channels_last: bool = False,
    backend: str | None = None,
) -> tuple[Tensor, SubPolicies]:
    """Draw E sub-policies for every image and apply them.

    In PyTorch, memory beyond the result is bounded by one chunk: 24 bytes for each of its
    `_render.CHUNK_CANDIDATE_PIXELS` pixels (48 MiB), 512 bytes for the draws of each candidate,
    and 32 MiB more where the default augmentation resizes.

    Args:
        images: uint8 `[B,C,H,W]`, or float in [0, 1], quantised to 8 bits; the check of the range
            synchronises.
        num_candidates: E, candidates of each image.
        policy: distribution of sub-policies; None for DivAug's universal set.
        default: the default augmentation that follows, ending in normalised floats; None to return
            the bytes after the sub-policy.
        seed: determines every draw, with `step` and `index`.
        index: int64 `[B]`, the samples' indices in their dataset; None for 0 to B − 1.
        step: the step or epoch; an int, or an integer tensor on the device. Without it every call
            draws the same.
        epoch: the epoch, for a policy with a schedule.
        pool: uint8 `[N,C,H,W]` originals that SamplePairing draws its partner from, row i the
            sample of index i, which is not paired with itself; None for the batch.
        dtype: dtype of the finished candidates; float32 by default. Only with `default`.
        channels_last: whether each candidate is stored with its channels last.
        backend: "torch" or "triton" to force one; None to choose.

    Returns:
        Candidates `[B,E,C,H,W]` and the sub-policies `[B,E,K]` that made them, with what was drawn
        for the default augmentation.

    Example:
        >>> images = torch.zeros(2, 3, 32, 32, dtype=torch.uint8)
        >>> candidates, subpolicies = expand(images, num_candidates=8)
        >>> candidates.shape, subpolicies.shape
        (torch.Size([2, 8, 3, 32, 32]), torch.Size([2, 8, 2]))
    """
    check_images(images)
    originals = to_bytes(images).contiguous()
    num_candidates = _check_count(num_candidates)
    _check(policy, default, dtype, images.shape[1])
    if policy is not None and policy.needs_epoch:
        epoch = needed_epoch(epoch, type(policy).__name__)
    elif epoch is not None:
        epoch = check_epoch(epoch)
    when = check_step(step, images.device)
    stream = Stream(check_seed(seed), when, check_index(index, images.shape[0], images.device))
    shared = pool_for(pool, originals)
    size = (images.shape[2], images.shape[3])
    partners = Partners(shared.shape[0], stream.index if pool is not None else None)
    triton = kernels.use_triton(backend, images.device)
    subpolicies, placement = draw(
        policy or _UNIVERSAL, default, stream, num_candidates, size, partners, epoch, triton
    )
    subpolicies = replace(subpolicies, placement=placement)
    kind = (dtype or torch.float32) if default else torch.uint8
    run = renderer_for(subpolicies, backend)
    return run(originals, subpolicies, shared, kind, channels_last), subpolicies


def renderer_for(subpolicies: SubPolicies, backend: str | None) -> Renderer:
    """Choose the renderer of these sub-policies: kernels have the sixteen operations only."""
    if subpolicies.operations == _SIXTEEN:  # mostly the same objects: no need to look at names
        triton = kernels.use_triton(backend, subpolicies.device)
        return render_in_kernels if triton else render
    known = len(kernels.KERNEL_OPERATIONS)
    # Ids are positions: the kernels can read a table that begins with theirs.
    lacking = kernels.without_kernel(subpolicies.names[:known])
    if not kernels.use_triton(backend, subpolicies.device, lacking):
        return render
    return render_in_kernels if len(subpolicies.names) == known else render_around_own


def _check_count(num_candidates: object) -> int:
    count = whole(num_candidates)
    if count is None:
        raise TypeError(f"`num_candidates` must be an int, got {type(num_candidates).__name__}.")
    if not 1 <= count < 1 << 16:
        raise ValueError(f"`num_candidates` must lie in [1, 65535], got {count}.")
    return count


def _check(
    policy: Policy | None,
    default: DefaultAugmentation | None,
    dtype: torch.dtype | None,
    channels: int,
) -> None:
    check_policy(policy)
    check_default(default)
    check_dtype(dtype)
    if dtype is not None and default is None:
        raise ValueError("`dtype` goes with `default`: without it candidates are uint8.")
    if default is not None:
        default.check_channels(channels)


def check_default(default: object) -> None:
    """Refuse what is neither a default augmentation nor None."""
    if default is not None and not isinstance(default, DefaultAugmentation):
        raise TypeError(
            "`default` must be a DefaultAugmentation, such as default_augmentation.cifar10(), or "
            f"None, got {default!r}."
        )


def check_dtype(dtype: object) -> None:
    """Refuse dtypes that cannot hold finished images; None leaves the choice."""
    if dtype is None:
        return
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"`dtype` must be a torch.dtype such as torch.float32, got {dtype!r}.")
    if not dtype.is_floating_point or dtype.itemsize < 2:
        raise ValueError(
            f"`dtype` must be a float of 16 bits or more, got {dtype}: the images returned are "
            "normalised."
        )


def check_pool(pool: object) -> None:
    """Refuse a pool that no batch can draw partners from; None is the batch itself."""
    if pool is None:
        return
    if not isinstance(pool, Tensor) or pool.dtype != torch.uint8:
        kind = pool.dtype if isinstance(pool, Tensor) else type(pool).__name__
        raise TypeError(f"`pool` must be a uint8 tensor [N,C,H,W], got {kind}.")
    if pool.ndim != 4 or not len(pool):
        raise ValueError(
            f"`pool` must hold originals, one or more, as [N,C,H,W], got {tuple(pool.shape)}; "
            "leave it out to draw from the batch."
        )
    if not pool.is_contiguous():
        # A copy in every step would be dear, and the kernels read the pool as it lies in memory.
        raise ValueError(
            f"`pool` must be contiguous, got strides {pool.stride()}; call pool.contiguous() once, "
            "before training."
        )


def pool_for(pool: Tensor | None, originals: Tensor) -> Tensor:
    """Return the originals to take partners from: the pool, or the batch without one."""
    check_pool(pool)
    if pool is None:
        return originals
    if pool.shape[1:] != originals.shape[1:]:
        raise ValueError(
            f"`pool` must hold originals of shape {tuple(originals.shape[1:])}, "
            f"got {tuple(pool.shape)}."
        )
    if pool.device != originals.device:
        raise ValueError(
            f"`pool` is on {pool.device} and `images` on {originals.device}; move it once, before "
            "training."
        )
    return pool


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

    Translations and Cutout are in pixels, so replay on images of the size they were drawn for. The
    values are checked first, for which the host waits.

    Args:
        images: uint8 `[B,C,H,W]`, the originals.
        subpolicies: `[B,E,K]`, on the device of `images`.
        pool: images that their partners are indices of; None for the batch.
        finished: whether to apply the default augmentation that was drawn with them.
        backend: "torch" or "triton" to force one; None to choose.

    Returns:
        Candidates `[B,E,C,H,W]`: uint8, or float32 where they are finished.

    Raises:
        ValueError: sub-policies with values that no policy draws, or drawn for other images.
    """
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
    placement = _placed(subpolicies, images) if finished else None
    shared = pool_for(pool, originals)
    fitting = _fit(
        replace(subpolicies, placement=placement), len(shared), (images.shape[2], images.shape[3])
    )
    kind = torch.float32 if finished else torch.uint8
    return renderer_for(fitting, backend)(originals, fitting, shared, kind, False)


def _placed(subpolicies: SubPolicies, images: Tensor) -> Placement:
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
    """Check partners and places against pool and images; zero unused ones; waits for the device."""
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
