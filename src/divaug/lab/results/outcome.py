"""A target's result: tables, claims, figures and the runs behind them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from divaug.lab.results.frame import Records, Selection, View
from divaug.lab.results.methods import method
from divaug.lab.results.places import origin
from divaug.lab.results.records import write_text
from divaug.lab.results.stats import BOUND, NOT_RUN, Interval, Mean, Verdict
from divaug.lab.tables import Column, Table, duration, table
from divaug.names import unknown_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "NOTHING",
    "Claim",
    "Drawing",
    "Outcome",
    "Target",
    "claims_table",
    "number",
    "percent",
    "provenance",
    "runs_table",
    "spread",
    "summary",
]

#: Stands where a target has no record.
NOTHING = "Nothing was run yet."


def summary(
    key: str,
    name: str,
    digits: int = 2,
    factor: float = 1.0,
    *,
    sign: bool = False,
    missing: str = "—",
) -> Column:
    """A column of means: mean ± deviation."""

    def show(found: Mean) -> str:
        return found.show(digits, factor, sign=sign)

    return Column(key, name, show, missing, True, Mean.ends)


def percent(key: str, name: str, missing: str = NOT_RUN) -> Column:
    """A column of accuracies over seeds, in percent."""
    return summary(key, name, 2, 100, missing=missing)


def spread(key: str, name: str, digits: int = 4, *, sign: bool = False) -> Column:
    """A column of means as they are."""
    return summary(key, name, digits, sign=sign, missing=NOT_RUN)


def number(key: str, name: str, form: str = "{}", missing: str = "—") -> Column:
    """A column of numbers."""
    return Column(key, name, form, missing, True)


def interval(key: str, name: str) -> Column:
    """A column of 95 % intervals of differences in accuracy, in points."""
    return Column(key, name, lambda found: found.show(2, 100), "—", True, Interval.ends)


@dataclass(frozen=True)
class Drawing:
    """A figure.

    Args:
        name: of its file.
        title: the line above it.
        alt: what it shows, for those who do not see it.
        draw: draws it.
    """

    name: str
    title: str
    alt: str
    draw: Callable[[], "Figure"]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, and whether it comes out here.

    Args:
        text: the sentence.
        verdict: the result.
        numbers: that it was judged by.
        only: what the verdict is confined to, where the paper says it of something else.
    """

    text: str
    verdict: Verdict
    numbers: str = ""
    only: str = ""


@dataclass(frozen=True)
class Outcome:
    """A target's result.

    Args:
        tables: the main one first.
        runs: a row for each run behind them, as in `Records.runs`.
        drawings: its figures; none where there is nothing to draw.
        sentences: what is said before the tables.
        empty: whether nothing was run yet.
        name: of the target.
        title: what it shows.
        about: what is compared, for a reader who comes upon its page.
    """

    tables: tuple[Table, ...]
    runs: pd.DataFrame
    drawings: tuple[Drawing, ...] = ()
    sentences: tuple[str, ...] = ()
    empty: bool = False
    name: str = ""
    title: str = ""
    about: str = ""

    def body(self, pictures: str = "") -> str:
        """Sentences, tables and figures as Markdown, without a title.

        Args:
            pictures: the path of the figures' folder, with a slash at its end.
        """
        if self.empty:
            return NOTHING
        parts = list(self.sentences)
        for one in self.tables:
            parts += [f"**{one.title}**", one.to_markdown()]
        for drawing in self.drawings:  # alt texts are not shown beside pictures, titles are
            picture = f"![{drawing.alt}]({pictures}{drawing.name}.svg)"
            parts += [f"**{drawing.title}**", picture]
        return "\n\n".join(parts)

    def write(self, folder: Path) -> list[Path]:
        """Write Markdown, CSV and SVG into a folder; other files there are not touched.

        Returns:
            What was written.
        """
        from divaug.lab.results.figures import to_svg

        about = f"{self.about}\n\n" if self.about else ""
        texts = {"table.md": f"# {self.title}\n\n{about}{self.body()}\n"}
        texts |= {f"{one.name}.csv": one.to_csv() for one in self.tables}
        if len(self.runs):
            texts["runs.csv"] = runs_table(self.runs).to_csv()
        texts |= {f"{one.name}.svg": to_svg(one.draw(), one.name) for one in self.drawings}
        for name, text in texts.items():
            write_text(folder / name, text)
        return sorted(folder / name for name in texts)


@dataclass(frozen=True)
class Target:
    """A table, a figure or a comparison, made from records.

    Args:
        name: of the command.
        title: what it shows.
        methods: that it compares, in the order of its tables.
        analyse: makes tables and figures of some rows.
        about: what its page says first.
        many_rows: whether one of its tables shows several rows; otherwise each has its own.
        few_labels: whether it is about runs with unlabelled images.
        shows: its rows, by what was run; None for those that have runs of its methods.
    """

    name: str
    title: str
    methods: tuple[str, ...]
    analyse: Callable[[View, list[str]], Outcome]
    about: str = ""
    many_rows: bool = False
    few_labels: bool = False
    shows: Callable[[View], list[str]] | None = None

    def outcome(self, selection: Selection, records: Records) -> Outcome:
        """The result from all records of a selection; runs that were shrunk are called so.

        Raises:
            ValueError: a method that the target does not have.
        """
        for name in selection.methods:
            if name not in self.methods:
                raise ValueError(unknown_name(f"method of {self.name}:", name, self.methods))
        wanted = selection.methods or self.methods
        names = tuple(name for name in self.methods if name in wanted)
        view = View(records, selection, names, few_labels=self.few_labels)
        rows = self.shows(view) if self.shows else view.rows()
        if self.many_rows:
            found = self.analyse(view, rows) if rows else _nothing(view)
        else:
            each = {row: self.analyse(view, [row]) for row in rows}
            some = {row: one for row, one in each.items() if not one.empty}
            found = _together(some) if some else _nothing(view)
        note = f"Not the paper's setting: {selection.shrunk}."
        said = (note, *found.sentences) if selection.shrunk else found.sentences
        return replace(found, name=self.name, title=self.title, about=self.about, sentences=said)


def _nothing(view: View) -> Outcome:
    return Outcome((), view.runs.iloc[:0], empty=True)


def _together(outcomes: Mapping[str, Outcome]) -> Outcome:
    """Put outcomes of one target for several rows into one; the first keeps its file names.

    Args:
        outcomes: row → what its records come to; at least one.
    """
    first, *others = outcomes.values()
    if not others:
        return first
    named = [_of_row(one, row, "" if one is first else f"-{row}") for row, one in outcomes.items()]
    return Outcome(
        tuple(one for outcome in named for one in outcome.tables),
        pd.concat([one.runs for one in named if len(one.runs)] or [first.runs]),
        tuple(drawing for one in named for drawing in one.drawings),
        tuple(dict.fromkeys(said for one in named for said in one.sentences)),
    )


def _of_row(outcome: Outcome, row: str, suffix: str) -> Outcome:
    """The same with its files, tables and figures named after the row."""

    def with_row(text: str) -> str:
        return text if row in text else f"{text}, {row}"

    return replace(
        outcome,
        tables=tuple(
            replace(one, name=one.name + suffix, title=with_row(one.title))
            for one in outcome.tables
        ),
        drawings=tuple(
            replace(d, name=d.name + suffix, title=with_row(d.title), alt=with_row(d.alt))
            for d in outcome.drawings
        ),
    )


def claims_table(claims: Iterable[Claim]) -> Table:
    """What the paper says, and whether it comes out."""
    rows = []
    for one in claims:
        known = one.only and one.verdict is not Verdict.NOT_RUN
        holds = f"{one.verdict.value}, {one.only}" if known else one.verdict.value
        rows.append({"claim": one.text, "holds": holds, "numbers": one.numbers})
    columns = (
        Column("claim", "the paper"),
        Column("holds", "comes out"),
        Column("numbers", "numbers"),
    )
    return table("claims", "What the paper says, and what comes out here", columns, rows, [BOUND])


def runs_table(runs: pd.DataFrame) -> Table:
    """A row for each run behind a table, with its places."""
    few = runs.few_labels.notna().any()
    columns = (
        Column("network", "network"),
        Column("method", "method"),
        number("seed", "seed"),
        number("epochs", "epochs"),
        *([Column(key, key) for key in ("labels", "steps", "split")] if few else []),
        number("accuracy", "test accuracy", "{:.2%}"),
        number("loss", "training loss", "{:.4f}"),
        Column("seconds", "time", duration, numeric=True),
        number("side_by_side", "side by side"),
        *(Column(key, key) for key in ("machine", "precision", "versions", "commit", "hash")),
        Column("command", "command"),
    )
    return table("runs", "The runs", columns, [_run_row(one) for one in runs.itertuples()])


def _run_row(run: Any) -> dict[str, Any]:
    few = run.record.few_labels
    label = method(run.augmenter).label
    return {
        **{name: getattr(run, name) for name in ("seed", "epochs", "accuracy", "loss", "hash")},
        **{name: getattr(run, name) for name in ("machine", "precision", "versions", "commit")},
        "network": f"{run.dataset}, {run.model}",
        "method": label.format(S=run.num_selected, E=run.num_candidates),
        **({"labels": few.labels, "steps": few.steps, "split": few.split} if few else {}),
        "seconds": run.worked,
        "side_by_side": run.side_by_side,
        "command": run.command,
    }


def provenance(
    runs: pd.DataFrame | None = None,
    measured: pd.DataFrame | None = None,
    timed: pd.DataFrame | None = None,
    examined: pd.DataFrame | None = None,
) -> str:
    """A sentence each on where runs, measurements and the like were made; empty for none."""

    def each(found: pd.DataFrame | None) -> Sequence[Any]:
        return () if found is None else tuple(found.record)

    sentences = (
        origin("run", [one.starts for one in each(runs)], "`runs.csv`"),
        origin("measurement", [[one.environment] for one in each(measured)], "`measurements/`"),
        origin("timing", [[one.environment] for one in each(timed)], "`costs/`"),
        origin("examination", [[one.environment] for one in each(examined)], "`examinations/`"),
    )
    return " ".join(sentence for sentence in sentences if sentence)
