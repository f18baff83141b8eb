"""Checkpoints: whole or not there, never another network's, nothing unpickled."""

import errno
import hashlib
import json
import pickle

import pytest
import torch
from torch import nn

from divaug.lab import models
from divaug.lab.train import checkpoints
from divaug.lab.train.checkpoints import Checkpoint


def some(step=1, value=0.0):
    model = {"weight": torch.full((3, 2), value), "count": torch.tensor(7)}
    return Checkpoint(step, model, {"momentum.weight": torch.ones(3, 2)}, {"seconds": 0.1 + 0.2})


def read_state(path):
    return json.loads((path / "state.json").read_text())


def write_state(path, state, *, signed=True):
    """Write a state with the checksum it must have, or as releases without one wrote it."""
    said = {key: value for key, value in state.items() if key != "state_sha256"}
    spelled = json.dumps(said, sort_keys=True, separators=(",", ":"))
    own = {"state_sha256": hashlib.sha256(spelled.encode()).hexdigest()} if signed else {}
    (path / "state.json").write_text(json.dumps(said | own, indent=1))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_was_saved_is_what_is_loaded(tmp_path):
    layout = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    saved = Checkpoint(5, {"w": layout, "n": torch.tensor(3)}, {"m": torch.ones(1)}, {"x": 0.1})
    path = checkpoints.save(tmp_path / "all", saved)
    assert path.name == "step-00000005"
    loaded = checkpoints.load(path)
    assert (loaded.step, loaded.info) == (5, {"x": 0.1})
    assert torch.equal(loaded.model["w"], layout)
    assert loaded.model["n"].dtype == torch.int64
    assert names(path) == ["model.safetensors", "optimizer.safetensors", "state.json"]


def test_the_last_two_are_kept(tmp_path):
    for step in (1, 2, 9, 10):
        checkpoints.save(tmp_path, some(step))
    assert names(tmp_path) == ["step-00000009", "step-00000010"]


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("spoil", ["cut", "flip", "empty", "gone"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, file, spoil):
    checkpoints.save(tmp_path, some(1, value=1.0))
    newest = checkpoints.save(tmp_path, some(2, value=2.0)) / file
    content = newest.read_bytes()
    middle = len(content) // 2
    changed = {
        "cut": content[:-1],
        "empty": b"",
        "flip": content[:middle] + bytes([content[middle] ^ 0x55]) + content[middle + 1 :],
        "gone": None,
    }[spoil]
    if changed is None:
        newest.unlink()
    else:
        newest.write_bytes(changed)
    found, notes = checkpoints.load_latest(tmp_path)
    assert found.step == 1
    assert float(found.model["weight"][0, 0]) == 1.0
    assert len(notes) == 1
    assert notes[0].startswith("step-00000002 cannot be used")


@pytest.mark.parametrize("content", [b"", b"no tensors", b"\x08" + bytes(15)])
def test_right_checksums_of_no_tensors_fall_back_too(tmp_path, content):
    checkpoints.save(tmp_path, some(1))
    newest = checkpoints.save(tmp_path, some(2))
    state = read_state(newest)
    state["sha256"]["model.safetensors"] = hashlib.sha256(content).hexdigest()
    write_state(newest, state)
    (newest / "model.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged: it holds no tensors"):
        checkpoints.load(newest)
    found, notes = checkpoints.load_latest(tmp_path)
    assert (found.step, len(notes)) == (1, 1)


CHANGES = {
    "step": lambda state: state.update(step=6),
    "info": lambda state: state["info"].update(seconds=9.0),
    "info's keys": lambda state: state["info"].update(more=1),
    "a tensor file's checksum": lambda state: state["sha256"].update({"model.safetensors": "0"}),
    "the checksum": lambda state: state.update(state_sha256="0" * 64),
    "the checksum's name": lambda state: state.update(state_sha255=state.pop("state_sha256")),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_state_that_says_something_else_is_passed_over(tmp_path, what):
    checkpoints.save(tmp_path, some(1))
    newest = checkpoints.save(tmp_path, some(2))
    state = read_state(newest)
    CHANGES[what](state)
    (newest / "state.json").write_text(json.dumps(state))
    found, notes = checkpoints.load_latest(tmp_path)
    assert found.step == 1
    assert len(notes) == 1
    assert notes[0].startswith("step-00000002 cannot be used")
    assert "state.json is damaged" in notes[0]


@pytest.mark.parametrize("mask", [0x01, 0x02, 0x10, 0x55])
def test_no_flipped_bit_of_a_state_is_believed(tmp_path, mask):
    """What still loads, with another space between the same words, say, is what was saved."""
    path = checkpoints.save(tmp_path, some(2))
    content, refused = (path / "state.json").read_bytes(), 0
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= mask
        (path / "state.json").write_bytes(changed)
        try:
            found = checkpoints.load(path)
        except ValueError:
            refused += 1
        else:
            assert (found.step, found.info) == (2, some().info)
    assert refused > len(content) // 2


@pytest.mark.parametrize("signed", [True, False])
def test_a_state_must_be_of_the_step_its_folder_is_called_by(tmp_path, signed):
    checkpoints.save(tmp_path, some(1))
    newest = checkpoints.save(tmp_path, some(2))
    write_state(newest, read_state(newest) | {"step": 6}, signed=signed)
    with pytest.raises(ValueError, match=r"`step` must be 2, as its folder is called, got 6"):
        checkpoints.load(newest)
    assert checkpoints.load_latest(tmp_path)[0].step == 1


def test_checkpoints_without_a_checksum_of_their_state_are_loaded(tmp_path):
    """They were written before states had one."""
    path = checkpoints.save(tmp_path, some(2, value=2.0))
    write_state(path, read_state(path), signed=False)
    assert set(read_state(path)) == {"format", "step", "sha256", "info"}
    found, notes = checkpoints.load_latest(tmp_path)
    assert notes == []
    assert (found.step, found.info) == (2, some().info)
    assert float(found.model["weight"][0, 0]) == 2.0


def test_a_copy_under_another_name_is_loaded(tmp_path, monkeypatch):
    path = checkpoints.save(tmp_path, some(2))
    monkeypatch.chdir(path)
    assert checkpoints.load(checkpoints.Path()).step == 2
    path.rename(tmp_path / "best")
    assert checkpoints.load(tmp_path / "best").step == 2


def test_a_state_is_checked_as_json_holds_it(tmp_path):
    """Tuples come back as lists, numbers as keys as words, and what is no number as itself."""
    info = {"b": (1, 2.5), "a": {3: float("inf"), "x": None}, "ü": -0.0}
    path = checkpoints.save(tmp_path, Checkpoint(1, {}, {}, info))
    assert checkpoints.load(path).info == json.loads(json.dumps(info))


def test_no_checkpoint_at_all(tmp_path):
    assert checkpoints.load_latest(tmp_path / "nowhere") == (None, [])
    path = checkpoints.save(tmp_path, some(1))
    (path / "state.json").unlink()
    found, notes = checkpoints.load_latest(tmp_path)
    assert found is None
    assert len(notes) == 1


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_full_disk_leaves_the_older_checkpoints_whole(tmp_path, monkeypatch, failing):
    """The n-th of the three files does not fit any more."""
    for step in (1, 2):
        checkpoints.save(tmp_path, some(step))
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    write, calls = checkpoints._write, []

    def full(path, content):
        calls.append(path)
        if len(calls) == failing:
            path.write_bytes(content[: len(content) // 2])
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write(path, content)

    monkeypatch.setattr(checkpoints, "_write", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoints.save(tmp_path, some(3))
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    assert names(tmp_path) == ["step-00000001", "step-00000002"]
    monkeypatch.undo()
    checkpoints.save(tmp_path, some(3))
    assert checkpoints.load_latest(tmp_path)[0].step == 3


def test_what_a_killed_process_left_is_neither_loaded_nor_kept(tmp_path):
    left = tmp_path / ".unfinished-abc"
    left.mkdir()
    (left / "model.safetensors").write_bytes(b"half")
    assert checkpoints.load_latest(tmp_path) == (None, [])
    checkpoints.save(tmp_path, some(1))
    assert names(tmp_path) == ["step-00000001"]


def test_saving_a_step_again_replaces_it(tmp_path):
    checkpoints.save(tmp_path, some(1, value=1.0))
    checkpoints.save(tmp_path, some(1, value=2.0))
    found, _ = checkpoints.load_latest(tmp_path)
    assert float(found.model["weight"][0, 0]) == 2.0
    assert names(tmp_path) == ["step-00000001"]


def test_everything_is_synced_before_it_gets_its_name(tmp_path, monkeypatch):
    events = []
    fsync = checkpoints.os.fsync
    monkeypatch.setattr(checkpoints.os, "fsync", lambda fd: (events.append("sync"), fsync(fd)))
    rename = checkpoints.Path.rename
    monkeypatch.setattr(
        checkpoints.Path, "rename", lambda a, b: (events.append("rename"), rename(a, b))[1]
    )
    checkpoints.save(tmp_path, some())
    # Three files and their folder, then the name, then the folder that holds the name.
    assert events == ["sync"] * 4 + ["rename", "sync"]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (("wide-resnet-28-2", 10, 1), "tensors are missing"),
        (
            ("tiny-resnet-8", 4, 1),
            r"'fc.weight' has shape \(10, 64\), and this network's \(4, 64\)",
        ),
        (("tiny-resnet-8", 10, 3), "'stem.weight' has shape"),
    ],
)
def test_another_networks_checkpoint_is_refused(other, message):
    tensors = models.build("tiny-resnet-8", 10, 1).state_dict()
    network = models.build(*other)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    with pytest.raises(ValueError, match=f"here belongs to another network.*{message}"):
        checkpoints.load_network(network, tensors, "here")
    assert all(torch.equal(before[n], t) for n, t in network.state_dict().items())


def test_nothing_is_unpickled(tmp_path, monkeypatch):
    path = checkpoints.save(tmp_path, some())

    def forbidden(*_args, **_keywords):
        raise AssertionError("something was unpickled")

    monkeypatch.setattr(pickle, "load", forbidden)
    monkeypatch.setattr(pickle, "loads", forbidden)
    monkeypatch.setattr(pickle, "Unpickler", forbidden)
    assert checkpoints.load(path).step == 1


@pytest.mark.parametrize("key", ["sha256", "step", "info"])
def test_a_state_that_lacks_a_key_is_damaged(tmp_path, key):
    path = checkpoints.save(tmp_path, some(1))
    state = json.loads((path / "state.json").read_text())
    del state[key]
    (path / "state.json").write_text(json.dumps(state))
    with pytest.raises(ValueError, match=f"is damaged: .*`{key}`"):
        checkpoints.load(path)


def test_only_the_two_tensor_files_are_read(tmp_path):
    path = checkpoints.save(tmp_path, some(1))
    state = json.loads((path / "state.json").read_text())
    state["sha256"]["../elsewhere"] = "0"
    (path / "state.json").write_text(json.dumps(state))
    with pytest.raises(ValueError, match="must name the two tensor files"):
        checkpoints.load(path)


def test_a_foreign_folder_is_no_checkpoint(tmp_path):
    (tmp_path / "state.json").write_text(json.dumps({"format": "else"}))
    with pytest.raises(ValueError, match="is no checkpoint"):
        checkpoints.load(tmp_path)
    with pytest.raises(ValueError, match="belongs to another network"):
        checkpoints.load_network(nn.Linear(2, 2), {}, "there")
