"""Records: small, read back as written, refused when changed."""

import json
import math
from dataclasses import replace

import pytest

from divaug.lab.examine import Candidates, Choice, Examination
from divaug.lab.measure import Measurement
from divaug.lab.recipes import recipe
from divaug.lab.reproduce.examination_record import ExaminationRecord
from divaug.lab.reproduce.formats import from_text, to_text
from divaug.lab.reproduce.machines import portable
from divaug.lab.reproduce.measurement import MeasureJob
from divaug.lab.reproduce.records import CostRecord, MeasurementRecord
from divaug.lab.reproduce.store import read_store, save
from tests.reproduction_helpers import DATA, PLACE, RECIPE, made_run

MEASUREMENT = MeasurementRecord(
    recipe("cifar10-wide-resnet-40-2-none"),
    "divaug",
    Measurement(4, 0.25, 1.5, -0.1, 0.9, 0.8, 100, 50),
    PLACE,
)
EXAMINATION = ExaminationRecord(
    RECIPE,
    120,
    Examination(
        1000,
        (Candidates("paper", 0.1, 0.09, math.nan, 0.8, math.nan),),
        (Choice("paper", "float32", "kmeans++", 0.12, 0.11, 0.7, 1.0, 0.6),),
    ),
    50_000,
    PLACE,
    "0" * 16,
)
COST = CostRecord(
    RECIPE,
    {"median": 3.5, "low": 3.0, "high": 4.0},
    {"median": 1.5, "low": 1.0, "high": 2.0},
    {"score": 1.0},
    12345,
    PLACE,
    "1",
)


@pytest.mark.parametrize(
    "record",
    [made_run(), MEASUREMENT, EXAMINATION, COST],
    ids=["run", "measurement", "examination", "cost"],
)
def test_a_record_is_read_back_as_it_was_written(record, tmp_path):
    path = save(tmp_path, record)
    text = path.read_text()
    found = from_text(text)
    assert found.hash == record.hash
    assert to_text(found) == text
    store = read_store(tmp_path)
    everything = [*store.runs, *store.measurements, *store.examinations, *store.costs]
    assert everything == [record.hash]


def test_numbers_have_six_digits_and_missing_ones_stay_missing():
    found = from_text(to_text(made_run()))
    assert found.accuracy == 0.9
    assert math.isnan(found.epochs[0].test_accuracy)
    assert found.epochs[2].kept.probability["ShearY"] == 0.512346
    assert found.epochs[2].kept.drawn["ShearY"] == 25_010
    assert found.gain_of_choice == pytest.approx(0.123456 / 0.0987654, rel=1e-5)


def test_building_and_compiling_are_no_working_time():
    assert from_text(to_text(made_run())).working_seconds == 325.0


def test_a_record_of_the_papers_length_is_small():
    assert len(to_text(made_run(200))) < 150_000


def test_operations_that_were_never_drawn_take_no_room():
    epochs = tuple(
        replace(e, kept=replace(e.kept, drawn=dict.fromkeys(e.kept.drawn, 0) | {"Rotate": 5}))
        for e in made_run().epochs
    )
    found = from_text(to_text(replace(made_run(), epochs=epochs)))
    assert list(found.last.kept.drawn) == ["Rotate"]


def test_a_record_that_was_changed_is_refused(tmp_path):
    path = save(tmp_path, made_run())
    head, *rest = path.read_text().splitlines()
    content = json.loads(head)
    content["recipe"]["learning_rate"] = 0.2
    path.write_text("\n".join([json.dumps(content), *rest]))
    with pytest.raises(ValueError, match="was changed"):
        read_store(tmp_path)


def test_a_record_that_is_cut_short_is_refused(tmp_path):
    path = save(tmp_path, made_run())
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    with pytest.raises(ValueError, match="epochs 1 to 3, and has 2"):
        read_store(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty; restore the file"),
        ("{", "line 1 is no JSON, it may be cut short"),
        ('{"format": "divaug.run/1"}\n{"epoch": 1}\n{"epo', "line 3 is no JSON"),
        ("[]", "TypeError"),
        ('{"format": "other"}', "KeyError: 'other'"),
    ],
)
def test_what_is_no_record_is_refused(text, message, tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "x.jsonl").write_text(text)
    with pytest.raises(ValueError, match=f"is no record: {message}"):
        read_store(tmp_path)


def test_a_record_in_the_wrong_folder_or_twice_is_refused(tmp_path):
    path = save(tmp_path, made_run())
    copy = path.with_name("copy.jsonl")
    copy.write_text(path.read_text())
    with pytest.raises(ValueError, match="twice"):
        read_store(tmp_path)
    (tmp_path / "costs").mkdir()
    copy.rename(tmp_path / "costs" / "copy.jsonl")
    with pytest.raises(ValueError, match="another kind"):
        read_store(tmp_path)


def test_different_data_under_one_name_are_refused(tmp_path):
    save(tmp_path, made_run())
    save(tmp_path, replace(made_run(seed=1), data=DATA | {"fingerprint": "1" * 16}))
    with pytest.raises(ValueError, match="different data under the name 'cifar10'"):
        read_store(tmp_path)


@pytest.mark.parametrize(
    "first", [made_run(), replace(MEASUREMENT, augmenter="pba", fingerprint="0" * 16)],
    ids=["run", "measurement"],
)  # fmt: skip
def test_measurements_of_different_data_under_one_name_are_refused(first, tmp_path):
    save(tmp_path, first)
    for mark in (None, "0" * 16):  # an older record does not know what it saw
        save(tmp_path, replace(MEASUREMENT, fingerprint=mark))
        assert read_store(tmp_path).fingerprints() == {"cifar10": "0" * 16}
    save(tmp_path, replace(MEASUREMENT, fingerprint="1" * 16))
    with pytest.raises(ValueError, match="different data under the name 'cifar10'; keep records"):
        read_store(tmp_path)


def test_examinations_of_different_data_under_one_name_are_refused(tmp_path):
    save(tmp_path, made_run())
    save(tmp_path, EXAMINATION)
    assert read_store(tmp_path).fingerprints() == {"cifar10": "0" * 16}
    save(tmp_path, replace(EXAMINATION, fingerprint="1" * 16))
    with pytest.raises(ValueError, match="different data under the name 'cifar10'"):
        read_store(tmp_path)


def test_examinations_of_a_cell_are_found_by_epochs_and_seed(tmp_path):
    other = replace(RECIPE, seed=1)
    for one in (
        replace(EXAMINATION, epochs=200),
        replace(EXAMINATION, recipe=other),
        EXAMINATION,
        replace(EXAMINATION, recipe=replace(RECIPE, augmenter="random")),
    ):
        save(tmp_path, one)
    found = [(one.epochs, one.recipe.seed) for one in read_store(tmp_path).examined(RECIPE)]
    assert found == [(120, 0), (120, 1), (200, 0)]


def test_an_examination_with_a_word_for_a_number_is_refused():
    def spoiled(change):
        content = json.loads(to_text(EXAMINATION))
        change(content)
        return json.dumps(content)

    text = spoiled(lambda content: content["values"]["choices"][0].update(accuracy="much"))
    with pytest.raises(ValueError, match="a number was expected, got 'much'"):
        from_text(text)
    for change in (
        lambda content: content.update(epochs="many"),
        lambda content: content["values"].update(images="many"),
    ):
        with pytest.raises(ValueError, match="a number of things was expected, got 'many'"):
            from_text(spoiled(change))


def test_a_folder_with_examinations_alone_is_not_empty(tmp_path):
    assert read_store(tmp_path).empty
    save(tmp_path, EXAMINATION)
    assert not read_store(tmp_path).empty


def test_a_measurement_without_a_fingerprint_is_read_and_keeps_its_text_and_name(tmp_path):
    """As records were before measurements had one: neither hash nor file changes."""
    known = replace(MEASUREMENT, fingerprint="0" * 16)
    before = to_text(MEASUREMENT)
    assert "fingerprint" not in before
    assert from_text(before) == MEASUREMENT
    assert known.hash == MEASUREMENT.hash
    assert save(tmp_path, known) == save(tmp_path, MEASUREMENT)
    assert from_text(to_text(known)) == known
    content = json.loads(before) | {"fingerprint": 7}
    with pytest.raises(ValueError, match="a fingerprint was expected, got 7"):
        from_text(json.dumps(content))


def test_a_cell_holds_its_seeds_and_no_other_run(tmp_path):
    for one in (
        made_run(seed=2),
        made_run(),
        made_run(seed=1, learning_rate=0.2),
        made_run(epochs=4),
    ):
        save(tmp_path, one)
    store = read_store(tmp_path)
    assert [one.recipe.seed for one in store.cell(made_run().recipe)] == [0, 2]


def test_records_older_than_a_field_are_still_found():
    """A field that has its default is no part of the hash, so it may be missing."""
    head, *rest = to_text(made_run()).splitlines()
    content = json.loads(head)
    del content["recipe"]["num_workers"], content["recipe"]["sync_batchnorm"]
    found = from_text("\n".join([json.dumps(content), *rest]))
    assert found.recipe == made_run().recipe
    content["recipe"]["later_field"] = 1
    with pytest.raises(ValueError, match="later_field"):
        from_text("\n".join([json.dumps(content), *rest]))


def test_a_schedule_measured_at_one_epoch_is_read_and_stands_in_no_table(tmp_path):
    """As records were before a schedule was measured over the whole of it."""
    now = replace(MEASUREMENT, augmenter="pba", values=replace(MEASUREMENT.values, epochs=10))
    job = MeasureJob(now.scorer, "pba")
    assert (job.hash, job.views) == (now.hash, 4)
    before = replace(now, values=MEASUREMENT.values)
    content = json.loads(to_text(before))
    del content["values"]["epochs"]
    assert from_text(json.dumps(content)) == before
    save(tmp_path, before)
    store = read_store(tmp_path)
    assert store.measured(now.scorer, "pba") == []
    assert not job.done(store)
    save(tmp_path, now)
    assert [one.values.epochs for one in read_store(tmp_path).measured(now.scorer, "pba")] == [10]
    assert job.done(read_store(tmp_path))


@pytest.mark.parametrize(
    "change",
    [
        {"gpu": "Other GPU"},
        {"precision": "bfloat16"},
        {"compiled": True},
        {"graphed": True},
        {"packages": {"torch": "2.12"}},
        {"packages": {"torch": "2.11", "triton": "3.6"}},
    ],
)
def test_a_time_belongs_to_its_machine_mode_and_versions(change):
    place = PLACE | {"precision": "float32", "compiled": False, "graphed": False,
                     "packages": {"torch": "2.11"}}  # fmt: skip
    assert replace(COST, environment=place | change).hash != replace(COST, environment=place).hash
    other = place | {"commit": "def", "started": "later"}
    assert replace(COST, environment=other).hash == replace(COST, environment=place).hash


@pytest.mark.parametrize(
    ("word", "short"),
    [
        ("/home/me/x.npz", "x.npz"),
        ("--data=/home/me/x.npz", "--data=x.npz"),
        ("--runs=../../me/runs/", "--runs=runs"),
        ("me/data/x.npz", "x.npz"),
        ("C:\\Users\\me\\x.npz", "x.npz"),
        ("space=uda", "space=uda"),
        ("--epochs", "--epochs"),
        ("0.5", "0.5"),
    ],
)
def test_of_a_path_in_a_command_the_last_part_is_left(word, short):
    assert portable({"command": ["divaug", word]})["command"] == ["divaug", short]


def test_a_folder_that_is_not_there_has_no_records(tmp_path):
    assert read_store(tmp_path / "nothing").empty
