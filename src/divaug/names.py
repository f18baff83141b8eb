"""Names that settings may be, refused with the nearest one that there is."""

import difflib

__all__ = ["unknown_name"]


def unknown_name(kind: str, name: object, known: tuple[str, ...]) -> str:
    """Sentence for a name that is not in a table: the nearest one and all of them.

    Example:
        >>> unknown_name("fruit", "aple", ("apple", "pear"))
        "unknown fruit 'aple'. Did you mean 'apple'? Known: apple, pear."
    """
    folded = {entry.lower(): entry for entry in known}
    near = difflib.get_close_matches(str(name).lower(), list(folded), n=1, cutoff=0.6)
    hint = f" Did you mean {folded[near[0]]!r}?" if near else ""
    return f"unknown {kind} {name!r}.{hint} Known: {', '.join(known)}."
