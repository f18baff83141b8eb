"""Launching: a compiled kernel is found again exactly where Triton would choose the same one."""

import pytest
import torch

from divaug._random import Stream
from divaug.kernels.launch import Launcher
from divaug.policies import Partners


class Kernel:
    """Stands in for a Triton function: compiles on demand, and counts."""

    def __init__(self):
        self.compiled, self.launched, self.streams = 0, [], []

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
        def run(*arguments, stream=None):
            self.kernel.launched.append((grid[0], [*arguments]))
            self.kernel.streams.append(stream)

        return run


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


class SomeStream:
    """Stands in for a stream that is current inside `with`."""

    cuda_stream = 1234

    def __init__(self):
        self.current = False

    def __enter__(self):
        self.current = True

    def __exit__(self, *_):
        self.current = False


def test_a_kernel_runs_on_the_stream_that_is_asked_for(kernel, monkeypatch):
    stream = SomeStream()
    monkeypatch.setattr(torch.cuda, "stream", lambda one: one)
    asked = []
    monkeypatch.setattr(
        Kernel, "__getitem__",
        lambda self, _: lambda *_, **__: asked.append(stream.current) or Compiled(self),
    )  # fmt: skip
    launcher, tensor = Launcher(kernel, {"C": 2}, {}), torch.zeros(64)
    launcher(3, (tensor,), (1,), stream)
    assert asked == [True]  # Triton launches what it compiles on the current stream
    launcher(3, (tensor,), (1,), stream)
    launcher(3, (tensor,), (1,))
    assert asked == [True]
    assert kernel.streams == [1234, None]
    launcher(3, (tensor[1:],), (1,), stream)
    launcher(3, (tensor[1:],), (1,))
    assert asked == [True, True, False]


def test_on_amd_triton_is_asked_every_time(kernel, launch, monkeypatch):
    monkeypatch.setattr(torch.version, "hip", "7.0")
    for _ in range(2):
        launch(torch.zeros(64))
    assert kernel.compiled == 2


def test_an_address_that_is_not_aligned_never_meets_a_kernel_for_aligned_ones(kernel, launch):
    tensor = torch.zeros(64)
    launch(tensor)
    for _ in range(2):
        launch(tensor[1:])  # 4 bytes on: Triton looks again, every time
    launch(tensor)
    assert kernel.compiled == 3


def test_a_chance_of_mirroring_is_a_fraction_to_the_kernel(monkeypatch):
    """Triton compiles the whole numbers 0 and 1 into a kernel, and the launcher would not know."""
    pytest.importorskip("triton")
    from divaug.kernels.draw import draw_kernels

    chances = []
    monkeypatch.setattr(Launcher, "__call__", lambda _, __, ___, numbers: chances.append(numbers))
    for chance in (0, 1):
        stream = Stream(0, 0, torch.arange(2))
        draw_kernels(stream, 2, (8, 8), None, Partners(2, None), None, (0, chance, (8, 8)))
    assert [type(numbers[-1]) for numbers in chances] == [float, float]
