"""`Fields`: positions or keys of a batch's images, labels, masks and sample numbers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from divaug.augmenters import Augmenter

__all__ = ["PAIRS", "Batch", "Field", "Fields", "checked", "rebuilt"]

Field = int | str
"""A position in a tuple or list, or a key of a mapping."""

Batch = Any
"""A loader's batch: a tuple, a list or a mapping of tensors."""

_HOLDERS = (Tensor, np.ndarray, Mapping, tuple, list)


@dataclass(frozen=True)
class Fields:
    """Positions or keys of a batch's images, labels, masks and sample numbers.

    Args:
        images: position in a tuple or list, or key of a mapping.
        labels: position or key of the labels; None if there are none.
        index: position or key of the sample numbers, which `Numbered` adds; None if there are
            none. They are used and then left out of the batch.
        keep: fields that stay as they are, though they have as many entries as there are images.
        masks: fields that lie over the images, `[B,H,W]` or `[B,C,H,W]`, and are to move with
            them; each with its fill where no pixel of its image is, such as `{"mask": 255}`.
        each: lists with one entry for each image, such as tensors of boxes, whose entries are
            repeated whole.

    Example:
        >>> Fields("pixel_values", "labels", index="index")
        Fields(images='pixel_values', labels='labels', index='index', keep=(), masks={}, each=())
    """

    images: Field = 0
    labels: Field | None = 1
    index: Field | None = None
    keep: tuple[Field, ...] = ()
    masks: Mapping[Field, float] = field(default_factory=dict)
    each: tuple[Field, ...] = ()

    def __post_init__(self) -> None:
        kinds = {
            "keep": (tuple | list, 'a tuple of fields, such as ("weights",)'),
            "masks": (Mapping, 'a mapping of fields to fills, such as {"mask": 255}'),
            "each": (tuple | list, 'a tuple of fields, such as ("boxes",)'),
        }
        for name, (kind, wanted) in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"`{name}` must be {wanted}, got {getattr(self, name)!r}.")
        named = [at for _, at in self._named()]
        if len(set(named)) < len(named):
            raise ValueError(f"each field must be named once, got {named}.")

    def _named(self) -> Iterator[tuple[str, Field]]:
        """Every field that must be in a batch, with its role."""
        yield "images", self.images
        for role, at in (("labels", self.labels), ("index", self.index)):
            if at is not None:
                yield role, at
        for role in ("keep", "masks", "each"):
            for at in getattr(self, role):
                yield role, at

    def augment(self, augment: Augmenter, batch: Batch, *, epoch: int | None = None) -> Batch:
        """Augment a batch: a tuple gives a tuple, a list a list, a mapping a dictionary.

        Images and labels are what the augmenter returns, and masks have moved as their images
        have. Every other tensor, array, list or tuple with an entry for each image is repeated
        image by image, as labels are; so is what mappings, lists and tuples contain. Everything
        else stays.

        Args:
            augment: `DivAug`, `Views` or another augmenter.
            batch: a tuple, a list or a mapping; not changed.
            epoch: for policies that follow a schedule.

        Raises:
            ValueError: the batch lacks a field, or has a list that `each` or `keep` must name.

        Example:
            >>> import torch
            >>> from divaug.views import Views
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
            index=None if self.index is None else parts.pop(self.index),
            epoch=epoch,
        )
        count, views = len(originals), augment.views
        done = {self.images: images} | ({} if self.labels is None else {self.labels: labels})
        done |= {at: parts[at] for at in self.keep}
        done |= {at: augment.follow(parts[at], fill=fill) for at, fill in self.masks.items()}
        done |= {at: _each(parts[at], count, views, at) for at in self.each}
        out = {
            at: done[at] if at in done else _repeated(part, count, views, at)
            for at, part in parts.items()
        }
        return out if isinstance(batch, Mapping) else type(batch)(out.values())

    def _parts(self, batch: Batch) -> dict[Field, Any]:
        """The batch's entries by position or key, checked for the named ones."""
        if isinstance(batch, Mapping):
            parts = dict(batch)
        elif type(batch) in (tuple, list):
            parts = dict(enumerate(batch))
        else:
            raise TypeError(
                f"a batch must be a tuple, a list or a mapping, got {type(batch).__name__}; let "
                "the loader's `collate_fn` make one, or call the augmenter yourself."
            )
        for role, at in self._named():
            if at not in parts:
                remedy = "Numbered(dataset)" if role == "index" else f"Fields({role}=...)"
                raise ValueError(
                    f"the batch has no {role} at {at!r}, it has {list(parts)}; use {remedy}."
                )
        return parts


#: Images and labels, as most loaders give them.
PAIRS = Fields()


def checked(augment: object, fields: Fields | None, usual: Fields = PAIRS) -> Fields:
    """Return the fields, or the usual ones for None, once an adapter can work with both.

    Raises:
        TypeError: `augment` is no augmenter, or `fields` is no `Fields`.
    """
    if not callable(augment) or not hasattr(augment, "views"):
        raise TypeError(
            "`augment` must be an augmenter, such as divaug.DivAug(model) or divaug.Views("
            f"policy), got {augment!r}."
        )
    found = usual if fields is None else fields
    if not isinstance(found, Fields):
        raise TypeError(f"`fields` must be a Fields, such as Fields(0, 1), got {fields!r}.")
    return found


def rebuilt(part: Any, entries: Iterable[Any]) -> Any:
    """Make a list, tuple or named tuple like `part` of other entries."""
    return part._make(entries) if hasattr(part, "_make") else type(part)(entries)


def _each(part: Any, count: int, views: int, at: Field) -> Any:
    """Repeat the entries of a list, whatever they are."""
    if type(part) not in (tuple, list) or len(part) != count:
        raise ValueError(
            f"`each` must name a list or tuple with one entry for each of {count} images, got "
            f"{type(part).__name__} at {at!r}."
        )
    return type(part)(entry for entry in part for _ in range(views))


def _repeated(part: Any, count: int, views: int, at: Field, inside: bool = False) -> Any:
    """Repeat a part, or what it contains, where it has an entry for each image.

    Args:
        part: anything of a batch.
        count: number of images.
        views: number of views of each image.
        at: field of the batch, for the error.
        inside: whether `part` stands in a list or tuple. There torch collates columns, with an
            entry for each image; anything else, such as boxes, must be named.
    """
    if isinstance(part, Mapping):
        return {key: _repeated(each, count, views, at, inside) for key, each in part.items()}
    listed = isinstance(part, tuple | list)
    if listed and any(isinstance(each, _HOLDERS) for each in part):
        return rebuilt(part, (_repeated(each, count, views, at, True) for each in part))
    if not listed and not isinstance(part, Tensor | np.ndarray):
        return part
    if (listed or part.ndim) and len(part) == count:
        if isinstance(part, Tensor):
            return part.repeat_interleave(views, 0)
        return _each(part, count, views, at) if listed else part.repeat(views, 0)
    if inside:
        raise ValueError(
            f"the list at {at!r} must hold columns with an entry for each of {count} images; name "
            "it in Fields(each=...) to repeat its own entries, or in Fields(keep=...)."
        )
    return part
