"""Checkpoints: whole or not there, never another network's, nothing unpickled."""

import errno
import json
import pickle

import pytest
import torch
from torch import nn

from divaug.lab import models
from divaug.lab.train import checkpoint
from divaug.lab.train.checkpoint import Checkpoint


def some(step=1, value=0.0):
    model = {"weight": torch.full((3, 2), value), "count": torch.tensor(7)}
    return Checkpoint(step, model, {"momentum.weight": torch.ones(3, 2)}, {"seconds": 0.1 + 0.2})


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_was_saved_is_what_is_loaded(tmp_path, monkeypatch):
    """Also from another working directory; no pickle is involved."""
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, None)
    layout = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    saved = Checkpoint(5, {"w": layout, "n": torch.tensor(3)}, {"m": torch.ones(1)}, {"x": 0.1})
    path = checkpoint.save(tmp_path / "all", saved)
    assert path.name == "step-00000005"
    loaded = checkpoint.load(path)
    assert (loaded.step, loaded.info) == (5, {"x": 0.1})
    assert torch.equal(loaded.model["w"], layout)
    assert loaded.model["n"].dtype == torch.int64
    assert names(path) == ["model.safetensors", "optimizer.safetensors", "state.json"]


def test_numbers_are_restored_exactly(tmp_path):
    info = {"floats": [0.1 + 0.2, 1e-310, float("inf"), -0.0], "seed": 2**63 - 1, "none": None}
    path = checkpoint.save(tmp_path, Checkpoint(1, {}, {}, info))
    assert repr(checkpoint.load(path).info) == repr(info)


def test_the_last_two_are_kept(tmp_path):
    for step in (1, 2, 9, 10):
        checkpoint.save(tmp_path, some(step))
    assert names(tmp_path) == ["step-00000009", "step-00000010"]


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("spoil", ["cut", "flip", "empty", "gone"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, file, spoil):
    checkpoint.save(tmp_path, some(1, value=1.0))
    newest = checkpoint.save(tmp_path, some(2, value=2.0)) / file
    content = newest.read_bytes()
    place = content.index(b'"step"') if file == "state.json" else len(content) // 2
    changed = {
        "cut": content[:-1],
        "empty": b"",
        "flip": content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :],
        "gone": None,
    }[spoil]
    if changed is None:
        newest.unlink()
    else:
        newest.write_bytes(changed)
    found, notes = checkpoint.load_latest(tmp_path)
    assert found.step == 1
    assert float(found.model["weight"][0, 0]) == 1.0
    assert len(notes) == 1
    assert notes[0].startswith("step-00000002 cannot be used")


def test_no_checkpoint_at_all(tmp_path):
    assert checkpoint.load_latest(tmp_path / "nowhere") == (None, [])
    (checkpoint.save(tmp_path, some(1)) / "state.json").unlink()
    found, notes = checkpoint.load_latest(tmp_path)
    assert found is None
    assert len(notes) == 1


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_full_disk_leaves_the_older_checkpoints_whole(tmp_path, monkeypatch, failing):
    """The n-th of the three files does not fit any more."""
    for step in (1, 2):
        checkpoint.save(tmp_path, some(step))
    before = files_of(tmp_path)
    write, calls = checkpoint._write, []

    def full(path, content):
        calls.append(path)
        if len(calls) == failing:
            path.write_bytes(content[: len(content) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(checkpoint, "_write", full)
    with pytest.raises(OSError, match=r"cannot write .*step-00000003: No space left"):
        checkpoint.save(tmp_path, some(3))
    assert files_of(tmp_path) == before
    assert names(tmp_path) == ["step-00000001", "step-00000002"]
    monkeypatch.undo()
    checkpoint.save(tmp_path, some(3))
    assert checkpoint.load_latest(tmp_path)[0].step == 3


def test_what_a_killed_process_left_is_neither_loaded_nor_kept(tmp_path):
    left = tmp_path / ".unfinished-abc"
    left.mkdir()
    (left / "model.safetensors").write_bytes(b"half")
    assert checkpoint.load_latest(tmp_path) == (None, [])
    checkpoint.save(tmp_path, some(1))
    assert names(tmp_path) == ["step-00000001"]


def test_saving_a_step_again_replaces_it(tmp_path):
    checkpoint.save(tmp_path, some(1, value=1.0))
    checkpoint.save(tmp_path, some(1, value=2.0))
    found, _ = checkpoint.load_latest(tmp_path)
    assert float(found.model["weight"][0, 0]) == 2.0
    assert names(tmp_path) == ["step-00000001"]


def test_everything_is_synced_before_it_gets_its_name(tmp_path, monkeypatch):
    events = []
    fsync, rename = checkpoint.os.fsync, checkpoint.Path.rename
    monkeypatch.setattr(checkpoint.os, "fsync", lambda fd: (events.append("sync"), fsync(fd)))
    monkeypatch.setattr(
        checkpoint.Path, "rename", lambda a, b: (events.append("rename"), rename(a, b))[1]
    )
    checkpoint.save(tmp_path, some())
    # Three files and their folder, then the name, then the folder that holds the name.
    assert events == ["sync"] * 4 + ["rename", "sync"]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (("wide-resnet-28-2", 10, 1), "Missing key.*"),
        (("tiny-resnet-8", 4, 1), "size mismatch for fc.weight"),
        (("tiny-resnet-8", 10, 3), "size mismatch for stem.weight"),
    ],
)
def test_another_networks_checkpoint_is_refused(other, message):
    tensors = models.build("tiny-resnet-8", 10, 1).state_dict()
    with pytest.raises(ValueError, match=f"^here belongs to another network: {message}"):
        checkpoint.load_network(models.build(*other), tensors, "here")


@pytest.mark.parametrize("key", ["sha256", "step", "info"])
def test_a_state_that_lacks_a_key_is_damaged(tmp_path, key):
    path = checkpoint.save(tmp_path, some(1))
    state = json.loads((path / "state.json").read_text())
    del state[key]
    (path / "state.json").write_text(json.dumps(state))
    with pytest.raises(ValueError, match=f"state.json is damaged: `{key}`: field required"):
        checkpoint.load(path)
    with pytest.raises(ValueError, match="belongs to another network"):
        checkpoint.load_network(nn.Linear(2, 2), {}, "there")
