"""Records of runs, measurements, examinations and timings: small enough to commit.

A record is a line of JSON. Those of one row of the paper's tables lie together:

RESULTS/runs/ROW.jsonl            finished runs: their starts, and each of their epochs
RESULTS/measurements/ROW.jsonl    diversity and affinity of an augmenter to a run's network
RESULTS/examinations/ROW.jsonl    what the rules of selection keep, by a run's network
RESULTS/costs/ROW.jsonl           time and memory of a step on a machine
"""

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from filelock import FileLock
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

__all__ = ["Cost", "Examination", "Measurement", "Record", "Run", "read_records", "save"]

#: A number; JSON has null for NaN.
Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
#: Machine, versions, commit and command.
Environment: TypeAlias = dict[str, Any]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Record(_Model):
    """The fields of all records.

    Args:
        hash: hash of all that determines the result; a record with it means that the work is done.
        row: dataset and network, or family and labels: a row of the paper's tables.
        changed: fields in which the recipe differs from the row's own, but for its seed.
        recipe: every hyper-parameter of the run, or of the run whose network was used.
        fingerprint: of the data; None in older records and where there is no data.
    """

    kind: ClassVar[str]
    format: str
    hash: str
    row: str
    changed: dict[str, Any]
    recipe: dict[str, Any]
    fingerprint: str | None = None

    @property
    def places(self) -> list[Environment]:
        """The environment of each start."""
        return [getattr(self, "environment")]  # noqa: B009


class Kept(_Model):
    """The counts that an augmenter kept in an epoch, for each of the run's operations."""

    applied: list[int]
    drawn: list[int]
    probability: list[Number]
    diversity_kept: Number = math.nan
    diversity_all: Number = math.nan
    diversity_best: Number = math.nan


class Epoch(_Model):
    """An epoch of a run, from 1; numbers that do not exist are NaN.

    Loss, accuracy and diversity are means over the trained views, in training mode; the other
    losses and the share of confident images are of runs with few labels.
    """

    epoch: int
    loss: Number = math.nan
    accuracy: Number = math.nan
    diversity: Number = math.nan
    test_accuracy: Number = math.nan
    test_loss: Number = math.nan
    seconds: Number = math.nan
    labelled_loss: Number = math.nan
    unlabelled_loss: Number = math.nan
    confident: Number = math.nan
    kept: Kept | None = None


class FewLabels(_Model):
    """The split of a run with unlabelled images, and its steps.

    `split` are sixteen digits that follow from which images are labelled.
    """

    labels: int
    unlabelled: int
    seed: int
    split: str
    steps: int


class Run(Record):
    """A finished run.

    Args:
        side_by_side: most runs that shared the device with it, itself included.
        time: kind of work → seconds, over all starts.
        operations: that a kept sub-policy held, in the order of `Kept`.
        starts: the environment of each start.
        few_labels: None where every image has its label.
    """

    kind = "runs"
    format: Literal["divaug.run/2"] = "divaug.run/2"
    train_images: int
    test_images: int
    side_by_side: int
    time: dict[str, Number]
    operations: list[str]
    starts: list[Environment]
    few_labels: FewLabels | None = None
    epochs: list[Epoch]

    @property
    def places(self) -> list[Environment]:
        """The environment of each start."""
        return self.starts

    @model_validator(mode="after")
    def _check(self) -> Self:
        wanted = self.recipe["epochs"]
        if [one.epoch for one in self.epochs] != list(range(1, wanted + 1)):
            raise ValueError(f"it must have the epochs 1 to {wanted}, and has {len(self.epochs)}")
        if math.isnan(self.epochs[-1].test_accuracy):
            raise ValueError("its last epoch was not evaluated")
        return self


class Network(_Model):
    """The network of a measurement: its accuracy, a digest of its weights, its training."""

    accuracy: Number
    weights: str
    starts: list[Environment]


class Measurement(Record):
    """Diversity and affinity of an augmenter, as a run's network sees it.

    `values` are those of `divaug.lab.measure.Measurement`; older records do not name the network.
    """

    kind = "measurements"
    format: Literal["divaug.measurement/2"] = "divaug.measurement/2"
    augmenter: str
    values: dict[str, int | Number]
    environment: Environment
    network: Network | None = None


class Examination(Record):
    """The choices of all rules of selection by a run's network after `epochs` whole epochs.

    `values` are those of `divaug.lab.examine.Examination`.
    """

    kind = "examinations"
    format: Literal["divaug.examination/2"] = "divaug.examination/2"
    epochs: int
    train_images: int
    values: dict[str, Any]
    environment: Environment


class Cost(Record):
    """The time of a training step and of its parts, and the most memory alive at once.

    Args:
        step_ms: milliseconds: median, low and high.
        base_ms: of the step that it was timed in turns with; of that step itself its own.
        parts_ms: milliseconds of each part, timed alone.
        batch: shared by steps that were timed beside the same other one; only these are related.
    """

    kind = "costs"
    format: Literal["divaug.cost/4"] = "divaug.cost/4"
    step_ms: dict[str, Number]
    base_ms: dict[str, Number]
    parts_ms: dict[str, Number]
    peak_bytes: int
    environment: Environment
    batch: str


_KINDS: Mapping[str, type[Record]] = {
    one.kind: one for one in (Run, Measurement, Examination, Cost)
}


def save(folder: str | Path, record: Record) -> Path:
    """Write a record into its file, in the place of one with the same hash.

    Several processes may do so at the same time.

    Raises:
        ValueError: the record could not be read again; nothing is written.
    """
    path = Path(folder) / record.kind / f"{record.row}.jsonl"
    content = record.model_dump(exclude_defaults=True)
    if isinstance(record, Run):  # an epoch leaves out what is NaN
        epochs = content["epochs"]
        content["epochs"] = [{k: v for k, v in one.items() if v == v} for one in epochs]
    line = json.dumps(_plain({"format": record.format, **content}))
    _KINDS[record.kind].model_validate_json(line)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(Path(folder) / ".lock"):
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        others = [one for one in lines if json.loads(one)["hash"] != record.hash]
        write_text(path, "".join(f"{one}\n" for one in [*others, line]))
    return path


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.unfinished-{os.getpid()}")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def read_records(folder: str | Path) -> list[Any]:
    """Read every record of a folder; a folder that does not exist has none.

    Raises:
        ValueError: a line is no record or is there twice, two records of one dataset saw different
            data, or two runs with one seed different labels.
    """
    root, found = Path(folder), dict[str, Record]()
    for path in sorted(path for kind in _KINDS for path in (root / kind).glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                record = _KINDS[path.parent.name].model_validate_json(line)
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(map(str, first["loc"]))
                raise ValueError(
                    f"line {number} of {path} is no record: {where} {first['msg']}; restore the "
                    "file."
                ) from None
            if record.hash in found:
                raise ValueError(f"line {number} of {path} is there twice; remove one of the two.")
            found[record.hash] = record
    _refuse_different(root, found.values())
    return list(found.values())


def _refuse_different(root: Path, records: Iterable[Any]) -> None:
    """Refuse different data under one name, and different labels with one seed."""
    known: dict[Any, str] = {}
    for one in records:
        marks = {one.recipe["dataset"]: one.fingerprint} if one.fingerprint else {}
        if one.kind == "runs" and (few := one.few_labels):
            # Methods are compared seed by seed, so a seed must stand for the same labelled images.
            setting = f"{few.labels} of {few.unlabelled} images of {one.recipe['dataset']}"
            marks[f"{setting} labelled with seed {few.seed}"] = few.split
        for name, mark in marks.items():
            if known.setdefault(name, mark) != mark:
                raise ValueError(
                    f"records in {root} saw different data as {name!r}; keep them in different "
                    "folders."
                )


def _plain(value: Any) -> Any:
    """Return the value as JSON holds it: six digits, and null for NaN."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
