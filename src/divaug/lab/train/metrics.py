"""Reading the record of a run, `metrics.jsonl`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["METRICS", "read_epochs", "read_metrics"]

#: The file in a run's folder.
METRICS = "metrics.jsonl"


def read_metrics(
    folder: Path, note: Callable[[str], None] = lambda _: None
) -> list[dict[str, Any]]:
    """The lines of a run's record; none where there is no record yet.

    A last line that was cut short, as a power failure leaves it, is dropped.

    Args:
        folder: of the run.
        note: told when a line was dropped.

    Raises:
        ValueError: another line is no line of a record; the file and the line are named.
    """
    path = folder / METRICS
    if not path.is_file():
        return []
    texts = path.read_bytes().splitlines()
    lines = []
    for number, text in enumerate(texts, start=1):
        try:
            lines.append(_parse(text))
        except ValueError as error:
            if number < len(texts):
                raise ValueError(f"{path} is damaged: line {number} {error}.") from None
            note(f"{path}: line {number}, the last one, was cut short and is dropped.")
    return lines


def read_epochs(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's record that end an epoch."""
    return [line for line in read_metrics(folder) if line["kind"] == "epoch"]


def _parse(text: bytes) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except ValueError:  # neither UTF-8 nor JSON
        raise ValueError("is no JSON") from None
    if not isinstance(line, dict):
        raise ValueError("is no JSON object")
    step = line.get("step")
    if not isinstance(step, int) or isinstance(step, bool):
        raise ValueError("lacks the number `step`")
    if not isinstance(line.get("kind"), str):
        raise ValueError("lacks the text `kind`")
    return line
