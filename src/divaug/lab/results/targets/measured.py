"""Methods as a scorer's networks see them, beside their accuracy: orders, correlations, figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import pandas as pd

from divaug.lab.results.figures import Point, scatter
from divaug.lab.results.frame import MARK, View
from divaug.lab.results.methods import method
from divaug.lab.results.outcome import Claim, Drawing, number, summary
from divaug.lab.results.stats import (
    Correlation,
    Mean,
    Verdict,
    above_zero,
    both,
    correlate,
    mean_of,
)
from divaug.lab.tables import Column, Table, table

__all__ = [
    "ACCURACY",
    "AFFINITY",
    "FIGURE_METHODS",
    "GAIN",
    "LIMITS",
    "LOSS",
    "NETWORKS",
    "OWN_LOSS",
    "VARIANCE",
    "VIEWS",
    "Measure",
    "Seen",
    "measured_rows",
    "with_n",
]

#: The five methods of the paper's figures on diversity.
FIGURE_METHODS = ("default", "autoaugment", "fast-autoaugment", "randaugment", "divaug")
#: Scorer → what its networks were trained with.
NETWORKS = {"none": "no augmentation", "default": "default augmentation"}
LIMITS = (
    "DivAug, by k-means++, greedy or exact, keeps the views that the measuring network itself "
    "finds diverse: its diversity to that network is high by construction. PBA, a schedule, is "
    "measured over the whole of it: at ten epochs spread evenly (at all, where there are fewer), "
    "each on its share of the images."
)
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

    @property
    def measured(self) -> bool:
        """Whether networks measured it."""
        return self.counts == "network"


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
    """The rows that have measurements of the methods."""
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
        if found.empty:
            return found
        wanted = (found.row == self.row) & (found.augmenter == self.scorer)
        return found[wanted & found.method.isin(self.view.methods)]

    def wide(self, measure: Measure) -> pd.DataFrame:
        """The values of a measure: a column for each method, a row for each seed and precision."""
        if measure not in self._tables:
            self._tables[measure] = self._wide(measure.value, measured=measure.measured)
        return self._tables[measure]

    @cached_property
    def _tables(self) -> dict[Measure, pd.DataFrame]:
        return {}

    def _wide(self, value: str, *, measured: bool) -> pd.DataFrame:
        names = list(self.view.methods)
        if measured:
            found = self.measurements
            if found.empty:
                return pd.DataFrame(columns=names)
            return found.pivot(index=MARK, columns="method", values=value).reindex(columns=names)
        if value == "gain":
            accuracy, default = self.wide(ACCURACY), self.view.values(self.row, "default")
            return accuracy.sub(default, axis=0)
        if value == "views":
            S = int(self.view.runs.num_selected[self.view.runs.row == self.row].iloc[0])
            views = {name: float(S if method(name).many else 1) for name in names}
            accuracy = self.wide(ACCURACY)
            return accuracy.where(accuracy.isna(), pd.Series(views), axis=1)
        return pd.DataFrame({name: self.view.values(self.row, name, value) for name in names})

    def values(self, measure: Measure, name: str) -> pd.Series:
        """The values of a method."""
        return self.wide(measure)[name].dropna()

    def mean(self, measure: Measure, name: str) -> Mean | None:
        """The mean of a method over all that measured it, or over all its runs."""
        return mean_of(self.values(measure, name))

    def having(self, names: Iterable[str], *measures: Measure) -> list[str]:
        """The methods that have all measures."""
        known = [set(self.wide(one).dropna(axis=1, how="all").columns) for one in measures]
        return [name for name in names if all(name in one for one in known)]

    def comparable(self, names: Sequence[str], measure: Measure) -> list[Mean | None]:
        """A measure of methods that are set beside each other, by the networks that measured all.

        Networks differ by more than methods do, so means over different ones say little. Values
        that come from runs are taken as they are.
        """
        found = self.wide(measure)[list(names)]
        return [mean_of((found.dropna() if measure.measured else found)[one]) for one in names]

    def left_out(self) -> str:
        """Which networks are not used where methods are compared; empty where all are."""
        found = self.wide(VARIANCE).dropna(axis=1, how="all")
        seeds = sorted({seed for seed, _ in found.index[found.isna().any(axis=1)]})
        if not seeds:
            return ""
        named = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
        return (
            f"Not all methods were measured with the networks of {named}: figures leave these out, "
            "correlations and claims do where one of the methods that they compare lacks them."
        )

    def networks(self) -> str:
        """Accuracy of the networks that measured, and how many are not those of the runs.

        A training on a GPU does not end twice with the same weights.
        """
        found = self.measurements
        if found.empty:
            return ""
        known = [one for one in found.record if one.network]
        weights = {one.network.weights: one for one in known}
        # Records that do not name their network are taken for the one that others name.
        clean = found[[one.network is not None for one in found.record]] if known else found
        accuracy = mean_of(clean.drop_duplicates(MARK).clean)
        began = {
            run.recipe["seed"]: run.starts[0].get("started")
            for run in self.view.cell(self.row, self.scorer).record
        }
        other = sum(
            one.recipe["seed"] in began
            and one.network.starts[0].get("started") != began[one.recipe["seed"]]
            for one in weights.values()
        )
        trained = (
            f"; {other} of {len(weights)} of another training than the run in the tables"
            if other
            else ""
        )
        shown = f"{accuracy.show(2, 100)} %" if accuracy else "not known"
        return (
            f"Accuracy of the networks trained with {NETWORKS[self.scorer]} on the test images: "
            f"{shown}{trained}."
        )

    def order_claim(self, text: str, measure: Measure, pairs: Sequence[tuple[str, str]]) -> Claim:
        """A claim that the first of each pair of methods has more of something than the second.

        Differences are taken with the same seed, over the seeds that all named methods share.
        """
        named = list(dict.fromkeys(name for pair in pairs for name in pair))
        if len(self.having(named, measure)) < len(named):
            return Claim(text, Verdict.NOT_RUN)
        shared = self.wide(measure)[named].dropna()
        found = [(a, b, mean_of(shared[a] - shared[b])) for a, b in pairs]
        verdict = both(above_zero(one) for _, _, one in found)
        titles = {name: self.view.title(self.row, name) for name in named}
        shown = [
            (titles[a], titles[b], one.show(measure.digits, measure.factor, sign=True))
            for a, b, one in found
            if one
        ]
        if not shown:
            return Claim(text, verdict)
        if len({second for _, second, _ in shown}) == 1:
            listed = f"over {shown[0][1]}: " + ", ".join(f"{a} {one}" for a, _, one in shown)
        else:
            listed = f"{shown[0][0]} " + ", ".join(f"over {b} {one}" for _, b, one in shown)
        return Claim(text, verdict, f"{listed}{measure.unit}; {_counted(len(shared), 'seed')}")

    def by_seed(self, names: Sequence[str], first: Measure, second: Measure) -> list[float]:
        """Pearson's r of each seed by itself, over methods that all have a value with it.

        The networks of one seed are in all points of that seed: the points are not independent of
        each other, the seeds are.
        """
        x, y = (
            self.wide(one)[list(names)].dropna().droplevel("precisions") for one in (first, second)
        )
        x, y = (one[~one.index.duplicated(keep="last")] for one in (x, y))
        found = [
            correlate(x.loc[seed].tolist(), y.loc[seed].tolist()).pearson
            for seed in x.index.intersection(y.index)
        ]
        return [r for r in found if r is not None]

    def correlation_claim(
        self,
        text: str,
        names: Iterable[str],
        first: Measure,
        second: Measure,
        sign: int = 1,
        least: int = 3,
    ) -> Claim:
        """A claim that two measures rise together, or that one falls as the other rises.

        It is r itself that is judged, not Fisher's z, which is infinite where r is one.

        Args:
            text: the claim.
            names: the methods that it is about; those that lack a measure are left out.
            first: measure.
            second: measure.
            sign: 1 or −1.
            least: with fewer methods the claim counts as not run.
        """
        whole = self.having(names, first, second)
        found = self.by_seed(whole, first, second) if len(whole) >= least else []
        r = mean_of(found)
        if r is None:
            return Claim(text, Verdict.NOT_RUN)
        shown = f"r = {r.show(2, sign=True)} over {len(whole)} points, {_counted(r.n, 'seed')}"
        return Claim(text, above_zero(r if sign > 0 else -r), shown)

    def points(
        self, names: Iterable[str], first: Measure, second: Measure
    ) -> list[tuple[str, Mean, Mean]]:
        """Name and means of the methods that have both measures."""
        whole = self.having(names, first, second)
        means = (self.comparable(whole, one) for one in (first, second))
        return [(name, x, y) for name, x, y in zip(whole, *means, strict=True) if x and y]

    def of_means(self, names: Iterable[str], first: Measure, second: Measure) -> Correlation:
        """The coefficients of the means of methods: of the points of a figure."""
        found = self.points(names, first, second)
        return correlate([x.mean for _, x, _ in found], [y.mean for _, _, y in found])

    def correlations_table(self, pairs: Sequence[tuple[Measure, Measure]]) -> Table:
        """Coefficients over the paper's five methods, over all, and over groups that are alike.

        Methods that score choose by what is then measured, which ties the two together by
        construction. Methods with one view and with several differ in more than what is measured.
        """
        names = self.view.methods
        groups = {
            "the paper's five": [name for name in names if name in FIGURE_METHODS],
            "all": list(names),
            "all that do not ask the measuring network": [
                name for name in names if not method(name).asks
            ],
        }
        by_views = {
            "all with one view": [name for name in names if not method(name).many],
            "all with several views": [name for name in names if method(name).many],
        }
        rows = []
        for first, second in pairs:
            for which, chosen in (groups if first is VIEWS else groups | by_views).items():
                found = self.of_means(chosen, first, second)
                whole = self.having(chosen, first, second)
                by_seed = mean_of(self.by_seed(whole, first, second)) if whole else None
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
        title = "Correlations over methods"
        return table("correlations", title, _CORRELATIONS, rows, [_CORRELATIONS_NOTE])

    def draw_pair(
        self,
        name: str,
        title: str,
        first: Measure,
        second: Measure,
        label: str,
        *,
        ring: Iterable[str] = (),
        alt: str = "",
    ) -> list[Drawing]:
        """One measure of each method against another, with bars and n; none for fewer than two.

        Args:
            name: of the file.
            title: of the figure.
            first: to the right.
            second: upwards.
            label: of the upward axis.
            ring: methods that are marked.
            alt: what it shows; empty for the title.
        """
        found = self.points(self.view.methods, first, second)
        if len(found) < 2:
            return []
        titles = {one: self.view.title(self.row, one) for one, _, _ in found}
        points = [
            Point(
                titles[one],
                first.factor * x.mean,
                second.factor * y.mean,
                None if y.std is None else second.factor * y.std,
                method(one).place,
                None if x.std is None else first.factor * x.std,
            )
            for one, x, y in found
        ]
        right = with_n(first.title, [x for _, x, _ in found], first.counts)
        upwards = with_n(label, [y for _, _, y in found], second.counts)
        marked = [titles[one] for one in titles if one in set(ring)]
        draw = partial(scatter, points, right, upwards, ring=marked)
        return [Drawing(name, title, alt or f"{title}, a point for each method", draw)]


def with_n(label: str, found: Sequence[Mean], counts: str) -> str:
    """The label of an axis, with the n of its values."""
    least, most = (extreme(one.n for one in found) for extreme in (min, max))
    if least == most:
        return f"{label} ({_counted(most, counts)})"
    return f"{label} (n = {least} to {most} {counts}s)"


def _counted(n: int, what: str) -> str:
    return f"n = {n} {what}{'s' * (n != 1)}"
