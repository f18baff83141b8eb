"""Reproduction: the paper's tables and figures, each from one command and its records."""

from divaug.lab.reproduce.options import Options
from divaug.lab.reproduce.reproduction import (
    Reproduced,
    list_target,
    redraw,
    redraw_all,
    reproduce,
)
from divaug.lab.reproduce.store import read_store
from divaug.lab.reproduce.targets import TARGETS
from divaug.lab.reproduce.work import Work

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
