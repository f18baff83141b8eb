"""Drawn sub-policies as data: which operations, how strong, where, and what they came from."""

import json
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from divaug.default_augmentation import DefaultAugmentation, DefaultDraws, Photometric
from divaug.names import unknown_name
from divaug.operations.further import EVERY
from divaug.operations.table import TABLE, Operation
from divaug.validity import DTYPES, check_shapes, check_values

__all__ = ["Placement", "SubPolicies"]

# Tensor of a placement → its dtype and the axes behind those of the candidates.
_PLACED: Mapping[str, tuple[torch.dtype, tuple[int, ...]]] = {
    "offset": (torch.int32, (2,)),
    "flip": (torch.bool, ()),
    "center": (torch.int32, (2,)),
    "box": (torch.int64, (4,)),
    "factor": (torch.float32, (3,)),
    "order": (torch.int64, (3,)),
    "shift": (torch.float32, (3,)),
}


@dataclass(frozen=True, eq=False)
class Placement:
    """The default augmentation as drawn for each candidate.

    Args:
        default: the settings it was drawn with.
        offset: int32 `[...,2]`, the (y, x) of the crop's corner in the padded image.
        flip: bool `[...]`.
        center: int32 `[...,2]`, the (y, x) of Cutout's centre in the finished image.
        box: int64 `[...,4]`, top, left, height and width of a resized crop; None, like the three
            below, where `default` is not photometric.
        factor: float32 `[...,3]` of brightness, contrast and saturation.
        order: int64 `[...,3]`, the order of these three.
        shift: float32 `[...,3]`, the colour added to values in [0, 1].
    """

    default: DefaultAugmentation
    offset: Tensor
    flip: Tensor
    center: Tensor
    box: Tensor | None = None
    factor: Tensor | None = None
    order: Tensor | None = None
    shift: Tensor | None = None

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by name, without those that are None."""
        named = {name: getattr(self, name) for name in _PLACED}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    @staticmethod
    def of(default: DefaultAugmentation, draws: DefaultDraws) -> "Placement":
        """The placement that was drawn for `default`."""
        further = vars(draws.photometric) if draws.photometric else {}
        return Placement(default, draws.offset, draws.flip, draws.center, **further)

    def check_size(self, height: int, width: int) -> None:
        """Refuse crops beyond images of that size; waits for the device."""
        if self.box is None or not self.box.numel():
            return
        bottom, right = (self.box[..., :2] + self.box[..., 2:]).flatten(0, -2).amax(0).tolist()
        if bottom > height or right > width:
            raise ValueError(
                f"`subpolicies` hold a crop down to ({bottom}, {right}), outside of images of "
                f"{height}×{width}; use images of the size that they were drawn for."
            )

    def map(self, function: Callable[[Tensor], Tensor]) -> "Placement":
        """The placement with `function` applied to each tensor."""
        changed = {name: function(tensor) for name, tensor in self.tensors().items()}
        return Placement(self.default, **changed)


@dataclass(frozen=True, eq=False)
class SubPolicies:
    """A batch of drawn sub-policies, K operations each, applied in order.

    Applying it is deterministic: the same pixels on any device. It can be indexed along its
    leading axes, concatenated, moved, saved, loaded and printed.

    Args:
        operation: int32 `[...,K]`, positions in `operations`; −1 is no operation.
        applied: bool `[...,K]`, whether the operation's coin fell on its side.
        argument: float32 `[...,K]` in physical units.
        center: int32 `[...,K,2]`, the (y, x) of an operation that needs a place.
        partner: int64 `[...,K]`, the row of the pool that a pairing takes its second image from.
        probability: float32 `[...,K]`, the probability the coin was thrown with.
        magnitude: float32 `[...,K]`, the magnitude the argument came from.
        operations: the table that `operation` points into.
        placement: the crop, flip and Cutout of each candidate `[...]`; None where no default
            augmentation was drawn.
    """

    operation: Tensor
    applied: Tensor
    argument: Tensor
    center: Tensor
    partner: Tensor
    probability: Tensor
    magnitude: Tensor
    operations: tuple[Operation, ...] = tuple(TABLE.values())
    placement: Placement | None = None

    @property
    def shape(self) -> torch.Size:
        """The leading axes and K."""
        return self.operation.shape

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self.operation.device

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the operations that the ids point to."""
        return tuple(operation.name for operation in self.operations)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by name."""
        return {name: getattr(self, name) for name in DTYPES}

    def _map(self, function: Any) -> "SubPolicies":
        changed = {name: function(tensor) for name, tensor in self.tensors().items()}
        placement = self.placement.map(function) if self.placement else None
        return SubPolicies(**changed, operations=self.operations, placement=placement)

    def __getitem__(self, key: Any) -> "SubPolicies":
        given = key if isinstance(key, tuple) else (key,)
        keys = tuple(_index(k) if isinstance(k, list | np.ndarray) else k for k in given)
        leading = self.operation.ndim - 1
        axes = sum(_axes(k) for k in keys)
        if axes > leading or any(k is Ellipsis or k is None for k in keys):
            raise IndexError(f"sub-policies are indexed along their {leading} leading axes only.")
        return self._map(lambda tensor: tensor[keys])

    def __len__(self) -> int:
        return len(self.operation)

    def applying(self, which: Callable[[Operation], bool]) -> Tensor:
        """Where an operation of some kind is applied: bool `[...,K]`; waits for the device.

        Args:
            which: whether an operation is of that kind.
        """
        # One more, for no operation, which is numbered −1.
        flags = [*(which(this) for this in self.operations), False]
        table = torch.tensor(flags, dtype=torch.bool, device=self.device)
        return table[self.operation.long()] & self.applied

    def to(self, device: torch.device | str) -> "SubPolicies":
        """The same sub-policies on another device."""
        return self._map(lambda tensor: tensor.to(device))

    def clone(self) -> "SubPolicies":
        """The same sub-policies in memory of their own."""
        return self._map(torch.clone)

    def flatten(self) -> "SubPolicies":
        """All leading axes as one: `[N,K]`."""
        leading = self.operation.ndim - 1
        if leading == 0:  # a single sub-policy
            return self._map(lambda tensor: tensor[None])
        return self._map(lambda tensor: tensor.flatten(0, leading - 1))

    @staticmethod
    def concatenate(parts: Iterable["SubPolicies"]) -> "SubPolicies":
        """Join along the first axis; all parts must share one table of operations."""
        parts = list(parts)
        if not parts:
            raise ValueError("`parts` must hold at least one batch of sub-policies.")
        tables = {part.names for part in parts}
        if len(tables) != 1:
            raise ValueError(f"sub-policies of {len(tables)} different tables cannot be joined.")
        joined = {n: torch.cat([getattr(p, n) for p in parts]) for n in DTYPES}
        placed = [part.placement for part in parts if part.placement]
        if len(placed) not in (0, len(parts)) or len({one.default for one in placed}) > 1:
            raise ValueError("`parts` must be drawn with one default augmentation, or all without.")
        placement = None
        if placed:
            names = placed[0].tensors()
            whole = {n: torch.cat([one.tensors()[n] for one in placed]) for n in names}
            placement = Placement(placed[0].default, **whole)
        return SubPolicies(**joined, operations=parts[0].operations, placement=placement)

    def equal(self, other: "SubPolicies") -> bool:
        """Whether both hold the same values (on the same device)."""
        if self.names != other.names or _default(self) != _default(other):
            return False
        mine, theirs = _every(self), _every(other)
        return all(torch.equal(mine[name], theirs[name]) for name in mine)

    def describe(self) -> list[str]:
        """One line of text for each sub-policy, for people.

        Example:
            >>> import divaug
            >>> images = torch.zeros(1, 3, 32, 32, dtype=torch.uint8)
            >>> _, subpolicies = divaug.expand(images, num_candidates=2, seed=3)
            >>> for line in subpolicies.describe():
            ...     print(line)
            Sharpness(1.69) p=0.12 m=0.77 skipped -> Invert p=0.36 m=0.19
            TranslateY(4.9) p=0.93 m=0.34 -> ShearY(-0.124) p=0.75 m=0.41 skipped
        """
        flat = self.flatten().to("cpu")
        return [" -> ".join(flat._words(i)) or "nothing" for i in range(len(flat))]

    def _words(self, row: int) -> list[str]:
        words = []
        for k in range(self.operation.shape[-1]):
            i = int(self.operation[row, k])
            if i < 0:
                continue
            this = self.operations[i]
            strength = f"({float(self.argument[row, k]):.3g})" if this.needs_argument else ""
            coin = "" if bool(self.applied[row, k]) else " skipped"
            p, m = float(self.probability[row, k]), float(self.magnitude[row, k])
            words.append(f"{this.name}{strength} p={p:.2f} m={m:.2f}{coin}")
        return words

    def to_json(self) -> str:
        """Text that `from_json` turns back into the same values."""
        content: dict[str, Any] = {"operations": list(self.names)}
        content |= {name: tensor.tolist() for name, tensor in self.tensors().items()}
        if self.placement:
            placed = {name: tensor.tolist() for name, tensor in self.placement.tensors().items()}
            content["placement"] = {"default": asdict(self.placement.default), **placed}
        return json.dumps({"format": "divaug.subpolicies/1", "shape": list(self.shape), **content})

    @staticmethod
    def from_json(text: str, extra: Sequence[Operation] = ()) -> "SubPolicies":
        """Read what `to_json` wrote; `extra` holds operations of your own."""
        if not isinstance(text, str | bytes | bytearray):
            raise TypeError(
                f"sub-policies must be JSON text, got {type(text).__name__}; give what `to_json` "
                "returned."
            )
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"sub-policies must be JSON text: {error}") from error
        if not isinstance(content, dict) or content.get("format") != "divaug.subpolicies/1":
            raise ValueError("this text does not hold sub-policies: no `format` of that kind.")
        missing = [n for n in (*DTYPES, "operations", "shape") if n not in content]
        if missing:
            raise ValueError(f"the sub-policies lack `{missing[0]}`.")
        shape = content["shape"]
        if not isinstance(shape, list) or not all(
            type(side) is int and side >= 0 for side in shape
        ):
            raise ValueError(f"`shape` must be a list of whole numbers, got {shape!r}.")
        read = {
            name: _read(name, content[name], dtype, (*shape, 2) if name == "center" else shape)
            for name, dtype in DTYPES.items()
        }
        placed = content.get("placement")
        if isinstance(placed, dict):
            for name in placed.keys() & _PLACED.keys():
                dtype, more = _PLACED[name]
                placed[name] = _read(name, placed[name], dtype, (*shape[:-1], *more))
        return _checked(read, _table(content["operations"], extra), placed)

    def save(self, path: str | Path) -> None:
        """Write tensors to a file (`torch.save` of plain tensors and names)."""
        # A part of a batch shares the memory of all of it, which torch would save.
        here = self.to("cpu").clone()
        content: dict[str, Any] = {"operations": list(self.names), **here.tensors()}
        if here.placement:
            settings = {"default": asdict(here.placement.default)}
            content["placement"] = settings | here.placement.tensors()
        torch.save(content, path)

    @staticmethod
    def load(path: str | Path, extra: Sequence[Operation] = ()) -> "SubPolicies":
        """Read what `save` wrote; nothing but tensors and names is unpickled."""
        try:
            content = torch.load(path, weights_only=True)
        except _UNREADABLE as error:
            raise ValueError(
                f"{path} does not hold sub-policies: it is damaged or no file that "
                "SubPolicies.save wrote; text goes to SubPolicies.from_json."
            ) from error
        if not isinstance(content, dict):
            raise ValueError(f"{path} does not hold sub-policies but {type(content).__name__}.")
        missing = [n for n in (*DTYPES, "operations") if n not in content]
        if missing:
            raise ValueError(f"{path} does not hold sub-policies: `{missing[0]}` is missing.")
        read, table = {n: content[n] for n in DTYPES}, _table(content["operations"], extra)
        return _checked(read, table, content.get("placement"))


# What torch.load raises for text, for a file cut short and for pickles of other things.
_UNREADABLE = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, LookupError)


def _index(key: Any) -> Tensor:
    """Arrays and lists as torch indexes: a mask, or whole numbers."""
    array = np.asarray(key)
    if array.size and array.dtype.kind not in "biu":
        raise IndexError(f"sub-policies are indexed by whole numbers or masks, got {key!r}.")
    kind = array.dtype if array.dtype == np.bool_ else np.int64  # torch takes bytes for masks
    return torch.from_numpy(np.array(array, dtype=kind))


def _axes(key: Any) -> int:
    """How many axes a part of an index takes: a mask takes all of its own."""
    return key.ndim if isinstance(key, Tensor) and key.dtype == torch.bool else 1


def _read(name: str, values: Any, dtype: torch.dtype, shape: Sequence[int]) -> Tensor:
    """Read nested lists as a tensor; lists without elements do not tell their shape."""
    whole = tuple(shape)
    try:
        found = torch.tensor(values, dtype=dtype, device="cpu").view(whole)
        as_written = torch.tensor(values, dtype=torch.float64, device="cpu").view(whole)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"`{name}` must be nested lists of shape {whole}: {error}") from error
    # Converting cuts fractions off, and makes truth of any number.
    changed = as_written[found.to(torch.float64) != as_written]
    if len(changed) and not found.is_floating_point():
        kind = "true or false" if found.dtype == torch.bool else "whole numbers"
        raise ValueError(f"`{name}` must hold {kind}, got {float(changed[0])!r}.")
    return found


def _table(names: Any, extra: Sequence[Operation]) -> tuple[Operation, ...]:
    if not isinstance(names, list | tuple):
        raise ValueError(f"`operations` must be a list of names, got {names!r}.")
    known = EVERY | {operation.name: operation for operation in extra}
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise ValueError(unknown_name("operation", name, tuple(known)))
    return tuple(known[name] for name in names)


def _checked(
    tensors: dict[str, Tensor], operations: tuple[Operation, ...], placed: Any
) -> SubPolicies:
    check_shapes(tensors)
    check_values(tensors, operations)
    placement = None if placed is None else _placement(placed, tensors["operation"].shape[:-1])
    return SubPolicies(**tensors, operations=operations, placement=placement)


def _placement(content: Any, shape: torch.Size) -> Placement:
    """Make a placement of what a file holds.

    Raises:
        ValueError: unknown settings, or tensors that are missing, superfluous or out of range.
    """
    try:
        settings = dict(content["default"])
        if settings.get("photometric") is not None:
            settings["photometric"] = Photometric(**settings["photometric"])
        default = DefaultAugmentation(**settings)
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"`placement` must hold a default augmentation: {error}.") from error
    names = list(_PLACED) if default.photometric else ["offset", "flip", "center"]
    tensors = {name: content.get(name) for name in names}
    for name, tensor in tensors.items():
        dtype, more = _PLACED[name]
        fits = isinstance(tensor, Tensor) and tensor.dtype == dtype
        if not fits or tensor.shape != (*shape, *more):
            raise ValueError(f"`{name}` of `placement` must be {dtype} {[*shape, *more]}.")
    return Placement(default, **tensors)


def _default(subpolicies: SubPolicies) -> DefaultAugmentation | None:
    return subpolicies.placement.default if subpolicies.placement else None


def _every(subpolicies: SubPolicies) -> dict[str, Tensor]:
    """Collect the tensors of sub-policies and of their placement by name."""
    placed = subpolicies.placement.tensors() if subpolicies.placement else {}
    return subpolicies.tensors() | {f"placed {name}": tensor for name, tensor in placed.items()}


assert {*DTYPES, "operations", "placement"} == {field.name for field in fields(SubPolicies)}
