"""Standard output that spells what its encoding has no code for."""

import io
import sys

__all__ = ["spell_unknown"]


def spell_unknown() -> None:
    """Print what standard output's encoding has no code for as an escape, as standard error does.

    In a pipe or a file that encoding is often not UTF-8, on Windows above all: a name of a file, or
    a × in a table, would end the command.
    """
    # The second is Python's choice in the C locale: it writes names of files as they are, no more.
    refusing = ("strict", "surrogateescape")
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in refusing:
        sys.stdout.reconfigure(errors="backslashreplace")
