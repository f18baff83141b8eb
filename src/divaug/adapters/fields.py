"""`Fields`: where a batch has its images, its labels, its masks and its samples' numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from divaug._base import Augmenter
from divaug.checks import real

__all__ = ["PAIRS", "Batch", "Field", "Fields", "checked"]

Field = int | str
"""A position in a tuple or list, or a key of a mapping."""

Batch = Any
"""What a loader gives: a tuple, a list or a mapping of tensors."""


def _check_fills(masks: object) -> None:
    """Refuse masks that do not say what they are to be filled with."""
    if not isinstance(masks, Mapping):
        raise TypeError(
            "`masks` must say of each field what it has where no pixel of its image is, such as "
            f'{{"mask": 255}}, got {masks!r}.'
        )
    for at, fill in masks.items():
        if real(fill) is None and not isinstance(fill, bool):
            raise TypeError(f"`masks[{at!r}]` must be a number, such as 255, got {fill!r}.")


@dataclass(frozen=True)
class Fields:
    """Where a batch has its images, its labels, its masks and its samples' numbers.

    Args:
        images: position in a tuple or list, or key of a mapping.
        labels: the same; None where there are none.
        index: of the samples' numbers, which `Numbered` adds; None where there are none. They are
            used and then left out of the batch, so that a loop sees what it always saw.
        keep: of what is to be left as it is though it has as many entries as there are images.
        masks: of what lies over the images, `[B,H,W]` or `[B,C,H,W]`, and is to move with them;
            each with what it has where no pixel of its image is, such as `{"mask": 255}`.
        each: of lists with one entry for each image, such as tensors of boxes, whose entries are
            repeated whole. Without it a list whose tensors all happen to have as many rows as
            there are images is taken for one of columns, as collating makes them; likewise one
            of tuples of texts.

    Example:
        >>> Fields("pixel_values", "labels", index="index")
        Fields(images='pixel_values', labels='labels', index='index', keep=(), masks={}, each=())
    """

    images: Field = 0
    labels: Field | None = 1
    index: Field | None = None
    keep: tuple[Field, ...] = ()
    masks: Mapping[Field, float] = field(default_factory=dict, hash=False)
    each: tuple[Field, ...] = ()

    def __post_init__(self) -> None:
        roles = {"images": self.images, "labels": self.labels, "index": self.index}
        for name in ("keep", "each"):
            fields = getattr(self, name)
            if not isinstance(fields, tuple | list):
                raise TypeError(
                    f"`{name}` must be a tuple of positions or keys, got {fields!r}; for a single "
                    f"one write {name}=({fields!r},)."
                )
            object.__setattr__(self, name, tuple(fields))
        _check_fills(self.masks)
        object.__setattr__(self, "masks", dict(self.masks))
        lists = {
            f"{name}[{place}]": at
            for name, fields in self._lists().items()
            for place, at in enumerate(fields)
        }
        absent = {name for name in ("labels", "index") if roles[name] is None}
        given = {name: at for name, at in (roles | lists).items() if name not in absent}
        for name, at in given.items():
            if isinstance(at, bool) or not isinstance(at, int | str):
                raise TypeError(
                    f"`{name}` must be a position or a key, got {at!r}; only `labels` and `index` "
                    "may be None."
                )
            if isinstance(at, int) and at < 0:
                raise ValueError(f"`{name}` must be 0 or more, got {at}: count from the front.")
        if len({type(at) for at in given.values()}) > 1:
            raise TypeError(f"fields must be all positions or all keys, got {given}.")
        if len(set(given.values())) < len(given):
            raise ValueError(f"fields must be different ones, got {given}.")

    def _lists(self) -> dict[str, tuple[Field, ...]]:
        """What names any number of fields."""
        return {"keep": self.keep, "masks": tuple(self.masks), "each": self.each}

    def augment(self, augment: Augmenter, batch: Batch, *, epoch: int | None = None) -> Batch:
        """The batch, augmented: a tuple of a tuple, a list of a list, a dictionary of a mapping.

        Images and labels are what the augmenter returns, and masks have moved as their images
        have. Everything else that has an entry for each image (tensors, arrays, lists and tuples,
        also those within) is repeated image by image, as labels are; what has none is left as it
        is. A list of as many tensors as there are images is one entry for each of them, unless
        each of its tensors has itself an entry for each, and `each` does not name the list.

        Args:
            augment: `DivAug`, `Views` or another augmenter.
            batch: a tuple, a list or a mapping; not changed.
            epoch: for policies that follow a schedule.

        Example:
            >>> from divaug import Views
            >>> images = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
            >>> batch = {"x": images, "y": torch.tensor([3, 7]), "name": ["a", "b"]}
            >>> out = Fields("x", "y").augment(Views(num_views=2), batch)
            >>> out["x"].shape, out["y"].tolist(), out["name"]
            (torch.Size([4, 3, 8, 8]), [3, 3, 7, 7], ['a', 'a', 'b', 'b'])
        """
        parts = self._parts(batch)
        originals = parts[self.images]
        images, labels = augment(
            originals,
            None if self.labels is None else parts[self.labels],
            index=None if self.index is None else _numbers(parts.pop(self.index)),
            epoch=epoch,
        )
        own = {self.images: images} | ({} if self.labels is None else {self.labels: labels})
        own |= {at: parts[at] for at in self.keep}
        own |= {at: augment.follow(parts[at], fill=fill) for at, fill in self.masks.items()}
        own |= {at: _each(at, parts[at], len(originals), augment.views) for at in self.each}
        done = {
            at: own[at] if at in own else _repeated(part, len(originals), augment.views)
            for at, part in parts.items()
        }
        return done if isinstance(batch, Mapping) else type(batch)(done.values())

    def _parts(self, batch: Batch) -> dict[Field, Any]:
        """The batch's entries by where they stand."""
        parts: dict[Field, Any]
        if isinstance(batch, Mapping):
            parts = dict(batch)
        elif type(batch) in (tuple, list):  # not their descendants, whose makers take other things
            parts = dict(enumerate(batch))
        else:
            raise TypeError(
                f"a batch must be a tuple, a list or a mapping, got {type(batch).__name__}; let "
                "the loader's `collate_fn` make one, or call the augmenter yourself."
            )
        self._check_parts(list(parts))
        return parts

    def _check_parts(self, there: Sequence[Field]) -> None:
        """Refuse a batch that lacks what the fields name."""
        remedies = {
            "images": "say where they are: Fields(images=...)",
            "labels": "say where they are: Fields(labels=...)",
            "index": "number the samples: Numbered(dataset)",
        }
        for name, remedy in remedies.items():
            at = getattr(self, name)
            if at is not None and at not in there:
                raise ValueError(
                    f"the batch has no {name} at {at!r}, it has {there}; {remedy}. Batches of "
                    "several loaders cannot be augmented at once, nor one batch twice."
                )
        for name, fields in self._lists().items():
            if not set(fields) <= set(there):
                raise ValueError(f"`{name}` must name fields of the batch, {there}, got {fields}.")


#: Images and labels, as most loaders give them.
PAIRS = Fields()


def checked(augment: object, fields: Fields | None, usual: Fields = PAIRS) -> Fields:
    """The fields, or the usual ones for None, refusing what an adapter cannot work with.

    It is refused when it is given, and not when the first batch comes.

    Raises:
        TypeError: `augment` is no augmenter, or `fields` are none.
    """
    if not callable(augment) or not hasattr(augment, "views"):
        raise TypeError(
            "`augment` must be an augmenter, such as divaug.DivAug(model) or divaug.Views("
            f"policy), got {augment!r}."
        )
    found = usual if fields is None else fields
    if not isinstance(found, Fields):
        raise TypeError(f"`fields` must be a Fields, such as Fields(0, 1), got {fields!r}.")
    if found.masks and not hasattr(augment, "follow"):
        raise TypeError(
            "`augment` must have a method `follow(masks, fill=...)` where `fields` name masks, got "
            f"{augment!r}."
        )
    return found


def _numbers(index: Any) -> Any:
    """The samples' numbers as the augmenters take them; collating may have left a list."""
    return torch.as_tensor(index, device="cpu") if isinstance(index, list | tuple) else index


def _each(at: Field, part: Any, num_images: int, views: int) -> Any:
    """A list's entries, one for each image, whatever they are."""
    if type(part) not in (tuple, list) or len(part) != num_images:
        counted = type(part) in (tuple, list)
        got = f"{len(part)} entries" if counted else f"a {type(part).__name__}"
        raise ValueError(
            f"`each` names {at!r}, which must be a list or a tuple with an entry for each of "
            f"{num_images} images, got {got}."
        )
    return type(part)(each for each in part for _ in range(views))


def _repeated(part: Any, num_images: int, views: int) -> Any:
    """An entry for each view, where there is one for each image."""
    if isinstance(part, Tensor):
        return part.repeat_interleave(views, 0) if _has_entries(part, num_images) else part
    if isinstance(part, np.ndarray):
        return part.repeat(views, 0) if part.ndim and len(part) == num_images else part
    if isinstance(part, Mapping):
        return {name: _repeated(each, num_images, views) for name, each in part.items()}
    if isinstance(part, PackedSequence):
        raise TypeError(
            "a packed sequence cannot be repeated for the views of its images; pad the sequences "
            "instead (torch.nn.utils.rnn.pad_sequence), or name it in Fields(keep=...)."
        )
    if isinstance(part, tuple) and hasattr(part, "_fields"):  # a named one: fields, not entries
        kind: Any = type(part)
        return kind._make(_repeated(each, num_images, views) for each in part)
    if type(part) not in (tuple, list):
        return part
    leaves = list(_leaves(part))
    columns = [each for each in leaves if isinstance(each, Tensor)] or leaves
    # Of variable length, as boxes are, one of them may happen to have as many rows.
    inner = bool(columns) and all(_has_entries(each, num_images) for each in columns)
    if len(part) == num_images and not inner:
        return type(part)(each for each in part for _ in range(views))
    return type(part)(_repeated(each, num_images, views) for each in part)


def _has_entries(part: Any, num_images: int) -> bool:
    """Whether it has itself an entry for each image, and so is none for one of them."""
    return (not isinstance(part, Tensor) or part.ndim > 0) and len(part) == num_images


def _leaves(part: Sequence[Any]) -> Iterator[Any]:
    """Tensors and tuples of texts, in lists and tuples however deep."""
    for each in part:
        if isinstance(each, Tensor) or _is_text(each):
            yield each
        elif type(each) is list:  # torch collates tuples to lists
            yield from _leaves(each)


def _is_text(part: Any) -> bool:
    """Whether it is a tuple of texts, as torch collates the texts of samples."""
    texts = type(part) is tuple and all(isinstance(each, str | bytes) for each in part)
    return texts and len(part) > 0
