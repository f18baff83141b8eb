"""The timing of the step: complete, positive, and honest about what it timed."""

import time

import pytest

from divaug import select as library_select
from divaug.lab.bench import step
from divaug.lab.bench.device import in_turns
from divaug.lab.bench.step import measure, ready
from divaug.lab.recipes import override, recipe
from divaug.lab.reproduce.timing import time_step
from divaug.lab.train.device import Hardware
from tests.test_semi_supervised import semi_recipe
from tests.training_helpers import toy_data, toy_recipe


@pytest.mark.parametrize(
    ("augmenter", "extra"),
    [("randaugment", set()), ("random", set()), ("divaug", {"score", "select"})],
)
def test_the_parts_of_a_step_are_those_its_augmenter_has(augmenter, extra):
    found = measure(toy_recipe(augmenter=augmenter), "cpu", repeats=3, steps=1, data=toy_data())
    common = {"data loading", "expand", "forward", "backward", "optimiser"}
    assert set(found["parts_ms"]) == common | extra
    step = found["step_ms"]
    assert 0 < step["low"] <= step["median"] <= step["high"]
    assert all(value > 0 for name, value in found["parts_ms"].items() if name != "backward")
    assert found["share"]["forward"] == found["parts_ms"]["forward"] / step["median"]
    assert found["originals_per_second"] == pytest.approx(8000 / step["median"])
    assert found["recipe"]["augmenter"] == augmenter


def test_loading_a_set_in_memory_takes_at_most_three_percent_of_a_step():
    found = measure(recipe("demo-default"), "cpu", repeats=3, steps=2)
    assert 0 < found["share"]["data loading"] <= 0.03


def test_data_loading_is_the_feed_and_the_look_up(monkeypatch):
    """What a slow feed takes shows in the part."""
    from divaug.lab.train.batches import Resident

    epoch = Resident.epoch

    def slow(feed, number, start):
        for inputs in epoch(feed, number, start):
            time.sleep(0.02)
            yield inputs

    monkeypatch.setattr(Resident, "epoch", slow)
    found = measure(toy_recipe(), "cpu", repeats=1, steps=1, data=toy_data())
    assert found["parts_ms"]["data loading"] >= 20


def test_what_is_timed_beside_a_step_is_told_apart_from_it(monkeypatch):
    asked = []

    def in_turns(runs, *_):
        asked.extend(runs)
        return [{"median": 2.0, "low": 1.0, "high": 3.0}, {"median": 7.0, "low": 6.0, "high": 8.0}]

    beside = ready(toy_recipe(augmenter="none"), "cpu", data=toy_data())
    monkeypatch.setattr("divaug.lab.bench.step.in_turns", in_turns)
    found = measure(toy_recipe(), "cpu", repeats=1, steps=1, data=toy_data(), beside=beside)
    assert found["step_ms"]["median"] == 2.0
    assert found["beside_ms"]["median"] == 7.0
    assert asked[1:] == [beside.run]
    monkeypatch.setattr("divaug.lab.reproduce.timing._peak_bytes", lambda *_: 1)
    record = time_step(recipe("demo-default"), "cpu", batch="1", base=beside)
    assert (record.step_ms["median"], record.base_ms["median"]) == (2.0, 7.0)


def test_what_is_compared_is_timed_in_turns():
    """A machine that grows slower all the time is as slow for both."""
    calls = []

    def slower(name):
        def work():
            calls.append(name)
            time.sleep(0.002 * len(calls))

        return work

    first, second = in_turns([slower("a"), slower("b")], Hardware.choose("cpu"), 4, 2)
    assert "".join(calls) == "aabb" * 4
    assert 0 < first["low"] < first["median"] < first["high"] < 60
    assert 1 < second["median"] / first["median"] < 1.5  # one after the other it would be 2.5


def test_random_images_stand_in_for_known_datasets_only():
    with pytest.raises(ValueError, match="no random images for 'imagenet'"):
        measure(recipe("imagenet-resnet-50-divaug"), "cpu")
    small = override(recipe("demo-default"), ["batch_size=4"])
    assert measure(small, "cpu", repeats=1, steps=1)["views"] == 1


@pytest.mark.parametrize(
    ("augmenter", "extra"), [("random", set()), ("divaug", {"score", "select"})]
)
def test_the_semi_supervised_step_is_held_against_its_passes(augmenter, extra):
    recipe = semi_recipe(augmenter=augmenter, labels=0)
    found = measure(recipe, "cpu", repeats=3, steps=1, data=toy_data())
    assert set(found["parts_ms"]) == {"gather", "expand", "weak", "optimiser"} | extra
    assert found["ratio"] == found["step_ms"]["median"] / found["passes_ms"]
    assert found["passes_ms"] > found["parts_ms"].get("score", 0.0)
    whole = {"benchmark": "semi-step", "cases": [found], "environment": found["environment"]}
    (shown,) = step.tables(whole)
    assert shown.rows[0][1] == "6 + 8"
    assert shown.rows[0][5] == f"{found['ratio']:.2f}"


@pytest.mark.parametrize(("augmenter", "method"), [
    ("divaug", "kmeans++"), ("divaug-greedy", "greedy"), ("divaug-exact", "exact"),
])  # fmt: skip
@pytest.mark.parametrize("make", [toy_recipe, semi_recipe])
def test_the_rule_of_selection_that_is_timed_is_the_recipes(monkeypatch, make, augmenter, method):
    asked = []

    def select(probs, num_selected, method, seed, **more):
        asked.append((num_selected, method))
        return library_select(probs, num_selected, method, seed, **more)

    monkeypatch.setattr(step, "select", select)
    own = make(augmenter=augmenter)
    measure(own, "cpu", repeats=1, steps=1, data=toy_data())
    assert set(asked) == {(own.num_selected, method)}


def test_steps_with_and_without_unlabelled_images_are_not_compared():
    with pytest.raises(ValueError, match="with and without unlabelled images"):
        step.compare([toy_recipe(), semi_recipe()], "cpu")
