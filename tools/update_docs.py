"""Fill the generated parts of README.md and docs/ from the committed measurements.

    python tools/update_docs.py           # rewrite the parts
    python tools/update_docs.py --check   # exit with 1 if a part is out of date

A generated part stands between `<!-- begin NAME -->` and `<!-- end NAME -->`; nothing in it is
typed by hand.
"""

import re
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from divaug.lab.bench import expansion, operations, selection, step
from divaug.lab.bench.harness import read_result
from divaug.lab.cli.operations import magnitude_table
from divaug.lab.results import TARGETS, Records, Selection, View, load
from divaug.lab.results.outcome import NOTHING, Outcome
from divaug.lab.results.targets.supervised import row_table
from divaug.lab.tables import Table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
RECORDS = ROOT / "results"
PART = re.compile(r"(<!-- begin (?P<name>[\w-]+) -->\n).*?(<!-- end (?P=name) -->)", re.DOTALL)


def _measured(kind: str, show: Callable[[dict], Table]) -> str:
    return show(read_result(RESULTS / f"{kind}.json", kind)).to_markdown()


#: The row that the pages are about.
PAPER_ROW = "cifar10-wide-resnet-40-2"
#: Target → the columns of its main table that its page in the docs shows, and a column with the
#: text that a line must have there to be shown.
SHOWN: dict[str, tuple[tuple[str, ...], tuple[str, str] | None]] = {
    "supervised": (("method", "paper, %", "ours, %", "n", "epochs", "in DivAug's time, %"), None),
    "semi-supervised": (
        ("method", "paper, error %", "ours, error %", "n", "ours, steps"),
        ("labels", "1,000"),
    ),
    "random-baseline": (
        ("rule", "ours, %", "n", "over random", "loss trained", "VD trained"),
        ("dataset and network", PAPER_ROW),
    ),
    "choice": (("trained with", "rule", "÷ chance", "÷ best", "right, %"), ("epochs", "200")),
    "equal-cost": (
        ("method", "epochs", "at equal step time, %", "at the usual epochs, %"),
        None,
    ),
    "cost": (("method", "paper, ×", "ours, ×", "step, ms", "peak, MiB"), None),
    "diversity": (("method", "Variance Diversity", "gain, points", "paper's gain"), None),
    "affinity": (
        ("method", "Variance Diversity", "Affinity", "Loss Diversity"),
        ("asked network", "no augmentation"),
    ),
    "rotate": (("p", "Variance Diversity", "accuracy, %", "n"), None),
    "evolution": (("operation", "paper", "change, points", "change at random", "n"), None),
}


@cache
def _records() -> Records:
    return load(RECORDS)


def _part_of(
    table: Table, columns: tuple[str, ...], wanted: tuple[str, str] | None = None
) -> Table:
    """Return some columns, and the lines with a text in a column; all lines if none has it."""
    columns = tuple(column for column in columns if column in table.columns)
    lines = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    rows = [line for line in lines if wanted is None or line[wanted[0]] == wanted[1]]
    return Table(
        columns,
        tuple(tuple(line[column] for column in columns) for line in rows or lines),
        numeric=tuple(i for i, c in enumerate(columns) if table.columns.index(c) in table.numeric),
    )


@cache
def _reproduced(name: str) -> str:
    """The main table of a target, what the paper's claims come to, and the first figure."""
    outcome = TARGETS[name].outcome(Selection(), _records())
    if outcome.empty:
        return NOTHING
    main, small = outcome.tables[0], _part_of(outcome.tables[0], *SHOWN[name])
    figure, folder = outcome.drawings[0], f"../results/{name}"
    parts = [
        *outcome.sentences,
        f"**{main.title}**",
        small.to_markdown(),
        _verdicts(outcome),
        f"![{figure.alt}]({folder}/{figure.name}.svg)",
        f"All tables, notes and figures: `results/{name}/table.md`.",
    ]
    return "\n\n".join(part for part in parts if part)


def _verdicts(outcome: Outcome) -> str:
    """Count the paper's claims by verdict; empty without claims."""
    claims = [table for table in outcome.tables if table.name == "claims"]
    found = [row[1].partition(",")[0] for table in claims for row in table.rows]
    if not found:
        return ""
    yes, no, open_ = (found.count(word) for word in ("yes", "no", "undecided"))
    missing = len(found) - yes - no - open_
    rest = f", {missing} not run" if missing else ""
    return f"Claims of the paper: {yes} confirmed, {no} refuted, {open_} undecided{rest}."


@cache
def _accuracies() -> str:
    """The paper's first row with the controls."""
    view = View(_records(), Selection(), TARGETS["supervised"].methods)
    if not len(view.runs):
        return NOTHING
    columns, _ = SHOWN["supervised"]
    return _part_of(row_table(view, PAPER_ROW, brief=True), columns).to_markdown()


#: Name of a part → its text.
PARTS: dict[str, Callable[[], str]] = {
    "bench-operations": lambda: _measured("operations", operations.table),
    "bench-each-operation": lambda: _measured("operations", operations.operation_table),
    "bench-select": lambda: _measured("select", selection.table),
    "bench-expand": lambda: _measured("expand", expansion.table),
    "bench-rivals": lambda: _measured("expand", expansion.rivals_table),
    "bench-select-device": lambda: _measured("select-device", selection.device_table),
    "bench-step": lambda: _measured("step", step.table),
    "bench-step-parts": lambda: _measured("step", step.parts_table),
    "bench-semi-step": lambda: _measured("semi-step", step.semi_table),
    "select-quality": lambda: _measured("select", selection.quality_table),
    "magnitudes-paper": lambda: magnitude_table("paper").to_markdown(),
    "results-cifar10": _accuracies,
    **{f"results-{name}": partial(_reproduced, name) for name in TARGETS},
}


def filled(text: str) -> str:
    """The text with every generated part made anew."""

    def fill(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in PARTS:
            raise ValueError(f"no part is named {name!r}; known: {', '.join(PARTS)}")
        return f"{match[1]}{PARTS[name]()}\n{match[3]}"

    return PART.sub(fill, text)


def pages() -> list[Path]:
    """The files that may have generated parts."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def main(arguments: list[str]) -> int:
    """Rewrite, or with --check only compare."""
    stale = [page for page in pages() if filled(page.read_text()) != page.read_text()]
    for page in stale:
        if "--check" not in arguments:
            page.write_text(filled(page.read_text()))
        print(page.relative_to(ROOT))
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
