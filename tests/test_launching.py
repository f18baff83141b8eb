"""Launching: a compiled kernel is found again exactly where Triton would choose the same one."""

import pytest
import torch

from divaug.kernels import launching


class Kernel:
    """Stands in for a Triton function: compiles on demand, and counts."""

    def __init__(self):
        self.compiled, self.launched = 0, []

    def __getitem__(self, grid):
        def run(*arguments, **named):
            self.compiled += 1
            self.launched.append((grid[0], [*arguments, *named.values()]))
            return Compiled(self)

        return run


class Compiled:
    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        return lambda *arguments: self.kernel.launched.append((grid[0], [*arguments]))


@pytest.fixture
def kernel(monkeypatch):
    monkeypatch.setattr(launching, "_compiled", {})
    return Kernel()


def launch(kernel, tensor, number=1, constant=2, programs=3, **options):
    launching.launch(kernel, programs, (tensor,), (number,), {"C": constant}, options)


def test_the_second_launch_does_not_ask_triton_and_passes_the_same(kernel):
    """A compiled kernel takes addresses, which spare Triton a question to the driver for each."""
    tensor, other = torch.zeros(64), torch.ones(64)
    launch(kernel, tensor, number=7)
    launch(kernel, other, number=8, programs=5)
    assert kernel.compiled == 1
    (first, one), (second, two) = kernel.launched
    assert (first, one[1:]) == (3, [7, 2])
    assert one[0] is tensor
    assert (second, two) == (5, [other.data_ptr(), 8, 2])


@pytest.mark.parametrize(
    "other",
    [
        {"tensor": torch.zeros(64, dtype=torch.int32)},
        {"number": 1 << 31},
        {"number": 1.0},
        {"constant": 4},
        {"num_warps": 8},
    ],
    ids=["dtype", "width", "kind", "constant", "option"],
)
def test_what_triton_would_compile_anew_is_compiled_anew(kernel, other):
    launch(kernel, **({"tensor": torch.zeros(64), "num_warps": 4}))
    launch(kernel, **({"tensor": torch.zeros(64), "num_warps": 4} | other))
    assert kernel.compiled == 2


def test_an_address_that_is_not_aligned_never_meets_a_kernel_for_aligned_ones(kernel):
    tensor = torch.zeros(64)
    launch(kernel, tensor)
    for _ in range(2):
        launch(kernel, tensor[1:])  # 4 bytes on: Triton looks again, every time
    launch(kernel, tensor)
    assert kernel.compiled == 3
