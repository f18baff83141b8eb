"""Records that no run wrote, and options that make every real run take a moment."""

import math
from dataclasses import replace

import numpy as np

from divaug.lab.datasets import load
from divaug.lab.recipes import Recipe
from divaug.lab.reproduce.options import (
    DEMO_ROW,
    PAPER_ROW,
    Options,
    about,
    cost_hash,
    examination_hash,
    measurement_hash,
    recipe_of,
    run_hash,
)
from divaug.lab.results import TARGETS, Records, Selection
from divaug.lab.results.places import setting_of
from divaug.lab.results.records import Cost, Examination, Measurement, Run
from divaug.operations import OPERATIONS

PLACE = {
    "gpu": None, "processor": "Some CPU", "threads": 2, "precision": "float32", "commit": "abc",
    "command": ["divaug"], "packages": {"torch": "2.11"}, "started": "2026-01-01",
}  # fmt: skip
FINGERPRINT = "0" * 16
NAMES = list(OPERATIONS)

#: Three steps of twenty images an epoch.
OPTIONS = Options((DEMO_ROW,), (), 2, 0.02, ("batch_size=20",))
#: Rows with few labels: three steps of ten labelled and sixteen unlabelled images an epoch. All
#: predictions are believed and none is sharpened, so that in so few steps methods differ.
FEW_LABELS = Options(
    ("fashion_mnist_small-uda-50",), (), 2, 0.05,
    (
        "batch_size=10", "unlabelled_batch_size=16", "epoch_steps=3", "confidence=0.0",
        "temperature=1.0", "unlabelled_weight=1.0", "learning_rate=0.1", "annealing=none",
    ),
)  # fmt: skip


def write_data(path, num_test=50):
    part = load("fashion_mnist_small").subset(200, num_test=num_test)
    np.savez(
        path,
        x_train=part.train_images.numpy(),
        y_train=part.train_labels.numpy(),
        x_test=part.test_images.numpy(),
        y_test=part.test_labels.numpy(),
    )
    return path


def kept(drawn=None, diversity=(0.06, 0.05, 0.08)):
    counts = [(drawn or {}).get(name, 100) for name in NAMES]
    values = dict(
        zip(("diversity_kept", "diversity_all", "diversity_best"), diversity, strict=True)
    )
    return {"applied": counts, "drawn": counts, "probability": [0.5] * len(NAMES), **values}


def made_run(
    name="divaug", seed=0, accuracy=0.9, epochs=None, row=PAPER_ROW, *, starts=(PLACE,), beside=1,
    loss=1.0, trained=0.2, keeps=None, seconds=300.0, **changes,
):  # fmt: skip
    """A finished run; `keeps` has what it kept in each epoch."""
    recipe = recipe_of(row, name, seed, Selection(), epochs=epochs or 2)
    if epochs is None:
        recipe = recipe_of(row, name, seed, Selection())
    recipe = replace(recipe, **changes)
    lines = [{"epoch": e, "loss": loss, "diversity": trained, "accuracy": 0.5, "seconds": 9.0 * e}
             for e in range(1, recipe.epochs + 1)]  # fmt: skip
    for line, one in zip(lines, keeps or [], strict=False):
        line["kept"] = one
    lines[-1] |= {"test_accuracy": accuracy, "test_loss": 0.3}
    few = None
    if recipe.labels:
        split = f"{recipe.labels:08}{seed:08}"
        steps = recipe.epochs * recipe.epoch_steps
        few = {"labels": recipe.labels, "unlabelled": 50_000, "seed": seed, "split": split,
               "steps": steps}  # fmt: skip
    return Run.model_validate(
        {
            "hash": run_hash(recipe), **about(recipe), "fingerprint": FINGERPRINT,
            "train_images": 50_000, "test_images": 10_000, "side_by_side": beside,
            "time": {"start_up": 40.0, "training": seconds, "evaluation": 20.0, "checkpoints": 5.0},
            "operations": NAMES if keeps else [], "starts": list(starts), "few_labels": few,
            "epochs": lines,
        }
    )  # fmt: skip


def made_measurement(name, seed=0, variance=0.1, affinity=-0.1, scorer="none", phases=1, **more):
    recipe = recipe_of(PAPER_ROW, scorer, seed, Selection())
    values = {
        "views": 4, "variance_diversity": variance, "loss_diversity": 0.3, "affinity": affinity,
        "clean_accuracy": 0.9, "augmented_accuracy": 0.8, "train_images": 50_000,
        "test_images": 10_000, "epochs": phases,
    }  # fmt: skip
    mark = measurement_hash(recipe, name, 4, phases)
    content = {"hash": mark, **about(recipe), "fingerprint": FINGERPRINT, "augmenter": name,
               "values": values, "environment": PLACE} | more  # fmt: skip
    return Measurement.model_validate(content)


def made_cost(name, milliseconds, batch="1", base=1.0, row=PAPER_ROW, **place):
    recipe, where = recipe_of(row, name, 0, Selection()), PLACE | place
    step = dict.fromkeys(("median", "low", "high"), milliseconds)
    return Cost.model_validate(
        {
            "hash": cost_hash(recipe, setting_of(where), batch), **about(recipe), "step_ms": step,
            "base_ms": dict.fromkeys(step, base), "parts_ms": {"expand": 1.0}, "peak_bytes": 2**20,
            "environment": where, "batch": batch,
        }
    )  # fmt: skip


def made_examination(name="divaug", seed=0, epochs=200, *, right=0.8, best=0.4):
    recipe = recipe_of(PAPER_ROW, name, seed, Selection())
    choices = [
        {"space": space, "way": way, "rule": rule, "diversity": 0.1 * (i + 1),
         "batch_diversity": 0.2 * (i + 1), "accuracy": right, "agreement": 0.9,
         "unrelated": math.nan}
        for space in ("paper", "released")
        for way in ("float32", "bfloat16")
        for i, rule in enumerate(("uniform", "kmeans++"))
    ]  # fmt: skip
    candidates = [
        {"space": space, "diversity": 0.15, "batch_diversity": 0.2, "best": best, "accuracy": 0.7,
         "settled": 0.25}
        for space in ("paper", "released")
    ]  # fmt: skip
    return Examination.model_validate(
        {
            "hash": examination_hash(recipe, epochs), **about(recipe), "fingerprint": FINGERPRINT,
            "epochs": epochs, "train_images": 50_000, "environment": PLACE,
            "values": {"images": 100, "candidates": candidates, "choices": choices},
        }
    )  # fmt: skip


def outcome(target, records, selection=None):
    return TARGETS[target].outcome(selection or Selection(), Records.of(records))


def rows_of(result, i=0, key=None):
    """The unrounded rows of a table, by a column where one is named."""
    values = result.tables[i].values
    return {row[key]: row for row in values} if key else list(values)


def shown(result, i=0):
    """The rows of a table as people read them: first cell → heading → text."""
    table = result.tables[i]
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def claims_of(result):
    """Claim → verdict and numbers."""
    (table,) = (one for one in result.tables if one.name == "claims")
    return {row["claim"]: (row["holds"], row["numbers"]) for row in table.values}


def recipe_in(record):
    return Recipe(**record.recipe)
