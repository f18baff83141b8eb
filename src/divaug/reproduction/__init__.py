"""Reproduction: the paper's tables and figures, each from one command and its records."""

from divaug.reproduction.options import Options
from divaug.reproduction.reproduction import (
    Reproduced,
    list_target,
    redraw,
    redraw_all,
    reproduce,
)
from divaug.reproduction.store import read_store
from divaug.reproduction.targets import TARGETS
from divaug.reproduction.work import Work

__all__ = [
    "TARGETS",
    "Options",
    "Reproduced",
    "Work",
    "list_target",
    "read_store",
    "redraw",
    "redraw_all",
    "reproduce",
]
