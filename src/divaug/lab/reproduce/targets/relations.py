"""How methods stand to each other: orders and correlations, judged seed by seed, and figures."""

from collections.abc import Iterable, Sequence

from matplotlib.figure import Figure

from divaug.lab.reproduce.drawing import Point, scatter
from divaug.lab.reproduce.methods import method, place_of
from divaug.lab.reproduce.outcomes import Claim
from divaug.lab.reproduce.sheets import Column, Sheet, number, summary
from divaug.lab.reproduce.summaries import (
    Correlation,
    Summary,
    correlate,
    correlate_by_seed,
    paired,
    shared,
    summarize,
)
from divaug.lab.reproduce.targets.measured import FIGURE_METHODS, VIEWS, Measure, Seen, comparable
from divaug.lab.reproduce.verdicts import above_zero, both, rises_together

__all__ = [
    "correlation_claim",
    "correlations_sheet",
    "draw_pair",
    "of_means",
    "order_claim",
    "with_n",
]

_CORRELATIONS = (
    Column("what", "between"),
    Column("methods", "methods"),
    number("pearson", "Pearson r", "{:+.3f}"),
    number("spearman", "Spearman ρ", "{:+.3f}"),
    number("n", "n methods"),
    summary("by_seed", "r of each seed", 3, sign=True),
    number("seeds", "n seeds"),
)
_CORRELATIONS_NOTE = (
    "Pearson r and Spearman ρ: of the means of so many methods; with fewer than three none is "
    "given. r of each seed: Pearson's, from the values of one seed at a time, mean ± sample "
    "standard deviation over the seeds that all these methods share."
)


def order_claim(
    text: str, seen: Sequence[Seen], measure: Measure, pairs: Sequence[tuple[str, str]]
) -> Claim:
    """A claim that the first of each pair of methods has more of something than the second.

    Differences are taken with the same seed, over the seeds that all named methods share.

    Args:
        text: the claim.
        seen: methods.
        measure: what they are ordered by.
        pairs: of names.
    """
    values = {one.name: measure.of(one) for one in seen}
    named = dict.fromkeys(name for pair in pairs for name in pair)
    if not all(values.get(name) for name in named):
        return Claim(text, None)
    marks = shared([values[name] for name in named])
    chosen = {name: {mark: values[name][mark] for mark in marks} for name in named}
    found = [(pair, paired(*(chosen[name] for name in pair))) for pair in pairs]
    titles = {one.name: one.title for one in seen}
    shown = [(titles[a], titles[b], measure.show(one)) for (a, b), one in found if one]
    return Claim(
        text,
        both(above_zero(one) for _, one in found),
        f"{_listed(shown)}{measure.unit}; {_counted(len(marks), 'seed')}" if shown else "",
    )


def correlation_claim(
    text: str, seen: Sequence[Seen], first: Measure, second: Measure, sign: int = 1, least: int = 3
) -> Claim:
    """A claim that two measures rise together, or that one falls as the other rises.

    Args:
        text: the claim.
        seen: the methods that it is about; those that lack a measure are left out.
        first: measure.
        second: measure.
        sign: 1 or −1.
        least: with fewer methods the claim counts as not run.
    """
    whole = _whole(seen, first, second)
    by_seed = _by_seed(whole, first, second)
    found = _mean(by_seed)
    if len(whole) < least or found is None:
        return Claim(text, None)
    shown = f"r = {found.show(2, sign=True)} over {len(whole)} points, {_counted(found.n, 'seed')}"
    return Claim(text, rises_together(by_seed, sign), shown)


def of_means(seen: Sequence[Seen], first: Measure, second: Measure) -> Correlation:
    """The coefficients of the means of methods: of the points of a figure."""
    found = _points(seen, first, second)
    return correlate([x.mean for _, x, _ in found], [y.mean for _, _, y in found])


def correlations_sheet(seen: Sequence[Seen], pairs: Sequence[tuple[Measure, Measure]]) -> Sheet:
    """Coefficients over the paper's five methods, over all, and over groups that are alike.

    Methods that ask choose by what is then measured, which ties the two together by construction.
    Methods that train on one view and on several differ in more than what is measured.

    Args:
        seen: methods; those that lack a value are left out, and n says so.
        pairs: what goes with what; groups by the number of views have no line for that number.
    """
    groups = {
        "the paper's five": [one for one in seen if one.name in FIGURE_METHODS],
        "all": list(seen),
        "all that do not ask the measuring network": [o for o in seen if not method(o.name).asks],
    }
    by_views = {
        "all with one view": [one for one in seen if not method(one.name).many],
        "all with several views": [one for one in seen if method(one.name).many],
    }
    rows = []
    for first, second in pairs:
        for which, chosen in (groups if first is VIEWS else groups | by_views).items():
            found = of_means(chosen, first, second)
            by_seed = _mean(_by_seed(_whole(chosen, first, second), first, second))
            rows.append(
                {
                    "what": f"{first.title} and {second.title}",
                    "methods": which,
                    "pearson": found.pearson,
                    "spearman": found.spearman,
                    "n": found.n,
                    "by_seed": by_seed,
                    "seeds": by_seed.n if by_seed else 0,
                }
            )
    return Sheet(
        "correlations",
        "Correlations over methods",
        _CORRELATIONS,
        tuple(rows),
        (_CORRELATIONS_NOTE,),
    )


def with_n(label: str, found: Sequence[Summary], counts: str) -> str:
    """What an axis says, with the n of its values."""
    least, most = (extreme(one.n for one in found) for extreme in (min, max))
    if least == most:
        return f"{label} ({_counted(most, counts)})"
    return f"{label} (n = {least} to {most} {counts}s)"


def draw_pair(
    seen: Sequence[Seen], first: Measure, second: Measure, label: str, ring: Iterable[str] = ()
) -> Figure | None:
    """One measure of each method against another, with bars and n; None for fewer than two.

    Args:
        seen: methods.
        first: to the right.
        second: upwards.
        label: what the upward axis says.
        ring: names of methods that are marked.
    """
    found = _points(seen, first, second)
    if len(found) < 2:
        return None
    points = [
        Point(
            one.title,
            first.factor * x.mean,
            second.factor * y.mean,
            None if y.std is None else second.factor * y.std,
            place_of(one.name),
            x_error=None if x.std is None else first.factor * x.std,
        )
        for one, x, y in found
    ]
    right = with_n(first.title, [x for _, x, _ in found], first.counts)
    upwards = with_n(label, [y for _, _, y in found], second.counts)
    marked = [one.title for one, _, _ in found if one.name in set(ring)]
    return scatter(points, right, upwards, ring=marked)


def _listed(found: Sequence[tuple[str, str, str]]) -> str:
    """First, second and difference of some pairs; a method that all have in common once."""
    if len({second for _, second, _ in found}) == 1:
        return f"over {found[0][1]}: " + ", ".join(f"{first} {one}" for first, _, one in found)
    return f"{found[0][0]} " + ", ".join(f"over {second} {one}" for _, second, one in found)


def _counted(n: int, what: str) -> str:
    return f"n = {n} {what}{'s' * (n != 1)}"


def _whole(seen: Sequence[Seen], first: Measure, second: Measure) -> list[Seen]:
    """The methods that have both measures."""
    return [one for one in seen if first.of(one) and second.of(one)]


def _points(
    seen: Sequence[Seen], first: Measure, second: Measure
) -> list[tuple[Seen, Summary, Summary]]:
    whole = _whole(seen, first, second)
    both_of = zip(whole, comparable(whole, first), comparable(whole, second), strict=True)
    return [(one, x, y) for one, x, y in both_of if x is not None and y is not None]


def _by_seed(whole: Sequence[Seen], first: Measure, second: Measure) -> list[Correlation]:
    x, y = ([measure.of(one) for one in whole] for measure in (first, second))
    return list(correlate_by_seed(x, y).values())


def _mean(found: Iterable[Correlation]) -> Summary | None:
    """Pearson's r over the seeds that have one."""
    return summarize(one.pearson for one in found if one.pearson is not None)
