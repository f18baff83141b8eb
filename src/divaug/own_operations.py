"""Candidates from sub-policies with operations that have no kernel, without a word to the host."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from divaug.operations.execution import transform_where_drawn
from divaug.operations.table import OPERATIONS
from divaug.rendering import render_in_kernels
from divaug.subpolicies import SubPolicies

__all__ = ["render_around_own"]


def render_around_own(
    originals: Tensor,
    subpolicies: SubPolicies,
    pool: Tensor,
    dtype: torch.dtype,
    channels_last: bool,
) -> Tensor:
    """As `render_in_kernels`, where operations beyond the sixteen have no kernel.

    Slot by slot the kernels apply what they know; every other operation is then applied to all
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
    """One slot, in which only operations that the kernels know are applied."""
    this = _slots(subpolicies, slice(k, k + 1))
    theirs = this.operation < known
    return replace(
        this,
        operation=torch.where(theirs, this.operation, -1),
        applied=this.applied & theirs,
    )
