"""`write_report`: from folders of runs to files, each written whole or not at all."""

from collections.abc import Sequence
from pathlib import Path

from divaug.lab.datasets import Dataset
from divaug.lab.report.reading import read_runs
from divaug.lab.report.seeds import seeds_table
from divaug.lab.report.table import runs_table, to_csv, to_markdown
from divaug.lab.tables import Table
from divaug.lab.train.folder import replace_text, writing

__all__ = ["write_report"]


def write_report(
    runs: Sequence[str | Path],
    out: str | Path,
    *,
    markdown: str | Path | None = None,
    csv: str | Path | None = None,
    data: str | Path | Dataset | None = None,
    summary: Table | None = None,
) -> list[Path]:
    """Write a page about runs, and its table in other forms.

    Args:
        runs: the folders of the runs, in the order of the page.
        out: the page, one HTML file.
        markdown: where the tables go as Markdown, if anywhere.
        csv: where the table goes as comma-separated values, if anywhere: a row for each run.
        data: a dataset for the pictures of candidates, or where to find it; None for where each
            run found its own. Nothing is downloaded.
        summary: a table that the page begins with, a row for each run.

    Returns:
        What was written.

    Raises:
        FileNotFoundError: a run, or `data`, is not there.
        OSError: a file cannot be written; it is named.
        ValueError: a folder is no whole run, or the summary has another number of rows.
    """
    from divaug.lab.report.page import (
        render,  # brings matplotlib, which bad input need not wait for
    )

    records = read_runs(runs)
    if isinstance(data, str | Path) and not Path(data).exists():
        raise FileNotFoundError(f"`data` must be an .npz file or a folder, got {str(data)!r}.")
    if summary is not None and len(summary.rows) != len(records):
        raise ValueError(
            f"`summary` must have a row for each of the {len(records)} runs, in their order, got "
            f"{len(summary.rows)} rows."
        )
    targets = [Path(path) for path in (out, markdown, csv) if path is not None]
    _check_targets(targets)
    texts = {Path(out): render(records, data, summary)}
    if markdown is not None:
        tables = [table for table in (runs_table(records), seeds_table(records)) if table]
        texts[Path(markdown)] = "\n\n".join(to_markdown(table) for table in tables) + "\n"
    if csv is not None:
        texts[Path(csv)] = to_csv(records)
    for path, text in texts.items():
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, text)
    return targets


def _check_targets(targets: Sequence[Path]) -> None:
    if len({path.resolve() for path in targets}) < len(targets):
        named = ", ".join(str(path) for path in targets)
        raise ValueError(f"every file of a report needs a name of its own, got {named}.")
    for path in targets:
        if path.is_dir():
            raise ValueError(f"{path} is a folder; give the name of a file, like report.html.")
