"""Reports: what runs came to, as one page that needs nothing else, and as tables."""

from divaug.lab.report.reading import RunRecord, read_run, read_runs
from divaug.lab.report.report import write_report

__all__ = ["RunRecord", "read_run", "read_runs", "write_report"]
