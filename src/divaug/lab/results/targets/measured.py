"""Methods as a scorer's networks see them, beside their accuracy: orders, correlations, figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import pandas as pd

from divaug.lab.results.columns import Column, count, number, summary, table
from divaug.lab.results.figures import Point, scatter
from divaug.lab.results.frame import MARK, View
from divaug.lab.results.methods import method
from divaug.lab.results.outcome import Claim, Drawing
from divaug.lab.results.stats import NOT_RUN, Correlation, Mean, Verdict, above_zero, both, mean_of
from divaug.lab.tables import Table

#: The five methods of the paper's figures on diversity.
FIVE = ("default", "autoaugment", "fast-autoaugment", "randaugment", "divaug")
#: Scorer → what its networks were trained with.
NETWORKS = {"none": "no augmentation", "default": "default augmentation"}
LIMITS = (
    "DivAug, by k-means++, greedy or exact, keeps the views that the measuring network itself "
    "finds diverse: its diversity to that network is high by construction. PBA, a schedule, is "
    "measured at ten epochs spread evenly, each on its share of the images."
)
_CORRELATIONS = (
    Column("what", "between"),
    Column("methods", "methods"),
    number("pearson", "Pearson r", "{:+.3f}"),
    number("spearman", "Spearman ρ", "{:+.3f}"),
    number("n", "n methods"),
    summary("by_seed", "r of each seed", 3, sign=True),
    count("seeds", "n seeds", "by_seed"),
)
_CORRELATIONS_NOTE = (
    "Pearson r and Spearman ρ: of the means of so many methods; with fewer than three none is "
    "given. r of each seed: Pearson's, from the values of one seed at a time, mean ± sample "
    "standard deviation over the seeds that all these methods share."
)


@dataclass(frozen=True)
class Measure:
    """A value that each method has, for each network that measured it or each run with it.

    Args:
        title: as people read it.
        value: column of the measurements, or of the runs.
        counts: what its n counts: "network", "run" or "pair".
        digits: that are shown.
        factor: that values are shown with.
        unit: that follows them, with a space before.
    """

    title: str
    value: str
    counts: str
    digits: int = 4
    factor: float = 1.0
    unit: str = ""

    def axis(self, label: str, found: Sequence[Mean]) -> str:
        """Return the label of an axis, with the n of its values."""
        least, most = (extreme(one.n for one in found) for extreme in (min, max))
        n = f"{most}" if least == most else f"{least} to {most}"
        return f"{label} (n = {n} {self.counts}{'s' * (most != 1)})"


VARIANCE = Measure("Variance Diversity", "variance", "network")
LOSS = Measure("loss of its views", "views_loss", "network")
AFFINITY = Measure("Affinity", "affinity", "network")
OWN_LOSS = Measure("Loss Diversity", "loss", "run")
ACCURACY = Measure("accuracy", "accuracy", "run", 2, 100, " points")
#: Accuracy over that of the default augmentation with the same seed.
GAIN = Measure("gain", "gain", "pair", 2, 100, " points")
#: A property of the method, so the same with every seed that it was run with.
VIEWS = Measure("number of views", "views", "run", 0)


def measured_rows(view: View) -> list[str]:
    """Return the rows that have measurements of the methods."""
    return view.rows(view.measurements, "method")


@dataclass(frozen=True)
class Seen:
    """The methods of a row, as the networks of a scorer see them.

    Args:
        view: the records.
        row: dataset and network.
        scorer: what the networks were trained with.
    """

    view: View
    row: str
    scorer: str = "none"

    @cached_property
    def measurements(self) -> pd.DataFrame:
        """All measurements of the methods by the scorer's networks."""
        found = self.view.measurements
        wanted = (found.row == self.row) & (found.augmenter == self.scorer)
        return found[wanted & found.method.isin(self.view.methods)]

    @cached_property
    def _tables(self) -> dict[Measure, pd.DataFrame]:
        return {}

    def wide(self, measure: Measure) -> pd.DataFrame:
        """Return a measure's values: a column for each method, a row for each seed."""
        if measure not in self._tables:
            self._tables[measure] = self._wide(measure)
        return self._tables[measure]

    def _wide(self, measure: Measure) -> pd.DataFrame:
        names, value = list(self.view.methods), measure.value
        if measure.counts == "network":
            found = self.measurements.pivot(index=MARK, columns="method", values=value)
            return found.reindex(columns=names)
        if measure is GAIN:
            return self.wide(ACCURACY).sub(self.view.values(self.row, "default"), axis=0)
        if measure is VIEWS:
            S = int(self.view.runs.num_selected[self.view.runs.row == self.row].max())
            views = pd.Series({name: float(S if method(name).many else 1) for name in names})
            return self.wide(ACCURACY).notna().mul(views, axis=1).replace(0.0, float("nan"))
        return pd.DataFrame({name: self.view.values(self.row, name, value) for name in names})

    def mean(self, measure: Measure, name: str) -> Mean | None:
        """Return the mean of a method over all that measured it, or over all its runs."""
        return mean_of(self.wide(measure)[name])

    def having(self, names: Iterable[str], *measures: Measure) -> list[str]:
        """Return the methods that have all measures."""
        known = [set(self.wide(one).dropna(axis=1, how="all").columns) for one in measures]
        return [name for name in names if all(name in one for one in known)]

    def comparable(self, names: Sequence[str], measure: Measure) -> list[Mean | None]:
        """Return a measure of several methods by the networks that measured all of them.

        Networks differ by more than methods do, so means over different ones say little. Values
        that come from runs are taken as they are.
        """
        found = self.wide(measure)[list(names)]
        found = found.dropna() if measure.counts == "network" else found
        return [mean_of(found[one]) for one in names]

    def notes(self) -> list[str]:
        """Return which networks measured, and which are not used where methods are compared."""
        known = self.measurements.drop_duplicates(MARK)
        accuracy = mean_of(known.clean)
        networks = f"Accuracy of the networks with {NETWORKS[self.scorer]} on the test images: "
        networks += f"{accuracy.show(2, 100)} %." if accuracy else "not known."
        found = self.wide(VARIANCE).dropna(axis=1, how="all")
        seeds = sorted({seed for seed, _ in found.index[found.isna().any(axis=1)]})
        left_out = (
            f"Not all methods were measured with the networks of seed "
            f"{', '.join(map(str, seeds))}: comparisons of methods that lack them leave these out."
        )
        return [LIMITS, networks, *([left_out] if seeds else [])]

    def order_claim(self, text: str, measure: Measure, pairs: Sequence[tuple[str, str]]) -> Claim:
        """Return the claim that the first method of each pair has more than the second.

        Differences are taken with the same seed, over the seeds that all named methods share.
        """
        named = list(dict.fromkeys(name for pair in pairs for name in pair))
        if len(self.having(named, measure)) < len(named):
            return Claim(text, Verdict.NOT_RUN)
        shared = self.wide(measure)[named].dropna()
        found = [(a, b, mean_of(shared[a] - shared[b])) for a, b in pairs]
        shown = []
        for a, b, one in found:
            difference = one.show(measure.digits, measure.factor, sign=True) if one else NOT_RUN
            titles = [self.view.title(self.row, name) for name in (a, b)]
            shown.append(f"{' over '.join(titles)} {difference}")
        seeds = f"n = {len(shared)} seed{'s' * (len(shared) != 1)}"
        verdict = both(above_zero(one) for _, _, one in found)
        return Claim(text, verdict, f"{', '.join(shown)}{measure.unit}; {seeds}")

    def by_seed(self, names: Sequence[str], first: Measure, second: Measure) -> Mean | None:
        """Pearson's r of each seed by itself, over methods that all have a value with it.

        The networks of one seed are in all points of that seed: the points are not independent of
        each other, the seeds are.
        """
        x, y = (self.wide(one)[list(names)].dropna() for one in (first, second))
        x, y = (one.groupby(level="seed").last() for one in (x, y))
        found = [
            Correlation.of(x.loc[seed].tolist(), y.loc[seed].tolist()).pearson
            for seed in x.index.intersection(y.index)
        ]
        return mean_of(r for r in found if r is not None)

    def correlation_claim(
        self, text: str, first: Measure, second: Measure, sign: int = 1, least: int = len(FIVE)
    ) -> Claim:
        """Return a claim that two measures rise together, or that one falls as the other rises.

        It is about the paper's five methods, or all where none of these is selected. It is r itself
        that is judged, not Fisher's z, which is infinite where r is one.
        """
        five = [name for name in self.view.methods if name in FIVE] or self.view.methods
        whole = self.having(five, first, second)
        r = self.by_seed(whole, first, second) if len(whole) >= least else None
        if r is None:
            return Claim(text, Verdict.NOT_RUN)
        seeds = f"n = {r.n} seed{'s' * (r.n != 1)}"
        shown = f"r = {r.show(2, sign=True)} over {len(whole)} points, {seeds}"
        return Claim(text, above_zero(r if sign > 0 else -r), shown)

    def points(
        self, names: Iterable[str], first: Measure, second: Measure
    ) -> list[tuple[str, Mean, Mean]]:
        """Name and means of the methods that have both measures."""
        whole = self.having(names, first, second)
        means = (self.comparable(whole, one) for one in (first, second))
        return [(name, x, y) for name, x, y in zip(whole, *means, strict=True) if x and y]

    def of_means(self, names: Iterable[str], first: Measure, second: Measure) -> Correlation:
        """Return the coefficients of the means of methods: of the points of a figure."""
        found = self.points(names, first, second)
        return Correlation.of([x.mean for _, x, _ in found], [y.mean for _, _, y in found])

    def correlations_table(self, *pairs: tuple[Measure, Measure]) -> Table:
        """Tabulate coefficients over the paper's five methods, all methods, and groups.

        Methods that score choose by what is then measured, which ties the two together by
        construction. Methods with one view and with several differ in more than what is measured.
        """
        known = [method(name) for name in self.view.methods]
        groups = {
            "the paper's five": [one for one in known if one.augmenter in FIVE],
            "all": known,
            "all that do not ask the measuring network": [one for one in known if not one.asks],
            "all with one view": [one for one in known if not one.many],
            "all with several views": [one for one in known if one.many],
        }
        rows = []
        for first, second in pairs:
            for which, chosen in groups.items():
                if first is VIEWS and which.endswith(("view", "views")):
                    continue
                names = [one.augmenter for one in chosen]
                found = self.of_means(names, first, second)
                whole = self.having(names, first, second)
                by_seed = self.by_seed(whole, first, second) if whole else None
                rows.append(
                    {
                        "what": f"{first.title} and {second.title}",
                        "methods": which,
                        "pearson": found.pearson,
                        "spearman": found.spearman,
                        "n": found.n,
                        "by_seed": by_seed,
                    }
                )
        title = "Correlations over methods"
        return table("correlations", title, _CORRELATIONS, rows, [_CORRELATIONS_NOTE])

    def draw_pair(
        self, name: str, title: str, first: Measure, second: Measure, label: str
    ) -> list[Drawing]:
        """Draw one measure against another, a point a method; nothing for fewer than two."""
        found = self.points(self.view.methods, first, second)
        if len(found) < 2:
            return []
        marks = [
            Point.of(self.view.title(self.row, one), x, y, method(one).place, first.factor,
                     second.factor)
            for one, x, y in found
        ]  # fmt: skip
        right = first.axis(first.title, [x for _, x, _ in found])
        upwards = second.axis(label, [y for _, _, y in found])
        draw = partial(scatter, marks, right, upwards)
        return [Drawing(name, title, f"{title}, a point for each method", draw)]
