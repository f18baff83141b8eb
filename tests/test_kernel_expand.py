"""The expansion kernels make what batched PyTorch makes, bit by bit, and nobody waits."""

import os
from dataclasses import replace

import pytest
import torch

from divaug import DivAug, expand, kernels, operations, policies, replay, select
from divaug.default_augmentation import cifar10, imagenet
from divaug.lab.bench.device import no_waits
from tests.reference import kernel_cases
from tests.reference.interpreter import run_interpreted
from tests.reference.poison import PATTERN, poisoned_memory

pytest.importorskip("triton")


def test_equal_to_torch_in_the_interpreter():
    printed = run_interpreted("tests.reference.run_expand_kernel")
    cases = len(kernel_cases.SMALL) + len(kernel_cases.APART) + 2  # and all pairs, both ways
    assert printed == ["compared", str(cases)]


def test_lists_hold_every_candidate_once_and_every_table_once():
    assert run_interpreted("tests.reference.run_list_kernel") == ["lists", "7"]


def test_poison_reaches_every_layout():
    with poisoned_memory():
        plain = torch.empty(2, 3, 4, 5, dtype=torch.uint8)
        last = torch.empty((2, 3, 4, 5), dtype=torch.uint8, memory_format=torch.channels_last)
        like = torch.empty_like(plain)
    for tensor in (plain, last, like):
        assert bool((tensor == PATTERN).all())


class TestChoice:
    """One place chooses, and says why it cannot."""

    cpu = torch.device("cpu")

    def test_cpu_tensors_take_the_batched_path(self):
        assert not kernels.use_triton(None, self.cpu)

    def test_forced_triton_without_a_gpu_says_why(self):
        with pytest.raises(ValueError, match="cannot run here: the tensors are on cpu"):
            expand(torch.zeros(1, 3, 4, 4, dtype=torch.uint8), 2, backend="triton")

    def test_unknown_backend_lists_the_known(self):
        with pytest.raises(ValueError, match=r"one of \('torch', 'triton'\) or None, got 'cuda'"):
            kernels.use_triton("cuda", self.cpu)

    def test_missing_triton_is_named(self, monkeypatch):
        monkeypatch.setattr(kernels, "_installed", lambda: False)
        assert not kernels.use_triton(None, torch.device("cuda"))
        with pytest.raises(ValueError, match="Triton is not installed"):
            kernels.use_triton("triton", torch.device("cuda"))

    def test_operations_of_ones_own_have_no_kernel(self):
        lacking = kernels.without_kernel((*operations.OPERATIONS, "Mirror"))
        assert not kernels.use_triton(None, torch.device("cuda"), lacking)
        with pytest.raises(ValueError, match=r"operations of your own \(Mirror\)"):
            kernels.use_triton("triton", torch.device("cuda"), lacking)

    def test_the_kernels_know_the_sixteen_operations(self):
        assert kernels.KERNEL_OPERATIONS == operations.OPERATIONS

    def test_another_table_of_operations_is_not_theirs(self):
        assert kernels.without_kernel(operations.OPERATIONS) is None
        assert "no kernel" in kernels.without_kernel(("Invert",))
        assert "(Mirror)" in kernels.without_kernel((*operations.OPERATIONS, "Mirror"))

    def test_only_compiled_kernels_for_nvidia_speak_its_assembly(self, monkeypatch):
        cuda = torch.device("cuda")
        monkeypatch.delenv("TRITON_INTERPRET", raising=False)
        monkeypatch.setattr(torch.version, "hip", None)
        assert kernels.has_shared_atomics(cuda)
        assert not kernels.has_shared_atomics(self.cpu)
        monkeypatch.setenv("TRITON_INTERPRET", "1")
        assert not kernels.has_shared_atomics(cuda)
        monkeypatch.delenv("TRITON_INTERPRET")
        monkeypatch.setattr(torch.version, "hip", "7.0")
        assert not kernels.has_shared_atomics(cuda)

    def test_exact_selection_has_no_kernel(self):
        with pytest.raises(ValueError, match='"exact" has no kernel'):
            select(torch.full((1, 3, 2), 0.5), 2, "exact", backend="triton")


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


class TestAddresses:
    """Where words are read, images must begin at one; a copy is made only then."""

    room = torch.arange(64, dtype=torch.uint8)

    def test_a_word_between_two_words_is_copied(self):
        from divaug.kernels.plan import _at_a_word

        images = self.room[1:33].view(1, 1, 4, 8)
        found = _at_a_word(images)
        assert found.data_ptr() % 4 == 0
        assert torch.equal(found, images)

    @pytest.mark.parametrize(("start", "shape"), [(0, (1, 1, 4, 8)), (1, (1, 1, 4, 7))])
    def test_nothing_else_is(self, start, shape):
        from divaug.kernels.plan import _at_a_word

        images = self.room[start : start + shape[2] * shape[3]].view(shape)
        assert _at_a_word(images) is images
