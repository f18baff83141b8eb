"""The sixteen operations and six more: pixels in, pixels out; no probability, no randomness."""

from divaug.operations import magnitude
from divaug.operations.application import apply
from divaug.operations.table import FURTHER, OPERATIONS, TABLE, Operation

__all__ = ["FURTHER", "OPERATIONS", "TABLE", "Operation", "apply", "magnitude"]
