"""The tables of a measurement of operations, and where Pillow is the faster one."""

from collections.abc import Iterator
from typing import Any

from divaug.lab.bench.harness import place
from divaug.lab.tables import Table
from divaug.operations import OPERATIONS

__all__ = ["operation_table", "table"]

_NAMES = {
    "divaug": "divaug, batched",
    "divaug_alone": "divaug, batched, one thread",
    "pillow": "Pillow loop",
    "pillow_only": "Pillow loop, conversions left out",
    "torchvision": "torchvision v2 loop",
    "torchvision_alone": "torchvision v2 loop, one thread",
}
# What is compared with our time on one core.
_ON_ONE_CORE = ("divaug_alone", "pillow", "pillow_only", "torchvision_alone")
_LEFT_OUT = {"pillow": "", "pillow_only": ", conversions left out"}
_NOTES = (
    "A uint8 batch in, a uint8 batch out. A loop with Pillow has one core; torchvision and "
    "we have as many threads as stand below, and one where it says so.",
    "Medians; all of our pixels were equal to Pillow's before the clock started.",
)


def table(result: dict[str, Any]) -> Table:
    """Two-operation sub-policies: times, ratios, throughput and memory."""
    return Table(
        ("batch", "way", "ms", "images/s", "time ÷ ours", "÷ ours, one thread", "peak B/px"),
        tuple(row for case in result["cases"] for row in _rows(case)),
        title="Random two-operation sub-policies, every image its own",
        numeric=(2, 3, 4, 5, 6),
        notes=(*_NOTES, _losses(result), place(result["environment"])),
    )


def _rows(case: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """A row for each way to augment the batch."""
    ours, alone = (case["seconds"][way] for way in ("divaug", "divaug_alone"))
    for name, seconds in case["seconds"].items():
        yield (
            f"{case['batch']} × {case['size']} px",
            _NAMES[name],
            f"{1e3 * seconds:.1f}",
            f"{case['batch'] / seconds:,.0f}",
            f"{seconds / ours:.1f}×",
            f"{seconds / alone:.1f}×" if name in _ON_ONE_CORE else "",
            f"{case['bytes_per_pixel']:.1f}" if name == "divaug" else "",
        )


def operation_table(result: dict[str, Any]) -> Table:
    """How many times faster than Pillow's loop each operation is, alone, on one core each."""
    ways = [(case, way) for case in result["cases"] for way in ("pillow", "pillow_only")]

    def ratio(case: dict[str, Any], way: str, name: str) -> str:
        seconds = case["operations"][name]
        return f"{seconds[way] / seconds['divaug_alone']:.1f}×"

    return Table(
        columns=("operation", *(f"{c['size']} px{_LEFT_OUT[way]}" for c, way in ways)),
        rows=tuple((name, *(ratio(c, way, name) for c, way in ways)) for name in OPERATIONS),
        title="Pillow loop ÷ ours with one thread, one operation at m = 0.7 for every image",
        numeric=tuple(range(1, len(ways) + 1)),
    )


def _losses(result: dict[str, Any]) -> str:
    """Where Pillow's loop is the faster one, in a sentence or two."""
    lost = {
        case["size"]: [
            name
            for name, seconds in case["operations"].items()
            if seconds["pillow_only"] < seconds["divaug_alone"]
        ]
        for case in result["cases"]
    }
    slower = [f"at {size} px for {_listed(names)}" for size, names in lost.items() if names]
    whole = [
        f"{case['size']} px"
        for case in result["cases"]
        if case["seconds"]["pillow_only"] < case["seconds"]["divaug_alone"]
    ]
    sentences = []
    if whole:
        sentences.append(
            "On one core each, Pillow is faster where images come and go as Pillow's own objects, "
            f"at {', '.join(whole)}."
        )
    if slower:
        sentences.append(
            "Of single operations, on one core each and with its conversions left out, Pillow is "
            f"faster {', '.join(slower)}."
        )
    return " ".join(sentences) or "On one core each, Pillow was faster nowhere."


def _listed(names: list[str]) -> str:
    """Operations in a sentence: those that are missing where most are there."""
    others = [name for name in OPERATIONS if name not in names]
    if len(names) <= len(others):
        return ", ".join(names)
    return f"all but {', '.join(others)}" if others else "all"
