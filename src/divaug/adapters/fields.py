"""`Fields`: where a batch has its images, its labels and its samples' numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from divaug.augmenters import Augmenter

__all__ = ["Batch", "Field", "Fields"]

Field = int | str
"""A position in a tuple or list, or a key of a mapping."""

Batch = Any
"""What a loader gives: a tuple, a list or a mapping of tensors."""


@dataclass(frozen=True)
class Fields:
    """Where a batch has its images, its labels and its samples' numbers.

    Args:
        images: position in a tuple or list, or key of a mapping.
        labels: the same; None where there are none.
        index: of the samples' numbers, which `Numbered` adds; None where there are none. They are
            used and then left out of the batch, so that a loop sees what it always saw.

    Example:
        >>> Fields("pixel_values", "labels", index="index")
        Fields(images='pixel_values', labels='labels', index='index')
    """

    images: Field = 0
    labels: Field | None = 1
    index: Field | None = None

    def __post_init__(self) -> None:
        given = {name: at for name, at in vars(self).items() if at is not None or name == "images"}
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

    def augment(self, augment: Augmenter, batch: Batch, *, epoch: int | None = None) -> Batch:
        """A batch of the same kind, augmented.

        Images and labels are what the augmenter returns. Everything else that has an entry for
        each image, a tensor or a list, is repeated image by image as labels are; what has none is
        left as it is.

        Args:
            augment: `DivAug`, `Views` or another augmenter.
            batch: a tuple, a list or a mapping; not changed.
            epoch: for policies that follow a schedule.

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
        own = {self.images: images} | ({} if self.labels is None else {self.labels: labels})
        rest = {
            at: _repeated(part, len(originals), augment.views)
            for at, part in parts.items()
            if at not in own
        }
        done = {at: own[at] if at in own else rest[at] for at in parts}
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
        for name, at in vars(self).items():
            if at is not None and at not in parts:
                raise ValueError(
                    f"the batch has no {name} at {at!r}, it has {list(parts)}; say where they are: "
                    f"Fields({name}=...)."
                )
        return parts


def _repeated(part: Any, num_images: int, views: int) -> Any:
    """An entry for each view, where there is one for each image."""
    if isinstance(part, Tensor) and part.ndim and len(part) == num_images:
        return part.repeat_interleave(views, 0)
    if isinstance(part, list) and len(part) == num_images:
        return [each for each in part for _ in range(views)]
    return part
