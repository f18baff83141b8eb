"""Reports: runs compared on one self-contained page, and in tables."""

from divaug.lab.report.page import write_report
from divaug.lab.report.runs import RunRecord, read_run, read_runs

__all__ = ["RunRecord", "read_run", "read_runs", "write_report"]
