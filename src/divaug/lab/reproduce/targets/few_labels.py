"""The blocks of a table with few labels: one number of labels and one length of the schedule."""

from dataclasses import dataclass

from divaug.lab.recipes import Recipe
from divaug.lab.reproduce import paper
from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.records import RunRecord
from divaug.lab.reproduce.summaries import BySeed, Summary, paired

__all__ = ["Block", "blocks"]


@dataclass(frozen=True)
class Block:
    """The methods with one number of labels and one length of the schedule.

    Args:
        findings: the records, and which methods are asked for.
        row: family and labels.
        epochs: the length.
    """

    findings: Findings
    row: str
    epochs: int

    @property
    def family(self) -> str:
        """The setting, whatever the number of labels."""
        return self.row.rpartition("-")[0]

    def recipe(self, name: str) -> Recipe:
        """A method's recipe with the first seed."""
        return self.findings.recipe(self.row, name, self.epochs)

    @property
    def labels(self) -> int:
        """Labelled images, which an option may have changed."""
        return self.recipe("divaug").labels

    def runs(self, name: str) -> list[RunRecord]:
        """The finished runs of a method, by seed."""
        return self.findings.runs(self.row, name, self.epochs)

    @property
    def all_runs(self) -> list[RunRecord]:
        """Those of all methods asked for."""
        return [run for name in self.findings.methods for run in self.runs(name)]

    @property
    def steps(self) -> int | None:
        """As the records have them; what would be run, where there is none."""
        taken = [run.few_labels.steps for run in self.all_runs if run.few_labels]
        return taken[0] if taken else self.epochs * self.recipe("divaug").epoch_steps or None

    def printed(self, name: str) -> paper.PrintedError | None:
        """The paper's error with that setting and as many labels; None where it has none."""
        return paper.semi_supervised(f"{self.family}-{self.labels}", name)

    def errors(self, name: str) -> BySeed:
        """Seed and precision → test error after the last step."""
        return {run.mark: 1 - run.accuracy for run in self.runs(name)}

    def difference(self, first: str, second: str) -> Summary | None:
        """Error of the first minus that of the second, over the seeds that both have."""
        return None if first == second else paired(self.errors(first), self.errors(second))


def blocks(findings: Findings) -> list[Block]:
    """The rows asked for, or the paper's and all that were run; every length has its own."""
    rows = findings.options.rows or tuple(
        row for row in findings.known_rows if row in findings.target_rows or findings.lengths(row)
    )
    return [
        Block(findings, row, epochs)
        for row in rows
        for epochs in findings.lengths(row) or (findings.recipe(row, "divaug").epochs,)
    ]
