"""Records as text, and back: strict, so that a table shows only what a run wrote."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from divaug.lab.measure import Measurement
from divaug.lab.recipes import Recipe
from divaug.lab.report.lines import Kept
from divaug.lab.reproduce.asked_network import AskedNetwork
from divaug.lab.reproduce.content import recipe_in, to_number
from divaug.lab.reproduce.examination_record import ExaminationRecord
from divaug.lab.reproduce.records import (
    CostRecord,
    EpochRecord,
    FewLabels,
    MeasurementRecord,
    RunRecord,
)
from divaug.objectives import OBJECTIVES

__all__ = ["Record", "from_text", "to_text"]

_RUN, _MEASUREMENT, _COST = "divaug.run/1", "divaug.measurement/1", "divaug.cost/3"
_EXAMINATION = "divaug.examination/1"
_DIGITS = 6
_NUMBERS = (
    "loss", "accuracy", "diversity", "test_accuracy", "test_loss", "seconds",
    "labelled_loss", "unlabelled_loss", "confident",
)  # fmt: skip

Record = RunRecord | MeasurementRecord | ExaminationRecord | CostRecord


def to_text(record: Record) -> str:
    """A record as lines of JSON; numbers have six digits."""
    return "".join(json.dumps(_plain(line)) + "\n" for line in _lines(record))


def from_text(text: str) -> Record:
    """Read what `to_text` wrote.

    Raises:
        ValueError: text that is no record, or one whose hash is not that of its content.
    """
    first, *rest = _read_lines(text)
    try:
        record = _READ[first["format"]](first, rest)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"is no record: {type(error).__name__}: {error}") from None
    if record.hash != first.get("hash"):
        raise ValueError(
            f"has the hash {first.get('hash')}, and its content {record.hash}: it was changed, or "
            "made by other sources"
        )
    return record


def _read_lines(text: str) -> list[Any]:
    lines: list[Any] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            lines.append(json.loads(line))
        except ValueError:
            raise ValueError(
                f"is no record: line {number} is no JSON, it may be cut short; restore the file"
            ) from None
    if not lines:
        raise ValueError("is no record: it is empty; restore the file, or remove it")
    return lines


def _lines(record: Record) -> list[dict[str, Any]]:
    if isinstance(record, RunRecord):
        return _run_lines(record)
    if isinstance(record, MeasurementRecord):
        return [_measurement_line(record)]
    if isinstance(record, ExaminationRecord):
        return [{"format": _EXAMINATION, "hash": record.hash, **record.to_dict()}]
    return [
        {
            "format": _COST,
            "hash": record.hash,
            "recipe": record.recipe.to_dict(),
            "step_ms": dict(record.step_ms),
            "base_ms": dict(record.base_ms),
            "parts_ms": dict(record.parts_ms),
            "peak_bytes": record.peak_bytes,
            "environment": dict(record.environment),
            "batch": record.batch,
        }
    ]


def _measurement_line(record: MeasurementRecord) -> dict[str, Any]:
    line: dict[str, Any] = {
        "format": _MEASUREMENT,
        "hash": record.hash,
        "augmenter": record.augmenter,
        "values": asdict(record.values),
        "scorer": record.scorer.to_dict(),
        "environment": dict(record.environment),
    }
    if record.fingerprint is not None:
        line["fingerprint"] = record.fingerprint
    if record.network is not None:
        line["network"] = record.network.to_dict()
    return line


def _run_lines(run: RunRecord) -> list[dict[str, Any]]:
    kept = [epoch.kept for epoch in run.epochs if epoch.kept]
    names = [n for n in (kept[0].drawn if kept else ()) if any(k.drawn[n] for k in kept)]
    head: dict[str, Any] = {
        "format": _RUN,
        "hash": run.hash,
        "recipe": run.recipe.to_dict(),
        "data": dict(run.data),
        "side_by_side": run.side_by_side,
        "time": dict(run.time),
        "operations": names,
        "starts": [dict(start) for start in run.starts],
    }
    if run.few_labels is not None:
        head["few_labels"] = asdict(run.few_labels)
    return [head, *(_epoch_line(epoch, names) for epoch in run.epochs)]


def _epoch_line(epoch: EpochRecord, names: Sequence[str]) -> dict[str, Any]:
    numbers = {name: getattr(epoch, name) for name in _NUMBERS}
    line = {"epoch": epoch.number} | {n: v for n, v in numbers.items() if math.isfinite(v)}
    if epoch.kept is not None:
        line["kept"] = {
            "applied": [int(epoch.kept.applied[name]) for name in names],
            "drawn": [int(epoch.kept.drawn[name]) for name in names],
            "probability": [epoch.kept.probability[name] for name in names],
            "diversity_kept": epoch.kept.diversity_kept,
            "diversity_all": epoch.kept.diversity_all,
        }
        if math.isfinite(epoch.kept.diversity_best):  # older records, and long lists, have none
            line["kept"]["diversity_best"] = epoch.kept.diversity_best
    return line


def _read_run(head: Mapping[str, Any], rest: Sequence[Mapping[str, Any]]) -> RunRecord:
    epochs = tuple(_read_epoch(line, head["operations"]) for line in rest)
    recipe = recipe_in(head["recipe"])
    if [epoch.number for epoch in epochs] != list(range(1, recipe.epochs + 1)):
        raise ValueError(f"it must have the epochs 1 to {recipe.epochs}, and has {len(epochs)}")
    if not math.isfinite(epochs[-1].test_accuracy):
        raise ValueError("its last epoch was not evaluated")
    about = (head["data"], tuple(head["starts"]), head["side_by_side"], head["time"])
    return RunRecord(recipe, *about, epochs, _read_few_labels(head.get("few_labels"), recipe))


def _read_few_labels(content: Mapping[str, Any] | None, recipe: Recipe) -> FewLabels | None:
    wanted = OBJECTIVES[recipe.objective].unlabelled is not None
    if wanted != (content is not None):
        raise ValueError(f"a split goes with unlabelled images, and it has {recipe.objective!r}")
    if content is None:
        return None
    found = FewLabels(**content)
    if (found.labels, found.seed) != (recipe.labels or found.unlabelled, recipe.seed):
        raise ValueError(
            f"its split has {found.labels} labels and seed {found.seed}, its recipe "
            f"{recipe.labels} and {recipe.seed}"
        )
    if recipe.epoch_steps and found.steps != recipe.epochs * recipe.epoch_steps:
        raise ValueError(
            f"it must have {recipe.epochs * recipe.epoch_steps} steps, not {found.steps}"
        )
    return found


def _read_epoch(line: Mapping[str, Any], names: Sequence[str]) -> EpochRecord:
    numbers = {name: to_number(line.get(name)) for name in _NUMBERS}
    return EpochRecord(line["epoch"], **numbers, kept=_read_kept(line.get("kept"), names))


def _read_kept(content: Mapping[str, Any] | None, names: Sequence[str]) -> Kept | None:
    if content is None:
        return None
    applied, drawn, probability = (
        {n: to_number(v) for n, v in zip(names, content[field], strict=True)}
        for field in ("applied", "drawn", "probability")
    )
    of_kept, of_all = to_number(content["diversity_kept"]), to_number(content["diversity_all"])
    best = to_number(content.get("diversity_best"))
    return Kept(applied, drawn, probability, of_kept, of_all, best)


def _read_measurement(
    head: Mapping[str, Any], _rest: Sequence[Mapping[str, Any]]
) -> MeasurementRecord:
    values, scorer = Measurement(**head["values"]), recipe_in(head["scorer"])
    mark, network = head.get("fingerprint"), head.get("network")  # older records have none
    if not isinstance(mark, str | None):
        raise TypeError(f"a fingerprint was expected, got {mark!r}")
    asked = None if network is None else AskedNetwork.from_dict(network)
    return MeasurementRecord(scorer, head["augmenter"], values, head["environment"], mark, asked)


def _read_cost(head: Mapping[str, Any], _rest: Sequence[Mapping[str, Any]]) -> CostRecord:
    names = ("step_ms", "base_ms", "parts_ms", "peak_bytes", "environment", "batch")
    return CostRecord(recipe_in(head["recipe"]), *(head[name] for name in names))


_Reader = Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]]], Record]
_READ: Mapping[str, _Reader] = {
    _RUN: _read_run,
    _MEASUREMENT: _read_measurement,
    _EXAMINATION: lambda head, _rest: ExaminationRecord.from_dict(head),
    _COST: _read_cost,
}


def _plain(value: Any) -> Any:
    """As JSON knows it: six digits, and null for what is no number."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value
