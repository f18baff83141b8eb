"""Training with any augmenter: one loop, fast on a GPU, the same bits again after a restart."""

from divaug.lab.train.engine import RunResult, train
from divaug.lab.train.evaluation import Scores, evaluate
from divaug.lab.train.hardware import Hardware

__all__ = ["Hardware", "RunResult", "Scores", "evaluate", "train"]
