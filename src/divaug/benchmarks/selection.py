"""Batched selection against a loop over scikit-learn, and the methods against the optimum."""

import importlib.util
from typing import Any

import torch
from torch import Tensor

from divaug.benchmarks.harness import environment, median_seconds, place, progress
from divaug.diversity import variance_diversity
from divaug.randomness import Purpose, Stream, uniform
from divaug.selection import METHODS, select
from divaug.tables import Table

__all__ = ["KIND", "measure", "quality_table", "realistic_probs", "table"]

KIND = "select"
BATCH, CANDIDATES, SELECTED = 512, 8, 4
CLASSES = (10, 100, 1000)
# How sure of itself the imitated model is: the spread of its logits.
CONFIDENCE = {"early in training": 1.0, "halfway": 3.0, "late in training": 6.0}


def realistic_probs(batch: int, candidates: int, classes: int, spread: float, seed: int) -> Tensor:
    """Probability vectors like those of a model: one image's candidates mostly agree.

    Logits are a part that belongs to the image and a part that belongs to the candidate. About one
    candidate in four has no operation and differs only a little, as under the universal policy.
    """
    stream = Stream(seed, 0, torch.arange(batch))
    common = _normal(stream, Purpose.ORDER, 1, classes)
    own = _normal(stream, Purpose.SHUFFLE, candidates, classes)
    strength = uniform(stream.words(Purpose.COIN, candidates, 1)[0])
    strength = torch.where(strength < 0.25, 0.05, strength)
    return torch.softmax(spread * (common + 0.7 * strength * own), -1)


def _normal(stream: Stream, purpose: Purpose, candidates: int, classes: int) -> Tensor:
    """Normal numbers `[B,candidates,classes]` by Box and Muller's rule."""
    first, second, _, _ = stream.words(purpose, candidates, classes)
    radius = (-2 * torch.log(1 - uniform(first))).sqrt()
    return radius * torch.cos(2 * torch.pi * uniform(second))


def _loop(vectors: Any) -> None:
    from sklearn.cluster import kmeans_plusplus

    for i, one in enumerate(vectors):
        kmeans_plusplus(one, SELECTED, n_local_trials=1, random_state=i)


def check(probs: Tensor) -> None:
    """Refuse to go on unless the choice is S distinct candidates that beat a random choice."""
    chosen = select(probs, SELECTED)
    distinct = (chosen.sort(1).values.diff(dim=1) > 0).all()
    if not bool(distinct):
        raise ValueError("a candidate was chosen twice: no times are shown.")
    if _mean_diversity(probs, "kmeans++") <= _mean_diversity(probs, "uniform"):
        raise ValueError("k-means++ was no better than chance: no times are shown.")


def _mean_diversity(probs: Tensor, method: str) -> float:
    chosen = select(probs, SELECTED, method)
    return float(variance_diversity(probs.take_along_dim(chosen[..., None], 1)).mean())


def _times(classes: int, repeats: int, seed: int) -> dict[str, Any]:
    progress(f"measuring selection with {classes} classes")
    probs = realistic_probs(BATCH, CANDIDATES, classes, 3.0, seed)
    check(probs)
    vectors = probs.numpy()
    loop = importlib.util.find_spec("sklearn") is not None
    return {
        "classes": classes,
        "divaug": median_seconds(lambda: select(probs, SELECTED), repeats=5 * repeats, warm_up=3),
        "scikit-learn": median_seconds(lambda: _loop(vectors), repeats=repeats) if loop else None,
    }


def _quality(batch: int, seed: int) -> list[dict[str, Any]]:
    found = []
    for name, spread in CONFIDENCE.items():
        probs = realistic_probs(batch, CANDIDATES, 10, spread, seed)
        found.append({"model": name, **{m: _mean_diversity(probs, m) for m in METHODS}})
    return found


def measure(repeats: int = 5, seed: int = 0, batch: int = 4096) -> dict[str, Any]:
    """Measure time and quality in one run."""
    return {
        "benchmark": KIND,
        "environment": environment(),
        "batch": BATCH,
        "candidates": CANDIDATES,
        "selected": SELECTED,
        "times": [_times(classes, repeats, seed) for classes in CLASSES],
        "quality": {"images": batch, "mean_diversity": _quality(batch, seed)},
    }


def table(result: dict[str, Any]) -> Table:
    """Times of a whole batch, and their ratio; without scikit-learn the times alone."""
    rows = []
    for one in result["times"]:
        ours, loop = one["divaug"], one["scikit-learn"]
        compared = (f"{1e3 * loop:.0f}", f"{loop / ours:.0f}×") if loop else ("—", "—")
        rows.append((str(one["classes"]), f"{1e3 * ours:.2f}", *compared))
    missing = result["times"][0]["scikit-learn"] is None
    install = ["The comparison needs scikit-learn: pip install scikit-learn."] if missing else []
    B, E, S = result["batch"], result["candidates"], result["selected"]
    return Table(
        columns=("classes D", "divaug ms", "scikit-learn loop ms", "ratio"),
        rows=tuple(rows),
        title=f"k-means++ seeding, B={B}, E={E}, S={S}",
        numeric=(0, 1, 2, 3),
        notes=("Medians.", place(result["environment"]), *install),
    )


def quality_table(result: dict[str, Any]) -> Table:
    """Mean Variance Diversity of each method, as a part of the optimum."""
    methods = ("exact", "greedy", "kmeans++", "uniform")

    def cell(one: dict[str, Any], method: str) -> str:
        part = "" if method == "exact" else f" ({100 * one[method] / one['exact']:.1f} %)"
        return f"{one[method]:.4f}{part}"

    quality = result["quality"]
    return Table(
        columns=("model", *methods),
        rows=tuple((o["model"], *(cell(o, m) for m in methods)) for o in quality["mean_diversity"]),
        title="Mean Variance Diversity of the chosen four of eight, in brackets of the optimum",
        numeric=(1, 2, 3, 4),
        notes=(
            f"{quality['images']} images, 10 classes; imitated predictions of a model that grows "
            "surer of itself, candidates of one image mostly agreeing.",
        ),
    )
