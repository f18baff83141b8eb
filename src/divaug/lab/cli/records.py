"""What is said of a folder that holds no records to draw from."""

from pathlib import Path

__all__ = ["check_folder", "why_nothing"]


def check_folder(source: Path) -> None:
    """Look whether there is a folder at all.

    Raises:
        FileNotFoundError: there is none.
    """
    if not source.is_dir():
        raise FileNotFoundError(f"--from must be a folder of records, got {str(source)!r}.")


def why_nothing(source: Path, wanted: str) -> str:
    """What a folder has instead of the records that were asked for.

    Args:
        source: the folder.
        wanted: what its records should be of.
    """
    from divaug.lab.results import load

    records = load(source)
    if records.empty:
        return (
            f"--from must be a folder of records, and {str(source)!r} has none: they are looked "
            "for as *.jsonl in runs/, measurements/, examinations/ and costs/ in it, "
            "where `divaug reproduce --results FOLDER` writes them."
        )
    there = records.describe() or "timings, measurements and examinations alone"
    return f"no record in {str(source)!r} is of {wanted}; there are: {there}."
