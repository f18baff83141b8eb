"""The training loop against hand-written steps, and what happens when things go wrong."""

import dataclasses
import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import divaug
from divaug import augmenters, models
from divaug.augmenters import AUGMENTERS, Settings
from divaug.datasets import order
from divaug.measuring import measure_run
from divaug.training import Hardware, checkpoints, train
from divaug.training.assembly import assemble
from divaug.training.data import default_of, load_data
from divaug.training.distributed import Processes
from divaug.training.evaluation import TestImages, evaluate
from divaug.training.hardware import choose_device
from divaug.training.optimization import SGD
from divaug.training.progress import Silent
from divaug.training.runs import read_metrics, read_recipe
from divaug.training.schedules import rate_at
from tests.training_helpers import Counting, StopAfter, same_story, toy_data, toy_recipe

CPU = Hardware(torch.device("cpu"))
DATA = toy_data()


def run(recipe, out, **keywords):
    return train(recipe, out, **({"data": DATA, "device": "cpu", "reporter": Silent()} | keywords))


def tensors(result):
    return checkpoints.load(result.checkpoint)


@pytest.mark.parametrize("augmenter", ["default", "divaug", "randaugment-xS"])
def test_two_steps_by_hand_are_two_steps_of_the_loop(tmp_path, augmenter):
    """The hand-written loop uses torch's own SGD, clipping and schedule."""
    data = toy_data(num_train=16)
    recipe = toy_recipe(augmenter=augmenter, epochs=1)
    network = models.build("tiny-resnet-8", 4, 1, seed=recipe.seed)
    augment = augmenters.build(
        augmenter,
        Settings(
            network,
            default_of("toy", data),
            num_candidates=3,
            num_selected=2,
            randaugment_n=3,
            randaugment_m=4.0,
            pool=data.train_images,
        ),
    )
    optimizer = torch.optim.SGD(
        network.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    visit = order(16, seed=0, epoch=0)
    for step in range(2):
        for group in optimizer.param_groups:
            group["lr"] = 0.05 * (1 + math.cos(math.pi * step / 2)) / 2
        index = visit[8 * step : 8 * step + 8]
        x, y = augment(data.train_images[index], data.train_labels[index], index=index, epoch=0)
        optimizer.zero_grad()
        F.cross_entropy(network(x), y).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
    result = run(recipe, tmp_path / "run", data=data)
    assert result.step == 2
    found = tensors(result).model
    for name, expected in network.state_dict().items():
        torch.testing.assert_close(found[name], expected, rtol=1e-5, atol=1e-6, msg=name)


@pytest.mark.parametrize("nesterov", [True, False])
def test_our_sgd_is_torchs(nesterov):
    torch.manual_seed(0)
    ours, theirs = (torch.nn.Linear(5, 3) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    recipe = toy_recipe(nesterov=nesterov, learning_rate=0.3, weight_decay=0.01, grad_clip=0.5)
    mine = SGD(ours, recipe, total_steps=6)
    torchs = torch.optim.SGD(
        theirs.parameters(), lr=0.3, momentum=0.9, nesterov=nesterov, weight_decay=0.01
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(torchs, 6)
    x = torch.randn(4, 5) * 10
    for step in range(6):
        assert float(mine.rate()) == pytest.approx(schedule.get_last_lr()[0])
        assert rate_at(recipe, step, 6) == pytest.approx(schedule.get_last_lr()[0])
        for module in (ours, theirs):
            module.zero_grad()
            module(x).square().sum().backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        torchs.step()
        schedule.step()
        mine.step()
    torch.testing.assert_close(ours.weight, theirs.weight)
    torch.testing.assert_close(ours.bias, theirs.bias)


def test_it_overfits_32_images(tmp_path):
    data = toy_data(num_train=32)
    recipe = toy_recipe(
        augmenter="none", epochs=15, batch_size=16, evaluate_every=15, checkpoint_every=15
    )
    run(recipe, tmp_path / "run", data=data)
    last = read_metrics(tmp_path / "run")[-1]
    assert last["accuracy"] == 1.0
    assert last["loss"] < 0.05


@pytest.mark.parametrize("augmenter", AUGMENTERS)
def test_every_augmenter_trains(tmp_path, augmenter):
    data = toy_data(num_train=16)
    result = run(toy_recipe(augmenter=augmenter, epochs=1), tmp_path / "run", data=data)
    assert result.finished
    assert 0.0 <= result.test.accuracy <= 1.0
    line = read_metrics(tmp_path / "run")[-1]
    assert line["record"]["images"] == 16
    views = (
        line["record"]["images"]
        and augmenters.build(
            augmenter, Settings(torch.nn.Identity(), default_of("toy", data), num_selected=2)
        ).views
    )
    assert (line["diversity"] > 0) == (views > 1)


def test_the_global_generator_is_left_alone(tmp_path):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    run(toy_recipe(augmenter="divaug", epochs=1), tmp_path / "run")
    assert torch.equal(torch.get_rng_state(), before)


def test_the_folder_holds_the_whole_story(tmp_path):
    recipe = toy_recipe(evaluate_every=2)
    result = run(recipe, tmp_path / "run")
    assert read_recipe(tmp_path / "run") == recipe
    lines = read_metrics(tmp_path / "run")
    intervals = [line for line in lines if line["kind"] == "interval"]
    epochs = [line for line in lines if line["kind"] == "epoch"]
    assert [line["step"] for line in intervals] == [2, 4, 6, 8, 10, 12]
    assert [line["step"] for line in epochs] == [6, 12]
    assert ["test_accuracy" in line for line in epochs] == [False, True]
    # Means over an epoch are the means of its intervals, which are of equal length here.
    for k in range(2):
        mean = sum(line["loss"] for line in intervals[3 * k : 3 * k + 3]) / 3
        assert epochs[k]["loss"] == pytest.approx(mean)
    rates = [line["learning_rate"] for line in intervals]
    cosine = [0.025 * (1 + math.cos(math.pi * (step - 1) / 12)) for step in range(2, 13, 2)]
    assert rates == pytest.approx(cosine)
    starts = json.loads((tmp_path / "run" / "environment.json").read_text())
    assert torch.__version__.startswith(starts[0]["packages"]["torch"])
    assert starts[0]["device"] == "cpu"
    assert not (tmp_path / "run" / "tensorboard").exists()  # only where it is asked for
    assert result.test.images == 20
    assert result.test.accuracy == epochs[-1]["test_accuracy"]


@pytest.mark.parametrize("augmenter", ["divaug", "pba"])
@pytest.mark.parametrize("steps", [5, 6, 7])
def test_an_interrupted_run_continues_to_the_same_bits(tmp_path, augmenter, steps):
    """In the middle of an epoch, at its end, and after its first step; two stops in a row."""
    recipe = toy_recipe(augmenter=augmenter, log_every=4)
    whole = run(recipe, tmp_path / "whole")
    stopped = run(recipe, tmp_path / "parts", reporter=StopAfter(steps))
    assert not stopped.finished
    assert (stopped.signal, stopped.step) == ("SIGTERM", steps)
    again = run(recipe, tmp_path / "parts", resume=True, reporter=StopAfter(2, signal.SIGINT))
    assert (again.signal, again.step) == ("SIGINT", steps + 2)
    last = run(recipe, tmp_path / "parts", resume=True)
    assert last.finished
    assert last.test == whole.test
    one, two = tensors(whole), tensors(last)
    for kind in ("model", "optimizer"):
        a, b = getattr(one, kind), getattr(two, kind)
        assert a.keys() == b.keys()
        assert all(torch.equal(a[name], b[name]) for name in a)
    assert same_story(tmp_path / "whole", tmp_path / "parts")
    starts = json.loads((tmp_path / "parts" / "environment.json").read_text())
    assert [start["step"] for start in starts] == [0, steps, steps + 2]


SCRIPT = """
import sys, torch
sys.path.insert(0, {root!r})
torch.set_num_threads(1)
from divaug.training import train
from divaug.training.progress import Lines
from tests.training_helpers import StopAfter, same_story, toy_data, toy_recipe

result = train(
    toy_recipe(augmenter="divaug", epochs=200, checkpoint_every=100, evaluate_every=100),
    {out!r}, data=toy_data(), device="cpu", resume={resume}, reporter=Lines(),
)
print("ENDED", result.signal, result.step)
"""


def test_a_process_that_gets_sigterm_saves_and_can_be_resumed(tmp_path):
    root = str(Path(__file__).parents[1])
    out = str(tmp_path / "run")
    script = textwrap.dedent(SCRIPT.format(root=root, out=out, resume=False))
    source = str(Path(divaug.__file__).parents[1])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": source}
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment
    )
    metrics = tmp_path / "run" / "metrics.jsonl"
    waited = time.monotonic()
    while not (metrics.exists() and metrics.stat().st_size):
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() - waited < 60
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    step = int(text.split("ENDED SIGTERM ")[1])
    stopped = checkpoints.find(tmp_path / "run" / "checkpoints")
    assert [path.name for path in stopped] == [f"step-{step:08d}"]
    recipe = toy_recipe(augmenter="divaug", epochs=200, checkpoint_every=100, evaluate_every=100)
    # Uninterrupted, as far as the interrupted one came, and then both two steps further.
    whole = run(recipe, tmp_path / "whole", reporter=StopAfter(step + 2))
    parts = run(recipe, tmp_path / "run", resume=True, reporter=StopAfter(2))
    one, two = tensors(whole), tensors(parts)
    assert one.step == two.step == step + 2
    assert all(torch.equal(one.model[name], two.model[name]) for name in one.model)


@pytest.mark.parametrize("log_every", [1, 3, 5, 50])
def test_a_loss_that_is_not_finite_stops_the_run_and_the_step_is_named(tmp_path, log_every):
    """Whenever it is noticed: the rate is that of the step at which it happened."""
    recipe = toy_recipe(learning_rate=1e30, grad_clip=0.0, epochs=3, log_every=log_every)
    rate = f"{0.5e30 * (1 + math.cos(math.pi / 18)):.6g}"
    message = rf"not finite at step 2 \(learning rate {re.escape(rate)}\).*none yet"
    with pytest.raises(ValueError, match=message):
        run(recipe, tmp_path / "run")
    assert checkpoints.find(tmp_path / "run" / "checkpoints") == []


def test_a_run_whose_loss_is_not_finite_is_not_saved_on_a_signal(tmp_path):
    recipe = toy_recipe(learning_rate=1e30, grad_clip=0.0, epochs=3, log_every=50)
    with pytest.raises(ValueError, match="not finite at step 2"):
        run(recipe, tmp_path / "run", reporter=StopAfter(3))
    assert checkpoints.find(tmp_path / "run" / "checkpoints") == []


def test_the_message_names_the_last_checkpoint(tmp_path, monkeypatch):
    save = checkpoints.save

    def save_and_spoil(folder, checkpoint):
        path = save(folder, checkpoint)
        with torch.no_grad():
            next(iter(checkpoint.model.values())).fill_(math.nan)
        return path

    monkeypatch.setattr(checkpoints, "save", save_and_spoil)
    with pytest.raises(ValueError, match=r"not finite at step 7 .*step-00000006"):
        run(toy_recipe(epochs=3), tmp_path / "run")


def test_an_existing_folder_is_refused_and_left_alone(tmp_path):
    recipe = toy_recipe(epochs=1)
    run(recipe, tmp_path / "run")
    before = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
    with pytest.raises(FileExistsError, match="--resume"):
        run(recipe, tmp_path / "run")
    with pytest.raises(ValueError, match="another recipe: epochs was 1 and is 2"):
        run(toy_recipe(epochs=2), tmp_path / "run", resume=True)
    assert {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()} == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="is no run"):
        run(recipe, tmp_path / "other", resume=True)
    with pytest.raises(FileExistsError, match="is a file"):
        run(recipe, tmp_path / "other" / "thesis.txt")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 64}, "`batch_size` must not exceed the 48 training images"),
        ({"train_images": 4000}, "balanced subset"),
    ],
)
def test_bad_input_writes_nothing(tmp_path, changes, message):
    data = None if "train_images" in changes else DATA
    recipe = toy_recipe(dataset="fashion_mnist_small", **changes)
    with pytest.raises(ValueError, match=message):
        run(recipe, tmp_path / "run", data=data)
    assert not (tmp_path / "run").exists()


def test_without_safetensors_nothing_is_trained_that_could_not_be_saved(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"training needs safetensors.*pip install '\.\[train\]'"):
        run(toy_recipe(), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(ImportError, match="reading a checkpoint needs safetensors"):
        checkpoints.load(tmp_path)


@pytest.mark.parametrize(("recipe", "out", "message"), [
    ("demo-divaug", "run", r"`recipe`.*got str; .*recipes\.recipe\('demo-divaug'\)"),
    (None, "run", r"`recipe` must be a Recipe, got NoneType"),
    (toy_recipe(), None, "`out` must be the path of the run's folder.*got None"),
    (toy_recipe(), 3, "`out`.*got 3"),
])  # fmt: skip
def test_what_is_no_recipe_and_no_folder_is_named(recipe, out, message):
    with pytest.raises(TypeError, match=message):
        run(recipe, out)


def test_a_finished_run_can_be_resumed_to_its_result(tmp_path):
    recipe = toy_recipe()
    first = run(recipe, tmp_path / "run")
    again = run(recipe, tmp_path / "run", resume=True)
    assert again.finished
    assert again.test == first.test
    assert again.step == first.step


def test_resuming_with_a_cut_checkpoint_takes_the_one_before_and_says_so(tmp_path):
    recipe = toy_recipe()
    whole = run(recipe, tmp_path / "run")
    (whole.checkpoint / "model.safetensors").write_bytes(b"short")
    notes = []

    class Listening(Silent):
        def note(self, text):
            notes.append(text)

    again = run(recipe, tmp_path / "run", resume=True, reporter=Listening())
    assert len(notes) == 2
    assert notes[0].startswith("data 'toy'")
    assert "step-00000012 cannot be used" in notes[1]
    assert again.test == whole.test
    assert tensors(again).step == 12


def test_resuming_without_a_whole_checkpoint_leaves_the_run_alone(tmp_path):
    recipe = toy_recipe()
    run(recipe, tmp_path / "run")
    for path in (tmp_path / "run" / "checkpoints").iterdir():
        (path / "model.safetensors").write_bytes(b"short")
    before = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    with pytest.raises(ValueError, match=r"no checkpoint in .* is whole.*the run is left as it is"):
        run(recipe, tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize("compiled", [False, True])
def test_evaluating_more_often_trains_nothing_else(compiled):
    network = Counting()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    called = torch.compile(network, backend="eager") if compiled else network
    evaluate(called, TestImages(DATA.test_images, DATA.test_labels), default_of("toy", DATA), CPU)
    assert all(torch.equal(before[n], t) for n, t in network.state_dict().items())


def test_evaluation_is_exact_in_any_chunks_and_leaves_the_network_alone():
    network = models.build("tiny-resnet-8", 4, 1)
    default = default_of("toy", DATA)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    mean, std = 0.35, 0.25
    logits = network.eval()((DATA.test_images / 255 - mean) / std).detach()
    network.train()
    for chunk in (20, 7, 1):
        scores = evaluate(
            network, TestImages(DATA.test_images, DATA.test_labels, chunk_size=chunk), default, CPU
        )
        assert scores.images == 20
        assert scores.accuracy == (logits.argmax(1) == DATA.test_labels).double().mean()
        assert scores.loss == pytest.approx(
            float(F.cross_entropy(logits, DATA.test_labels)), rel=1e-5
        )
    assert network.training
    assert all(torch.equal(before[n], t) for n, t in network.state_dict().items())


@pytest.mark.parametrize("chunk", [20, 8, 7, 32])
def test_a_compiled_network_is_evaluated_on_batches_of_one_shape(chunk):
    """What fills the last batch up does not count."""
    network = models.build("tiny-resnet-8", 4, 1)
    default = default_of("toy", DATA)
    test = TestImages(DATA.test_images, DATA.test_labels, chunk_size=chunk)
    expected = evaluate(network, test, default, CPU)
    shapes = []
    network.register_forward_pre_hook(lambda _, given: shapes.append(tuple(given[0].shape)))
    found = evaluate(network, test, default, dataclasses.replace(CPU, compiled=True))
    assert (found.accuracy, found.images) == (expected.accuracy, 20)
    assert found.loss == pytest.approx(expected.loss, rel=1e-5)
    assert set(shapes) == {(chunk, 1, 16, 16)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_evaluating_reuses_what_scoring_compiled(monkeypatch, dtype):
    """The same shape, dtype, layout and mode: after training nothing is compiled anew."""
    monkeypatch.setattr(
        "divaug.training.assembly.compiled",
        lambda network: torch.compile(network, dynamic=False, backend="eager"),
    )
    hardware = Hardware(torch.device("cpu"), dtype, compiled=True)
    parts = assemble(toy_recipe(augmenter="divaug"), DATA, hardware, Processes())
    for inputs in itertools.islice(parts.feed.epoch(0, 0), 2):
        parts.step(inputs)
    with torch._dynamo.config.patch(error_on_recompile=True):
        assert evaluate(parts.called, parts.test, parts.default, hardware).images == 20
        with pytest.raises(Exception, match=r"[Rr]ecompil"):  # the guard does its work
            parts.called(torch.zeros(5, 1, 16, 16))


def test_test_images_are_shared_out_completely_and_all_count_the_same_rounds():
    for count, number, chunk in itertools.product((1, 2, 3), (1, 5, 20), (1, 3, 7, 50)):
        images, labels = DATA.test_images[:number], DATA.test_labels[:number]
        sets = [TestImages(images, labels, Processes(r, count), chunk) for r in range(count)]
        given = [list(part.batches()) for part in sets]
        assert torch.equal(torch.cat([x for part in given for x, _ in part]), images)
        assert {part.rounds for part in sets} == {max(len(part) for part in given)}


def test_evaluation_without_images_is_an_error():
    test = TestImages(DATA.test_images[:0], DATA.test_labels[:0])
    with pytest.raises(ValueError, match="no test images"):
        evaluate(models.build("tiny-resnet-8", 4, 1), test, default_of("toy", DATA), CPU)


def test_devices_that_are_not_there_are_named():
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="asks for 'cuda', and torch sees 0 GPUs"):
            choose_device("cuda")
    for wrong in ("gpu", "mps:0", "meta"):
        with pytest.raises(ValueError, match="`device` must be"):
            choose_device(wrong)


def test_soft_labels_train_too():
    parts = assemble(toy_recipe(), DATA, CPU, Processes())
    soft = F.one_hot(DATA.train_labels, 4).float()
    step = dataclasses.replace(
        parts.step, gather=lambda i: parts.feed.gather(i)._replace(labels=soft[i[0]])
    )
    inputs = next(parts.feed.epoch(0, 0))
    other = assemble(toy_recipe(), DATA, CPU, Processes())
    step(inputs)
    other.step(inputs)
    torch.testing.assert_close(step.sums, other.step.sums)


@pytest.mark.parametrize("dataset", ["Fashion-MNIST-small", "cifar10", "toy"])
def test_default_augmentations_have_the_statistics_of_the_data(dataset):
    data = DATA if dataset != "cifar10" else toy_data(channels=3)
    default = default_of(dataset, data)
    assert (default.mean, default.std) == (data.mean, data.std)
    expected = {"Fashion-MNIST-small": (2, 8), "cifar10": (4, 16), "toy": (2, 8)}
    assert (default.padding, default.cutout) == expected[dataset]


def test_data_can_be_a_file_or_is_named_when_missing(tmp_path):
    import numpy as np

    path = tmp_path / "mine.npz"
    np.savez(
        path,
        x_train=DATA.train_images.numpy(),
        y_train=DATA.train_labels.numpy(),
        x_test=DATA.test_images.numpy(),
        y_test=DATA.test_labels.numpy(),
    )
    found = load_data(toy_recipe(train_images=8), path)
    assert found.train_images.shape == (8, 1, 16, 16)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_data(toy_recipe(), tmp_path / "none.npz")


def test_folders_of_images_are_streamed(tmp_path):
    """Six photographs a class: decoded by workers, cropped on the device, evaluated as squares."""
    from PIL import Image

    noise = torch.randint(0, 256, (18, 30, 40, 3), generator=torch.Generator().manual_seed(0))
    for i, image in enumerate(noise.to(torch.uint8)):
        folder = tmp_path / "photos" / ("train" if i < 12 else "val") / "ab"[i % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.numpy()).save(folder / f"{i}.png")
    recipe = toy_recipe(
        dataset=str(tmp_path / "photos"), augmenter="divaug", batch_size=4, epochs=2, log_every=9
    )
    # More workers than cores make torch warn, which these tests take for an error.
    many = dataclasses.replace(recipe, epochs=1, num_workers=(os.cpu_count() or 1) + 1)
    few = run(many, tmp_path / "few", data=None)
    assert few.step == 3
    assert "divaug" in measure_run(few.folder, device="cpu")
    whole = run(recipe, tmp_path / "whole", data=None)
    assert (whole.step, whole.test.images) == (6, 6)
    stopped = run(recipe, tmp_path / "parts", data=None, reporter=StopAfter(4))
    assert stopped.step == 4
    last = run(recipe, tmp_path / "parts", data=None, resume=True)
    one, two = tensors(whole), tensors(last)
    assert all(torch.equal(one.model[name], two.model[name]) for name in one.model)
