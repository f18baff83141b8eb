"""The command line: thin commands over the library. Nothing else imports this package."""

from divaug.lab.cli.app import app, run

__all__ = ["app", "run"]
