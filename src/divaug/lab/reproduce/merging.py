"""Outcomes of one target for several rows, put together into one."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from divaug.lab.reproduce.outcomes import RUNS, Outcome
from divaug.lab.reproduce.sheets import Sheet

__all__ = ["together"]


def together(outcomes: Mapping[str, Outcome]) -> Outcome:
    """Outcomes of one target for several rows as one; the first keeps the names of its files.

    Args:
        outcomes: row → what its records came to; at least one.
    """
    first, *others = outcomes.values()
    if not others:
        return first
    named = [_of_row(one, row, "" if one is first else f"-{row}") for row, one in outcomes.items()]
    return replace(
        first,
        sheets=(*(s for one in named for s in one.sheets), *_one_list(outcomes.values())),
        drawings=tuple(drawing for one in named for drawing in one.drawings),
        sentences=tuple(dict.fromkeys(said for one in named for said in one.sentences)),
        empty=all(one.empty for one in named),
    )


def _of_row(outcome: Outcome, row: str, suffix: str) -> Outcome:
    """The same without its list of runs, its files, tables and figures named after the row."""

    def with_row(text: str) -> str:
        return text if row in text else f"{text}, {row}"

    return replace(
        outcome,
        sheets=tuple(
            replace(sheet, name=sheet.name + suffix, title=with_row(sheet.title))
            for sheet in outcome.sheets
            if sheet.name != RUNS
        ),
        drawings=tuple(
            replace(d, name=d.name + suffix, title=with_row(d.title), alt=with_row(d.alt))
            for d in outcome.drawings
        ),
    )


def _one_list(outcomes: Iterable[Outcome]) -> list[Sheet]:
    """The runs of all outcomes in one list; none where none has any."""
    lists = [sheet for one in outcomes for sheet in one.sheets if sheet.name == RUNS]
    return [replace(lists[0], rows=tuple(r for one in lists for r in one.rows))] if lists else []
