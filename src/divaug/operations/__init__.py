"""The sixteen operations: pixels in, pixels out; no probability, no randomness."""

from divaug.operations import magnitude
from divaug.operations.application import apply
from divaug.operations.table import OPERATIONS, TABLE, Operation

__all__ = ["OPERATIONS", "TABLE", "Operation", "apply", "magnitude"]
