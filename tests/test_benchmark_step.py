"""The timing of the step: complete, positive, and honest about what it timed."""

import pytest

from divaug.benchmarks.step import measure
from divaug.recipes import override, recipe
from tests.training_helpers import toy_data, toy_recipe


@pytest.mark.parametrize(
    ("augmenter", "extra"),
    [("randaugment", set()), ("random", set()), ("divaug", {"score", "select"})],
)
def test_the_parts_of_a_step_are_those_its_augmenter_has(augmenter, extra):
    found = measure(toy_recipe(augmenter=augmenter), "cpu", repeats=3, steps=1, data=toy_data())
    common = {"gather", "expand", "forward", "backward", "optimiser"}
    assert set(found["parts_ms"]) == common | extra
    step = found["step_ms"]
    assert 0 < step["low"] <= step["median"] <= step["high"]
    assert all(value > 0 for name, value in found["parts_ms"].items() if name != "backward")
    assert found["share"]["forward"] == found["parts_ms"]["forward"] / step["median"]
    assert found["originals_per_second"] == pytest.approx(8000 / step["median"])
    assert found["recipe"]["augmenter"] == augmenter


def test_random_images_stand_in_for_known_datasets_only():
    with pytest.raises(ValueError, match="no random images for 'imagenet'"):
        measure(recipe("imagenet-resnet-50-divaug"), "cpu")
    small = override(recipe("demo-default"), ["batch_size=4"])
    assert measure(small, "cpu", repeats=1, steps=1)["views"] == 1
