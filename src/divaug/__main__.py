"""The command `divaug`, also `python -m divaug`."""

import importlib.util
import os
import sys

from divaug._names import INSTALL

__all__ = ["main"]

# Module to import → package to install.
_NEEDED = {"typer": "typer", "rich": "rich", "PIL": "pillow", "safetensors": "safetensors"}


def main() -> None:
    """Run the command line, or print what to install for it.

    From here on Ctrl-C ends it in one line, also before the command line can listen to signals.
    Before, while Python imports the package itself and torch with it, Ctrl-C is Python's.
    """
    try:
        _run()
    except KeyboardInterrupt:
        if os.environ.get("RANK", "0") == "0":  # of torchrun's processes, only the first prints
            print("divaug: stopped by SIGINT", file=sys.stderr)
        raise SystemExit(130) from None


def _run() -> None:
    missing = [name for module, name in _NEEDED.items() if not importlib.util.find_spec(module)]
    if missing:
        print(
            f"divaug: the command line needs {', '.join(missing)}; install it with: {INSTALL}",
            file=sys.stderr,
        )
        raise SystemExit(2)
    from divaug.lab.cli import run

    try:
        run()
    except SystemExit as end:
        _leave(end)
        raise


def _leave(end: SystemExit) -> None:
    """End one of torchrun's processes at once, its work being done or refused.

    The threads of torch's communication may still be running when the interpreter takes itself
    apart, and abort a process that has finished; then torchrun reports a failure that was none, or
    another exit code than ours.
    """
    if os.environ.get("WORLD_SIZE", "1") != "1" and isinstance(end.code, int | None):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code or 0)


if __name__ == "__main__":
    main()
