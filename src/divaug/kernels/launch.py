"""Launching kernels with little work for the host.

Triton finds the compiled kernel for every launch anew by looking at each argument, which takes
longer than our kernels do. Here the constants are put together once, and the rest of what Triton's
choice depends on is read in one pass.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import reduce
from operator import or_
from typing import Any

import torch
from torch import Tensor

__all__ = ["Launcher"]

#: Addresses that are multiples of this let the compiler use wide loads.
ALIGNMENT = 16
#: Numbers below this fit into 32 bits.
WIDE = 1 << 31


class Launcher:
    """A kernel with its constants and options; made once, called many times.

    Args:
        kernel: a Triton function, none of whose numbers is specialised.
        constants: its compile-time constants, in the kernel's order; its last arguments.
        options: options of the compiler.
    """

    def __init__(
        self, kernel: Any, constants: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        self._kernel = kernel
        self._named = {**constants, **options}
        self._constants = tuple(constants.values())
        self._compiled: dict[tuple[Any, ...], Any] = {}

    def __call__(
        self,
        programs: int,
        tensors: Sequence[Tensor],
        numbers: Sequence[int | float],
        stream: torch.cuda.Stream | None = None,
    ) -> None:
        """Run the kernel on the device of its tensors.

        Args:
            programs: number of programs.
            tensors: its first arguments; bool is passed as uint8.
            numbers: the arguments that follow.
            stream: CUDA stream; None for the current one.
        """
        device = tensors[0].device
        if device.type == "cuda" and device.index != torch.cuda.current_device():
            with torch.cuda.device(device):
                self(programs, tensors, numbers, stream)
            return
        addresses = [tensor.data_ptr() for tensor in tensors]
        if reduce(or_, addresses) % ALIGNMENT or torch.version.hip:
            # Triton's choice for these addresses holds for them alone, so it is made anew. On
            # AMD's devices it depends on the sizes of tensors, too.
            self._run(programs, tensors, numbers, stream)
            return
        key = (device.index, _widths(numbers), *map(type, numbers), *[t.dtype for t in tensors])
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._run(programs, tensors, numbers, stream)
            if compiled is not None:  # Triton returns none where it interprets
                self._compiled[key] = compiled
        else:
            handle = None if stream is None else stream.cuda_stream
            # Addresses instead of tensors: for those Triton would call the driver.
            compiled[(programs, 1, 1)](*addresses, *numbers, *self._constants, stream=handle)

    def _run(
        self,
        programs: int,
        tensors: Sequence[Tensor],
        numbers: Sequence[int | float],
        stream: torch.cuda.Stream | None,
    ) -> Any:
        """Let Triton find or compile what fits, and launch it."""
        known = [t.view(torch.uint8) if t.dtype is torch.bool else t for t in tensors]
        with torch.cuda.stream(stream) if stream else nullcontext():
            return self._kernel[(programs,)](*known, *numbers, **self._named)


def _widths(numbers: Sequence[int | float]) -> tuple[bool, ...]:
    """Return whether each number takes more than 32 bits; () if none does."""
    if max(numbers) < WIDE:  # none is far below zero
        return ()
    return tuple([number >= WIDE for number in numbers])
