"""From sub-policies to candidates: draw and render, in batched PyTorch or in kernels."""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor

from divaug.default_augmentation import DefaultAugmentation, DefaultDraws
from divaug.finishing import finish
from divaug.operations.execution import transform_in_place
from divaug.operations.table import TABLE, Operation
from divaug.policies import PBA, Policy
from divaug.policies.table import Partners
from divaug.policies.tabular import TablePolicy
from divaug.randomness import Stream
from divaug.subpolicies import SubPolicies
from divaug.validity import check_partners, check_shapes, check_values

__all__ = [
    "CHUNK_CANDIDATE_PIXELS",
    "Renderer",
    "draw",
    "draw_in_kernel",
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
) -> tuple[SubPolicies, DefaultDraws | None]:
    """Draw the sub-policies and the default augmentation of every candidate."""
    subpolicies = _own_draw(policy, stream, candidates, size, partners, epoch)
    return subpolicies, default.draw(stream, candidates, size) if default else None


def draw_in_kernel(
    policy: Policy,
    default: DefaultAugmentation | None,
    stream: Stream,
    candidates: int,
    size: tuple[int, int],
    partners: Partners,
    epoch: int | Tensor | None,
) -> tuple[SubPolicies, DefaultDraws | None]:
    """As `draw`, in kernels where the policy is a table or PBA's and the default one simple."""
    from divaug.kernels.draw import draw_kernel
    from divaug.kernels.schedule import draw_schedule

    device, table = stream.index.device, None
    # A subclass that draws in its own way keeps that way.
    if isinstance(policy, TablePolicy) and type(policy).draw is TablePolicy.draw:
        table = policy.table(*size, device)
    simple = default is not None and default.photometric is None
    wanted = (default.padding, default.flip, size) if default is not None and simple else None
    drawn, placed = draw_kernel(stream, candidates, size, table, partners, wanted)
    if table:
        subpolicies = _sub_policies(drawn, table.operations)
    elif isinstance(policy, PBA) and type(policy).draw is PBA.draw:
        schedule = policy.schedule(*size, device)
        drawn = draw_schedule(stream, candidates, size, schedule, partners, epoch)
        subpolicies = _sub_policies(drawn, tuple(TABLE.values()))
    else:
        subpolicies = _own_draw(policy, stream, candidates, size, partners, epoch)
    if wanted:
        return subpolicies, DefaultDraws(*placed)
    return subpolicies, default.draw(stream, candidates, size) if default else None


def _own_draw(
    policy: Policy,
    stream: Stream,
    candidates: int,
    size: tuple[int, int],
    partners: Partners,
    epoch: int | Tensor | None,
) -> SubPolicies:
    """What a policy draws in its own way; that of anybody else is looked at first."""
    found = policy.draw(stream, candidates, size, partners, epoch)
    if not type(policy).draw.__module__.startswith("divaug."):
        _check_drawn(found, policy, stream, candidates, partners)
    return found


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


def _sub_policies(drawn: list[Any], operations: tuple[Operation, ...]) -> SubPolicies:
    """The tensors that a kernel has drawn, in their order, and the table that their ids are of."""
    fields = [*drawn, operations]
    return SubPolicies(*fields)


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
    """As `render`, in kernels."""
    from divaug.kernels.candidates import jitter
    from divaug.kernels.candidates import render as render_kernel

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
