"""Launching: a compiled kernel is found again exactly where Triton would choose the same one."""

import pytest
import torch

from divaug.kernels.launching import Launcher


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
def kernel():
    return Kernel()


@pytest.fixture
def launch(kernel):
    launcher = Launcher(kernel, {"C": 2}, {"num_warps": 4})
    return lambda *tensors, numbers=(1,), programs=3: launcher(programs, tensors, numbers)


def test_the_second_launch_does_not_ask_triton_and_passes_the_same(kernel, launch):
    """A compiled kernel takes addresses, which spare Triton a question to the driver for each."""
    tensor, other = torch.zeros(64), torch.ones(64)
    launch(tensor, numbers=(7,))
    launch(other, numbers=(8,), programs=5)
    assert kernel.compiled == 1
    (first, one), (second, two) = kernel.launched
    assert (first, one[1:]) == (3, [7, 2, 4])
    assert one[0] is tensor
    assert (second, two) == (5, [other.data_ptr(), 8, 2])


@pytest.mark.parametrize(
    ("tensor", "numbers"),
    [
        (torch.zeros(64, dtype=torch.int32), (1, 1)),
        (torch.zeros(64), (1 << 31, 1)),
        (torch.zeros(64), (1.0, 1)),
    ],
    ids=["dtype", "width", "kind"],
)
def test_what_triton_would_compile_anew_is_compiled_anew(kernel, launch, tensor, numbers):
    launch(torch.zeros(64), numbers=(1, 1))
    launch(tensor, numbers=numbers)
    assert kernel.compiled == 2
    launch(tensor, numbers=numbers)
    assert kernel.compiled == 2


def test_which_number_is_wide_counts_not_that_one_is(kernel, launch):
    for numbers in ((1 << 31, 1), (1, 1 << 31), (1 << 31, 1 << 31), ((1 << 31) - 1, 1), (0, 0)):
        launch(torch.zeros(64), numbers=numbers)
    assert kernel.compiled == 4  # the last two are of one kind


def test_truth_values_are_bytes_to_a_kernel(kernel, launch):
    truth = torch.ones(64, dtype=torch.bool)
    launch(truth)
    launch(truth)
    assert kernel.launched[0][1][0].dtype == torch.uint8
    assert kernel.launched[0][1][0].data_ptr() == kernel.launched[1][1][0] == truth.data_ptr()


def test_an_address_that_is_not_aligned_never_meets_a_kernel_for_aligned_ones(kernel, launch):
    tensor = torch.zeros(64)
    launch(tensor)
    for _ in range(2):
        launch(tensor[1:])  # 4 bytes on: Triton looks again, every time
    launch(tensor)
    assert kernel.compiled == 3


def test_sizes_and_settings_that_differ_have_launchers_of_their_own():
    pytest.importorskip("triton")
    from divaug.kernels.candidates import Share, _Finish, _renderer, _Sizes

    sizes, share, finish = _Sizes(8, 32, 32, 3, 2), Share(1, 64, 2), _Finish(True, 4, 16, False)
    base = (sizes, 2, share, finish, True, False, False)
    assert _renderer(*base) is _renderer(*base)
    others = [
        (sizes._replace(W=33), 2, share, finish, True, False, False),
        (sizes, 1, share, finish, True, False, False),
        (sizes, 2, share._replace(registers=80), finish, True, False, False),
        (sizes, 2, share, finish._replace(channels_last=True), True, False, False),
        (sizes, 2, share, finish, False, False, False),
        (sizes, 2, share, finish, True, True, False),
        (sizes, 2, share, finish, True, False, True),
    ]
    assert len({id(_renderer(*one)) for one in (base, *others)}) == 8
