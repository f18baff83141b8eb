"""Records of runs, measurements, examinations and timings: small enough to commit.

A record is one line of JSON, with every field of its recipe. The lines of one kind lie together:

RESULTS/runs/ROW-METHOD.jsonl       a finished run: its starts, and each of its epochs
RESULTS/measurements/ROW.jsonl      diversity and affinity of an augmenter to a run's network
RESULTS/examinations/ROW.jsonl      what the rules of selection keep, by a run's network
RESULTS/costs/ROW.jsonl             time and memory of a step on a machine
"""

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from filelock import FileLock
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    model_validator,
)

__all__ = [
    "KINDS",
    "Cost",
    "Epoch",
    "Examination",
    "FewLabels",
    "Kept",
    "Measurement",
    "Network",
    "Record",
    "Run",
    "read_records",
    "save",
    "to_line",
    "write_text",
]

_DIGITS = 6
#: A number; JSON has null for one that does not exist.
Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
Environment: TypeAlias = dict[str, Any]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Record(_Model):
    """What all records have.

    Args:
        hash: of all that decides the result; says that the work is done.
        row: dataset and network, or family and labels: a row of the paper's tables.
        changed: fields in which the recipe is not the row's own, but for its seed.
        recipe: every hyper-parameter of the run.
    """

    kind: ClassVar[str]
    format: str
    hash: str
    row: str
    changed: dict[str, Any]
    recipe: dict[str, Any]

    @property
    def file(self) -> str:
        """The file that the record lies in, within the folder of records."""
        return f"{self.kind}/{self.row}.jsonl"

    @property
    def seen(self) -> tuple[str, str | None]:
        """Dataset, and the fingerprint of the data; None in records that are older than it."""
        return self.recipe["dataset"], None


class Kept(_Model):
    """What an augmenter kept in an epoch, for each operation of its run."""

    applied: list[int]
    drawn: list[int]
    probability: list[Number]
    diversity_kept: Number
    diversity_all: Number
    diversity_best: Number = math.nan


class Epoch(_Model):
    """An epoch of a run; numbers that do not exist are NaN.

    Args:
        epoch: its number, from 1.
        loss: mean over the epoch, of augmented images in training mode.
        accuracy: mean over the epoch, of augmented images in training mode.
        diversity: Variance Diversity of the trained views, in training mode; NaN with one view.
        test_accuracy: at its end; NaN where there was no evaluation.
        test_loss: at its end; NaN where there was no evaluation.
        seconds: since the run began, over all starts.
        labelled_loss: with few labels, mean over the epoch.
        unlabelled_loss: with few labels, mean over the epoch.
        confident: share of the unlabelled images that were believed.
        kept: of methods that choose.
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
    """What a run with unlabelled images adds to its record.

    Args:
        labels: labelled images.
        unlabelled: unlabelled images, the labelled ones among them.
        seed: that the split was drawn with.
        split: sixteen hexadecimal digits that follow from which images are labelled.
        steps: that the run took.
    """

    labels: int
    unlabelled: int
    seed: int
    split: str
    steps: int


class Run(Record):
    """A finished run.

    Args:
        data: name, fingerprint and sizes of the dataset.
        side_by_side: most runs that shared the device with it, itself included.
        time: kind of work → seconds, over all starts.
        operations: that a kept sub-policy held, in the order of `Epoch.kept`.
        starts: machine, versions, commit and command of each start.
        epochs: all of them.
        few_labels: split and steps; None where every image has its label.
    """

    kind = "runs"
    format: Literal["divaug.run/2"] = "divaug.run/2"
    data: dict[str, Any]
    side_by_side: int
    time: dict[str, Number]
    operations: list[str]
    starts: list[Environment]
    few_labels: FewLabels | None = None
    epochs: list[Epoch]

    @property
    def file(self) -> str:
        """The file that the record lies in, within the folder of records."""
        return f"runs/{self.row}-{self.recipe['augmenter']}.jsonl"

    @property
    def seen(self) -> tuple[str, str | None]:
        """Dataset, and the fingerprint of the data."""
        return self.data["name"], self.data["fingerprint"]

    @model_validator(mode="after")
    def _check(self) -> Self:
        wanted = self.recipe["epochs"]
        if [one.epoch for one in self.epochs] != list(range(1, wanted + 1)):
            raise ValueError(f"it must have the epochs 1 to {wanted}, and has {len(self.epochs)}")
        if math.isnan(self.epochs[-1].test_accuracy):
            raise ValueError("its last epoch was not evaluated")
        few, steps = self.few_labels, self.recipe["epoch_steps"]
        if few and (few.labels, few.seed) != (
            self.recipe["labels"] or few.unlabelled, self.recipe["seed"],
        ):  # fmt: skip
            raise ValueError(
                f"its split has {few.labels} labels and seed {few.seed}, its recipe "
                f"{self.recipe['labels']} and {self.recipe['seed']}"
            )
        if few and steps and few.steps != wanted * steps:
            raise ValueError(f"it must have {wanted * steps} steps, not {few.steps}")
        return self


class Network(_Model):
    """The network that a measurement scored with, told from others with the same recipe and seed.

    Args:
        accuracy: on the test images, at the end of its training.
        weights: first digits of the SHA-256 of the file that holds them.
        starts: machine, versions, commit and command of each start of its training.
    """

    accuracy: Number
    weights: str
    starts: list[Environment]


class Measurement(Record):
    """Diversity and affinity of an augmenter, as a run's network sees it.

    Args:
        augmenter: that was measured; the recipe is that of the network.
        values: of `divaug.lab.measure.Measurement`.
        environment: machine, versions, commit and command.
        fingerprint: of the data; None in older records.
        network: that was used; None in older records.
    """

    kind = "measurements"
    format: Literal["divaug.measurement/2"] = "divaug.measurement/2"
    augmenter: str
    values: dict[str, Number | int]
    environment: Environment
    fingerprint: str | None = None
    network: Network | None = None

    @property
    def seen(self) -> tuple[str, str | None]:
        """Dataset, and the fingerprint of the data."""
        return self.recipe["dataset"], self.fingerprint


class Examination(Record):
    """What the rules of selection keep of the candidates of a run's network.

    Args:
        epochs: whole epochs that the network had trained.
        train_images: number of training images that there are.
        values: of `divaug.lab.examine.Examination`.
        environment: machine, versions, commit and command.
        fingerprint: of the data.
    """

    kind = "examinations"
    format: Literal["divaug.examination/2"] = "divaug.examination/2"
    epochs: int
    train_images: int
    values: dict[str, Any]
    environment: Environment
    fingerprint: str

    @property
    def seen(self) -> tuple[str, str | None]:
        """Dataset, and the fingerprint of the data."""
        return self.recipe["dataset"], self.fingerprint


class Cost(Record):
    """The time of a training step and of its parts, and the memory it needs.

    Args:
        step_ms: milliseconds: median, low and high.
        base_ms: milliseconds of the step that others of the batch are related to, timed in turns
            with this one; for that step itself the same as `step_ms`.
        parts_ms: milliseconds of each part, timed alone.
        peak_bytes: most memory alive at once: network, images and activations.
        environment: machine, versions, commit and command.
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


#: Kind of record → its class; the kinds are folders.
KINDS: Mapping[str, type[Record]] = {one.kind: one for one in (Run, Measurement, Examination, Cost)}


def to_line(record: Record) -> str:
    """A record as a line of JSON; numbers have six digits, and those that are NaN are left out."""
    return json.dumps({"format": record.format} | _plain(record.model_dump(exclude_defaults=True)))


def _from_line(kind: str, line: str) -> Record:
    return KINDS[kind].model_validate_json(line)


def save(folder: str | Path, record: Record) -> Path:
    """Write a record into its file, in the place of one with the same hash.

    Processes may do so at the same time.

    Raises:
        ValueError: the record could not be read again; nothing is written.
    """
    root = Path(folder)
    path, line = root / record.file, to_line(record)
    try:
        _from_line(record.kind, line)
    except ValidationError as error:
        raise ValueError(f"{path} is not written: {_reason(error)}.") from None
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root / ".lock"):
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        others = [one for one in lines if json.loads(one)["hash"] != record.hash]
        write_text(path, "".join(f"{one}\n" for one in [*others, line]))
    return path


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.unfinished-{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def read_records(folder: str | Path) -> dict[str, list[Any]]:
    """Read every record of a folder, by kind; a folder that does not exist has none.

    Raises:
        ValueError: a line is no record or is there twice, two records of one dataset saw different
            data, or two runs with one seed different labels.
    """
    root = Path(folder)
    found = {kind: _read_kind(root, kind) for kind in KINDS}
    every = (one for records in found.values() for one in records)
    _refuse_different(
        ((one.seen[0], one.seen[1]) for one in every if one.seen[1]),
        lambda name: f"records in {root} saw different data under the name {name!r}",
    )
    # Methods are compared seed by seed, so a seed must stand for the same labelled images.
    _refuse_different(
        (
            ((run.data["name"], few.unlabelled, few.labels, few.seed), few.split)
            for run in found["runs"]
            if (few := run.few_labels)
        ),
        lambda key: f"runs in {root} with {key[2]} labels and seed {key[3]} have different splits",
    )
    return found


def _read_kind(root: Path, kind: str) -> list[Record]:
    found: dict[str, Record] = {}
    for path in sorted((root / kind).glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                record = _from_line(kind, line)
            except ValidationError as error:
                raise ValueError(
                    f"line {number} of {path} is no record: {_reason(error)}; restore the file."
                ) from None
            if record.hash in found:
                raise ValueError(f"line {number} of {path} is there twice; remove one of the two.")
            found[record.hash] = record
    return list(found.values())


def _refuse_different(pairs: Iterable[tuple[Any, str]], say: Callable[[Any], str]) -> None:
    known: dict[Any, str] = {}
    for key, mark in pairs:
        if known.setdefault(key, mark) != mark:
            raise ValueError(f"{say(key)}; keep such records in different folders.")


def _reason(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return f"`{where}`: {first['msg']}" if where else str(first["msg"])


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        plain = {key: _plain(item) for key, item in value.items()}
        return {key: item for key, item in plain.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value
