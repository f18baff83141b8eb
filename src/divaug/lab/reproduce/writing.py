"""An outcome as files: Markdown, CSV, SVG, PNG and a page."""

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib

from divaug.lab.report.table import to_markdown
from divaug.lab.reproduce.outcomes import RUNS, Drawing, Outcome
from divaug.lab.reproduce.sheets import Sheet
from divaug.lab.reproduce.store import write_text

__all__ = ["NOTHING", "body", "main_sheets", "markdown", "write_outcome"]

#: Stands where a target has no record.
NOTHING = "Nothing was run yet."


def write_outcome(outcome: Outcome, folder: Path) -> list[Path]:
    """Write everything into a folder; nothing else there is touched.

    Returns:
        What was written.
    """
    from divaug.lab.reproduce.page import render  # brings jinja2

    texts = {folder / "table.md": markdown(outcome)}
    texts |= {folder / f"{sheet.name}.csv": sheet.csv() for sheet in outcome.sheets}
    texts[folder / "index.html"] = render(outcome)
    pictures = {folder / name: content for d in outcome.drawings for name, content in _files(d)}
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        write_text(path, text)
    for path, content in pictures.items():
        path.write_bytes(content)
    return sorted([*texts, *pictures])


def main_sheets(outcome: Outcome) -> Sequence[Sheet]:
    """The tables but for the list of runs, which is long and stands in a file of its own."""
    return [sheet for sheet in outcome.sheets if sheet.name != RUNS]


def markdown(outcome: Outcome) -> str:
    """A page of Markdown: the title, the tables and the figures beside it."""
    return f"# {outcome.title}\n\n{body(outcome)}\n"


def body(outcome: Outcome, pictures: str = "") -> str:
    """Sentences, tables and figures as Markdown, without a title.

    Args:
        outcome: what is shown.
        pictures: the path of the figures' folder, with a slash at its end.
    """
    if outcome.empty:
        return NOTHING
    parts = list(outcome.sentences)
    for sheet in main_sheets(outcome):
        parts += [f"**{sheet.title}**", to_markdown(sheet.table())]
    for one in outcome.drawings:  # alt texts are not shown beside pictures, titles are
        parts += [f"**{one.title}**", f"![{one.alt}]({pictures}{one.name}.svg)"]
    return "\n\n".join(parts)


def _files(drawing: Drawing) -> list[tuple[str, bytes]]:
    # The same figure must give the same file: no date, no random names.
    found = []
    with matplotlib.rc_context({"svg.hashsalt": drawing.name}):
        for kind, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            out = io.BytesIO()
            drawing.figure.savefig(out, format=kind, dpi=160, metadata=metadata)
            found.append((f"{drawing.name}.{kind}", out.getvalue()))
    return found
