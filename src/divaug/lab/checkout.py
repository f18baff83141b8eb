"""Which sources run, and on what processor."""

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["VARIABLE", "commit", "commit_of", "processor", "shortened"]

#: Tells a copy without history, an archive or a container, which commit it is a copy of.
VARIABLE = "DIVAUG_COMMIT"

_ROOT = Path(__file__).resolve().parents[2]
_NUMBER = re.compile(r"[0-9a-f]{7,40}(\+changes)?")


def commit(root: Path = _ROOT) -> str | None:
    """The commit of the checkout in a folder, with "+changes" where its sources were changed.

    Args:
        root: by default where this file's own sources lie.

    Returns:
        Its number; None where there is neither a checkout nor `DIVAUG_COMMIT`.

    Raises:
        ValueError: `DIVAUG_COMMIT` is asked and holds no commit.
    """
    # Not just any repository: an installed package may lie inside of its user's.
    if not (root / ".git").exists():
        return _told()
    try:
        changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", ":/src")
        return _git(root, "rev-parse", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return _told()


def shortened(number: str) -> str:
    """A commit in twelve digits, with the mark of changed sources.

    Example:
        >>> shortened("0123456789abcdef+changes")
        '0123456789ab+changes'
    """
    digits, plus, changes = number.partition("+")
    return f"{digits[:12]}{plus}{changes}"


def commit_of(environment: Mapping[str, Any]) -> str:
    """The commit that a record names, in twelve digits, or that it names none.

    Example:
        >>> commit_of({"commit": "0123456789abcdef+changes"}), commit_of({"commit": None})
        ('0123456789ab+changes', 'unknown')
    """
    return shortened(str(environment.get("commit") or "unknown"))


def _told() -> str | None:
    number = os.environ.get(VARIABLE)
    if number and not _NUMBER.fullmatch(number):
        raise ValueError(
            f"{VARIABLE} must be the number of a commit, 7 to 40 hexadecimal digits as "
            f"`git rev-parse HEAD` prints them, got {number!r}."
        )
    return number or None


def _git(root: Path, *words: str) -> str:
    # Bytes: names of files, which may be in the answer, are in any encoding.
    done = subprocess.run(
        ["git", "-C", str(root), *words], capture_output=True, check=True, timeout=10
    )
    return done.stdout.decode(errors="replace").strip()


def processor() -> str:
    """The name of the processor."""
    try:
        listing = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    names = [
        line.partition(":")[2].strip() for line in listing.splitlines() if "model name" in line
    ]
    return names[0] if names else platform.machine()
