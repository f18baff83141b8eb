"""Training with any augmenter: one loop, fast on a GPU, the same bits again after a restart."""

from divaug.lab.train.device import Hardware
from divaug.lab.train.evaluation import Scores, evaluate
from divaug.lab.train.loop import RunResult
from divaug.lab.train.run import train

__all__ = ["Hardware", "RunResult", "Scores", "evaluate", "train"]
