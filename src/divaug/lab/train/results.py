"""How a run ended."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from divaug.lab.recipes import Recipe
from divaug.lab.train.evaluation import Scores
from divaug.lab.train.metrics import read_epochs

if TYPE_CHECKING:
    from divaug.lab.train.loop import Loop

__all__ = ["RunResult", "result_of"]


@dataclass(frozen=True)
class RunResult:
    """How a run ended.

    Args:
        folder: where it is written.
        recipe: what it was.
        finished: whether it reached its last epoch.
        signal: the signal that interrupted it, if one did.
        step: steps taken.
        test: accuracy and loss of the last evaluation; None where there was none.
        diversity: mean Variance Diversity of the trained views in the last epoch.
        seconds: time spent, over all starts: evaluation, checkpoints and start-up included.
        checkpoint: the last one.
        time: kind of work → its part of `seconds`, see `divaug.lab.train.clock.KINDS`.
    """

    folder: Path
    recipe: Recipe
    finished: bool
    signal: str | None
    step: int
    test: Scores | None
    diversity: float
    seconds: float
    checkpoint: Path | None
    time: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """What `result.json` says."""
        return {
            "finished": self.finished,
            "signal": self.signal,
            "step": self.step,
            "test": asdict(self.test) if self.test else None,
            "diversity": self.diversity,
            "seconds": self.seconds,
            "time": self.time,
            "checkpoint": self.checkpoint.name if self.checkpoint else None,
        }


def result_of(loop: "Loop", finished: bool) -> RunResult:
    """The result of a loop that has ended."""
    epochs = read_epochs(loop.folder)
    tested = [line for line in epochs if "test_accuracy" in line]
    test = None
    if tested:
        names = ("test_accuracy", "test_loss", "test_images")
        test = Scores(*(tested[-1][name] for name in names))
    spent = loop.clock.spent()
    return RunResult(
        loop.folder,
        loop.recipe,
        finished,
        None if finished else loop.stop.signal,
        loop.step,
        test,
        epochs[-1]["diversity"] if epochs else 0.0,
        sum(spent.values()),
        loop.saved,
        spent,
    )
