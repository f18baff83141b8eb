"""What an operation still needs once it is chosen; twin of `policies.table.finish`."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from divaug._random import Purpose
from divaug.kernels.philox import below, philox

__all__ = ["finish", "sub_policies"]

_PLACE = tl.constexpr(int(Purpose.PLACE))


@triton.jit
def _argument(magnitude, sign, signed, rounding, floats, mask):
    """Compute base + sign·(offset + slope·m), rounded, at least the minimum; see `arguments_of`."""
    strength = tl.load(floats + 6, mask=mask, other=0.0) * magnitude
    strength = tl.load(floats + 5, mask=mask, other=0.0) + strength
    turned = strength * tl.where(signed == 1, sign, 1.0)
    value = tl.load(floats + 4, mask=mask, other=0.0) + turned
    value = tl.where(rounding == 1, tl.floor(value), value)
    value = tl.where(rounding == 2, tl.ceil(value - 0.5), value)
    value = tl.where(rounding == 3, tl.where(value < 0, tl.ceil(value), tl.floor(value)), value)
    return tl.maximum(value, tl.load(floats + 7, mask=mask, other=0.0))


@triton.jit
def finish(
    i, mask, sample, now, seed_low, seed_high, place, own, op, signed, rounding, floats, p, m, used,
    pool, H, W, operation, applied, argument, center, partner, probability, magnitude,
):  # fmt: skip
    """Draw sign, place and partner of the operations at ``i``, and write all that they are."""
    sign_word, y, x, partner_word = philox(seed_low, seed_high, sample, now, place, _PLACE)
    sign = tl.where(sign_word >= 2147483648, -1.0, 1.0)
    inside = (own >= 0) & (own < pool) & (pool > 1)
    other = below(partner_word, tl.where(inside, pool - 1, pool))
    other = tl.where(inside & (other >= own), other + 1, other)
    tl.store(operation + i, op, mask=mask)
    tl.store(applied + i, used.to(tl.uint8), mask=mask)
    tl.store(argument + i, _argument(m, sign, signed, rounding, floats, mask), mask=mask)
    tl.store(center + 2 * i, below(y, H).to(tl.int32), mask=mask)
    tl.store(center + 2 * i + 1, below(x, W).to(tl.int32), mask=mask)
    tl.store(partner + i, other, mask=mask)
    tl.store(probability + i, p, mask=mask)
    tl.store(magnitude + i, m, mask=mask)


def sub_policies(B: int, E: int, K: int, device: torch.device) -> list[Tensor]:
    """Room for the tensors of `SubPolicies`, in their order."""

    def empty(dtype: torch.dtype, *more: int) -> Tensor:
        return torch.empty((B, E, K, *more), dtype=dtype, device=device)

    whole, real = torch.int32, torch.float32
    return [
        empty(whole), empty(torch.bool), empty(real), empty(whole, 2), empty(torch.int64),
        empty(real), empty(real),
    ]  # fmt: skip
