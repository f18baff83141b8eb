"""What a target comes to: tables, claims that come out or not, and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from divaug.reporting.table import duration
from divaug.reproduction.methods import method
from divaug.reproduction.records import RunRecord
from divaug.reproduction.sheets import NOT_RUN, Column, Sheet, number
from divaug.reproduction.verdicts import UNDECIDED, Verdict

__all__ = [
    "Claim",
    "Drawing",
    "Outcome",
    "claims_sheet",
    "provenance",
    "runs_sheet",
    "short_commit",
]


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure.

    Args:
        name: of its files.
        title: the line above it.
        alt: what it shows, for those who do not see it.
        figure: itself.
    """

    name: str
    title: str
    alt: str
    figure: Figure


@dataclass(frozen=True)
class Claim:
    """Something that the paper says, and whether it comes out here.

    Args:
        text: the claim in our words.
        holds: True, False or undecided; None where a cell that it needs was not run.
        numbers: what it was judged by.
    """

    text: str
    holds: Verdict
    numbers: str = ""


@dataclass(frozen=True)
class Outcome:
    """A target's result.

    Args:
        name: of the target.
        title: what it shows.
        sheets: its tables, the main one first.
        drawings: its figures; none where there is nothing to draw.
        sentences: what is said before the tables.
        empty: whether nothing was run yet.
    """

    name: str
    title: str
    sheets: tuple[Sheet, ...]
    drawings: tuple[Drawing, ...] = ()
    sentences: tuple[str, ...] = ()
    empty: bool = False


_VERDICTS: Mapping[Verdict, str] = {
    True: "yes",
    False: "no",
    UNDECIDED: "undecided",
    None: NOT_RUN,
}
_BOUND = (
    "Yes and no where a difference is larger than its spread over seeds explains, at 95 %; "
    "undecided otherwise, and always with a single seed."
)


def claims_sheet(claims: Sequence[Claim]) -> Sheet:
    """What the paper says, and whether it comes out."""
    return Sheet(
        "claims",
        "What the paper says, and what comes out here",
        (Column("claim", "the paper"), Column("holds", "comes out"), Column("numbers", "numbers")),
        tuple(
            {"claim": one.text, "holds": _VERDICTS[one.holds], "numbers": one.numbers}
            for one in claims
        ),
        (_BOUND,),
    )


_FEW_LABELS = (
    number("labels", "labels", "{:,}"),
    number("steps", "steps", "{:,}"),
    Column("split", "split"),
)


def runs_sheet(runs: Sequence[RunRecord]) -> Sheet:
    """A row for each run behind a table, with where it ran."""
    columns = (
        Column("network", "network"),
        Column("method", "method"),
        number("seed", "seed"),
        number("epochs", "epochs"),
        *(_FEW_LABELS if any(run.few_labels for run in runs) else ()),
        number("accuracy", "test accuracy", "{:.2%}"),
        number("loss", "training loss", "{:.4f}"),
        Column("seconds", "time", duration, numeric=True),
        number("side_by_side", "side by side"),
        Column("machine", "hardware"),
        Column("precision", "precision"),
        Column("versions", "versions"),
        Column("commit", "commit"),
        Column("hash", "hash"),
        Column("command", "command"),
    )
    notes = (
        "The last epoch is reported; nothing was chosen with the test set. Times of runs that "
        "shared their device (side by side) are longer than they would be alone.",
    )
    return Sheet("runs", "The runs", columns, tuple(map(_run_row, runs)), notes)


def _run_row(run: RunRecord) -> dict[str, Any]:
    last = run.starts[-1]
    packages = last.get("packages", {})
    versions = {"Python": last.get("python"), "CUDA": last.get("cuda")}
    versions |= {name: packages.get(name) for name in ("torch", "triton", "divaug")}
    commits = dict.fromkeys(short_commit(start) for start in run.starts)
    few = run.few_labels
    return {
        "network": f"{run.recipe.dataset}, {run.recipe.model}",
        "method": method(run.recipe.augmenter).title(run.recipe),
        "seed": run.recipe.seed,
        "epochs": run.recipe.epochs,
        "labels": few.labels if few else None,
        "steps": few.steps if few else None,
        "split": few.split if few else None,
        "accuracy": run.accuracy,
        "loss": run.last.loss,
        "seconds": run.working_seconds,
        "side_by_side": run.side_by_side,
        "machine": run.machine,
        "precision": last.get("precision"),
        "versions": ", ".join(f"{name} {value}" for name, value in versions.items() if value),
        "commit": ", ".join(commits),
        "hash": run.hash,
        "command": _command(last),
    }


def provenance(runs: Sequence[RunRecord]) -> str:
    """One sentence on where the runs behind a table ran; empty for no runs."""
    if not runs:
        return ""
    rows = [_run_row(run) for run in runs]

    def all_of(key: str) -> str:
        return "; ".join(dict.fromkeys(str(row[key]) for row in rows))

    plural = "s" if len(runs) > 1 else ""
    commands = "; ".join(f"`{command}`" for command in dict.fromkeys(r["command"] for r in rows))
    return (
        f"{len(runs)} run{plural} on {all_of('machine')} ({all_of('precision')}); "
        f"{all_of('versions')}; commit {all_of('commit')}; {commands}."
    )


def short_commit(environment: Mapping[str, Any]) -> str:
    """The commit in twelve digits, with the mark of a changed checkout.

    Example:
        >>> short_commit({"commit": "0123456789abcdef+changes"})
        '0123456789ab+changes'
    """
    number, plus, changes = str(environment.get("commit") or "unknown").partition("+")
    return f"{number[:12]}{plus}{changes}"


def _command(start: Mapping[str, Any]) -> str:
    program, *words = start.get("command") or ["divaug"]
    return " ".join(["divaug" if program.startswith("__main__") else program, *words])
