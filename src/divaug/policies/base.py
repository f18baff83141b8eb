"""What a policy is: something that fills sub-policies, and that can be written down as text."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from divaug.names import unknown_name
from divaug.operations.further import FURTHER
from divaug.operations.table import Operation
from divaug.policies.table import Entry, Partners, PolicyTable, compile_table, draw
from divaug.randomness import Stream
from divaug.subpolicies import SubPolicies

__all__ = ["Policy", "TablePolicy", "check_policy", "from_json", "frozen"]

_FORMAT = "divaug.policy/1"


def frozen(value: Any) -> Any:
    """Lists as tuples, all the way down, so that a policy can be compared and looked up."""
    return tuple(frozen(item) for item in value) if isinstance(value, list | tuple) else value


def _written(value: Any) -> Any:
    """A field as JSON can hold it; policies, also within lists, by their name and settings."""
    if isinstance(value, Policy):
        return {"policy": type(value).__name__, "settings": value.settings()}
    if isinstance(value, list | tuple):
        return [_written(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value


def _read(value: Any) -> Any:
    """What `_written` gave; lists are tuples, so that a policy can be compared and looked up.

    Raises:
        ValueError: no such policy, or no such setting.
    """
    if isinstance(value, list | tuple):
        return tuple(_read(item) for item in value)
    if isinstance(value, dict) and value.keys() == {"policy", "settings"}:
        return _made(value["policy"], value["settings"])
    return value


def _comes_along(kind: type) -> bool:
    return kind.__module__.startswith("divaug.")


@dataclass(frozen=True)
class Policy(ABC):
    """A distribution over sub-policies.

    A subclass is a frozen dataclass whose fields are its settings, so that equal settings are equal
    policies and the settings are all that has to be written down.
    """

    kinds: ClassVar[dict[str, type["Policy"]]] = {}
    needs_epoch: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        taken = Policy.kinds.get(cls.__name__)
        if taken is not None and _comes_along(taken) and not _comes_along(cls):
            raise TypeError(
                f"a policy named {cls.__name__!r} comes with divaug; give yours another name, by "
                "which it is found again in JSON."
            )
        Policy.kinds[cls.__name__] = cls

    @property
    @abstractmethod
    def num_operations(self) -> int:
        """K, the number of operations of a sub-policy."""

    @abstractmethod
    def draw(
        self,
        stream: Stream,
        candidates: int,
        size: tuple[int, int],
        partners: Partners,
        epoch: int | Tensor | None = None,
    ) -> SubPolicies:
        """Draw `candidates` sub-policies for every sample of the stream: `[B,E,K]`."""

    def settings(self) -> dict[str, Any]:
        """The fields that define this policy, as JSON can hold them."""
        return {field.name: _written(getattr(self, field.name)) for field in fields(self)}

    def to_json(self) -> str:
        """Text that `divaug.policies.from_json` turns back into an equal policy."""
        content = {"format": _FORMAT, **_written(self)}
        text = json.dumps(content, indent=1)
        _check_restorable(self, text)
        return text


def check_policy(policy: object) -> None:
    """Refuse what is neither a policy nor None."""
    if policy is not None and not isinstance(policy, Policy):
        raise TypeError(
            f"`policy` must be one of divaug.policies, such as RandAugment(2, 9), got {policy!r}."
        )


def _check_restorable(policy: Policy, text: str) -> None:
    """Refuse text that would not give the policy back.

    Raises:
        TypeError: what it is made of is not in its fields.
    """
    kind = type(policy)
    remedy = f"make {kind.__name__} a dataclass(frozen=True) whose fields are all its settings"
    settings = json.loads(text)["settings"]
    try:
        again = kind(**{name: _read(value) for name, value in settings.items()})
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`policy` has settings outside of its fields, which alone are written down: {error}; "
            f"{remedy}."
        ) from error
    # A value that is kept for later need not be there yet.
    for name in vars(policy).keys() & vars(again).keys():
        if not _alike(vars(policy)[name], vars(again)[name]):
            raise TypeError(
                f"`policy` keeps {name!r} outside of its fields, which alone are written down; "
                f"{remedy}."
            )


def _alike(one: Any, other: Any) -> bool:
    """Whether two values are the same, as far as text tells: it has lists and no tuples."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, Tensor | np.ndarray):
        same_kind = type(one) is type(other) and one.shape == other.shape
        return same_kind and bool((one == other).all())
    return bool(one == other)


@dataclass(frozen=True)
class TablePolicy(Policy):
    """A policy that is a table of entries: rows drawn uniformly, jointly or one per operation."""

    joint: ClassVar[bool] = False

    @abstractmethod
    def rows(self) -> Sequence[Sequence[Entry]]:
        """R rows of K entries; a policy of your own is asked at every call."""

    def extra_operations(self) -> tuple[Operation, ...]:
        """Operations beyond the sixteen that the rows name."""
        named = {entry.operation for row in self.rows() for entry in row}
        return tuple(this for name, this in FURTHER.items() if name in named)

    @property
    def num_operations(self) -> int:
        """K, the number of operations of a sub-policy."""
        return len(self.rows()[0])

    def table(self, height: int, width: int, device: torch.device) -> PolicyTable:
        """The entries as tensors for images of that size; made once for each device and rows."""
        # Of others, equal ones need not draw alike, nor one that is changed as it did before.
        made = _known_table if _comes_along(type(self)) else _table_of
        return made(self, height, width, device)

    def draw(
        self,
        stream: Stream,
        candidates: int,
        size: tuple[int, int],
        partners: Partners,
        epoch: int | Tensor | None = None,  # noqa: ARG002 (a table does not change with the epoch)
    ) -> SubPolicies:
        """Draw `candidates` sub-policies for every sample of the stream: `[B,E,K]`."""
        return draw(self.table(*size, stream.index.device), stream, candidates, size, partners)


@lru_cache(maxsize=128)
def _known_table(policy: TablePolicy, height: int, width: int, device: torch.device) -> PolicyTable:
    """That of a policy that comes along, found without a look at its rows."""
    return _table_of(policy, height, width, device)


def _table_of(policy: TablePolicy, height: int, width: int, device: torch.device) -> PolicyTable:
    rows, extra = frozen(policy.rows()), tuple(policy.extra_operations())
    return _table(rows, policy.joint, extra, height, width, device)


@lru_cache(maxsize=128)
def _table(
    rows: tuple[tuple[Entry, ...], ...],
    joint: bool,
    extra: tuple[Operation, ...],
    height: int,
    width: int,
    device: torch.device,
) -> PolicyTable:
    """The same tensors for the same rows: to copy them to a GPU makes the host wait."""
    return compile_table(rows, joint=joint, height=height, width=width, extra=extra).to(device)


def from_json(text: str) -> Policy:
    """Read a policy that `Policy.to_json` or a person wrote.

    Example:
        >>> from divaug import policies
        >>> policies.from_json(policies.RandAugment(3, 4).to_json())
        RandAugment(n=3, m=4)
    """
    if not isinstance(text, str | bytes | bytearray):
        raise TypeError(
            f"`text` must be JSON text, as `Policy.to_json` writes it, got {type(text).__name__}; "
            "turn a dict into text with json.dumps."
        )
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"a policy must be JSON text: {error}") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError(f"a policy must be a JSON object with `format` {_FORMAT!r}.")
    return _made(content.get("policy"), content.get("settings", {}))


def _made(kind: object, settings: object) -> Policy:
    """The policy of that name and those settings, as JSON holds them."""
    kinds = {name: cls for name, cls in Policy.kinds.items() if name != "TablePolicy"}
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(unknown_name("policy", str(kind), tuple(kinds)))
    if not isinstance(settings, dict):
        raise ValueError(f"`settings` must be a JSON object, got {type(settings).__name__}.")
    known = {field.name for field in fields(kinds[kind])}
    unknown = sorted(set(settings) - known)
    if unknown:
        raise ValueError(unknown_name(f"setting of {kind}:", unknown[0], tuple(sorted(known))))
    return kinds[kind](**{name: _read(value) for name, value in settings.items()})
