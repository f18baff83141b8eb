"""Reproduction: the jobs behind the paper's tables and figures, and their queue."""

from divaug.lab.reproduce.options import Options
from divaug.lab.reproduce.queue import Reproduced, list_target, reproduce
from divaug.lab.reproduce.work import End, Work

__all__ = ["End", "Options", "Reproduced", "Work", "list_target", "reproduce"]
