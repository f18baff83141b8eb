"""Objectives: what training minimises, with and without labels, as pure functions."""

from divaug.objectives.annealing import ANNEALING, annealed_cross_entropy, annealing_threshold
from divaug.objectives.consistency import (
    confident,
    consistency_loss,
    divergence,
    pseudo_label_loss,
    sharpen,
)
from divaug.objectives.table import OBJECTIVES, Objective, UnlabelledLoss

__all__ = [
    "ANNEALING",
    "OBJECTIVES",
    "Objective",
    "UnlabelledLoss",
    "annealed_cross_entropy",
    "annealing_threshold",
    "confident",
    "consistency_loss",
    "divergence",
    "pseudo_label_loss",
    "sharpen",
]
