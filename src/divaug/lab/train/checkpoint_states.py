"""The `state.json` of a checkpoint: its numbers, with checksums of all that it holds."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["MODEL", "OPTIMIZER", "STATE", "read_state", "state_text", "step_of"]

#: The files of a checkpoint.
MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"

_FORMAT = "divaug.checkpoint/1"
_NAME = re.compile(r"step-[0-9]+")
# What a state says, and the key of the SHA-256 of it, which older checkpoints do not have.
_SAID, _OWN_SUM = {"format", "step", "sha256", "info"}, "state_sha256"


def state_text(step: int, sums: Mapping[str, str], info: Mapping[str, Any]) -> str:
    """The text of a state.

    Args:
        step: steps taken.
        sums: tensor file → its SHA-256.
        info: everything else, as JSON can hold it.
    """
    state = {"format": _FORMAT, "step": step, "sha256": dict(sums), "info": dict(info)}
    state[_OWN_SUM] = _sum_of(state)
    return json.dumps(state, indent=1)


def read_state(path: Path) -> dict[str, Any]:
    """What a checkpoint's state says, after checking that it says what was written.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is damaged, or another step's than the folder's name says.
    """
    try:
        state = json.loads((path / STATE).read_bytes())
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ValueError(f"{path / STATE} is damaged: it is no JSON.") from None
    if not isinstance(state, dict) or state.get("format") != _FORMAT:
        raise ValueError(f"{path} is no checkpoint: its `format` is not {_FORMAT!r}.")
    sums = state.get("sha256")
    if not isinstance(sums, dict) or set(sums) != {MODEL, OPTIMIZER}:
        raise ValueError(f"{path / STATE} is damaged: `sha256` must name the two tensor files.")
    if not isinstance(state.get("step"), int) or not isinstance(state.get("info"), dict):
        raise ValueError(f"{path / STATE} is damaged: `step` or `info` is missing.")
    _check_state(path, state)
    return state


def _check_state(path: Path, state: Mapping[str, Any]) -> None:
    """Refuse a state that is not what was written, or not what its folder is called.

    Checkpoints written before states had a SHA-256 of their own are held to their name alone.
    """
    unknown = sorted(state.keys() - _SAID - {_OWN_SUM})
    if unknown:  # a damaged name of the checksum must not pass for a state without one
        raise ValueError(f"{path / STATE} is damaged: nothing is called {unknown[0]!r} there.")
    said = {key: value for key, value in state.items() if key != _OWN_SUM}
    if _OWN_SUM in state and state[_OWN_SUM] != _sum_of(said):
        raise ValueError(
            f"{path / STATE} is damaged or was changed: `{_OWN_SUM}` is not the SHA-256 of what "
            "it says; bring back a copy, or use an older checkpoint."
        )
    name = path.resolve().name
    if _NAME.fullmatch(name) and step_of(Path(name)) != state["step"]:
        raise ValueError(
            f"{path / STATE} is damaged: its `step` must be {step_of(Path(name))}, as its folder "
            f"is called, got {state['step']}."
        )


def _sum_of(state: Mapping[str, Any]) -> str:
    """The SHA-256 of a state in the one spelling that JSON gives it, however it was written."""
    plain = json.loads(json.dumps(state))
    spelled = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(spelled.encode()).hexdigest()


def step_of(path: Path) -> int:
    """The step of a checkpoint that `find` found, by its name.

    Example:
        >>> step_of(Path("runs/a/checkpoints/step-00000390"))
        390
    """
    return int(path.name.removeprefix("step-"))
