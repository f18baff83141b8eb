"""From sub-policies to candidates: draw and render, in batched PyTorch or in kernels."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from torch import Tensor

from divaug._photometric import draw_placement, finish
from divaug._random import Stream
from divaug._subpolicies import Placement, SubPolicies, check_partners, check_shapes, check_values
from divaug.default_augmentation import DefaultAugmentation
from divaug.operations.application import transform_in_place, transform_where_drawn
from divaug.operations.table import OPERATIONS, Operation
from divaug.policies import Partners, Policy

__all__ = [
    "CHUNK_CANDIDATE_PIXELS",
    "Renderer",
    "draw",
    "render",
    "render_in_kernels",
]


#: (originals, sub-policies, pool, dtype, channels last) → candidates; finished where the
#: sub-policies have a placement.
Renderer: TypeAlias = Callable[[Tensor, SubPolicies, Tensor, torch.dtype, bool], Tensor]

#: Candidate pixels worked on at a time: what bounds the memory beyond the result.
CHUNK_CANDIDATE_PIXELS = 1 << 21


def draw(
    policy: Policy,
    default: DefaultAugmentation | None,
    stream: Stream,
    candidates: int,
    size: tuple[int, int],
    partners: Partners,
    epoch: int | Tensor | None,
    triton: bool,
) -> tuple[SubPolicies, Placement | None]:
    """Draw the sub-policies and the default augmentation of every candidate.

    With `triton` a kernel draws from the policy's plan, and a default without photometric part.
    """
    plan = policy.plan(*size, stream.index.device)
    drawn, placed = None, None
    if triton:
        from divaug.kernels.draw import draw_kernels

        simple = default is not None and default.photometric is None
        wanted = (default.padding, default.flip, size) if default is not None and simple else None
        drawn, placed = draw_kernels(stream, candidates, size, plan, partners, epoch, wanted)
    if plan is None:
        subpolicies = policy.draw(stream, candidates, size, partners, epoch)
        _check_drawn(subpolicies, policy, stream, candidates, partners)
    elif drawn is None:
        subpolicies = plan.draw(stream, candidates, size, partners, epoch)
    else:
        subpolicies = SubPolicies(*[*drawn, plan.operations])
    if default is None or placed is None:
        return subpolicies, draw_placement(default, stream, candidates, size) if default else None
    return subpolicies, Placement(default, *placed)


def _check_drawn(
    found: object, policy: Policy, stream: Stream, candidates: int, partners: Partners
) -> None:
    who, device = f"{type(policy).__name__}.draw", stream.index.device
    if not isinstance(found, SubPolicies):
        raise TypeError(f"{who} must return SubPolicies, got {type(found).__name__}.")
    wanted = (len(stream.index), candidates, policy.num_operations)
    try:
        check_shapes(found.tensors())
        if tuple(found.shape) != wanted:
            raise ValueError(f"`operation` must be [B,E,K] = {wanted}, got {tuple(found.shape)}.")
        elsewhere = {str(tensor.device) for tensor in found.tensors().values()} - {str(device)}
        if elsewhere:
            raise ValueError(f"all must be on {device} as `stream.index` is, got {elsewhere}.")
        if not all(isinstance(one, Operation) for one in found.operations):
            raise ValueError(f"`operations` must hold Operations, got {found.operations!r}.")
        if device.type == "cpu":  # elsewhere the host would wait
            check_values(found.tensors(), found.operations)
            check_partners(found.partner, partners.count, "draw below `partners.count`.")
    except ValueError as error:
        raise ValueError(f"{who} must return what can be applied: {error}") from None


def _empty(
    originals: Tensor, subpolicies: SubPolicies, dtype: torch.dtype, channels_last: bool
) -> Tensor:
    batch, channels, height, width = originals.shape
    size, E = (height, width), subpolicies.shape[1]
    if subpolicies.placement:
        size = subpolicies.placement.default.output_size(height, width)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    return torch.empty(
        (batch * E, channels, *size), dtype=dtype, device=originals.device, memory_format=layout
    )


def render(
    originals: Tensor,
    subpolicies: SubPolicies,
    pool: Tensor,
    dtype: torch.dtype,
    channels_last: bool,
) -> Tensor:
    """Turn drawn sub-policies with their placement into candidates, in chunks."""
    E = subpolicies.shape[1]
    out = _empty(originals, subpolicies, dtype, channels_last)
    # Bytes in the ordinary layout can be worked on where they end up, so twice as many at a time.
    in_place = subpolicies.placement is None and not channels_last
    pixels = CHUNK_CANDIDATE_PIXELS * (2 if in_place else 1)
    chunk = max(1, pixels // (E * originals.shape[2] * originals.shape[3]))
    for start in range(0, len(originals), chunk):
        stop = min(start + chunk, len(originals))
        target, drawn = out[start * E : stop * E], subpolicies[start:stop].flatten()
        if in_place:
            _by_image(target, E).copy_(originals[start:stop, None])
            _apply_slots(target, drawn, pool)
            continue
        candidates = originals[start:stop].repeat_interleave(E, 0)
        _apply_slots(candidates, drawn, pool)
        if drawn.placement:
            finish(candidates, drawn.placement, target)
        else:
            target.copy_(candidates)
    return _by_image(out, E)


def _by_image(candidates: Tensor, E: int) -> Tensor:
    split: Tensor = torch.unflatten(candidates, 0, (candidates.shape[0] // E, E))
    return split


def _apply_slots(candidates: Tensor, subpolicies: SubPolicies, pool: Tensor) -> None:
    """Apply sub-policies `[N,K]` to uint8 `candidates` [N,C,H,W], in place."""
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


def render_in_kernels(
    originals: Tensor,
    subpolicies: SubPolicies,
    pool: Tensor,
    dtype: torch.dtype,
    channels_last: bool,
) -> Tensor:
    """Render as `render`, in kernels."""
    from divaug.kernels.plan import jitter
    from divaug.kernels.plan import render as render_kernel

    E = subpolicies.shape[1]
    out = _empty(originals, subpolicies, dtype, channels_last)
    s, placement = subpolicies, subpolicies.placement
    sub = tuple([t.contiguous() for t in (s.operation, s.applied, s.argument, s.center, s.partner)])
    if placement is None:
        render_kernel(out, originals, E, sub, pool, None, None, channels_last)
        return _by_image(out, E)
    default = placement.default
    if default.photometric is None:
        scale, bias = (values * (3 // len(values)) for values in default.scale_and_bias())
        placed = (placement.offset, placement.flip, placement.center)
        render_kernel(
            out,
            originals,
            E,
            sub,
            pool,
            tuple([tensor.contiguous() for tensor in placed]),
            (default.padding, default.cutout, (*scale, *bias)),
            channels_last,
        )
    else:
        size = originals.shape[1:]
        chunk = max(1, CHUNK_CANDIDATE_PIXELS // (E * size[1] * size[2]))
        for start in range(0, len(originals), chunk):
            stop = min(start + chunk, len(originals))
            shape = ((stop - start) * E, *size)
            between = torch.empty(shape, dtype=torch.uint8, device=out.device)
            part = tuple(tensor[start:stop] for tensor in sub)
            render_kernel(between, originals[start:stop], E, part, pool, None, None, False)
            target = out[start * E : stop * E]
            drawn = subpolicies[start:stop].flatten()
            if drawn.placement:
                finish(between, drawn.placement, target, jitter)
    return _by_image(out, E)


def render_around_own(
    originals: Tensor,
    subpolicies: SubPolicies,
    pool: Tensor,
    dtype: torch.dtype,
    channels_last: bool,
) -> Tensor:
    """Render as `render_in_kernels`, with operations beyond the sixteen, which have no kernel.

    Slot by slot the kernels apply their operations; every other one is then applied to all
    candidates and kept where it was drawn. The host never learns what was drawn.
    """
    E, known = subpolicies.shape[1], len(OPERATIONS)
    own = dict(enumerate(subpolicies.operations[known:], known))
    flat = subpolicies.flatten()
    candidates = originals.repeat_interleave(E, 0)
    for k in range(flat.shape[1]):
        slot = _slot(flat, k, known)
        made = render_in_kernels(candidates, slot, pool, torch.uint8, False)
        candidates = made.flatten(0, 1)
        transform_where_drawn(
            candidates,
            torch.where(flat.applied[:, k], flat.operation[:, k], -1),
            flat.argument[:, k],
            flat.center[:, k],
            pool,
            flat.partner[:, k],
            own,
        )
    nothing = _slots(flat, slice(0, 0))
    if flat.placement:
        nothing = replace(nothing, placement=flat.placement.map(lambda tensor: tensor[:, None]))
    out = render_in_kernels(candidates, nothing, pool, dtype, channels_last)
    split: Tensor = torch.unflatten(out.flatten(0, 1), 0, (len(originals), E))
    return split


def _slots(subpolicies: SubPolicies, slots: slice) -> SubPolicies:
    """Some slots of sub-policies `[N,K]`, each for an image of its own: `[N,1,k]`."""
    tensors: dict[str, Any] = {
        name: tensor[:, None, slots] for name, tensor in subpolicies.tensors().items()
    }
    return SubPolicies(**tensors)


def _slot(subpolicies: SubPolicies, k: int, known: int) -> SubPolicies:
    """Return one slot, with the kernels' own operations alone applied."""
    this = _slots(subpolicies, slice(k, k + 1))
    theirs = this.operation < known
    return replace(
        this,
        operation=torch.where(theirs, this.operation, -1),
        applied=this.applied & theirs,
    )
