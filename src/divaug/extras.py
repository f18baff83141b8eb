"""What only training and the command line need, and how to install it."""

import importlib.util

__all__ = ["INSTALL", "require"]

#: By name where the package is installed, from whatever source; by place in a clone.
INSTALL = "pip install 'divaug[train]' (in a clone: pip install '.[train]')"


def require(package: str, purpose: str) -> None:
    """Refuse to begin something that a missing package would end.

    Args:
        package: as it is imported and installed.
        purpose: what needs it, in the words of the sentence's beginning.

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
            f"{purpose} needs {package}, which is not installed; install it with: {INSTALL}"
        )
