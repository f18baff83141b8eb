"""Training on a GPU: the graph is the step, and the device never waits for the host."""

import dataclasses
import time

import pytest
import torch

from divaug.lab.bench.device import waits_forbidden
from divaug.lab.bench.step import measure, random_data
from divaug.lab.methods import AUGMENTERS
from divaug.lab.recipes import override, recipe
from divaug.lab.train import Hardware, evaluate, train
from divaug.lab.train.batches import InMemory
from divaug.lab.train.build import assemble
from divaug.lab.train.console import Silent
from divaug.lab.train.processes import Processes
from divaug.lab.train.step import GraphedStep, run_of, state_of
from tests.training_helpers import toy_data, toy_recipe

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

STEPS = 5


def parts_on(hardware, **changes):
    one = toy_recipe(**({"batch_size": 16, "dataset": "cifar10"} | changes))
    return assemble(one, toy_data(64, channels=3), hardware, Processes())


def run(parts, runner, steps=STEPS):
    parts.step.begin_epoch(0)
    done = 0
    for epoch in range(steps):
        for inputs in parts.feed.epoch(epoch, 0):
            if done == steps:
                return
            runner(inputs)
            done += 1


def cuda(dtype=torch.float32, **flags):
    return Hardware(torch.device("cuda", 0), dtype, **flags)


@pytest.mark.parametrize("augmenter", AUGMENTERS)
def test_the_graph_trains_as_the_step_itself(augmenter):
    # Without these the two runs may take other algorithms for the same convolution, and five steps
    # at a learning rate of 0.1 carry the last bits up to the third digit.
    with torch.backends.cudnn.flags(deterministic=True, benchmark=False, allow_tf32=False):
        eager, graphed = (parts_on(cuda(graphed=f), augmenter=augmenter) for f in (False, True))
        run(eager, run_of(eager.step))
        run(graphed, run_of(graphed.step))
    assert int(graphed.step.optimizer.step_number) == STEPS
    for a, b in zip(state_of(eager.step), state_of(graphed.step), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=5e-3)
    one, two = eager.augment.record(), graphed.augment.record()
    assert one.images == two.images == STEPS * 16
    assert graphed.augment.state_dict() == eager.augment.state_dict()
    if augmenter not in ("divaug", "divaug-greedy", "divaug-exact"):
        assert one.drawn == two.drawn  # where the network decides, rounding may


@pytest.mark.parametrize("augmenter", ["default", "divaug"])
def test_compiled_in_bfloat16_stays_near_the_plain_step(augmenter):
    plain = parts_on(cuda(), augmenter=augmenter)
    fast = parts_on(cuda(torch.bfloat16, compiled=True, graphed=True), augmenter=augmenter)
    run(plain, run_of(plain.step))
    run(fast, run_of(fast.step))
    a, b = plain.step.sums.tolist(), fast.step.sums.tolist()
    assert b[2] == a[2]
    assert b[4] == a[4]
    assert b[0] / b[2] == pytest.approx(a[0] / a[2], rel=0.15)
    weights = zip(plain.network.parameters(), fast.network.parameters(), strict=True)
    for p, q in weights:
        assert torch.isfinite(q).all()
        assert q.dtype == torch.float32
        assert (p - q).norm() <= 0.2 * p.norm() + 1e-2


def test_warming_up_changes_nothing():
    """After the recording, before its first replay, all is as it was."""
    parts = parts_on(cuda(graphed=True), augmenter="divaug")
    parts.step.begin_epoch(0)
    before = [t.detach().clone() for t in state_of(parts.step)]
    graphed = GraphedStep(parts.step)
    inputs = next(parts.feed.epoch(0, 0))
    graphed._record(inputs)
    torch.cuda.synchronize()
    for old, new in zip(before, state_of(parts.step), strict=True):
        assert torch.equal(old, new)
    assert parts.augment.state_dict() == {"step": 0, "seed": 0}
    with pytest.raises(ValueError, match="nothing was augmented"):
        parts.augment.record()


@pytest.mark.parametrize("augmenter", AUGMENTERS)
def test_a_step_never_waits_for_the_device(augmenter):
    parts = parts_on(cuda(torch.bfloat16), augmenter=augmenter)
    inputs = next(parts.feed.epoch(0, 0))
    for _ in range(2):
        parts.step(inputs)
    torch.cuda.synchronize()
    with waits_forbidden():
        parts.step(inputs)


@pytest.mark.parametrize("eager", [True, False])
def test_a_run_on_the_gpu_finishes_and_resumes(tmp_path, eager):
    data, one = toy_data(64, channels=3), toy_recipe(augmenter="divaug", precision="auto")
    result = train(one, tmp_path / "run", data=data, device="cuda", eager=eager, reporter=Silent())
    assert result.finished
    assert result.test is not None
    longer = dataclasses.replace(one, epochs=3)
    with pytest.raises(ValueError, match="another recipe"):
        train(longer, tmp_path / "run", data=data, device="cuda", resume=True, reporter=Silent())
    again = train(one, tmp_path / "run", data=data, device="cuda", resume=True, reporter=Silent())
    assert again.finished
    assert again.test == result.test


def test_shaking_networks_can_be_recorded():
    parts = parts_on(cuda(graphed=True), model="shake-shake-26-2x96d", augmenter="default")
    run(parts, run_of(parts.step), steps=2)
    assert torch.isfinite(parts.step.sums).all()


def test_data_loading_takes_at_most_three_percent_of_a_step():
    """Of the shortest step in the tables: Wide-ResNet-40-2 with RandAugment."""
    found = measure(recipe("cifar10-wide-resnet-40-2-randaugment"), "cuda", repeats=5)
    assert 0 < found["share"]["data loading"] <= 0.03


def test_ten_thousand_test_images_take_well_below_half_a_second():
    one = override(recipe("cifar10-wide-resnet-40-2-divaug"), ["epochs=1"])
    fast = cuda(torch.bfloat16, compiled=True, graphed=True)
    parts = assemble(one, random_data(one), fast, Processes())
    given = (parts.called, InMemory(parts.feed.images, parts.feed.labels), parts.default, fast)
    expected = evaluate(*given, chunk_size=parts.chunk_size)  # compiles
    begun = time.perf_counter()
    again = evaluate(*given, chunk_size=parts.chunk_size)
    assert time.perf_counter() - begun < 0.4
    assert again == expected
    assert again.images == 10_000


def test_evaluating_reuses_what_scoring_compiled():
    """The same shape, dtype, layout and mode: after training nothing is compiled anew."""
    parts = parts_on(cuda(torch.bfloat16, compiled=True), augmenter="divaug")
    run(parts, run_of(parts.step), steps=2)
    with torch._dynamo.config.patch(error_on_recompile=True):
        given = (parts.called, parts.test, parts.default, parts.step.hardware)
        evaluate(*given, chunk_size=parts.chunk_size)


SEMI = {
    "objective": "uda",
    "space": "uda",
    "labels": 32,
    "unlabelled_batch_size": 24,
    "epoch_steps": 4,
    "confidence": 0.3,
}


@pytest.mark.parametrize(
    "changes",
    [{}, {"objective": "fixmatch", "ema_decay": 0.9, "joint_forward": True}],
    ids=["uda", "fixmatch"],
)
@pytest.mark.parametrize("augmenter", ["randaugment", "random", "divaug"])
def test_the_graph_trains_on_unlabelled_images_as_the_step_itself(augmenter, changes):
    with torch.backends.cudnn.flags(deterministic=True, benchmark=False, allow_tf32=False):
        eager, graphed = (
            parts_on(cuda(graphed=f), augmenter=augmenter, **(SEMI | changes))
            for f in (False, True)
        )
        run(eager, run_of(eager.step))
        run(graphed, run_of(graphed.step))
    for a, b in zip(state_of(eager.step), state_of(graphed.step), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=5e-3)
    assert graphed.augment.state_dict() == eager.augment.state_dict()


@pytest.mark.parametrize("changes", [{}, {"ema_decay": 0.9, "joint_forward": True}])
@pytest.mark.parametrize("augmenter", ["randaugment", "random", "divaug"])
def test_a_semi_supervised_step_never_waits_for_the_device(augmenter, changes):
    parts = parts_on(cuda(torch.bfloat16), augmenter=augmenter, **(SEMI | changes))
    inputs = next(parts.feed.epoch(0, 0))
    for _ in range(2):
        parts.step(inputs)
    torch.cuda.synchronize()
    with waits_forbidden():
        parts.step(inputs)


def test_a_semi_supervised_run_on_the_gpu_finishes_and_resumes(tmp_path):
    data = toy_data(64, channels=3)
    recipe = toy_recipe(augmenter="divaug", precision="auto", ema_decay=0.9, **SEMI)
    result = train(recipe, tmp_path / "run", data=data, device="cuda", reporter=Silent())
    assert result.finished
    again = train(
        recipe, tmp_path / "run", data=data, device="cuda", resume=True, reporter=Silent()
    )
    assert again.test == result.test
