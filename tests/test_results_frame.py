"""Cells of data frames: what a selection holds, and which values are a pair."""

from dataclasses import replace

import pytest

from divaug.lab.results import Records, Selection, View
from tests.results_helpers import PAPER_ROW, PLACE, made_cost, made_measurement, made_run

METHODS = ("default", "random", "divaug")


def view_of(records, **selected):
    return View(Records.of(records), Selection(**selected), METHODS)


def accuracies(view, name="divaug", epochs=None):
    return view.values(PAPER_ROW, name, epochs=epochs).tolist()


def test_a_cell_holds_its_seeds_and_no_other_run():
    view = view_of(
        [
            made_run(seed=1, accuracy=0.8),
            made_run(seed=0, accuracy=0.7),
            made_run("random", accuracy=0.1),
            made_run(accuracy=0.2, learning_rate=0.2),
            made_run(accuracy=0.3, train_images=5000),
            made_run(accuracy=0.4, epochs=91),
            made_run(accuracy=0.5, row="cifar10-wide-resnet-28-10"),
            made_run(seed=2, accuracy=0.9, checkpoint_every=99),  # decides nothing
        ]
    )
    assert accuracies(view) == [0.7, 0.8, 0.9]
    assert accuracies(view, epochs=91) == [0.4]
    assert view.lengths(PAPER_ROW, "divaug") == [200, 91]
    assert accuracies(view, "default") == []
    assert view.mean(PAPER_ROW, "default") is None


@pytest.mark.parametrize(
    ("selected", "expected"),
    [
        ({"changes": ("learning_rate=0.2",)}, 0.2),
        ({"changes": ("learning_rate=2e-1", "checkpoint_every=3")}, 0.2),
        ({"scale": 0.1}, 0.3),
        ({"epochs": 91}, 0.4),
        ({"changes": ("epochs=91",)}, 0.4),
        ({"changes": ("space=released", "nesterov=no")}, 0.5),
        ({"changes": ("num_selected=4",)}, 0.7),  # as it is anyway
    ],
)
def test_options_select_the_runs_that_were_made_with_them(selected, expected):
    records = [
        made_run(accuracy=0.7),
        made_run(accuracy=0.2, learning_rate=0.2),
        made_run(accuracy=0.3, train_images=5000),
        made_run(accuracy=0.4, epochs=91),
        made_run(accuracy=0.5, space="released", nesterov=False),
    ]
    assert accuracies(view_of(records, **selected)) == [expected]


@pytest.mark.parametrize(
    ("selected", "told"),
    [
        ({"epochs": 0}, "`epochs` must be at least 1"),
        ({"scale": 0.0}, "`scale` must lie above 0"),
        ({"changes": ("space",)}, "must read field=value"),
        ({"changes": ("spaze=paper",)}, "Did you mean 'space'"),
    ],
)
def test_bad_selections_are_named(selected, told):
    with pytest.raises(ValueError, match=told):
        accuracies(view_of([made_run()], **selected))


def test_a_row_without_runs_of_the_papers_length_shows_its_longest():
    assert view_of([made_run(epochs=9), made_run(epochs=91)]).usual(PAPER_ROW) == 91
    # Timings know the paper's length too.
    known = view_of([made_run(epochs=9), made_cost("default", 1.0)])
    assert known.usual(PAPER_ROW) == 200


def test_differences_are_of_runs_with_one_seed_and_one_precision():
    half = replace_precision(PLACE, "bfloat16")
    view = view_of(
        [
            made_run("random", 0, 0.5),
            made_run("random", 1, 0.6),
            made_run("random", 2, 0.1, starts=[half]),
            made_run("divaug", 1, 0.7),
            made_run("divaug", 2, 0.9),
            made_run("divaug", 3, 0.95),
        ]
    )
    found = view.difference(PAPER_ROW, "divaug", "random")
    assert (found.mean, found.n) == (pytest.approx(0.1), 1)


def replace_precision(place, precision):
    return place | {"precision": precision}


def test_few_labels_and_all_labels_are_never_mixed():
    records = [made_run(), made_run(row="uda-paper-1000", epochs=20)]
    supervised = view_of(records)
    assert supervised.rows() == [PAPER_ROW]
    assert replace(supervised, few_labels=True).rows() == ["uda-paper-1000"]


def test_of_a_schedule_only_what_was_measured_over_the_whole_of_it_counts():
    old, whole = (made_measurement("pba", variance=v, phases=n) for v, n in ((0.1, 1), (0.2, 10)))
    (row,) = view_of([old, whole]).measurements.itertuples()
    assert row.variance == 0.2


def test_the_oldest_timings_of_one_batch_are_related():
    view = view_of(
        [
            made_cost("divaug", 9.0, "1"),
            made_cost("divaug", 8.0, "3"),
            made_cost("default", 4.0, "3"),
            made_cost("divaug", 7.0, "4"),
            made_cost("default", 1.0, "4"),
            made_cost("default", 1.0, "5", gpu="Other"),
        ]
    )
    (setting,) = {one.setting for one in view.timings(PAPER_ROW, "divaug").itertuples()}
    own, base = view.related(PAPER_ROW, "divaug", "default", setting)
    assert (own.step_ms, base.step_ms) == (8.0, 4.0)
    alone, nothing = view.related(PAPER_ROW, "divaug", "random", setting)
    assert (alone.step_ms, nothing) == (9.0, None)
