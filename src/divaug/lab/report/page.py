"""The page of a report, and the files beside it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from divaug import DivAug, __version__
from divaug.default_augmentation import DefaultAugmentation
from divaug.lab.datasets import Dataset
from divaug.lab.figures.candidates import Chosen, draw_candidates
from divaug.lab.report.runs import RunRecord, labels_of, read_runs
from divaug.lab.report.tables import csv_table, provenance_table, runs_table, seeds_table
from divaug.lab.tables import Table
from divaug.lab.train.batches import first_images, parts_in_order
from divaug.lab.train.build import build_augmenter
from divaug.lab.train.device import Hardware
from divaug.lab.train.folder import replace_text, writing
from divaug.lab.train.run import open_run

__all__ = ["Candidates", "choose_candidates", "write_report"]


def write_report(
    runs: Sequence[str | Path],
    out: str | Path,
    *,
    markdown: str | Path | None = None,
    csv: str | Path | None = None,
    data: str | Path | Dataset | None = None,
    summary: Table | None = None,
) -> list[Path]:
    """Write a page about runs, and its tables in other forms.

    Args:
        runs: folders of the runs, in the order of the page.
        out: the page, one HTML file.
        markdown: file for the tables as Markdown; None for none.
        csv: file for the table as comma-separated values, a row for each run; None for none.
        data: dataset for the pictures of candidates, or its path; None for the data that each run
            was trained on. Nothing is downloaded.
        summary: table at the beginning of the page, a row for each run.

    Returns:
        The files.

    Raises:
        FileNotFoundError: a run, or `data`, is not there.
        OSError: a file cannot be written; it is named.
        ValueError: a folder is no run with a finished epoch.
    """
    records = read_runs(runs)
    if isinstance(data, str | Path) and not Path(data).exists():
        raise FileNotFoundError(f"`data` must be an .npz file or a folder, got {str(data)!r}.")
    targets = [Path(path) for path in (out, markdown, csv) if path is not None]
    if len({path.resolve() for path in targets}) < len(targets):
        named = ", ".join(map(str, targets))
        raise ValueError(f"every file of a report needs a name of its own, got {named}.")
    for path in targets:
        if path.is_dir():
            raise ValueError(f"{path} is a folder; give the name of a file, like report.html.")
    texts = {Path(out): _render(records, data, summary)}
    if markdown is not None:
        tables = [table for table in (runs_table(records), seeds_table(records)) if table]
        texts[Path(markdown)] = "\n\n".join(table.to_markdown() for table in tables) + "\n"
    if csv is not None:
        texts[Path(csv)] = csv_table(records).to_csv()
    for path, text in texts.items():
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, text)
    return targets


def _render(
    runs: Sequence[RunRecord], data: str | Path | Dataset | None, summary: Table | None
) -> str:
    """Return the page as text: one HTML file, its pictures inside, without scripts."""
    import jinja2  # here and below: bad input need not wait for them

    from divaug.lab.report.drawing import draw_curves, draw_operations, styles_of, to_page

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    parts = []
    labels, styles = labels_of(runs), styles_of(runs)
    for number, (run, label, (color, _)) in enumerate(zip(runs, labels, styles, strict=True), 1):
        candidates, picture, lacking = None, None, ""
        try:
            candidates = choose_candidates(run, data)
            drawn = draw_candidates(candidates.choice, *candidates.titles(number))
            alt = f"Candidates, predictions and selection for {len(candidates.classes)} images"
            picture = to_page(drawn, "", alt)
        except (ValueError, OSError) as error:
            # A run can be read without its network and its data; the page names what it lacks.
            lacking = " ".join(str(error).split())
        parts.append(
            {
                "number": number,
                "label": label,
                "color": color,
                "name": run.recipe.name,
                "recipe": json.dumps(run.recipe.to_dict(), indent=1, ensure_ascii=False),
                "operations": draw_operations(run),
                "candidates": candidates,
                "picture": picture,
                "lacking": lacking,
            }
        )
    curves, absent = draw_curves(runs)
    return environment.get_template("page.html.jinja").render(
        version=__version__,
        summary=summary,
        results=runs_table(runs),
        provenance=provenance_table(runs),
        seeds=seeds_table(runs),
        datasets=sorted({run.dataset for run in runs}),
        curves=curves,
        absent=absent,
        parts=parts,
    )


@dataclass(frozen=True)
class Candidates:
    """Candidates of a few images as a run's network sees them.

    Args:
        choice: content of the picture.
        classes: class of each image.
        method: rule of selection.
        own: whether the run itself selects; otherwise it is the choice of DivAug with its network.
        checkpoint: name of the checkpoint.
        notes: a sentence for each newer checkpoint that could not be used, and one where the data
            is not the run's.
    """

    choice: Chosen
    classes: tuple[str, ...]
    method: str
    own: bool
    checkpoint: str
    notes: tuple[str, ...]

    def titles(self, number: int) -> tuple[str, str]:
        """Title and subtitle of the picture of the run with that number."""
        S, E = self.choice.chosen.shape[1], self.choice.probs.shape[1]
        subject = "the run keeps" if self.own else "DivAug would keep"
        return (
            f"run {number}: {subject} {S} of {E} candidates ({self.method})",
            f"{self.checkpoint}; below each candidate its predicted probabilities, a bar a class; "
            "numbers give the order of choice",
        )


def choose_candidates(
    run: RunRecord, data: str | Path | Dataset | None = None, count: int = 3
) -> Candidates:
    """Expand, score and select as the run would after its last checkpoint, on the CPU.

    Nothing is downloaded.

    Args:
        run: the run; of one that does not select, DivAug's choice with its network is shown.
        data: the dataset, or its path; None for the data that the run was trained on.
        count: number of images, each the first of its class.

    Raises:
        FileNotFoundError: the dataset is not there.
        ValueError: no checkpoint can be used, or it does not fit the dataset.
    """
    opened = open_run(run.folder)
    said: list[str] = []
    found = opened.data(data, download=False, say=said.append)
    hardware = Hardware.choose("cpu", "float32", eager=True)
    network = opened.network(found, hardware)
    default = opened.default(found)
    train, _ = parts_in_order(found, hardware.device, seed=run.recipe.seed)
    augment = build_augmenter(run.recipe, network, default, hardware, train.pool)
    own = isinstance(augment, DivAug)
    if not isinstance(augment, DivAug):
        other = replace(run.recipe, augmenter="divaug")
        augment = build_augmenter(other, network, default, hardware, train.pool)
        assert isinstance(augment, DivAug)
    labels = found.train_labels if isinstance(found, Dataset) else found.train.labels
    first: dict[int, int] = {}
    for i, label in enumerate(labels.tolist()):
        first.setdefault(label, i)
    index = torch.tensor(sorted(first.values())[:count], device=labels.device)
    classes = tuple(found.class_names[int(label)] for label in labels[index])
    augment.load_state_dict({"step": opened.checkpoint.step, "seed": run.recipe.seed})
    images = first_images(found, index)
    seen = augment.explain(images, index=index)
    candidates = _to_bytes(seen.candidates, default)
    choice = Chosen(images, candidates, seen.subpolicies, seen.probs, seen.chosen)
    notes = (*opened.notes, *(f"{text[0].upper()}{text[1:]}." for text in said))
    return Candidates(choice, classes, augment.method, own, opened.path.name, notes)


def _to_bytes(finished: Tensor, default: DefaultAugmentation) -> Tensor:
    """Undo the normalisation; Cutout's zeros become the dataset's mean colour."""
    values = (default.mean, default.std)
    mean, std = (torch.tensor(v, device=finished.device).view(-1, 1, 1) for v in values)
    return ((finished * std + mean) * 255).round().clamp(0, 255).to(torch.uint8)
