"""Records: written and read whole, refused where they contradict themselves or each other."""

import json
import math
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from divaug.lab.reproduce.options import (
    about,
    cost_hash,
    examination_hash,
    measurement_hash,
    run_hash,
)
from divaug.lab.results import load, read_records, save
from divaug.lab.results.places import portable, setting_of
from tests.results_helpers import (
    PLACE,
    kept,
    made_cost,
    made_examination,
    made_measurement,
    made_run,
    recipe_in,
)

RESULTS = Path(__file__).parent.parent / "results"
MADE = {
    "run": made_run(epochs=2, keeps=[kept(), kept()]),
    "few labels": made_run(row="uda-paper-1000", epochs=2),
    "measurement": made_measurement("default"),
    "cost": made_cost("default", 2.5),
    "examination": made_examination(),
}


@pytest.mark.parametrize("name", MADE)
def test_a_record_is_read_back_as_it_was_written(name, tmp_path):
    path = save(tmp_path, MADE[name])
    (found,) = read_records(tmp_path)
    assert found.model_dump_json() == MADE[name].model_dump_json()
    before = path.read_text()
    save(tmp_path, found)  # in the place of itself
    assert path.read_text() == before


def test_numbers_have_six_digits_and_missing_ones_stay_missing(tmp_path):
    path = save(tmp_path, made_run(epochs=2, accuracy=0.123456789, trained=math.nan))
    first, last = json.loads(path.read_text())["epochs"]
    assert last["test_accuracy"] == 0.123457
    assert "diversity" not in first
    assert math.isnan(read_records(tmp_path)[0].epochs[0].diversity)


def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path):
    records = [made_run(seed=seed, epochs=2) for seed in range(8)]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(save, [tmp_path] * len(records), records))
    assert {one.hash for one in read_records(tmp_path)} == {one.hash for one in records}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda line: line[:-20], "line 1 of .* is no record"),
        (lambda _: "", "line 1 of .* is no record"),
        (lambda line: line.replace("divaug.run/2", "divaug.run/9"), "format"),
        (lambda line: line.replace('"test_accuracy": 0.9', '"test_accuracy": "high"'), "epochs"),
        (lambda line: line.replace('"test_accuracy": 0.9, ', ""), "last epoch was not evaluated"),
        (lambda line: line.replace('"epoch": 2', '"epoch": 3'), "must have the epochs 1 to 2"),
        (lambda line: f"{line}\n{line}", "line 2 of .* is there twice"),
    ],
)
def test_what_is_no_record_is_refused(change, told, tmp_path):
    path = save(tmp_path, made_run(epochs=2))
    path.write_text(change(path.read_text().strip()) + "\n")
    with pytest.raises(ValueError, match=told):
        read_records(tmp_path)


def test_different_data_under_one_name_are_refused(tmp_path):
    save(tmp_path, made_run(epochs=2))
    save(tmp_path, made_measurement("default"))
    load(tmp_path)
    save(tmp_path, made_measurement("divaug", fingerprint="1" * 16))
    with pytest.raises(ValueError, match="saw different data as 'cifar10'"):
        load(tmp_path)


def test_different_splits_under_one_seed_are_refused(tmp_path):
    save(tmp_path, made_run("divaug", row="uda-paper-1000", epochs=2))
    other = made_run("random", row="uda-paper-1000", epochs=2)
    few = other.few_labels.model_copy(update={"split": "f" * 16})
    save(tmp_path, other.model_copy(update={"few_labels": few}))
    with pytest.raises(ValueError, match="1000 of 50000 images of cifar10 labelled with seed 0"):
        load(tmp_path)


def test_a_folder_that_does_not_exist_has_no_records(tmp_path):
    assert load(tmp_path / "nowhere").empty


def expected_hash(record):
    recipe = recipe_in(record)
    if record.kind == "runs":
        return run_hash(recipe)
    if record.kind == "measurements":
        values = record.values
        return measurement_hash(recipe, record.augmenter, values["views"], values["epochs"])
    if record.kind == "examinations":
        return examination_hash(recipe, record.epochs)
    return cost_hash(recipe, setting_of(record.environment), record.batch)


def test_every_committed_record_is_found_again_by_its_recipe():
    records = read_records(RESULTS)
    assert len(records) > 500
    for one in records:
        assert one.hash == expected_hash(one), one.hash
        found = about(recipe_in(one))
        assert (one.row, one.changed) == (found["row"], found["changed"]), one.hash


@pytest.mark.parametrize(
    "change",
    [
        {"gpu": "A GPU"},
        {"precision": "bfloat16"},
        {"compiled": True},
        {"graphed": True},
        {"packages": {"torch": "9"}},
    ],
)
def test_a_time_belongs_to_its_machine_mode_and_versions(change):
    assert setting_of(PLACE | change) != setting_of(PLACE)
    assert setting_of(PLACE | {"commit": "other"}) == setting_of(PLACE)


@pytest.mark.parametrize(
    ("word", "short"),
    [("/home/me/a.npz", "a.npz"), ("--out=../x/b/", "--out=b"), (r"C:\x\y", "y"), ("0.5", "0.5")],
)
def test_of_a_path_in_a_command_the_last_part_is_left(word, short):
    assert portable({"command": ["divaug", word]})["command"] == ["divaug", short]
