"""Methods as a scorer's network sees them, beside the accuracy they lead to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from divaug.reproduction.findings import Findings
from divaug.reproduction.methods import method
from divaug.reproduction.records import MeasurementRecord
from divaug.reproduction.sheets import Column, Sheet, number
from divaug.reproduction.summaries import Summary, correlate, summarize
from divaug.reproduction.verdicts import Verdict, above, both

__all__ = [
    "FIGURE_METHODS",
    "LIMITS",
    "Seen",
    "correlations_sheet",
    "look",
    "measurements_behind",
    "ordered",
]

#: The five methods of the paper's figures on diversity.
FIGURE_METHODS = ("default", "autoaugment", "fast-autoaugment", "randaugment", "divaug")

#: What measurements cannot tell.
LIMITS = (
    "DivAug, by k-means++, greedy or exact, keeps the views that the measuring network itself "
    "finds diverse: its diversity to that network is high by construction. PBA, a schedule, is "
    "measured over the whole of it: at ten epochs spread evenly (at all, where there are fewer), "
    "each on its share of the images."
)


@dataclass(frozen=True)
class Seen:
    """A method: what was measured of it, and what training with it came to; None where not run.

    Args:
        name: its augmenter.
        title: as people read it.
        variance: Variance Diversity to the scorer.
        loss: mean loss of its views, by the scorer.
        affinity: change of the scorer's accuracy on its views.
        accuracy: test accuracy of networks trained with it.
        gain: that over the default augmentation, seed by seed.
        own_loss: training loss of those networks in their last epoch.
        images: how many originals were measured.
    """

    name: str
    title: str
    variance: Summary | None
    loss: Summary | None
    affinity: Summary | None
    accuracy: Summary | None
    gain: Summary | None
    own_loss: Summary | None
    images: int = 0


def look(findings: Findings, row: str, scorer: str, name: str) -> Seen:
    """Everything about one method."""
    measured = [one.values for one in findings.measurements(row, scorer, name)]
    # The default's gain over itself is zero by definition, once it was run.
    return Seen(
        name,
        findings.title(row, name),
        summarize(one.variance_diversity for one in measured),
        summarize(one.loss_diversity for one in measured),
        summarize(one.affinity for one in measured),
        findings.accuracy(row, name),
        findings.difference(row, name, "default"),
        summarize(run.last.loss for run in findings.runs(row, name)),
        measured[0].train_images if measured else 0,
    )


_Value = Callable[[Seen], Summary | None]


def measurements_behind(
    findings: Findings, row: str, scorers: Sequence[str]
) -> list[MeasurementRecord]:
    """Every measurement of the methods by the networks of some scorers."""
    names = findings.methods
    return [one for s in scorers for name in names for one in findings.measurements(row, s, name)]


def correlations_sheet(seen: Sequence[Seen], pairs: Sequence[tuple[str, _Value, _Value]]) -> Sheet:
    """Coefficients over the paper's five methods, over all, and over those that ask no network.

    Methods that ask choose by what is then measured, which ties the two together by construction.

    Args:
        seen: methods; those that lack a value are left out, and n says so.
        pairs: what goes with what: its name and the two values.
    """
    rows = []
    silent = [one for one in seen if not method(one.name).asks]
    for name, first, second in pairs:
        for which, chosen in (
            ("the paper's five", [one for one in seen if one.name in FIGURE_METHODS]),
            ("all", list(seen)),
            ("all that do not ask the measuring network", silent),
        ):
            values = [(first(one), second(one)) for one in chosen]
            both = [(a.mean, b.mean) for a, b in values if a is not None and b is not None]
            found = correlate([a for a, _ in both], [b for _, b in both])
            rows.append(
                {
                    "what": name,
                    "methods": which,
                    "pearson": found.pearson,
                    "spearman": found.spearman,
                    "n": found.n,
                }
            )
    return Sheet(
        "correlations",
        "Correlations over methods",
        (
            Column("what", "between"),
            Column("methods", "methods"),
            number("pearson", "Pearson r", "{:+.3f}"),
            number("spearman", "Spearman ρ", "{:+.3f}"),
            number("n", "n"),
        ),
        tuple(rows),
        ("n counts methods; with fewer than three no coefficient is given.",),
    )


def ordered(seen: Sequence[Seen], value: _Value, lower: Sequence[str], upper: str) -> Verdict:
    """Whether a method's value lies above all the others'; None where one was not run."""
    by_name = {one.name: value(one) for one in seen}
    return both(above(by_name.get(upper), by_name.get(name)) for name in lower)
