"""A target's result: tables, claims and figures."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from divaug._names import unknown_name
from divaug.lab.results.columns import Column, table
from divaug.lab.results.frame import Records, Selection, View
from divaug.lab.results.places import origin
from divaug.lab.results.records import write_text
from divaug.lab.results.stats import BOUND, Verdict
from divaug.lab.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NOTHING", "Claim", "Drawing", "Outcome", "Target", "claims_table"]

#: Stands where a target has no record.
NOTHING = "Nothing was run yet."


@dataclass(frozen=True)
class Drawing:
    """A figure: name of its file, the line above it, a text for those who do not see it."""

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
        numbers: the numbers behind the verdict.
        only: the scope of the verdict, where it differs from the paper's.
    """

    text: str
    verdict: Verdict
    numbers: str = ""
    only: str = ""


def claims_table(claims: Iterable[Claim]) -> Table:
    """Tabulate the paper's claims with our verdicts."""
    rows = []
    for one in claims:
        only = f", {one.only}" if one.only and one.verdict is not Verdict.NOT_RUN else ""
        holds = one.verdict.value + only
        rows.append({"claim": one.text, "holds": holds, "numbers": one.numbers})
    names = {"claim": "the paper", "holds": "comes out", "numbers": "numbers"}
    columns = [Column(key, name) for key, name in names.items()]
    return table("claims", "What the paper says, and what comes out here", columns, rows, [BOUND])


@dataclass(frozen=True)
class Outcome:
    """A target's result.

    Args:
        tables: the main one first.
        behind: the records that its numbers come from.
        drawings: its figures.
        sentences: sentences before the tables.
        empty: whether nothing was run yet.
        name: of the target.
        title: what it shows.
        about: what is compared, for a reader who comes upon its page.
    """

    tables: tuple[Table, ...] = ()
    behind: tuple[Any, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    sentences: tuple[str, ...] = ()
    empty: bool = False
    name: str = ""
    title: str = ""
    about: str = ""

    def page(self) -> str:
        """Return the result as Markdown, its figures in the same folder."""
        parts = [f"# {self.title}", self.about, *self.sentences]
        for one in self.tables:
            parts += [f"**{one.title}**", one.to_markdown()]
        for drawing in self.drawings:  # alt texts are not shown beside pictures, titles are
            parts += [f"**{drawing.title}**", f"![{drawing.alt}]({drawing.name}.svg)"]
        parts.append(origin({one.hash: one for one in self.behind}.values()))
        return "\n\n".join(part for part in parts if part) + "\n"

    def write(self, folder: Path) -> list[Path]:
        """Write Markdown, CSV and SVG into a folder; returns the files."""
        from divaug.lab.results.figures import to_svg

        texts = {"table.md": self.page()}
        texts |= {f"{one.name}.csv": one.to_csv() for one in self.tables}
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
        about: first paragraph of its page.
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

    def chosen(self, methods: Iterable[str]) -> tuple[str, ...]:
        """Those of its methods that are selected; all for none.

        Raises:
            ValueError: a method that the target does not have.
        """
        wanted = tuple(methods) or self.methods
        for name in wanted:
            if name not in self.methods:
                raise ValueError(unknown_name(f"method of {self.name}:", name, self.methods))
        return tuple(name for name in self.methods if name in wanted)

    def outcome(self, selection: Selection, records: Records) -> Outcome:
        """Return the result from all records of a selection; shrunk runs are marked."""
        view = View(records, selection, self.chosen(selection.methods), self.few_labels)
        rows = self.shows(view) if self.shows else view.rows()
        if self.many_rows:
            found = self.analyse(view, rows) if rows else Outcome(empty=True)
        else:
            each = {row: self.analyse(view, [row]) for row in rows}
            found = _together({row: one for row, one in each.items() if not one.empty})
        note = f"Not the paper's setting: {selection.shrunk}."
        said = (note, *found.sentences) if selection.shrunk else found.sentences
        return replace(found, name=self.name, title=self.title, about=self.about, sentences=said)


def _together(outcomes: Mapping[str, Outcome]) -> Outcome:
    """Join outcomes of several rows; files of all but the first are named by their row."""
    if len(outcomes) < 2:
        return next(iter(outcomes.values()), Outcome(empty=True))
    named = []
    for i, (row, one) in enumerate(outcomes.items()):
        suffix = f"-{row}" if i else ""
        tables = [replace(t, name=t.name + suffix, title=_with(row, t.title)) for t in one.tables]
        drawings = [
            replace(d, name=d.name + suffix, title=_with(row, d.title), alt=_with(row, d.alt))
            for d in one.drawings
        ]
        named.append((tables, drawings))
    every = outcomes.values()
    return Outcome(
        tuple(one for tables, _ in named for one in tables),
        tuple(record for one in every for record in one.behind),
        tuple(one for _, drawings in named for one in drawings),
        tuple(dict.fromkeys(said for one in every for said in one.sentences)),
    )


def _with(row: str, text: str) -> str:
    return text if row in text else f"{text}, {row}"
