"""`follow`: masks move as the pixels of their images.

The operations are applied to an image of indices: each pixel holds its own index in three bytes.
The result gives the source of every pixel of a candidate; masks of any kind are looked up there.
"""

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from divaug._checks import constant, holds_integers, outside_graphs, real, whole
from divaug._expand import renderer_for
from divaug._photometric import place
from divaug._render import CHUNK_CANDIDATE_PIXELS
from divaug._subpolicies import SubPolicies, check_shapes, check_values
from divaug.operations.table import TABLE

__all__ = ["follow"]

# Three bytes number that many pixels; 0 is none of them.
_MOST_PIXELS = (1 << 24) - 1
# torch has few operations for these; values are only moved, so others of their width will do.
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


@outside_graphs
def follow(
    masks: Tensor,
    subpolicies: SubPolicies,
    *,
    fill: float,
    chosen: Tensor | None = None,
    backend: str | None = None,
) -> Tensor:
    """Move masks as `expand` moved the images they belong to.

    Operations that move pixels (shears, translations, rotations), crops and flips move a mask
    alike, to the nearest pixel; all others leave it as it is. Cutout hides pixels of the image and
    SamplePairing mixes in another one: the mask stays that of the image.

    Args:
        masks: `[B,H,W]` or `[B,C,H,W]`, bool, int or float: classes, instances, depths.
        subpolicies: `[B,E,K]`, as returned by `expand` for the images.
        fill: value where no pixel of the image is, such as the class that a loss ignores.
        chosen: int64 `[B,S]`, candidates to follow, as returned by `select`; None for all. Checked
            on a CPU only.
        backend: "torch" or "triton" to force one; None to choose.

    Returns:
        `[B,E,H,W]` or `[B,E,C,H,W]`, with `chosen` S instead of E, in the dtype of `masks` and the
        size of the candidates.

    Raises:
        TypeError: masks, sub-policies or a `fill` of another kind.
        ValueError: what does not fit together; on a CPU also values that no policy draws.

    Example:
        >>> from divaug import expand, policies
        >>> images = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
        >>> masks = torch.ones(2, 8, 8, dtype=torch.int64)
        >>> _, subpolicies = expand(images, 4, policies.Single("Rotate", 1.0), seed=3)
        >>> moved = follow(masks, subpolicies, fill=255)
        >>> moved.shape, moved.unique().tolist()
        (torch.Size([2, 4, 8, 8]), [1, 255])
    """
    _check_drawn(subpolicies)
    _check_masks(masks, len(subpolicies), subpolicies.device)
    _check_fill(fill, masks.dtype)
    if subpolicies.placement and masks.device.type == "cpu":
        subpolicies.placement.check_size(*masks.shape[-2:])
    if chosen is not None:
        chosen = _check_chosen(chosen, subpolicies)
        row = torch.arange(len(masks), device=masks.device)[:, None]
        subpolicies = subpolicies[row, chosen]
    if masks.dtype not in _SIGNED:
        return _move(masks, subpolicies, fill, backend)
    signed = _SIGNED[masks.dtype]
    same_bits = int(torch.tensor(fill, dtype=masks.dtype, device="cpu").view(signed))
    moved = _move(masks.view(signed), subpolicies, same_bits, backend)
    return moved.view(masks.dtype)


def _move(
    masks: Tensor,
    subpolicies: SubPolicies,
    fill: float,
    backend: str | None,
) -> Tensor:
    """Look masks up; memory beyond the result is bounded by a chunk of candidates."""
    B, E = subpolicies.shape[:2]
    height, width = masks.shape[-2:]
    size = (height, width)
    if subpolicies.placement:
        size = subpolicies.placement.default.output_size(height, width)
    planes = math.prod(masks.shape[1:-2])
    flat = masks.reshape(B, 1, planes, height * width)
    out = masks.new_empty((B, E, planes, math.prod(size)))
    numbered, moving = _numbered(height, width, masks.device), _moving_alone(subpolicies)
    pixels = max(height * width, math.prod(size)) * max(1, planes)
    chunk = max(1, CHUNK_CANDIDATE_PIXELS // (E * pixels))
    for start in range(0, B, chunk):
        rows = slice(start, min(start + chunk, B))
        candidates = _candidates(numbered, moving[rows], backend)
        part = subpolicies[rows].flatten()
        if part.placement:
            candidates = place(candidates, part.placement)
        where = _sources(candidates, height * width).view(-1, E, 1, math.prod(size))
        place_of = where.clamp(min=0).to(torch.int64).expand(-1, -1, planes, -1)
        taken = flat[rows].expand(-1, E, -1, -1).gather(3, place_of)
        out[rows] = taken.masked_fill_(where < 0, fill)
    return out.view(B, E, *masks.shape[1:-2], *size)


def _numbered(height: int, width: int, device: torch.device) -> Tensor:
    """Return an image whose pixels hold their own index from 1 on, low byte first."""
    number = torch.arange(1, height * width + 1, device=device)
    bytes_of = torch.stack([number & 255, (number >> 8) & 255, number >> 16])
    return bytes_of.to(torch.uint8).view(1, 3, height, width)


def _candidates(numbered: Tensor, moving: SubPolicies, backend: str | None) -> Tensor:
    """Apply the operations to an image of indices: uint8 `[b·E,3,H,W]`."""
    originals = numbered.expand(len(moving), -1, -1, -1).contiguous()
    nothing = torch.zeros_like(numbered)  # what comes from another image is no pixel of this one
    run = renderer_for(moving, backend)
    return run(originals, moving, nothing, torch.uint8, False).flatten(0, 1)


def _sources(candidates: Tensor, pixels: int) -> Tensor:
    """Return the source of every pixel of the candidates: int32 `[b·E,pixels]`, −1 for none."""
    low, middle, high = candidates.flatten(2).unbind(1)
    numbers = high.to(torch.int32).mul_(256).add_(middle).mul_(256).add_(low).sub_(1)
    # An operation of one's own may have filled in values beyond the indices.
    return torch.where(numbers < pixels, numbers, -1)


def _moving_alone(subpolicies: SubPolicies) -> SubPolicies:
    """Return the same sub-policies without the operations that leave pixels in their places."""
    # Those beyond the sixteen are run one by one: behind the last that moves, none need be.
    every = subpolicies.operations
    moving = [operation.moving is not None for operation in every]
    last = max((i for i, moves in enumerate(moving) if moves), default=0)
    moves = constant(tuple(moving), subpolicies.device, torch.bool)
    moved = moves[subpolicies.operation.clamp(min=0).long()]
    return replace(
        subpolicies,
        operation=torch.where(moved, subpolicies.operation, -1),
        partner=torch.zeros_like(subpolicies.partner),
        placement=None,
        operations=tuple(
            operation
            if operation.moving in (None, operation.transform)
            else replace(operation, transform=operation.moving)
            for operation in every[: max(last + 1, len(TABLE))]
        ),
    )


def _check_drawn(subpolicies: object) -> None:
    if not isinstance(subpolicies, SubPolicies) or subpolicies.operation.ndim != 3:
        raise TypeError("`subpolicies` must be the SubPolicies [B,E,K] that `expand` returned.")
    check_shapes(subpolicies.tensors())
    if subpolicies.device.type == "cpu":  # elsewhere the host would wait
        check_values(subpolicies.tensors(), subpolicies.operations)
    if not subpolicies.shape[1]:
        raise ValueError("`subpolicies` must hold at least one for each image, got E=0.")


def _check_chosen(chosen: object, subpolicies: SubPolicies) -> Tensor:
    """Return `chosen` as int64, since torch takes bytes for a mask; check values on a CPU only."""
    B, E = subpolicies.shape[:2]
    if not isinstance(chosen, Tensor) or not holds_integers(chosen):
        kind = chosen.dtype if isinstance(chosen, Tensor) else type(chosen).__name__
        raise TypeError(f"`chosen` must be an integer tensor [B,S], got {kind}.")
    if chosen.ndim != 2 or len(chosen) != B or not chosen.shape[1]:
        raise ValueError(
            f"`chosen` must be [B,S] with B={B} and S ≥ 1, such as `select` returns, got "
            f"{tuple(chosen.shape)}."
        )
    numbers = chosen.long()
    if numbers.device.type == "cpu" and numbers.numel():
        low, high = (int(end) for end in numbers.aminmax())
        if low < 0 or high >= E:
            raise ValueError(f"`chosen` must lie in [0, E={E}), got {low} to {high}.")
    return numbers


def _check_masks(masks: object, count: int, device: torch.device) -> None:
    """Refuse what cannot lie over `count` images on that device."""
    if not isinstance(masks, Tensor):
        raise TypeError(
            f"`masks` must be a tensor [B,H,W] or [B,C,H,W], got {type(masks).__name__}; stack "
            "those of a batch with torch.stack."
        )
    if masks.ndim not in (3, 4):
        remedy = "masks[None]" if masks.ndim < 3 else "masks.flatten(1, -3)"
        raise ValueError(
            f"`masks` must be [B,H,W] or [B,C,H,W], got {tuple(masks.shape)}; pass {remedy}."
        )
    if len(masks) != count:
        raise ValueError(f"`masks` must be one for each of {count} images, got {len(masks)}.")
    if masks.device != device:
        raise ValueError(
            f"`masks` are on {masks.device} and the images were on {device}; move them there."
        )
    if not 0 < masks.shape[-1] * masks.shape[-2] <= _MOST_PIXELS:
        raise ValueError(
            f"`masks` must have from 1 to {_MOST_PIXELS:,} pixels, got {masks.shape[-2]} × "
            f"{masks.shape[-1]}."
        )


def _check_fill(fill: object, dtype: torch.dtype) -> None:
    """Refuse what the masks cannot hold."""
    if isinstance(fill, bool | np.bool_) and dtype == torch.bool:
        return
    number = real(fill)
    if number is None:
        raise TypeError(f"`fill` must be a number, such as 255, got {fill!r}.")
    if dtype.is_floating_point:
        return
    low, high = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    if whole(fill) is None or not low <= number <= high:
        raise ValueError(
            f"`fill` must be an int in [{low}, {high}] for masks of {dtype}, got {fill!r}; convert "
            "the masks first, for instance with masks.long()."
        )
