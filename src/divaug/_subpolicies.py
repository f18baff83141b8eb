"""Drawn sub-policies as data: which operations, how strong, where, and what they came from."""

import json
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from divaug._checks import constant
from divaug._names import unknown_name
from divaug.default_augmentation import DefaultAugmentation, Photometric
from divaug.operations.table import EVERY, TABLE, Operation

__all__ = ["Placement", "SubPolicies", "check_partners", "check_shapes", "check_values"]


# Tensor → its dtype, and its axes behind those of the sub-policies or candidates.
_Kinds: TypeAlias = dict[str, tuple[torch.dtype, tuple[int, ...]]]
_DRAWN: _Kinds = {
    "operation": (torch.int32, ()),
    "applied": (torch.bool, ()),
    "argument": (torch.float32, ()),
    "center": (torch.int32, (2,)),
    "partner": (torch.int64, ()),
    "probability": (torch.float32, ()),
    "magnitude": (torch.float32, ()),
}
_PLACED: _Kinds = {
    "offset": (torch.int32, (2,)),
    "flip": (torch.bool, ()),
    "center": (torch.int32, (2,)),
}
_PHOTOGRAPHED: _Kinds = {
    "box": (torch.int64, (4,)),
    "factor": (torch.float32, (3,)),
    "order": (torch.int64, (3,)),
    "shift": (torch.float32, (3,)),
}
_FORMAT = "divaug.subpolicies/1"


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
        """Return the tensors by name, without those that are None."""
        kinds = _PLACED | _PHOTOGRAPHED if self.default.photometric else _PLACED
        return {name: getattr(self, name) for name in kinds}

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
        """Return the placement with `function` applied to each tensor."""
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
        """The device of the tensors."""
        return self.operation.device

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the operations that the ids point to."""
        return tuple(operation.name for operation in self.operations)

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name."""
        return {name: getattr(self, name) for name in _DRAWN}

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
        """Mark where an operation of some kind is applied: bool `[...,K]`; waits for the device.

        Args:
            which: whether an operation is of that kind.
        """
        # One more, for no operation, which is numbered −1.
        flags = [*(which(this) for this in self.operations), False]
        table = torch.tensor(flags, dtype=torch.bool, device=self.device)
        return table[self.operation.long()] & self.applied

    def to(self, device: torch.device | str) -> "SubPolicies":
        """Return the same sub-policies on another device."""
        return self._map(lambda tensor: tensor.to(device))

    def clone(self) -> "SubPolicies":
        """Return the same sub-policies in memory of their own."""
        return self._map(torch.clone)

    def flatten(self) -> "SubPolicies":
        """Return all leading axes as one: `[N,K]`."""
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
        joined = {n: torch.cat([getattr(p, n) for p in parts]) for n in _DRAWN}
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
        """Return whether both hold the same values, on the same device."""
        pairs = [(self.tensors(), other.tensors())]
        if self.placement and other.placement:
            pairs.append((self.placement.tensors(), other.placement.tensors()))
            if self.placement.default != other.placement.default:
                return False
        elif self.placement or other.placement:
            return False
        same = all(torch.equal(mine[n], theirs[n]) for mine, theirs in pairs for n in mine)
        return same and self.names == other.names

    def describe(self) -> list[str]:
        """Return one line of text for each sub-policy, for people.

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
        return json.dumps({"format": _FORMAT, "shape": list(self.shape), **content})

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
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError("this text does not hold sub-policies: no `format` of that kind.")
        shape = content.get("shape")
        if not (isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)):
            raise ValueError(f"`shape` must be a list of ints, got {shape!r}.")
        _to_tensors(content, _DRAWN, shape)
        if isinstance(content.get("placement"), dict):
            _to_tensors(content["placement"], _PLACED | _PHOTOGRAPHED, shape[:-1])
        return _from_content(content, extra)

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
        return _from_content(content, extra)


# What torch.load raises for text, for a file cut short and for pickles of other things.
_UNREADABLE = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, LookupError)


def _index(key: Any) -> Tensor:
    """Turn an array or list into an index of torch: a mask, or ints."""
    array = np.asarray(key)
    if array.size and array.dtype.kind not in "biu":
        raise IndexError(f"sub-policies are indexed by ints or masks, got {key!r}.")
    kind = array.dtype if array.dtype == np.bool_ else np.int64  # torch takes bytes for masks
    return torch.from_numpy(np.array(array, dtype=kind))


def _axes(key: Any) -> int:
    """Count the axes that a part of an index takes: a mask takes all of its own."""
    return key.ndim if isinstance(key, Tensor) and key.dtype == torch.bool else 1


def _to_tensors(content: dict[str, Any], kinds: _Kinds, shape: Sequence[int]) -> None:
    """Replace nested lists by tensors, in place; lists without elements do not show their shape."""
    for name in content.keys() & kinds.keys():
        dtype, more = kinds[name]
        whole = (*shape, *more)
        try:
            written = torch.tensor(content[name], dtype=torch.float64, device="cpu").view(whole)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"`{name}` must be nested lists of shape {whole}: {error}") from error
        content[name] = written.to(dtype)
        # Converting cuts fractions off, and makes a bool of any number.
        changed = written[content[name].double() != written]
        if len(changed) and not dtype.is_floating_point:
            kind = "bools" if dtype == torch.bool else "ints"
            raise ValueError(f"`{name}` must hold {kind}, got {float(changed[0])!r}.")


def _from_content(content: dict[str, Any], extra: Sequence[Operation]) -> SubPolicies:
    """Make sub-policies of what a file or text holds, all of it checked."""
    missing = [name for name in (*_DRAWN, "operations") if name not in content]
    if missing:
        raise ValueError(f"the sub-policies lack `{missing[0]}`.")
    names = content["operations"]
    if not isinstance(names, list | tuple):
        raise ValueError(f"`operations` must be a list of names, got {names!r}.")
    known = EVERY | {operation.name: operation for operation in extra}
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise ValueError(unknown_name("operation", name, tuple(known)))
    operations = tuple(known[name] for name in names)
    tensors = {name: content[name] for name in _DRAWN}
    check_shapes(tensors)
    check_values(tensors, operations)
    # Files of earlier versions hold no placement.
    placed, placement = content.get("placement"), None
    if placed is not None:
        placement = _placement(placed, tensors["operation"].shape[:-1])
    return SubPolicies(**tensors, operations=operations, placement=placement)


def _placement(content: Any, shape: Sequence[int]) -> Placement:
    try:
        settings = dict(content["default"])
        if settings.get("photometric") is not None:
            settings["photometric"] = Photometric(**settings["photometric"])
        default = DefaultAugmentation(**settings)
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"`placement` must hold a default augmentation: {error}.") from error
    kinds = _PLACED | _PHOTOGRAPHED if default.photometric else _PLACED
    tensors = {name: content.get(name) for name in kinds}
    _check_kinds(tensors, kinds, shape)
    return Placement(default, **tensors)


def check_shapes(tensors: Mapping[str, Any]) -> None:
    """Refuse what cannot be the tensors of sub-policies, without looking at a value."""
    shape = getattr(tensors["operation"], "shape", ())
    _check_kinds(tensors, _DRAWN, shape)


def _check_kinds(tensors: Mapping[str, Any], kinds: _Kinds, shape: Sequence[int]) -> None:
    for name, (dtype, more) in kinds.items():
        tensor, expected = tensors[name], (*shape, *more)
        if not isinstance(tensor, Tensor):
            raise ValueError(f"`{name}` must be a {dtype} tensor, got {type(tensor).__name__}.")
        if tuple(tensor.shape) != expected:
            raise ValueError(f"`{name}` must have shape {expected}, got {tuple(tensor.shape)}.")
        if tensor.dtype != dtype:
            raise ValueError(f"`{name}` must be {dtype}, got {tensor.dtype}.")


def check_values(tensors: Mapping[str, Tensor], operations: Sequence[Operation]) -> None:
    """Refuse values out of their range; waits for the device, once where there are none."""
    rules = _rules(tensors, operations)
    broken = torch.stack([rule.broken.any() for rule in rules]).tolist()
    for rule in (rule for rule, anywhere in zip(rules, broken, strict=True) if anywhere):
        operation = int(tensors["operation"][rule.broken][0])
        got = tensors[rule.name][rule.broken][0].tolist()
        raise ValueError(f"`{rule.name}` {rule.words(operation)}, got {got!r}.")


class _Rule(NamedTuple):
    """The places where a tensor breaks a rule, and the rule in words for an operation's id."""

    name: str
    broken: Tensor
    words: Callable[[int], str]


def _rules(tensors: Mapping[str, Tensor], operations: Sequence[Operation]) -> tuple[_Rule, ...]:
    ids, argument, p = tensors["operation"], tensors["argument"], tensors["probability"]
    known = (ids >= -1) & (ids < len(operations))
    limits = constant(
        # For −1, which is no operation.
        ((0.0,) * 4, *((o.low, o.high, o.needs_argument, o.whole) for o in operations)),
        ids.device,
    )
    low, high, needed, whole = limits[(torch.where(known, ids, -1) + 1).long()].unbind(-1)
    used = (needed > 0) & tensors["applied"]

    def range_of(i: int) -> str:
        this = operations[i]
        return f"of {this.name} must lie in [{this.low:g}, {this.high:g}] {this.unit}"

    def whole_of(i: int) -> str:
        return f"of {operations[i].name} must be an integer number of {operations[i].unit}"

    return (
        _Rule("operation", ~known, lambda _: f"must lie in [-1, {len(operations) - 1}]"),
        _Rule("probability", ~((p >= 0) & (p <= 1)), lambda _: "must lie in [0, 1]"),
        _Rule("center", (tensors["center"] < 0).any(-1), lambda _: "must not be negative"),
        _Rule("partner", tensors["partner"] < 0, lambda _: "must not be negative"),
        _Rule("argument", used & ~((argument >= low) & (argument <= high)), range_of),
        _Rule("argument", used & (whole > 0) & (argument != argument.round()), whole_of),
    )


def check_partners(partner: Tensor, count: int, advice: str) -> None:
    """Refuse partners that a pool of `count` images does not have; waits for the device."""
    if partner.numel() and not (int(partner.min()) >= 0 and int(partner.max()) < count):
        raise ValueError(
            f"`partner` lies in [{int(partner.min())}, {int(partner.max())}], and the pool has "
            f"{count} images; {advice}"
        )
