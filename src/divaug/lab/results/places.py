"""Machines, versions, commits and commands of records, as tables name them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from divaug.lab.checkout import commit_of

__all__ = ["command_of", "each", "machine_of", "origin", "portable", "setting_of", "versions_of"]

Environment: TypeAlias = Mapping[str, Any]

# More than so many machines, versions or commits are counted.
_NAMED = 4
_PACKAGES = ("torch", "triton", "divaug")


def machine_of(environment: Environment) -> str:
    """The kind of machine that times belong to.

    Example:
        >>> machine_of({"gpu": "NVIDIA H200", "processor": "Intel", "threads": 16})
        'NVIDIA H200'
    """
    threads = environment.get("threads")
    plural = "" if threads == 1 else "s"
    return str(environment.get("gpu") or f"{environment['processor']}, {threads} thread{plural}")


def setting_of(environment: Environment) -> str:
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


def versions_of(environment: Environment) -> str:
    """Python, CUDA and the packages that decide numbers and times."""
    packages = environment.get("packages", {})
    found = {"Python": environment.get("python"), "CUDA": environment.get("cuda")}
    found |= {name: packages.get(name) for name in _PACKAGES}
    return ", ".join(f"{name} {value}" for name, value in found.items() if value)


def command_of(environment: Environment) -> str:
    """The command as people type it."""
    program, *words = environment.get("command") or ["divaug"]
    return " ".join(["divaug" if program.startswith("__main__") else program, *words])


def portable(environment: Environment) -> dict[str, Any]:
    """An environment for others to read: of paths on this machine the last part is left.

    Example:
        >>> portable({"command": ["divaug", "train", "--data", "/home/me/a.npz", "--out=../x/b"]})
        {'command': ['divaug', 'train', '--data', 'a.npz', '--out=b']}
    """
    short = [_shorten(str(word)) for word in environment.get("command", ())]
    return {**environment, "command": short}


def each(values: Iterable[str], between: str = ", ") -> str:
    """Different values, each once."""
    return between.join(value for value in dict.fromkeys(values) if value)


def origin(kind: str, works: Sequence[Sequence[Environment]], listed: str) -> str:
    """Say in one sentence where some works were done; empty for none.

    Args:
        kind: name of a work, like "run".
        works: the environment of each start of each.
        listed: where the command of each stands.

    Example:
        >>> print(origin("run", [[{"gpu": "Some GPU", "commit": "abc"}]] * 2, "`runs.csv`"))
        2 runs on Some GPU; commit abc; their commands: `runs.csv`.
    """
    starts = [start for work in works for start in work]
    if not starts:
        return ""
    commits = list(dict.fromkeys(map(commit_of, starts)))
    parts = [
        f"{len(works)} {kind}{'s' * (len(works) > 1)} on {_named(map(_place_of, starts), ' / ')}",
        _named(map(versions_of, starts), " / "),
        f"commit{'s' * (len(commits) > 1)} {_named(commits, ', ')}",
        f"their commands: {listed}",
    ]
    return "; ".join(part for part in parts if part) + "."


def _place_of(environment: Environment) -> str:
    precision = environment.get("precision")
    return machine_of(environment) + (f" ({precision})" if precision else "")


def _named(values: Iterable[str], between: str) -> str:
    found = [value for value in dict.fromkeys(values) if value]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return between.join(found[:_NAMED]) + more


def _shorten(word: str) -> str:
    """A word of a command, with the last part alone of each path in it."""
    return "=".join(re.split(r"[/\\]", part.rstrip("/\\"))[-1] for part in word.split("="))
