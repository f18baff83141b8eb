"""Where numbers come from, in a sentence: machines, versions, commits and commands, each once."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from divaug.lab.checkout import commit_of
from divaug.lab.reproduce.machines import machine_of

__all__ = ["changed_place", "command_of", "origin", "place_of", "versions_of"]

Environment = Mapping[str, Any]

# More than so many machines, versions or commits are counted.
_NAMED = 4
_PACKAGES = ("torch", "triton", "divaug")


def origin(kind: str, works: Sequence[Sequence[Environment]], listed: str) -> str:
    """One sentence on where some works were done; empty for none.

    Args:
        kind: what a work is, like "run".
        works: the environment of each start of each.
        listed: where the command of each stands.

    Example:
        >>> place = {"gpu": "Some GPU", "commit": "abc"}
        >>> commands = [["divaug", "demo", "--seed", n, "--jobs", "2"] for n in "13"]
        >>> print(origin("run", [[place | {"command": words}] for words in commands], "a.csv"))
        2 runs on Some GPU; commit abc; `divaug demo --jobs 2` with various `--seed` (see a.csv).
    """
    starts = [start for work in works for start in work]
    if not starts:
        return ""
    moved = sum(changed_place(work) for work in works)
    parts = [
        f"{len(works)} {kind}{'s' if len(works) > 1 else ''} on {_named(map(place_of, starts))}",
        _named(map(versions_of, starts)),
        _commits(starts),
        _commands(starts, listed),
        f"{moved} of them went on with another machine or other versions" if moved else "",
    ]
    return "; ".join(part for part in parts if part) + "."


def place_of(environment: Environment) -> str:
    """Machine and precision."""
    precision = environment.get("precision")
    return machine_of(environment) + (f" ({precision})" if precision else "")


def versions_of(environment: Environment) -> str:
    """Python, CUDA and the packages that decide numbers and times."""
    packages = environment.get("packages", {})
    found = {"Python": environment.get("python"), "CUDA": environment.get("cuda")}
    found |= {name: packages.get(name) for name in _PACKAGES}
    return ", ".join(f"{name} {value}" for name, value in found.items() if value)


def changed_place(starts: Sequence[Environment]) -> bool:
    """Whether a later start was on another machine, or with other versions."""
    return len({(place_of(start), versions_of(start)) for start in starts}) > 1


def command_of(environment: Environment) -> str:
    """The command as people type it."""
    return " ".join(_words(environment))


def _words(environment: Environment) -> list[str]:
    program, *words = environment.get("command") or ["divaug"]
    return ["divaug" if program.startswith("__main__") else program, *words]


def _named(values: Iterable[str], between: str = " / ") -> str:
    found = [value for value in dict.fromkeys(values) if value]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return between.join(found[:_NAMED]) + more


def _commits(starts: Sequence[Environment]) -> str:
    found = list(dict.fromkeys(map(commit_of, starts)))
    return f"commit{'s' if len(found) > 1 else ''} {_named(found, ', ')}"


def _commands(starts: Sequence[Environment], listed: str) -> str:
    """Each kind of command once: what all have in common, and the names of what differs."""
    kinds: dict[tuple[str, ...], list[list[str]]] = {}
    for start in starts:
        head, options = _split(_words(start))
        kinds.setdefault(head, []).append(options)
    texts, any_differs = [], False
    for head, commands in kinds.items():
        every = [one for one in commands[0] if all(one in options for options in commands)]
        others = [one for options in commands for one in options if one not in every]
        names = dict.fromkeys(map(_name, others))
        shared = [one for one in every if _name(one) not in names]  # one may be given repeatedly
        any_differs |= bool(names)
        text = f"`{' '.join([*head, *shared])}`"
        texts.append(f"{text} with various {', '.join(f'`{n}`' for n in names)}" if names else text)
    return ", ".join(texts) + (f" (see {listed})" if any_differs else "")


def _name(option: str) -> str:
    return option.split()[0].partition("=")[0]


def _split(words: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """The words before the first option, and each option with its value."""
    options = [i for i, word in enumerate(words) if word.startswith("-")]
    ends = [*options[1:], len(words)]
    first = options[0] if options else len(words)
    found = [" ".join(words[i:j]) for i, j in zip(options, ends, strict=bool(options))]
    return tuple(words[:first]), found
