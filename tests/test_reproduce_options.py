"""Options, recipes of cells, and the hashes that say that work is done."""

from dataclasses import fields, replace

import pytest

from divaug.lab.recipes import Recipe, recipe
from divaug.lab.reproduce.options import (
    DEMO_ROW,
    FEW_LABELS_ROWS,
    PAPER_ROW,
    ROW_NAMES,
    Options,
    about,
    cost_hash,
    examination_hash,
    measurement_hash,
    recipe_of,
    run_hash,
    step_hash,
)
from divaug.lab.results.frame import NEUTRAL, TIMELESS, TRAIN_IMAGES
from divaug.lab.results.methods import METHODS, ROTATIONS
from divaug.lab.results.targets.semi_supervised import TARGET

BASE = recipe("cifar10-wide-resnet-40-2-divaug")
OTHER = {
    "model": "resnet-50", "augmenter": "random", "space": "released", "precision": "float32",
    "schedule": "cosine", "dataset": "svhn", "name": "mine", "grad_clip": 1.0,
}  # fmt: skip
# Only with unlabelled images.
UDA = recipe("uda-modern-1000-divaug")
OTHER_UDA = {"objective": "fixmatch", "annealing": "linear", "ema_decay": 0.5, "warmup": 0.1}


def changed(name):
    base = UDA if name in OTHER_UDA or getattr(UDA, name) != getattr(BASE, name) else BASE
    value = getattr(base, name)
    other = (OTHER | OTHER_UDA).get(name)
    if other is None:
        other = not value if isinstance(value, bool) else value * 0.5 or 0.25
        other = other if not isinstance(value, int) or isinstance(value, bool) else value + 1
    if name in ("unlabelled_batch_size", "labels", "epoch_steps", "unlabelled_weight",
                "temperature", "confidence", "joint_forward"):  # fmt: skip
        base, value = UDA, getattr(UDA, name)
        other = not value if isinstance(value, bool) else type(value)(value * 0.5)
    return base, replace(base, **{name: other})


@pytest.mark.parametrize("field", fields(Recipe), ids=lambda field: field.name)
def test_a_field_counts_unless_it_decides_nothing(field):
    base, other = changed(field.name)
    assert (run_hash(base) == run_hash(other)) == (field.name in NEUTRAL)
    same_time = field.name in NEUTRAL | TIMELESS
    assert (step_hash(base) == step_hash(other)) == same_time


def test_hashes_of_different_kinds_never_meet():
    hashes = [
        run_hash(BASE),
        measurement_hash(BASE, "divaug", 4),
        measurement_hash(BASE, "divaug", 4, 10),
        measurement_hash(BASE, "random", 4),
        examination_hash(BASE, 200),
        examination_hash(BASE, 100),
        step_hash(BASE),
        cost_hash(BASE, "a machine", "1"),
        cost_hash(BASE, "a machine", "2"),
    ]
    assert len(set(hashes)) == len(hashes)
    assert run_hash(BASE) == "cfaf931253bc9755"  # of the committed record


@pytest.mark.parametrize("row", ROW_NAMES)
def test_every_row_has_a_recipe_of_every_method_and_a_known_size(row):
    for name in (*METHODS, *ROTATIONS):
        found = recipe_of(row, name, 3, Options())
        assert (found.augmenter, found.seed) == (name, 3)
        assert found.dataset in TRAIN_IMAGES
        assert about(found) == {"row": row, "changed": {}, "recipe": found.to_dict()}


@pytest.mark.parametrize("row", FEW_LABELS_ROWS)
def test_every_row_with_few_labels_has_all_methods_in_one_setting(row):
    recipes = [recipe_of(row, name, 0, Options()) for name in TARGET.methods]
    settings = {replace(one, name="", augmenter="divaug") for one in recipes}
    assert len(settings) == 1
    assert about(recipes[0])["changed"] == {}


def test_a_record_names_the_fields_that_are_not_the_rows_own():
    options = Options(scale=0.1, changes=("learning_rate=0.2", "log_every=3"))
    found = about(recipe_of(PAPER_ROW, "divaug", 5, options, epochs=91))
    assert found["changed"] == {"epochs": 91, "learning_rate": 0.2, "train_images": 5000}
    few = Options(rows=("uda-paper-1000",), changes=("labels=250",))
    found = about(recipe_of("uda-paper-1000", "divaug", 0, few))
    assert found["changed"] == {"labels": 250}  # its warm-up follows


def test_options_shrink_a_recipe_and_leave_the_rest():
    small = Options((DEMO_ROW,), (), 2, 0.02, ("batch_size=20",))
    found = recipe_of(DEMO_ROW, "divaug", 1, small)
    assert (found.epochs, found.train_images, found.batch_size) == (2, 60, 20)
    assert small.shrunk == "2 epochs, 0.02 of the training images, batch_size=20"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"rows": ("cifar10-wide-resnet-40",)}, "Did you mean 'cifar10-wide-resnet-40-2'"),
        ({"seeds": 0}, "`seeds` must be at least 1"),
        ({"changes": ("seed=3",)}, "`--seeds`, which counts from 0 decides it"),
        ({"changes": ("augmenter=random",)}, "`--method` decides it"),
        ({"changes": ("dataset=svhn",)}, "`--row` decides it"),
        ({"epochs": 3, "changes": ("epochs=4",)}, "`--epochs`, which is given too decides it"),
        ({"scale": 0.5, "changes": ("train_images=9",)}, "`--scale`, which is given too"),
        ({"changes": ("labels=250",)}, "name one row to change it there"),
    ],
)
def test_bad_options_are_named(given, told):
    with pytest.raises(ValueError, match=told):
        Options(**given)
