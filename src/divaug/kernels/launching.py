"""Launching a kernel with little work for the host.

Triton finds the compiled kernel for every launch anew by looking at each argument, which takes
longer than our kernels do. What its choice depends on is looked at here instead, in one pass.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

import torch
from torch import Tensor

__all__ = ["launch"]

#: Addresses that are multiples of this let the compiler use wide loads.
ALIGNMENT = 16
_compiled: dict[tuple[Any, ...], Any] = {}


def launch(
    kernel: Any,
    programs: int,
    tensors: Sequence[Tensor],
    numbers: Sequence[int | float],
    constants: Mapping[str, Any],
    options: Mapping[str, Any],
) -> None:
    """Run a kernel on the device of its tensors.

    Args:
        kernel: a Triton function, none of whose numbers is specialised.
        programs: how many run.
        tensors: its first arguments.
        numbers: the arguments that follow.
        constants: what is known when it is compiled, in the kernel's order; its last arguments.
        options: of the compiler.
    """
    device = tensors[0].device
    if device.type == "cuda" and device.index != torch.cuda.current_device():
        with torch.cuda.device(device):
            launch(kernel, programs, tensors, numbers, constants, options)
        return
    addresses = [tensor.data_ptr() for tensor in tensors]
    aligned = reduce(or_, addresses) % ALIGNMENT == 0
    key = (
        kernel,
        device.index,
        aligned,
        tuple([tensor.dtype for tensor in tensors]),
        # Whether a number takes more than 32 bits; nothing where it has a fraction.
        tuple([number >> 31 if isinstance(number, int) else None for number in numbers]),
        tuple(constants.values()),
        tuple(options.values()),
    )
    compiled = _compiled.get(key)
    if compiled is not None:
        # Addresses instead of tensors: Triton would ask the driver about each of those.
        compiled[(programs, 1, 1)](*addresses, *numbers, *constants.values())
        return
    compiled = kernel[(programs,)](*tensors, *numbers, **constants, **options)
    # Triton returns none where it interprets. Where some address is not aligned, it is asked anew
    # every time, since what it chose holds for that one alone.
    if compiled is not None and aligned:
        _compiled[key] = compiled
