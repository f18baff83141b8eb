"""What only parts of the package need, and how to install it."""

import importlib.util

__all__ = ["INSTALL", "require"]


def _install(extra: str) -> str:
    """Name the command for a clone: the package is on no index."""
    return f"pip install '.[{extra}]' (in a clone of divaug)"


#: For training and the command line.
INSTALL = _install("train")


def require(package: str, purpose: str, extra: str = "train") -> None:
    """Refuse to begin something that a missing package would end.

    Args:
        package: as it is imported.
        purpose: what needs it, in the words of the sentence's beginning.
        extra: which of the project's extras brings it.

    Raises:
        ImportError: it is not installed.

    Example:
        >>> require("torch", "everything")
        >>> require("no_such_package", "training")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ImportError: training needs no_such_package, which is not installed; install it with: ...
    """
    if importlib.util.find_spec(package) is None:
        raise ImportError(
            f"{purpose} needs {package}, which is not installed; install it with: {_install(extra)}"
        )
