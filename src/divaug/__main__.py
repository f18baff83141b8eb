"""The command `divaug`, also `python -m divaug`."""

import os
import sys

from divaug._names import INSTALL

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        from divaug.lab.cli import run
    except ImportError as error:
        print(f"divaug: {error.name} is missing; install it with: {INSTALL}", file=sys.stderr)
        raise SystemExit(2) from None
    try:
        run()
    except SystemExit as end:
        # The threads of torch's communication may abort one of torchrun's processes while the
        # interpreter ends; torchrun would report a failure of a process that has finished.
        if os.environ.get("WORLD_SIZE", "1") != "1" and isinstance(end.code, int | None):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code or 0)
        raise


if __name__ == "__main__":
    main()
