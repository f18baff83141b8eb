"""Training with any augmenter: one loop, fast on a GPU, the same bits again after a restart."""

from divaug.training.engine import RunResult, train
from divaug.training.evaluation import Scores, evaluate
from divaug.training.hardware import Hardware

__all__ = ["Hardware", "RunResult", "Scores", "evaluate", "train"]
