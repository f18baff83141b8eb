"""The command `divaug`, also `python -m divaug`."""

import importlib.util
import sys

__all__ = ["main"]

# Module to import → package to install.
_NEEDED = {"typer": "typer", "rich": "rich", "PIL": "pillow", "safetensors": "safetensors"}


def main() -> None:
    """Run the command line, or say what to install for it."""
    missing = [name for module, name in _NEEDED.items() if not importlib.util.find_spec(module)]
    if missing:
        print(
            f"divaug: the command line needs {', '.join(missing)}; "
            "install it with: pip install 'divaug[train]'",
            file=sys.stderr,
        )
        raise SystemExit(2)
    from divaug.cli import run

    run()


if __name__ == "__main__":
    main()
