"""The page: everything that was found out about runs, put into the template."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from divaug import __version__
from divaug.lab.datasets import Dataset
from divaug.lab.report.choosing import Candidates, choose_candidates, draw_choice
from divaug.lab.report.curves import draw_curves
from divaug.lab.report.labels import labels_of
from divaug.lab.report.operations import draw_operations
from divaug.lab.report.plots import Picture, styles_of
from divaug.lab.report.reading import RunRecord
from divaug.lab.report.seeds import seeds_table
from divaug.lab.report.table import runs_table
from divaug.lab.tables import Table

__all__ = ["render"]

_TEMPLATE = "page.html.jinja"


@dataclass(frozen=True)
class _Part:
    """What the page says of one run."""

    number: int
    label: str
    run: RunRecord
    color: str
    operations: list[Picture]
    picture: Picture | None
    candidates: Candidates | None
    lacking: str  # why there is no picture of candidates

    @property
    def recipe(self) -> str:
        """Every hyper-parameter, as JSON."""
        return json.dumps(self.run.recipe.to_dict(), indent=1, ensure_ascii=False)


def render(
    runs: Sequence[RunRecord],
    data: str | Path | Dataset | None = None,
    summary: Table | None = None,
) -> str:
    """The page as text: one HTML file, its pictures inside, without scripts.

    Args:
        runs: in the order of the page.
        data: a dataset for the pictures of candidates, or where to find it.
        summary: what stands first, with its notes.
    """
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    datasets = sorted({run.dataset for run in runs})
    curves, absent = draw_curves(runs)
    styles = styles_of([run.recipe_but_seed for run in runs])
    return environment.get_template(_TEMPLATE).render(
        version=__version__,
        summary=summary,
        # The one dataset of all runs stands above the table.
        results=runs_table(runs, provenance=False, but=() if len(datasets) > 1 else ("dataset",)),
        provenance=runs_table(runs, provenance=True),
        seeds=seeds_table(runs),
        datasets=datasets,
        curves=curves,
        absent=absent,
        parts=[
            _part(i, label, run, color, data)
            for i, (label, run, (color, _)) in enumerate(
                zip(labels_of(runs), runs, styles, strict=True), 1
            )
        ],
    )


def _part(
    number: int, label: str, run: RunRecord, color: str, data: str | Path | Dataset | None
) -> _Part:
    candidates, picture, lacking = None, None, ""
    try:
        candidates = choose_candidates(run, data)
        picture = draw_choice(number, candidates)
    except (ValueError, OSError) as error:
        # A run can be read without its network and its data; the page says what it lacks.
        lacking = " ".join(str(error).split())
    return _Part(number, label, run, color, draw_operations(run), picture, candidates, lacking)
