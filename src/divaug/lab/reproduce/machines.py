"""Where and how something was run, as records and tables name it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["machine_of", "portable", "read_starts", "setting_of"]


def machine_of(environment: Mapping[str, Any]) -> str:
    """The kind of machine that times belong to.

    Example:
        >>> machine_of({"gpu": "NVIDIA H200", "processor": "Intel", "threads": 16})
        'NVIDIA H200'
    """
    threads = environment.get("threads")
    plural = "" if threads == 1 else "s"
    return str(environment.get("gpu") or f"{environment['processor']}, {threads} thread{plural}")


def setting_of(environment: Mapping[str, Any]) -> str:
    """All that two times must share to be compared: machine, precision, mode and versions.

    Example:
        >>> place = {"gpu": "Some GPU", "precision": "bfloat16", "compiled": True, "graphed": False}
        >>> setting_of(place | {"packages": {"torch": "2.11", "numpy": "2.4", "triton": "3.6"}})
        'Some GPU, bfloat16, compiled, torch 2.11, triton 3.6'
    """
    packages = environment.get("packages", {})
    modes = [mode for mode in ("compiled", "graphed") if environment.get(mode)]
    parts = [machine_of(environment), environment.get("precision"), *(modes or ["eager"])]
    parts += [f"{name} {packages[name]}" for name in ("torch", "triton") if name in packages]
    return ", ".join(str(part) for part in parts if part)


def portable(environment: Mapping[str, Any]) -> dict[str, Any]:
    """An environment for others to read: of paths on this machine the last part is left.

    Example:
        >>> portable({"command": ["divaug", "train", "--data", "/home/me/a.npz", "--out=../x/b"]})
        {'command': ['divaug', 'train', '--data', 'a.npz', '--out=b']}
    """
    short = [_shorten(str(word)) for word in environment.get("command", ())]
    return {**environment, "command": short}


def read_starts(folder: Path) -> tuple[dict[str, Any], ...]:
    """The environment of each start of a run, for others to read."""
    starts = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    return tuple(map(portable, starts))


def _shorten(word: str) -> str:
    """A word of a command, with the last part alone of each path in it."""
    return "=".join(re.split(r"[/\\]", part.rstrip("/\\"))[-1] for part in word.split("="))
