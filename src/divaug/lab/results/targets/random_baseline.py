"""k-means++ against a random choice of S of E: the paper's own control."""

from functools import partial

from divaug.lab.results import paper
from divaug.lab.results.columns import Column, count, percent, points, spread, summary, table
from divaug.lab.results.figures import Line, lines, which_seed
from divaug.lab.results.frame import View
from divaug.lab.results.methods import RULES, method
from divaug.lab.results.outcome import Drawing, Outcome, Target, claims_table
from divaug.lab.results.targets.compared import CONTROLS, better_claim, controls_table, draw_rules
from divaug.lab.tables import Table

__all__ = ["TARGET"]

_COLUMNS = (
    Column("row", "dataset and network"),
    Column("method", "rule"),
    paper.column("paper, %"),
    percent("accuracy", "ours, %"),
    count("n", "n", "accuracy"),
    points("over_random", "over random"),
    count("pairs", "pairs", "over_random"),
    spread("loss", "loss trained", 3),
    spread("trained", "VD trained"),
    summary("choice", "VD kept ÷ all", 3),
    summary("reach", "VD kept ÷ best", 3),
)
_NOTE = (
    "Over random: difference to the random choice, over so many pairs of runs with the same seed. "
    "Loss trained: of the views trained on, last epoch; VD trained: their Variance Diversity in "
    "training mode; VD kept ÷ all: of the kept against all candidates as they were scored, and ÷ "
    "best: against the choice of as many that is most diverse, where that was recorded; "
    "diversities and ratios are means over all epochs. A random choice is never scored; ÷ all it "
    "would have {} in the mean."
)
_OTHERS = (
    "The paper compares k-means++ with a random choice for networks that are not shown here: {} %."
)


def _analyse(view: View, rows: list[str]) -> Outcome:
    text = "choosing with k-means++ beats a random choice ({})"
    claims = [better_claim(text.format(row), view, row, "random") for row in rows]
    # The other controls are no part of the target; they stand where it is not narrowed.
    others = [] if view.selection.methods else view.cells(rows, CONTROLS)
    drawings = [d for row in rows for d in (*draw_rules(view, row), *_draw(view, row))]
    return Outcome(
        (
            _rules(view, rows),
            claims_table(claims),
            *([controls_table(view, rows)] if others else []),
        ),
        (*view.cells(rows, view.methods), *others),
        tuple(drawings),
    )


def _rules(view: View, rows: list[str]) -> Table:
    found = []
    for row in rows:
        for name in view.methods:
            over = None if name == "random" else view.difference(row, name, "random")
            found.append(
                {
                    "row": row,
                    "method": view.title(row, name),
                    "paper": paper.printed(row, name, "random_baseline"),
                    "over_random": over,
                    **{
                        value: view.mean(row, name, value)
                        for value in ("accuracy", "loss", "trained", "choice", "reach")
                    },
                }
            )
    printed = any(line["paper"] for line in found)
    columns = [column for column in _COLUMNS if printed or column.key != "paper"]
    notes = [_NOTE.format(_by_chance(view, rows))]
    notes += [] if printed else [_OTHERS.format(paper.random_baselines())]
    return table("rules", "The rules of selection", columns, found, notes)


def _by_chance(view: View, rows: list[str]) -> str:
    """Return the share of the diversity of all candidates that chance keeps, for each S of E."""
    runs = view.runs[view.runs.row.isin(rows)]
    sizes = dict.fromkeys(zip(runs.num_candidates, runs.num_selected, strict=True))
    # See `divaug._diversity.kept_by_chance`.
    return ", ".join(f"{(S - 1) * E / (S * (E - 1)):.3f} ({S} of {E})" for E, S in sizes)


def _draw(view: View, row: str) -> list[Drawing]:
    """Diversity of the kept over that of all candidates, epoch by epoch, first seed."""
    found, seeds = [], []
    for name in view.methods:
        for run in view.cell(row, name).record[:1]:
            kept = [(float(one.epoch), one.kept) for one in run.epochs if one.kept]
            values = [(e, k.diversity_kept / k.diversity_all) for e, k in kept if k.diversity_all]
            if values:
                found.append(Line(view.title(row, name), values, place=method(name).place))
                seeds.append(run.recipe["seed"])
    if not found:
        return []
    title = f"What the choice adds in diversity, {row}, {which_seed(seeds)}"
    draw = partial(lines, found, "epoch", "Variance Diversity, kept ÷ all")
    return [Drawing(f"choice-{row}", title, f"{title}, a line for each rule", draw)]


TARGET = Target(
    "random-baseline",
    "k-means++ against a random choice of S of E (Table 6)",
    RULES,
    _analyse,
    "All draw the same kind of candidates and differ in the rule that keeps S of E: by chance, "
    "k-means++ (the paper's), greedy, or exact (the most diverse S).",
    many_rows=True,
)
