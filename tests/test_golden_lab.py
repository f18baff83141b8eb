"""Golden values of the laboratory, through its command line alone.

`python -m tests.test_golden_lab --write` writes them anew, for an intended change.
"""

import csv
import json
import math
import re
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from unittest import mock

import pytest
import torch

from divaug.__main__ import main

HERE = Path(__file__).parent
TRAINING, TABLES = HERE / "golden_training.json", HERE / "golden_tables.jsonl"
RUNS = {
    "divaug": ["--set", "num_selected=2"],
    "random": ["--set", "augmenter=random"],
    "uda": [
        *("--objective", "uda", "--labels", "20", "--set", "augmenter=random"),
        *("--set", "epoch_steps=6", "--set", "unlabelled_batch_size=24", "--set", "confidence=0.1"),
    ],
}
#: Columns of a table that are left out, and those whose wording is free.
ORIGINS, PROSE = {"command", "machine", "versions"}, {"claim", "numbers"}
#: What tells of time, in the lines of a run.
TIMES = {"seconds", "epoch_seconds", "images_per_second", "time"}


def divaug(*words, code=0):
    """Call the command line; it has to end with that code."""
    given = mock.patch.object(sys, "argv", ["divaug", *map(str, words)])
    with given, pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code or 0) == code


def train(name, out, *more, code=0):
    small = "epochs=2 train_images=96 batch_size=16 num_candidates=4 log_every=1 checkpoint_every=1"
    words = [word for change in small.split() for word in ("--set", change)]
    divaug("train", "demo-divaug", "--device", "cpu", "--out", out, *words, *RUNS[name], *more,
           code=code)  # fmt: skip


def story(folder):
    """What a run recorded, without times; the only place that knows the files of a run."""
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [{key: value for key, value in line.items() if key not in TIMES} for line in lines]


def weights(folder):
    newest = max(path.parent for path in folder.rglob("*.safetensors"))
    return {path.name: path.read_bytes() for path in newest.glob("*.safetensors")}


def summary(folder):
    """The floats of all epochs, and the counts of what was kept."""
    epochs = [line for line in story(folder) if line["kind"] == "epoch"]
    names = ("loss", "accuracy", "test_loss", "test_accuracy", "unlabelled_loss")
    return {
        "floats": [epoch[name] for epoch in epochs for name in names if name in epoch],
        "kept": [
            {name: epoch["record"][name] for name in ("images", "operations", "drawn")}
            for epoch in epochs
        ],
    }


def interrupting(step):
    """Send this process SIGINT in the backward pass of that step."""
    backward, passed = torch.Tensor.backward, []

    def counted(*given, **more):
        passed.append(backward(*given, **more))
        if len(passed) == step:
            signal.raise_signal(signal.SIGINT)

    return mock.patch.object(torch.Tensor, "backward", counted)


def cell(column, text):
    """A number; else a text, of prose only its numbers."""
    if re.fullmatch(r"[-+]?\d+(\.\d+)?(e[-+]\d+)?", text):
        return float(f"{float(text):.8g}")
    return " ".join(re.findall(r"[-+]?\d[\d.,]*", text)) if column in PROSE else text


def tables(folder):
    """The rows of all tables, written from nothing but the records; cells that are not empty."""
    derived = shutil.ignore_patterns("*.csv", "*.md", "*.html", "*.svg", "*.png")
    shutil.copytree(HERE.parent / "results", folder, ignore=derived)
    divaug("report", "--from", folder)
    for path in sorted(folder.rglob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                yield {c: cell(c, text) for c, text in row.items() if text and c not in ORIGINS}


def close(one, other):
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    return one == other


def changed(golden, row):
    """The golden cells that a row has not, and what it has there; further columns are welcome."""
    return {c: (v, row.get(c)) for c, v in golden.items() if not close(v, row.get(c))}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_training_and_its_resume(name, tmp_path):
    train(name, tmp_path / "whole")
    with interrupting(9):
        train(name, tmp_path / "parts", code=128 + signal.SIGINT)
    assert len(story(tmp_path / "parts")) < len(story(tmp_path / "whole"))
    train(name, tmp_path / "parts", "--resume")
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    assert story(tmp_path / "parts") == story(tmp_path / "whole")
    golden, found = json.loads(TRAINING.read_text())[name], summary(tmp_path / "whole")
    assert found["floats"] == pytest.approx(golden["floats"], rel=0.02, abs=0.03)
    if name != "divaug":  # whose choice follows the network's floats
        assert found["kept"] == golden["kept"]


@pytest.mark.slow
def test_tables(tmp_path):
    """Every committed record is read; names, order and width of the tables are free."""
    found, wrong = list(tables(tmp_path / "results")), []
    for golden in map(json.loads, TABLES.read_text(encoding="utf-8").splitlines()):
        if not any(all(close(v, row.get(c)) for c, v in golden.items()) for row in found):
            cells = min((changed(golden, row) for row in found), key=len)
            wrong.append(f"{golden}\n    golden and now: {cells}")
    assert not wrong, f"{len(wrong)} rows changed:\n" + "\n".join(wrong)


def write(folder):
    rows = {json.dumps(row, ensure_ascii=False) for row in tables(folder / "results")}
    TABLES.write_text("".join(f"{row}\n" for row in sorted(rows)), encoding="utf-8")
    training = {}
    for name in RUNS:
        train(name, folder / name)
        training[name] = summary(folder / name)
    TRAINING.write_text(json.dumps(training, indent=1) + "\n")


if __name__ == "__main__" and "--write" in sys.argv:
    with tempfile.TemporaryDirectory() as name:
        write(Path(name))
