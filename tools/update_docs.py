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

from divaug.lab.report.table import to_markdown
from divaug.lab.reproduce.durations import durations_sheet
from divaug.lab.reproduce.store import Store
from divaug.lab.reproduce.targets.supervised import brief_sheet
from divaug.lab.reproduce.writing import NOTHING, body

from divaug.lab.bench import expansion, operations, selection, step
from divaug.lab.bench.harness import read_result
from divaug.lab.cli.operations import magnitude_table
from divaug.lab.reproduce import TARGETS, Options, read_store
from divaug.lab.reproduce.options import PAPER_ROW
from divaug.lab.tables import Table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
RECORDS = ROOT / "results"
PART = re.compile(r"(<!-- begin (?P<name>[\w-]+) -->\n).*?(<!-- end (?P=name) -->)", re.DOTALL)


def _measured(kind: str, show: Callable[[dict], Table], machine: str = "") -> str:
    return show(read_result(RESULTS / f"{kind}{machine}.json", kind)).to_markdown()


@cache
def _records() -> Store:
    return read_store(RECORDS)


@cache
def _reproduced(name: str) -> str:
    """What the records of a target come to, its figures as `divaug report` drew them."""
    return body(TARGETS[name].outcome(Options(), _records()), f"../results/{name}/")


@cache
def _accuracies() -> str:
    """The paper's first row with the controls."""
    findings = TARGETS["supervised"].findings(Options(), _records())
    if not any(findings.runs(PAPER_ROW, name) for name in findings.methods):
        return NOTHING
    return to_markdown(brief_sheet(findings, PAPER_ROW).table())


@cache
def _durations() -> str:
    """How long the runs of the paper's first row took."""
    findings = TARGETS["supervised"].findings(Options(), _records())
    runs = [run for name in findings.methods for run in findings.runs(PAPER_ROW, name)]
    return to_markdown(durations_sheet(runs).table())


#: Name of a part → its text.
PARTS: dict[str, Callable[[], str]] = {
    "bench-operations": lambda: _measured("operations", operations.table),
    "bench-each-operation": lambda: _measured("operations", operations.operation_table),
    "bench-operations-intel": lambda: _measured("operations", operations.table, "-intel"),
    "bench-each-operation-intel": lambda: _measured(
        "operations", operations.operation_table, "-intel"
    ),
    "bench-select": lambda: _measured("select", selection.table),
    "bench-select-intel": lambda: _measured("select", selection.table, "-intel"),
    "bench-expand": lambda: _measured("expand", expansion.table),
    "bench-rivals": lambda: _measured("expand", expansion.rivals_table),
    "bench-select-device": lambda: _measured("select-device", selection.device_table),
    "bench-step": lambda: _measured("step", step.table),
    "bench-step-parts": lambda: _measured("step", step.parts_table),
    "bench-semi-step": lambda: _measured("semi-step", step.semi_table),
    "select-quality": lambda: _measured("select", selection.quality_table),
    "magnitudes-paper": lambda: magnitude_table("paper").to_markdown(),
    "magnitudes-released": lambda: magnitude_table("released").to_markdown(),
    "magnitudes-uda": lambda: magnitude_table("uda").to_markdown(),
    "results-cifar10": _accuracies,
    "run-durations": _durations,
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
