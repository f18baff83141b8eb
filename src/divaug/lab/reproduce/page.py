"""A target's page: one HTML file, its pictures inside, without scripts."""

from pathlib import Path

import jinja2

from divaug.lab import report as reporting
from divaug.lab.report.plots import finish
from divaug.lab.reproduce.outcomes import RUNS, Outcome
from divaug.lab.tables import BEHIND

__all__ = ["render"]

_TEMPLATE = "page.html.jinja"


def render(outcome: Outcome) -> str:
    """The page as text."""
    environment = jinja2.Environment(
        # What all pages share stands with the reports.
        loader=jinja2.FileSystemLoader([Path(__file__).parent, Path(reporting.__file__).parent]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(_TEMPLATE).render(
        outcome=outcome,
        behind=BEHIND,
        tables=[sheet.table() for sheet in outcome.sheets if sheet.name != RUNS],
        runs=[sheet.table() for sheet in outcome.sheets if sheet.name == RUNS],
        pictures=[finish(d.figure, d.title, d.alt) for d in outcome.drawings],
    )
