"""Signals and torchrun's processes: one line, the right code, nothing half-written."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import divaug
from divaug.lab.cli import run
from divaug.lab.train import checkpoint
from divaug.lab.train.folder import read_result
from divaug.lab.train.loop import Interruption, pass_on

SOURCE = str(Path(divaug.__file__).parents[1])
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCE}
TRAIN = ["train", "demo-default", "--device", "cpu"]

# The command line, with a part of the start-up that says when it is reached and takes for ever. In
# short naps: Python looks for signals between them, and one that came just before a nap waits for
# its end.
SLOW = """
import sys, time
from divaug.lab import train as training
from divaug.lab.train import data, step

def wait(*_arguments, **_keywords):
    print("HERE", flush=True)
    for _ in range(1200):
        time.sleep(0.05)

{patch} = wait
from divaug.lab.cli import run
run(sys.argv[1:])
"""


# A module that says when it is imported and takes for ever.
SLOW_MODULE = """
import time
print("HERE", flush=True)
for _ in range(1200):
    time.sleep(0.05)
"""


def start(words, **keywords):
    return subprocess.Popen(
        [sys.executable, *words],
        env=ENVIRONMENT | keywords.pop("env", {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **keywords,
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("patch", ["data.load_data", "step.Step.__call__"])
def test_a_signal_at_start_up_is_one_line_and_nothing_is_written(tmp_path, patch, number, code):
    """While the data is read, and in the first step, where networks are compiled."""
    words = ["-c", SLOW.format(patch=patch), *TRAIN, "--out", str(tmp_path / "run")]
    process = start(words)
    while "HERE" not in (line := process.stdout.readline()):
        assert line, process.stderr.read()
    process.send_signal(number)
    _, error = process.communicate(timeout=30)
    assert process.returncode == code
    assert error.splitlines() == [f"divaug: stopped by {number.name}"]
    assert not (tmp_path / "run").exists()


@pytest.fixture
def ctrl_c():
    """Python's own handler: started aside by a shell, tests and their children ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(
    "words", [["-m", "divaug"], ["-c", "from divaug.__main__ import main; main()"]]
)
def test_ctrl_c_while_the_command_line_is_imported_is_one_line(tmp_path, words):
    (tmp_path / "typer.py").write_text(SLOW_MODULE)
    process = start([*words, "--version"], env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{SOURCE}"})
    assert process.stdout.readline() == "HERE\n", process.stderr.read()
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert error.splitlines() == ["divaug: stopped by SIGINT"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_training_saves_and_says_so(tmp_path, number, code):
    changes = ("epochs=500", "evaluate_every=500", "log_every=2", "train_images=320")
    words = ["-m", "divaug", *TRAIN, "--out", str(tmp_path / "run")]
    process = start([*words, *(w for change in changes for w in ("--set", change))])
    metrics, begun = tmp_path / "run" / "metrics.jsonl", time.monotonic()
    while not (metrics.exists() and metrics.stat().st_size):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() - begun < 60
        time.sleep(0.02)
    process.send_signal(number)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (code, "")
    found, _ = checkpoint.load_latest(tmp_path / "run" / "checkpoints")
    assert out.splitlines()[-1].startswith(f"stopped by {number.name} after step {found.step},")
    assert read_result(tmp_path / "run")["signal"] == number.name


@pytest.mark.usefixtures("ctrl_c")
def test_the_first_signal_is_noted_and_the_second_obeyed():
    with Interruption() as stop:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)  # nobody listens yet
        assert stop.signal is None
        stop.listen()
        signal.raise_signal(signal.SIGINT)
        assert stop.signal == "SIGINT"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        pass_on("SIGINT")


def test_an_error_of_our_own_keeps_its_traceback(monkeypatch):
    def mistake(*_):
        raise TypeError("a mistake of ours")

    monkeypatch.setattr("divaug.lab.recipes.recipe", mistake)
    with pytest.raises(TypeError, match="a mistake of ours"):
        run(["train", "demo-default", "--out", "nowhere"])


def test_bad_input_under_torchrun_is_told_once(tmp_path):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    words = ["-m", "divaug", "train", "demo-defualt", "--out", str(tmp_path / "run")]
    process = start([*launcher, *words], cwd=tmp_path)
    _, error = process.communicate(timeout=60)
    assert process.returncode != 0
    told = [line for line in error.splitlines() if "Did you mean 'demo-default'" in line]
    assert len(told) == 1
    assert told[0].startswith("divaug: unknown recipe")
    assert not (tmp_path / "run").exists()


def test_the_others_wait_for_the_first_and_end_with_the_same_code(monkeypatch, capsys):
    """What torchrun does when one has failed: SIGTERM to the rest, while they wait."""
    monkeypatch.setenv("RANK", "1")
    sleep = "divaug.lab.cli.signals.time.sleep"
    monkeypatch.setattr(sleep, lambda _: signal.raise_signal(signal.SIGTERM))
    with pytest.raises(SystemExit) as end:
        run(["train", "demo-defualt", "--out", "nowhere"])
    assert end.value.code == 2
    assert capsys.readouterr().err == ""


def test_trouble_of_one_process_alone_is_told_after_a_while(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr("divaug.lab.cli.signals._GRACE", 0.01)
    with pytest.raises(SystemExit) as end:
        run(["train", "demo-defualt", "--out", "nowhere"])
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("divaug: unknown recipe")
