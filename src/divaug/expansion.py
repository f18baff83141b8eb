"""`expand`: every original image becomes E candidates (Algorithm 1, lines 1 to 6)."""

import torch
from torch import Tensor

from divaug.default_augmentation import DefaultAugmentation, DefaultDraws, finish
from divaug.operations.application import to_bytes
from divaug.operations.checks import check_images
from divaug.operations.execution import transform_in_place
from divaug.policies import Policy, Uniform
from divaug.policies.table import Partners
from divaug.randomness import Stream, check_index, check_seed
from divaug.subpolicies import SubPolicies

__all__ = ["CHUNK_CANDIDATE_PIXELS", "expand", "render"]

#: Candidate pixels worked on at a time: what bounds the memory beyond the result.
CHUNK_CANDIDATE_PIXELS = 1 << 21


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

    Args:
        images: uint8 `[B,C,H,W]` (or float in [0, 1], quantised to 8 bits).
        num_candidates: E.
        policy: what sub-policies are drawn from; None for DivAug's universal set.
        default: the default augmentation that follows, ending in normalised floats; None to return
            the bytes after the sub-policy.
        seed: decides every draw, together with `step` and `index`.
        index: int64 `[B]`, the samples' numbers in their dataset; None for 0 to B − 1.
        step: the step or epoch; a number, or an integer tensor on the device.
        epoch: what a policy that follows a schedule goes by.
        pool: uint8 `[N,C,H,W]` originals that SamplePairing draws its partner from; None for the
            batch.
        dtype: of the finished candidates; float32 unless given. Only with `default`.
        channels_last: whether each candidate is stored with its channels last.
        backend: "torch" or "triton" to force one; None to choose.

    Returns:
        Candidates `[B,E,C,H,W]` and the sub-policies `[B,E,K]` that made them.

    Example:
        >>> images = torch.zeros(2, 3, 32, 32, dtype=torch.uint8)
        >>> candidates, subpolicies = expand(images, num_candidates=8)
        >>> candidates.shape, subpolicies.shape
        (torch.Size([2, 8, 3, 32, 32]), torch.Size([2, 8, 2]))
    """
    check_images(images)
    originals = to_bytes(images).contiguous()
    if num_candidates < 1 or num_candidates >= 1 << 16:
        raise ValueError(f"`num_candidates` must lie in [1, 65535], got {num_candidates}.")
    if dtype is not None and default is None:
        raise ValueError("`dtype` goes with `default`: without it candidates are uint8.")
    if default is not None and len(default.mean) != images.shape[1]:
        raise ValueError(
            f"`default` is for {len(default.mean)} channels, `images` have {images.shape[1]}."
        )
    stream = Stream(check_seed(seed), step, check_index(index, len(images), images.device))
    shared = _check_pool(pool, originals)
    size = (images.shape[2], images.shape[3])
    own = stream.index if pool is not None else check_index(None, len(images), images.device)
    partners = Partners(len(shared), own)
    subpolicies = (policy or Uniform()).draw(stream, num_candidates, size, partners, epoch)
    draws = default.draw(stream, num_candidates, size) if default else None
    return render(originals, subpolicies, default, draws, shared, dtype, channels_last), subpolicies


def render(
    originals: Tensor,
    subpolicies: SubPolicies,
    default: DefaultAugmentation | None,
    draws: DefaultDraws | None,
    pool: Tensor,
    dtype: torch.dtype | None,
    channels_last: bool,
) -> Tensor:
    """Turn drawn sub-policies and a drawn default augmentation into candidates."""
    batch, channels, height, width = originals.shape
    E = subpolicies.shape[1]
    out_size = default.output_size(height, width) if default else (height, width)
    kind = (dtype or torch.float32) if default else torch.uint8
    layout = torch.channels_last if channels_last else torch.contiguous_format
    out = torch.empty(
        (batch * E, channels, *out_size), dtype=kind, device=originals.device, memory_format=layout
    )
    chunk = max(1, CHUNK_CANDIDATE_PIXELS // (E * height * width))
    for start in range(0, batch, chunk):
        stop = min(start + chunk, batch)
        candidates = originals[start:stop].repeat_interleave(E, 0)
        _apply_subpolicies(candidates, subpolicies[start:stop].flatten(), pool)
        target = out[start * E : stop * E]
        if default is None or draws is None:
            target.copy_(candidates)
        else:
            finish(candidates, default, draws.rows(start, stop), target)
    candidates_of: Tensor = torch.unflatten(out, 0, (batch, E))
    return candidates_of


def _apply_subpolicies(candidates: Tensor, subpolicies: SubPolicies, pool: Tensor) -> None:
    for k in range(subpolicies.shape[-1]):
        transform_in_place(
            candidates,
            torch.where(subpolicies.applied[:, k], subpolicies.operation[:, k], -1),
            subpolicies.argument[:, k],
            subpolicies.center[:, k],
            pool,
            subpolicies.partner[:, k],
            subpolicies.operations,
        )


def _check_pool(pool: Tensor | None, originals: Tensor) -> Tensor:
    if pool is None:
        return originals
    if not isinstance(pool, Tensor) or pool.dtype != torch.uint8:
        kind = pool.dtype if isinstance(pool, Tensor) else type(pool).__name__
        raise TypeError(f"`pool` must be a uint8 tensor [N,C,H,W], got {kind}.")
    if pool.ndim != 4 or not len(pool) or pool.shape[1:] != originals.shape[1:]:
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
