"""k-means++ against a random choice of S of E: the paper's own control."""

from collections.abc import Sequence
from typing import Any

from divaug._diversity import kept_by_chance
from divaug.lab.reproduce import paper
from divaug.lab.reproduce.drawing import Line, lines, which_seed
from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.methods import RULES, place_of
from divaug.lab.reproduce.outcomes import (
    Claim,
    Drawing,
    Outcome,
    claims_sheet,
    provenance,
    runs_sheet,
)
from divaug.lab.reproduce.records import RunRecord
from divaug.lab.reproduce.sheets import Column, Sheet, number, percent, spread, summary
from divaug.lab.reproduce.summaries import summarize
from divaug.lab.reproduce.targets.base import Target, cells, runs_behind
from divaug.lab.reproduce.targets.controls import CONTROLS, better_claim, controls_sheet
from divaug.lab.reproduce.targets.supervised import draw_rules

__all__ = ["TARGET"]

_COLUMNS = (
    Column("row", "dataset and network"),
    Column("method", "rule"),
    Column("paper", "paper, %", lambda p: p.show(), numeric=True, ends=paper.PRINTED),
    percent("accuracy", "ours, %"),
    number("n", "n"),
    summary("over_random", "over random", 2, 100, sign=True),
    number("pairs", "pairs"),
    spread("loss", "loss trained", 3),
    spread("trained", "VD trained"),
    summary("choice", "VD kept ÷ all", 3),
    summary("reach", "VD kept ÷ best", 3),
)
_NOTE = (
    "Mean ± sample standard deviation over n seeds. Over random: difference to the random choice "
    "with the same seeds, over so many pairs. Loss trained: of the views trained on, last epoch; "
    "VD trained: their Variance Diversity in training mode; VD kept ÷ all: of the kept against all "
    "candidates as they were scored, and ÷ best: against the choice of as many that is most "
    "diverse, where that was recorded; diversities and ratios are means over all epochs. A random "
    "choice is never scored; ÷ all it would have {} in the mean."
)
_OTHERS = (
    "The paper compares k-means++ with a random choice for networks that are not shown here: {} %."
)


def _row(findings: Findings, row: str, name: str) -> dict[str, Any]:
    runs, accuracy = findings.runs(row, name), findings.accuracy(row, name)
    over = None if name == "random" else findings.difference(row, name, "random")
    return {
        "row": row,
        "method": findings.title(row, name),
        "paper": paper.random_baseline(row, name),
        "accuracy": accuracy,
        "n": accuracy.n if accuracy else 0,
        "over_random": over,
        "pairs": over.n if over else None,
        "loss": summarize(run.last.loss for run in runs),
        "trained": summarize(run.trained_diversity for run in runs),
        "choice": summarize(run.gain_of_choice for run in runs),
        "reach": summarize(run.reach_of_choice for run in runs),
    }


def _by_chance(findings: Findings, rows: Sequence[str]) -> str:
    """What chance keeps of the diversity of all candidates, for each S of E in the table."""
    recipes = [findings.recipe(row, "divaug") for row in rows]
    sizes = dict.fromkeys((recipe.num_candidates, recipe.num_selected) for recipe in recipes)
    return ", ".join(f"{kept_by_chance(E, S):.3f} ({S} of {E})" for E, S in sizes)


def _claim(findings: Findings, row: str) -> Claim:
    text = f"choosing with k-means++ beats a random choice ({row})"
    return better_claim(text, findings, row, "random")


def _controls(findings: Findings, rows: Sequence[str]) -> list[RunRecord]:
    """Runs of the other controls, which are no part of the target; where it is not narrowed."""
    if findings.options.methods:
        return []
    others = [name for name in CONTROLS if name not in RULES]
    return [run for row in rows for name in others for run in findings.runs(row, name)]


def _analyse(findings: Findings) -> Outcome:
    rows = findings.rows()
    runs, others = runs_behind(findings, rows), _controls(findings, rows)
    rules = tuple(_row(findings, row, name) for row in rows for name in findings.methods)
    printed = any(line["paper"] for line in rules)
    note = _NOTE.format(_by_chance(findings, rows))
    elsewhere = "" if printed else _OTHERS.format(paper.random_baselines())
    main = Sheet(
        "rules",
        "The rules of selection",
        tuple(column for column in _COLUMNS if printed or column.key != "paper"),
        rules,
        tuple(note for note in (note, elsewhere) if note),
        provenance(runs),
    )
    claims = claims_sheet([_claim(findings, row) for row in rows])
    tables = [main, claims]
    if others:
        tables.append(controls_sheet(findings, rows, where=provenance(others)))
    drawings = [d for row in rows for d in (*draw_rules(findings, row), *_draw(findings, row))]
    sheets = (*tables, runs_sheet([*runs, *others])) if runs else (main, claims)
    return Outcome(TARGET.name, TARGET.title, sheets, tuple(drawings), empty=not runs)


def _draw(findings: Findings, row: str) -> list[Drawing]:
    """Diversity of the kept over that of all candidates, epoch by epoch, first seed."""
    found, seeds = [], []
    for name in findings.methods:
        for run in findings.runs(row, name)[:1]:
            kept = [(e.number, e.kept) for e in run.epochs if e.kept]
            points = [
                (number, k.diversity_kept / k.diversity_all)
                for number, k in kept
                if k.diversity_all > 0
            ]
            if points:
                title = findings.title(row, name)
                found.append(Line(title, points, place=place_of(name)))
                seeds.append(run.recipe.seed)
    if not found:
        return []
    figure = lines(found, "epoch", "Variance Diversity, kept ÷ all")
    title = f"What the choice adds in diversity, {row}, {which_seed(seeds)}"
    return [Drawing(f"choice-{row}", title, f"{title}, a line for each rule", figure)]


TARGET = Target(
    "random-baseline",
    "k-means++ against a random choice of S of E (Table 6)",
    RULES,
    (lambda plan: cells(plan),),
    _analyse,
    many_rows=True,
    about=(
        "All draw the same kind of candidates and differ in the rule that keeps S of E: by chance, "
        "k-means++ (the paper's), greedy, or exact (the most diverse S)."
    ),
)
