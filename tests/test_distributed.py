"""Two processes on the CPU train as one does."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
import torch

import divaug
from divaug.training import checkpoints, train
from divaug.training.distributed import Processes, joined, wanted
from divaug.training.progress import Silent
from divaug.training.runs import read_metrics
from tests.dataset_files import write_images
from tests.reference import stopped_processes
from tests.training_helpers import PlainEntry, same_story, toy_data, toy_recipe

ROOT = Path(__file__).parents[1]

SCRIPT = """
import os, sys, torch
sys.path.insert(0, {root!r})
torch.set_num_threads(1)
import divaug.views
from divaug import plugin
from divaug.training import train
from divaug.training.progress import Silent
from tests.training_helpers import PlainEntry, toy_data, toy_recipe

batches = []
take = {owner}.__call__
def note(self, *arguments, **keywords):
    result = take(self, *arguments, **keywords)
    batches.append((keywords["index"], *result))
    return result
{owner}.__call__ = note
with PlainEntry():
    train(toy_recipe(**{changes!r}), {out!r}, data=toy_data(), device="cpu", reporter=Silent())
torch.save(batches, {out!r} + "-" + os.environ.get("RANK", "0") + ".pt")
"""

OWNER = {"divaug": "plugin.DivAug", "trivialaugment-xS": "divaug.views.Views"}


def launch(count, script, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(script))
    source = str(Path(divaug.__file__).parents[1])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": source}
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    launcher = launcher if count > 1 else []
    done = subprocess.run(
        [sys.executable, *launcher, str(path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize(
    ("augmenter", "model"),
    [("divaug", "plain"), ("divaug", "tiny-resnet-8"), ("trivialaugment-xS", "tiny-resnet-8")],
)
def test_two_processes_train_as_one(tmp_path, augmenter, model):
    """Same augmentation to the bit, same losses within rounding, without BatchNorm and with it."""
    changes = {"augmenter": augmenter, "model": model, "epochs": 2, "log_every": 1}
    fill = {"root": str(ROOT), "owner": OWNER[augmenter], "changes": changes}
    launch(2, SCRIPT.format(out=str(tmp_path / "two"), **fill), tmp_path)
    with PlainEntry():
        recipe = toy_recipe(**changes)
    alone = str(tmp_path / "one")
    launch(1, SCRIPT.format(out=alone, **fill), tmp_path)
    one, two = read_metrics(tmp_path / "one"), read_metrics(tmp_path / "two")
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        for name in ("loss", "accuracy", "diversity"):
            assert b[name] == pytest.approx(a[name], rel=1e-4, abs=1e-6)
        if a["kind"] == "epoch":
            assert b["test_accuracy"] == a["test_accuracy"]
            assert b["test_images"] == a["test_images"] == 20
            assert b["record"]["images"] == a["record"]["images"] == 48
            if augmenter == "trivialaugment-xS":  # where the network decides, rounding may
                for name in ("drawn", "operations"):
                    assert b["record"][name] == a["record"][name]
    whole = torch.load(f"{alone}-0.pt")
    parts = [torch.load(f"{tmp_path / 'two'}-{rank}.pt") for rank in range(2)]
    for step in range(6):  # the network's first choices, before rounding can turn one
        for kind in range(3):
            both = torch.cat([part[step][kind] for part in parts])
            assert torch.equal(both, whole[step][kind])
    last = [checkpoints.load_latest(tmp_path / name / "checkpoints")[0] for name in ("one", "two")]
    for name, tensor in last[0].model.items():
        torch.testing.assert_close(last[1].model[name], tensor, rtol=1e-3, atol=1e-5)
    assert recipe.hash == last[0].info["recipe"] == last[1].info["recipe"]


SHAKING = """
import os, sys, torch
sys.path.insert(0, {root!r})
torch.set_num_threads(1)
from divaug.models.shaking import ShakeNoise
from divaug.training import Hardware, train
from divaug.training.assembly import assemble
from divaug.training.distributed import joined, wanted
from tests.training_helpers import toy_data, toy_recipe

processes = wanted()
device = torch.device("cpu")
with joined(processes, device):
    recipe = toy_recipe(model="shake-shake-26-2x96d", augmenter="randaugment-xS")
    parts = assemble(recipe, toy_data(), Hardware(device), processes)
    noise = [m for m in parts.network.modules() if isinstance(m, ShakeNoise)][0]
    images = recipe.batch_size // processes.count * parts.augment.views
    torch.save(noise(images), {out!r} + "-" + str(processes.rank) + ".pt")
"""


def test_shaking_noise_does_not_depend_on_the_number_of_processes(tmp_path):
    for count in (1, 2):
        out = str(tmp_path / f"of-{count}")
        launch(count, SHAKING.format(root=str(ROOT), out=out), tmp_path)
    whole = torch.load(tmp_path / "of-1-0.pt")
    parts = [torch.load(tmp_path / f"of-2-{rank}.pt") for rank in range(2)]
    for layer, numbers in enumerate(whole):
        both = torch.cat([part[layer] for part in parts], dim=1)
        assert torch.equal(both, numbers)


STREAMING = """
import sys, torch
sys.path.insert(0, {root!r})
torch.set_num_threads(1)
import divaug.augmenters
from divaug import policies
from divaug.datasets import image_files
from divaug.operations import OPERATIONS
from divaug.training import Hardware
from divaug.training.assembly import assemble
from divaug.training.distributed import joined, wanted
from tests.training_helpers import toy_recipe

absent = tuple(name for name in OPERATIONS if name != "SamplePairing")
divaug.augmenters.Uniform = lambda space: policies.Uniform(space, exclude=absent)
processes = wanted()
device = torch.device("cpu")
with joined(processes, device):
    recipe = toy_recipe(augmenter="random", batch_size=4, num_workers={workers})
    parts = assemble(recipe, image_files({photos!r}), Hardware(device), processes)
    found = []
    for inputs in parts.feed.epoch(0, 0):
        batch = parts.feed.gather(inputs)
        images, labels = parts.augment(batch.images, batch.labels, index=batch.indices, epoch=0)
        found.append((batch.indices, images.unflatten(0, (-1, 2)), labels.view(-1, 2)))
    assert parts.augment.record().operations["SamplePairing"] > 0
    torch.save(found, {out!r} + "-" + str(processes.rank) + ".pt")
"""


def test_partners_of_streamed_images_do_not_depend_on_processes_or_workers(tmp_path):
    """SamplePairing alone: with partners from the batch, each process would have others."""
    write_images(tmp_path / "photos", {"a": 8, "b": 7})
    for count, workers in ((1, 0), (2, 1)):
        out = str(tmp_path / f"of-{count}")
        fill = {"root": str(ROOT), "photos": str(tmp_path / "photos"), "workers": workers}
        launch(count, STREAMING.format(out=out, **fill), tmp_path)
    whole = torch.load(tmp_path / "of-1-0.pt")
    parts = [torch.load(tmp_path / f"of-2-{rank}.pt") for rank in range(2)]
    assert len(whole) == 3
    for step, expected in enumerate(whole):
        for kind, values in enumerate(expected):
            assert torch.equal(torch.cat([part[step][kind] for part in parts]), values)


def test_two_processes_stop_together_and_continue_to_the_same_bits(tmp_path):
    """A network with BatchNorm, SIGTERM to the launcher, then the rest."""
    changes = ("epochs=6", "train_images=320", "log_every=3", "evaluate_every=6",
               "checkpoint_every=6", "model=tiny-resnet-8")  # fmt: skip
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "divaug"]
    words += ["train", "demo-default", "--device", "cpu"]
    words += [word for change in changes for word in ("--set", change)]
    source = str(Path(divaug.__file__).parents[1])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": source}

    def begin(name, *more):
        return subprocess.Popen(
            [sys.executable, *words, "--out", str(tmp_path / name), *more],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )

    stopped = begin("parts")
    metrics, begun = tmp_path / "parts" / "metrics.jsonl", time.monotonic()
    while not (metrics.exists() and metrics.stat().st_size):
        assert stopped.poll() is None
        assert time.monotonic() - begun < 120
        time.sleep(0.02)
    stopped.send_signal(signal.SIGTERM)
    stopped.communicate(timeout=120)
    saved = [path.name for path in checkpoints.find(tmp_path / "parts" / "checkpoints")]
    assert len(saved) == 1
    assert saved[0] < "step-00000030"
    for name, *more in (("parts", "--resume"), ("whole",)):
        process = begin(name, *more)
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error[-3000:]
    one, two = (
        checkpoints.load_latest(tmp_path / name / "checkpoints")[0] for name in ("whole", "parts")
    )
    assert one.step == two.step == 30
    assert all(torch.equal(one.model[name], two.model[name]) for name in one.model)
    assert all(torch.equal(one.optimizer[n], two.optimizer[n]) for n in one.optimizer)
    assert same_story(tmp_path / "whole", tmp_path / "parts")


def test_two_processes_stopped_anywhere_continue_to_the_same_bits(tmp_path):
    """By a signal or killed: in mid-epoch, before, in and after an evaluation."""
    torch.multiprocessing.spawn(stopped_processes.run, (2, str(tmp_path)), nprocs=2)
    whole, _ = checkpoints.load_latest(tmp_path / "whole" / "checkpoints")
    for name in stopped_processes.STOPS:
        parts, _ = checkpoints.load_latest(tmp_path / name / "checkpoints")
        assert parts.step == whole.step
        for kind in ("model", "optimizer"):
            one, two = getattr(whole, kind), getattr(parts, kind)
            assert one.keys() == two.keys()
            assert all(torch.equal(one[n], two[n]) for n in one), name
        assert same_story(tmp_path / "whole", tmp_path / name), name


def test_parts_of_a_batch_are_consecutive_and_equal():
    parts = [Processes(rank, 3).part_of(12) for rank in range(3)]
    assert [list(range(12))[part] for part in parts] == [
        [0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]
    ]  # fmt: skip
    with pytest.raises(ValueError, match="multiple of the 5 processes, got 12"):
        Processes(0, 5).part_of(12)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK must lie in"),
        ({"RANK": "x", "WORLD_SIZE": "2"}, "whole numbers"),
    ],
)
def test_an_environment_that_makes_no_sense_is_refused(monkeypatch, variables, message):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=message):
        wanted()


def test_a_port_in_use_is_one_clear_error(monkeypatch, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for name, value in {
            "RANK": "0",
            "WORLD_SIZE": "2",
            "LOCAL_RANK": "0",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(taken.getsockname()[1]),
        }.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(OSError, match=r"could not meet at 127\.0\.0\.1.*--master-port"):
            train(
                toy_recipe(),
                tmp_path / "run",
                data=toy_data(),
                device="cpu",
                reporter=Silent(),
            )
    assert not (tmp_path / "run").exists()


def test_threads_that_need_the_interpreter_get_it_before_the_group_is_destroyed(monkeypatch):
    """Gloo's threads let go of their last message with it; torch waits for them holding it."""
    begin, let_go, seen = threading.Event(), threading.Event(), []
    for name in ("init_process_group", "destroy_process_group"):
        monkeypatch.setattr(torch.distributed, name, lambda *_, **__: seen.append(let_go.is_set()))
    thread = threading.Thread(target=lambda: (begin.wait(), let_go.set()))
    thread.start()
    before = sys.getswitchinterval()
    sys.setswitchinterval(30)  # nobody gets the interpreter unless it is given up
    try:
        with joined(Processes(0, 2), torch.device("cpu")):
            begin.set()
    finally:
        sys.setswitchinterval(before)
        thread.join()
    assert seen == [False, True]


def test_one_process_joins_nobody():
    with joined(Processes(), torch.device("cpu")):
        assert not torch.distributed.is_initialized()
        assert not Processes().any(False, torch.device("cpu"))


SEMI = """
import sys, torch
sys.path.insert(0, {root!r})
torch.set_num_threads(1)
from divaug.training import train
from divaug.training.progress import Silent
from tests.test_semi_supervised import semi_recipe
from tests.training_helpers import PlainEntry, toy_data

with PlainEntry():
    recipe = semi_recipe(**{changes!r})
    train(recipe, {out!r}, data=toy_data(), device="cpu", reporter=Silent())
"""


@pytest.mark.parametrize("joint", [False, True], ids=["three passes", "one pass"])
def test_a_shaking_network_sees_unlabelled_images_alike_in_two_processes(tmp_path, joint):
    """Its noise depends on places in batches of three sizes, or of three kinds in one batch."""
    changes = {"augmenter": "trivialaugment-xS", "model": "shake-shake-26-2x96d", "epochs": 1,
               "epoch_steps": 1, "joint_forward": joint, "confidence": 0.0}  # fmt: skip
    fill = {"root": str(ROOT), "changes": changes}
    for count, name in ((1, "one"), (2, "two")):
        launch(count, SEMI.format(out=str(tmp_path / name), **fill), tmp_path)
    one, two = (read_metrics(tmp_path / name)[0] for name in ("one", "two"))
    for name in ("labelled_loss", "unlabelled_loss", "diversity"):
        assert two[name] == pytest.approx(one[name], rel=1e-4)


def test_two_processes_train_on_unlabelled_images_as_one(tmp_path):
    """The annealed loss is divided by what counts in both halves; so are the sums."""
    changes = {"augmenter": "trivialaugment-xS", "ema_decay": 0.5, "epochs": 1}
    fill = {"root": str(ROOT), "changes": changes}
    for count, name in ((1, "one"), (2, "two")):
        launch(count, SEMI.format(out=str(tmp_path / name), **fill), tmp_path)
    one, two = read_metrics(tmp_path / "one"), read_metrics(tmp_path / "two")
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        for name in ("loss", "accuracy", "diversity", "labelled_loss", "unlabelled_loss"):
            assert b[name] == pytest.approx(a[name], rel=1e-3, abs=1e-5)
        assert b["confident"] == a["confident"]
    assert any(line["unlabelled_loss"] > 0 for line in one)
    ends = [checkpoints.load_latest(tmp_path / name / "checkpoints")[0] for name in ("one", "two")]
    for part in ("model", "optimizer"):
        first, second = (getattr(end, part) for end in ends)
        assert first.keys() == second.keys()
        for name, tensor in first.items():
            torch.testing.assert_close(second[name], tensor, rtol=1e-3, atol=1e-4)
    splits = {(tmp_path / name / "split.json").read_text() for name in ("one", "two")}
    assert len(splits) == 1
