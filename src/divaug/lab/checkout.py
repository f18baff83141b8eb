"""The commit of the sources, and the name of the processor."""

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["VARIABLE", "commit", "commit_of", "processor", "shortened"]

#: Names the commit of a copy without history: an archive or a container.
VARIABLE = "DIVAUG_COMMIT"

_ROOT = Path(__file__).resolve().parents[3]


def commit(root: Path = _ROOT) -> str | None:
    """Return the commit of a checkout, with "+changes" where its sources were changed.

    Args:
        root: folder of the checkout; by default that of these sources.

    Returns:
        Its hash; None where there is neither a checkout nor `DIVAUG_COMMIT`.

    Raises:
        ValueError: `DIVAUG_COMMIT` is used and holds no commit.
    """
    # Not just any repository: an installed package may lie inside of its user's.
    if (root / ".git").exists():
        try:
            changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", ":/src")
            return _git(root, "rev-parse", "HEAD") + ("+changes" if changed else "")
        except (OSError, subprocess.SubprocessError):
            pass  # no git here
    number = os.environ.get(VARIABLE)
    if number and not re.fullmatch(r"[0-9a-f]{7,40}(\+changes)?", number):
        raise ValueError(
            f"{VARIABLE} must be a commit as `git rev-parse HEAD` prints it, got {number!r}."
        )
    return number or None


def shortened(number: str) -> str:
    """Shorten a commit to twelve digits and the mark of changed sources.

    Example:
        >>> shortened("0123456789abcdef+changes")
        '0123456789ab+changes'
    """
    digits, plus, changes = number.partition("+")
    return f"{digits[:12]}{plus}{changes}"


def commit_of(environment: Mapping[str, Any]) -> str:
    """Return the shortened commit that a record names, or "unknown".

    Example:
        >>> commit_of({"commit": "0123456789abcdef+changes"}), commit_of({"commit": None})
        ('0123456789ab+changes', 'unknown')
    """
    return shortened(str(environment.get("commit") or "unknown"))


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *words], capture_output=True, check=True, timeout=10
    )
    return done.stdout.decode(errors="replace").strip()


def processor() -> str:
    """Return the name of the processor."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.processor() or platform.machine()
