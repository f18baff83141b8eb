"""The sixteen operations and five more: pixels in, pixels out; no probability, no randomness."""

from divaug.operations import magnitude
from divaug.operations.application import apply
from divaug.operations.further import FURTHER
from divaug.operations.table import OPERATIONS, TABLE, Operation

__all__ = ["FURTHER", "OPERATIONS", "TABLE", "Operation", "apply", "magnitude"]
