"""Signals while a run trains: one line, the right code, nothing half-written."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import divaug
from divaug.lab.train import checkpoint
from divaug.lab.train.folder import read_result
from divaug.lab.train.loop import Interruption, pass_on

SOURCE = str(Path(divaug.__file__).parents[1])
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCE}
TRAIN = ["train", "demo-default", "--device", "cpu"]


@pytest.fixture
def ctrl_c():
    """Python's own handler: started aside by a shell, tests and their children ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_training_saves_and_says_so(tmp_path, number, code):
    changes = ("epochs=500", "evaluate_every=500", "log_every=2", "train_images=320")
    words = [sys.executable, "-m", "divaug", *TRAIN, "--out", str(tmp_path / "run")]
    process = subprocess.Popen(
        [*words, *(w for change in changes for w in ("--set", change))],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
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
            signal.raise_signal(signal.SIGINT)  # before the run begins there is nothing to save
        assert stop.signal is None
        stop.listen()
        signal.raise_signal(signal.SIGINT)
        assert stop.signal == "SIGINT"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        pass_on("SIGINT")
