"""What a target comes to: tables, claims that come out or not, and figures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from divaug.lab.checkout import commit_of
from divaug.lab.report.table import duration
from divaug.lab.reproduce.examination_record import ExaminationRecord
from divaug.lab.reproduce.machines import machine_of
from divaug.lab.reproduce.methods import method
from divaug.lab.reproduce.origins import command_of, origin, versions_of
from divaug.lab.reproduce.records import CostRecord, MeasurementRecord, RunRecord
from divaug.lab.reproduce.sheets import NOT_RUN, Column, Sheet, number
from divaug.lab.reproduce.verdicts import UNDECIDED, Verdict

__all__ = [
    "BOUND",
    "RUNS",
    "VERDICTS",
    "Claim",
    "Drawing",
    "Outcome",
    "claims_sheet",
    "provenance",
    "runs_sheet",
]

#: The name of the list of runs, which stands apart from the tables.
RUNS = "runs"


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
        only: what the verdict is confined to, where the paper says it of something else.
    """

    text: str
    holds: Verdict
    numbers: str = ""
    only: str = ""

    @property
    def verdict(self) -> str:
        """The verdict in words, with what it is confined to.

        Example:
            >>> Claim("less is more", True, only="after 9 steps").verdict
            'yes, after 9 steps'
        """
        word = VERDICTS[self.holds]
        return f"{word}, {self.only}" if self.only and self.holds is not None else word


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
        about: what is compared, for a reader who comes upon its page.
    """

    name: str
    title: str
    sheets: tuple[Sheet, ...]
    drawings: tuple[Drawing, ...] = ()
    sentences: tuple[str, ...] = ()
    empty: bool = False
    about: str = ""


#: How tables write a verdict.
VERDICTS: Mapping[Verdict, str] = {
    True: "yes",
    False: "no",
    UNDECIDED: "undecided",
    None: NOT_RUN,
}
#: How verdicts are reached.
BOUND = (
    "Yes or no where the difference is significant at the 5 % level (Student's t over seeds); "
    "undecided otherwise, and always with a single seed. Each comparison stands alone: where "
    "nothing is behind them, one in twenty is decided by chance. A claim about several is refuted "
    "by chance more often than a claim about one, since one against it is enough, and confirmed "
    "less often."
)


def claims_sheet(claims: Sequence[Claim]) -> Sheet:
    """What the paper says, and whether it comes out."""
    return Sheet(
        "claims",
        "What the paper says, and what comes out here",
        (Column("claim", "the paper"), Column("holds", "comes out"), Column("numbers", "numbers")),
        tuple({"claim": one.text, "holds": one.verdict, "numbers": one.numbers} for one in claims),
        (BOUND,),
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
        "shared their device (side by side) are longer than they would be alone. Where the starts "
        "of a run differ, all are named in their order.",
    )
    return Sheet(RUNS, "The runs", columns, tuple(map(_run_row, runs)), notes)


def _run_row(run: RunRecord) -> dict[str, Any]:
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
        "machine": _each(run, machine_of, ", then "),
        "precision": _each(run, lambda start: start.get("precision") or "", ", then "),
        "versions": _each(run, versions_of, ", then "),
        "commit": _each(run, commit_of),
        "hash": run.hash,
        "command": _each(run, command_of, "; "),
    }


def _each(run: RunRecord, of: Callable[[Mapping[str, Any]], str], between: str = ", ") -> str:
    """What the starts of a run have, a value once."""
    return between.join(value for value in dict.fromkeys(map(of, run.starts)) if value)


def provenance(
    runs: Sequence[RunRecord],
    measured: Sequence[MeasurementRecord] = (),
    timed: Sequence[CostRecord] = (),
    examined: Sequence[ExaminationRecord] = (),
) -> str:
    """A sentence each on where runs, measurements and the like were made; empty for none."""
    sentences = (
        origin("run", [run.starts for run in runs], "`runs.csv`"),
        origin("measurement", [[one.environment] for one in measured], "`measurements/`"),
        origin("timing", [[cost.environment] for cost in timed], "`costs/`"),
        origin("examination", [[one.environment] for one in examined], "`examinations/`"),
    )
    return " ".join(sentence for sentence in sentences if sentence)
