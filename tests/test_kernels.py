"""The kernels make and choose what batched PyTorch does, bit by bit, and never wait."""

import os
from dataclasses import replace

import pytest
import torch

from divaug import DivAug, expand, kernels, operations, policies, replay, select
from divaug._select import METHODS
from divaug.default_augmentation import cifar10, imagenet
from divaug.lab.bench.device import no_waits
from tests.reference import kernel_cases
from tests.reference.interpreter import run_interpreted
from tests.reference.poison import poisoned_memory
from tests.test_selection import awkward, realistic

pytest.importorskip("triton")


def test_equal_to_torch_in_the_interpreter():
    printed = run_interpreted("tests.reference.run_expand_kernel")
    cases = len(kernel_cases.SMALL) + len(kernel_cases.APART) + 2  # and all pairs, both ways
    assert printed == ["compared", str(cases)]


def test_selection_is_equal_to_torch_in_the_interpreter():
    printed = run_interpreted("tests.reference.run_select_kernel")
    assert printed == ["compared", "72"]


def test_lists_hold_every_candidate_once_and_every_table_once():
    assert run_interpreted("tests.reference.run_list_kernel") == ["lists", "7"]


class TestChoice:
    """One place chooses, and says why it cannot."""

    cpu, cuda = torch.device("cpu"), torch.device("cuda")

    def test_cpu_tensors_take_the_batched_path(self):
        assert not kernels.use_triton(None, self.cpu)

    @pytest.mark.parametrize(
        ("run", "message"),
        [
            (lambda: expand(torch.zeros(1, 3, 4, 4).byte(), 2, backend="triton"),
             "cannot run here: the tensors are on cpu"),
            (lambda: kernels.use_triton("cuda", torch.device("cpu")),
             r"one of \('torch', 'triton'\) or None, got 'cuda'"),
            (lambda: select(torch.full((1, 3, 2), 0.5), 2, "exact", backend="triton"),
             '"exact" has no kernel'),
        ],
    )  # fmt: skip
    def test_what_cannot_run_says_why(self, run, message):
        with pytest.raises(ValueError, match=message):
            run()

    def test_missing_triton_is_named(self, monkeypatch):
        monkeypatch.setattr(kernels, "_installed", lambda: False)
        assert not kernels.use_triton(None, self.cuda)
        with pytest.raises(ValueError, match="Triton is not installed"):
            kernels.use_triton("triton", self.cuda)

    def test_operations_of_ones_own_have_no_kernel(self):
        assert kernels.without_kernel(operations.OPERATIONS) is None
        assert "no kernel" in kernels.without_kernel(("Invert",))
        lacking = kernels.without_kernel((*operations.OPERATIONS, "Mirror"))
        assert not kernels.use_triton(None, self.cuda, lacking)
        with pytest.raises(ValueError, match=r"operations of your own \(Mirror\)"):
            kernels.use_triton("triton", self.cuda, lacking)

    def test_only_compiled_kernels_for_nvidia_speak_its_assembly(self, monkeypatch):
        monkeypatch.delenv("TRITON_INTERPRET", raising=False)
        monkeypatch.setattr(torch.version, "hip", None)
        assert kernels.has_shared_atomics(self.cuda)
        assert not kernels.has_shared_atomics(self.cpu)
        monkeypatch.setenv("TRITON_INTERPRET", "1")
        assert not kernels.has_shared_atomics(self.cuda)
        monkeypatch.delenv("TRITON_INTERPRET")
        monkeypatch.setattr(torch.version, "hip", "7.0")
        assert not kernels.has_shared_atomics(self.cuda)


@pytest.mark.parametrize(
    ("start", "shape", "copied"),
    [(0, (1, 1, 4, 8), False), (1, (1, 1, 4, 8), True), (1, (1, 1, 4, 7), False)],
)
def test_images_that_are_read_by_words_begin_at_one(start, shape, copied):
    from divaug.kernels.plan import _at_a_word

    room = torch.arange(64, dtype=torch.uint8)
    images = room[start : start + shape[2] * shape[3]].view(shape)
    found = _at_a_word(images)
    assert (found is not images) == copied
    assert torch.equal(found, images)
    assert found.data_ptr() % 4 == 0 or shape[3] % 4


@pytest.mark.gpu
class TestOnTheDevice:
    @pytest.mark.parametrize("name", [*kernel_cases.LARGE, *kernel_cases.SMALL])
    def test_equal_to_torch_and_to_the_cpu(self, name):
        case = (kernel_cases.LARGE | kernel_cases.SMALL)[name]
        seed = int.from_bytes(
            os.urandom(4)
        )  # fresh inputs in every run; the seed is in the message
        images = kernel_cases.images_of(case, seed % 2**31)
        pool = kernel_cases.images_of((9, *case[1:]), seed % 2**30)
        index = torch.arange(2 * len(images))[::2] - 6
        here = {"pool": pool.cuda(), "index": index.cuda()}
        expected, drawn = kernel_cases.run(case, images, "torch", seed, pool=pool, index=index)
        with poisoned_memory():
            found, drawn_by_kernel = kernel_cases.run(case, images.cuda(), "triton", seed, **here)
        batched, _ = kernel_cases.run(case, images.cuda(), "torch", seed, **here)
        assert drawn.equal(drawn_by_kernel.to("cpu")), f"seed {seed}: other draws"
        assert torch.equal(found, batched), f"seed {seed}: other pixels than on the same device"
        assert torch.equal(found.cpu(), expected), f"seed {seed}: other pixels than on the CPU"
        again = replay(images.cuda(), drawn.to("cuda"), pool=pool.cuda())
        assert torch.equal(again.cpu(), replay(images, drawn, pool=pool))

    def test_nobody_waits(self):
        images = kernel_cases.images_of(kernel_cases.LARGE["CIFAR"], 3).cuda()
        probs = torch.rand(256, 8, 10, device="cuda").softmax(-1)
        step = torch.zeros((), dtype=torch.int64, device="cuda")
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10)).cuda()
        augment = DivAug(model, default=cifar10())

        def both(when):
            for policy in (
                None,
                policies.RandAugment(3, 4),
                policies.PBA(),
                policies.SharedLevel(),
                policies.Uniform("uda"),
            ):
                expand(images, 8, policy, cifar10(), 1, step=when, epoch=when)
            expand(images[:8], 2, None, imagenet(24), 1, step=when)
            select(probs, 4, step=when)
            augment(images)

        no_waits(lambda: both(step))  # the first of its two calls copies tables to the device

    @pytest.mark.parametrize("policy", [None, policies.Uniform("uda")], ids=["paper", "uda"])
    def test_a_graph_draws_anew_at_every_step(self, policy):
        case = kernel_cases.LARGE["CIFAR"]
        images = kernel_cases.images_of(case, 5).cuda()
        step = torch.zeros((), dtype=torch.int64, device="cuda")

        def both():
            candidates, _ = expand(images, 8, policy, cifar10(), 9, step=step)
            probs = candidates.flatten(2).float()[..., :10].softmax(-1)
            return candidates, select(probs, 4, seed=9, step=step)

        both()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = both()
        for now in (0, 1, 2**31 + 7):
            step.fill_(now)
            graph.replay()
            for found, expected in zip(captured, both(), strict=True):
                assert torch.equal(found, expected)
            host = expand(images, 8, policy, cifar10(), 9, step=now)[0]
            assert torch.equal(captured[0], host)

    def test_chances_of_mirroring_that_are_whole_numbers(self):
        """Triton would compile them into a kernel that is then found for the other one too."""
        images = torch.randint(0, 256, (8, 3, 32, 32), dtype=torch.uint8)
        for flip in (1, 0, 0.5, 1):
            default = replace(cifar10(), flip=flip)
            expected, _ = expand(images, 4, None, default, 3, backend="torch")
            found, _ = expand(images.cuda(), 4, None, default, 3)
            assert torch.equal(found.cpu(), expected)

    @pytest.mark.parametrize("side", [32, 160])
    def test_on_a_stream_of_the_caller(self, side):
        images = torch.randint(0, 256, (16, 3, side, side), dtype=torch.uint8, device="cuda")
        expected = [expand(images, 4, None, cifar10(), 3, step=i)[0] for i in range(8)]
        torch.cuda.synchronize()
        mine = torch.cuda.Stream()
        with torch.cuda.stream(mine):
            found = [expand(images, 4, None, cifar10(), 3, step=i)[0] for i in range(8)]
        mine.synchronize()  # and nothing else
        for one, other in zip(found, expected, strict=True):
            assert torch.equal(one, other)

    def test_memory_is_flat_over_a_thousand_steps(self):
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10)).cuda()
        augment = DivAug(model, default=cifar10(), channels_last=True)
        images = kernel_cases.images_of(kernel_cases.LARGE["CIFAR"], 6).cuda()
        labels = torch.arange(256, device="cuda") % 10
        for _ in range(20):
            augment(images, labels)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before, peak = torch.cuda.memory_allocated(), None
        for i in range(1000):
            augment(images, labels)
            if i == 10:
                peak = torch.cuda.max_memory_allocated()
        torch.cuda.synchronize()
        assert torch.cuda.memory_allocated() == before
        assert torch.cuda.max_memory_allocated() == peak

    @pytest.mark.parametrize(("batch", "candidates", "side"), [(128, 8, 32), (64, 4, 224)])
    def test_memory_beyond_the_result(self, batch, candidates, side):
        images = torch.randint(0, 256, (batch, 3, side, side), dtype=torch.uint8, device="cuda")

        def run():
            return expand(images, candidates, None, cifar10(), dtype=torch.bfloat16)

        run()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        candidates_made, _ = run()
        beyond = torch.cuda.max_memory_allocated() - before - candidates_made.nbytes
        assert beyond <= 0.1 * (candidates_made.nbytes + images.nbytes)

    @pytest.mark.parametrize("shift", [1, 2, 3])
    def test_originals_at_any_address(self, shift):
        """A view into other data may begin between two words, which the kernels cannot load."""
        shape = (4, 3, 136, 140)
        room = torch.randint(0, 256, (4 * 3 * 136 * 140 + 4,), dtype=torch.uint8, device="cuda")
        images = room[shift : shift + 4 * 3 * 136 * 140].view(shape)
        found, _ = expand(images, 8, None, cifar10(), 3, pool=images)
        assert torch.equal(found, expand(images.clone(), 8, None, cifar10(), 3)[0])


@pytest.mark.gpu
@pytest.mark.parametrize("method", [m for m, rule in METHODS.items() if rule.kernel is not None])
@pytest.mark.parametrize("make", [realistic, awkward])
@pytest.mark.parametrize(
    ("E", "S", "D"), [(1, 1, 2), (5, 3, 7), (8, 4, 10), (8, 4, 1000), (64, 9, 3)]
)
def test_selection_is_equal_to_torch_on_the_device(method, make, E, S, D):
    probs = make(500, E, D)
    expected = select(probs, S, method=method, seed=4, step=6)
    for backend in ("torch", "triton"):
        found = select(probs.cuda(), S, method=method, seed=4, step=6, backend=backend)
        assert torch.equal(found.cpu(), expected)
