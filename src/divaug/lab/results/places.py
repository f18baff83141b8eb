"""Machines, versions, commits and commands of records, as tables name them."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from divaug.lab.checkout import commit_of

__all__ = ["command_of", "each", "machine_of", "origin", "portable", "setting_of", "versions_of"]

Environment: TypeAlias = Mapping[str, Any]


def machine_of(environment: Environment) -> str:
    """Return the kind of machine that times belong to.

    Example:
        >>> machine_of({"gpu": "NVIDIA H200", "processor": "Intel", "threads": 16})
        'NVIDIA H200'
    """
    threads = environment.get("threads")
    plural = "" if threads == 1 else "s"
    return str(environment.get("gpu") or f"{environment['processor']}, {threads} thread{plural}")


def setting_of(environment: Environment) -> str:
    """Return all that two times must share to be compared: machine, precision, mode and versions.

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


def versions_of(environment: Environment) -> str:
    """Python, CUDA and the packages that decide numbers and times."""
    packages = environment.get("packages", {})
    found = {"Python": environment.get("python"), "CUDA": environment.get("cuda")}
    found |= {name: packages.get(name) for name in ("torch", "triton", "divaug")}
    return ", ".join(f"{name} {value}" for name, value in found.items() if value)


def command_of(environment: Environment) -> str:
    """Return the command as people type it."""
    program, *words = environment.get("command") or ["divaug"]
    return " ".join(["divaug" if program.startswith("__main__") else program, *words])


def portable(environment: Environment) -> dict[str, Any]:
    """Return an environment for others to read: of paths on this machine the last part is left.

    Example:
        >>> portable({"command": ["divaug", "train", "--data", "/home/me/a.npz", "--out=../x/b"]})
        {'command': ['divaug', 'train', '--data', 'a.npz', '--out=b']}
    """

    def shortened(word: str) -> str:
        return "=".join(re.split(r"[/\\]", part.rstrip("/\\"))[-1] for part in word.split("="))

    return {**environment, "command": [shortened(w) for w in environment.get("command", ())]}


def each(of: Callable[[Environment], str], places: Iterable[Environment], between: str) -> str:
    """Different values of some places, each once."""
    return between.join(value for value in dict.fromkeys(map(of, places)) if value)


def origin(records: Iterable[Any]) -> str:
    """Describe where records were made; empty for none."""
    kinds: dict[str, list[Any]] = {}
    for one in records:
        kinds.setdefault(one.kind, []).append(one)
    sentences = []
    for kind, found in kinds.items():
        places = [place for one in found for place in one.places]
        noun = kind if len(found) > 1 else kind.removesuffix("s")
        count = f"{len(found)} {noun} on {each(machine_of, places, ' / ')}"
        sentences.append(f"{count}; {each(versions_of, places, ' / ')}.")
    commits = {
        commit_of(place) for found in kinds.values() for one in found for place in one.places
    }
    last = f"{len(commits)} commits; each record and `runs.csv` name theirs, and the command."
    return " ".join([*sentences, last]) if sentences else ""
