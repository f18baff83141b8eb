"""The base of all policies, and their text: JSON that gives an equal policy back."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cached_property, lru_cache
from inspect import isabstract
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from divaug._names import unknown_name
from divaug._random import Stream
from divaug._subpolicies import SubPolicies
from divaug.operations.table import Operation
from divaug.policies.table import Entry, Partners, Plan, PolicyTable, compile_table

__all__ = [
    "Policy",
    "TablePolicy",
    "check_name",
    "check_policy",
    "from_json",
    "frozen",
    "settled",
]

_FORMAT = "divaug.policy/1"
_Rows = TypeVar("_Rows", bound=Callable[..., Sequence[Sequence[Entry]]])


@dataclass(frozen=True)
class Policy(ABC):
    """A distribution over sub-policies.

    A subclass is a frozen dataclass whose fields are its settings, so that equal settings are equal
    policies and the settings are all that has to be written. It offers a `plan`, which is drawn
    from in batched PyTorch or in a kernel, or has its own `draw`.
    """

    kinds: ClassVar[dict[str, type["Policy"]]] = {}
    needs_epoch: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        first = next(kind for kind in cls.__mro__ if {"draw", "plan"} & vars(kind).keys())
        if "plan" not in vars(first):  # its own `draw` comes before a plan that it inherits
            cls.plan = Policy.plan  # type: ignore[method-assign]
        known = Policy.kinds.setdefault(cls.__name__, cls)
        if (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__):
            Policy.kinds[cls.__name__] = cls  # defined anew, as in a notebook

    @property
    @abstractmethod
    def num_operations(self) -> int:
        """K, the number of operations of a sub-policy."""

    def plan(
        self,
        height: int,  # noqa: ARG002 (for subclasses)
        width: int,  # noqa: ARG002
        device: torch.device,  # noqa: ARG002
    ) -> Plan | None:
        """Return what is drawn from, for images of that size; None where `draw` has its own way."""
        return None

    def draw(
        self,
        stream: Stream,
        candidates: int,
        size: tuple[int, int],
        partners: Partners,
        epoch: int | Tensor | None = None,
    ) -> SubPolicies:
        """Draw `candidates` sub-policies for every sample of the stream: `[B,E,K]`."""
        plan = self.plan(*size, stream.index.device)
        if plan is None:
            raise TypeError(f"{type(self).__name__} must define `plan` or `draw`.")
        return plan.draw(stream, candidates, size, partners, epoch)

    def settings(self) -> dict[str, Any]:
        """Return the fields that define this policy, as JSON can hold them."""
        return {field.name: _written(getattr(self, field.name)) for field in fields(self)}

    def to_json(self) -> str:
        """Write text that `divaug.policies.from_json` turns back into an equal policy."""
        return json.dumps({"format": _FORMAT, **_written(self)}, indent=1)


@dataclass(frozen=True)
class TablePolicy(Policy):
    """A policy that is a table of entries: rows drawn uniformly, jointly or one per operation."""

    joint: ClassVar[bool] = False

    @abstractmethod
    def rows(self) -> Sequence[Sequence[Entry]]:
        """Return R rows of K entries; called for every draw, so that rows may change."""

    def extra_operations(self) -> tuple[Operation, ...]:
        """Return the operations of your own that the rows name."""
        return ()

    @property
    def num_operations(self) -> int:
        """K, the number of operations of a sub-policy."""
        return len(self.rows()[0])

    def table(self, height: int, width: int, device: torch.device) -> PolicyTable:
        """Return the entries as tensors for images of that size; equal rows share them."""
        rows = vars(type(self)).get("rows")  # a subclass may have changed what they follow from
        made = _settled_table if getattr(rows, "settled", False) else _table_of
        return made(self, height, width, device)

    def plan(self, height: int, width: int, device: torch.device) -> Plan | None:
        """Return the table."""
        return self.table(height, width, device)


def settled(rows: _Rows) -> _Rows:
    """Mark `rows` that follow from the fields alone: equal policies share a table unseen."""
    rows.settled = True  # type: ignore[attr-defined]
    return rows


@lru_cache(maxsize=128)
def _settled_table(
    policy: TablePolicy, height: int, width: int, device: torch.device
) -> PolicyTable:
    return _table_of(policy, height, width, device)


def _table_of(policy: TablePolicy, height: int, width: int, device: torch.device) -> PolicyTable:
    rows, extra = frozen(policy.rows()), tuple(policy.extra_operations())
    return _compiled(rows, policy.joint, height, width, device, extra)


#: Kept, because a copy of tensors to a GPU synchronises.
_compiled = lru_cache(maxsize=128)(compile_table)


def frozen(value: Any) -> Any:
    """Turn lists into tuples, also within lists, so that a policy can be compared and looked up."""
    return tuple(frozen(item) for item in value) if isinstance(value, list | tuple) else value


def check_policy(policy: object) -> None:
    """Refuse what is neither a policy nor None."""
    if policy is not None and not isinstance(policy, Policy):
        raise TypeError(
            f"`policy` must be one of divaug.policies, such as RandAugment(2, 9), got {policy!r}."
        )


def check_name(kind: str, value: object, known: Collection[str]) -> None:
    """Refuse a value that is not one of the known names."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(unknown_name(kind, value, tuple(known)))


def _written(value: Any) -> Any:
    """Turn a field into what JSON can hold: policies, also within lists, by name and settings."""
    if isinstance(value, Policy):
        _check_restorable(value)
        return {"policy": type(value).__name__, "settings": value.settings()}
    if isinstance(value, list | tuple):
        return [_written(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value


def _check_restorable(policy: Policy) -> None:
    """Refuse a policy that its name and its fields would not give back."""
    kind = type(policy)
    if Policy.kinds[kind.__name__] is not kind:
        raise TypeError(
            f"a policy named {kind.__name__!r} exists already; give yours another name, by which "
            "it is found again in JSON."
        )
    names = {field.name for field in fields(policy)}
    for name in vars(policy).keys() - names:
        follows = isinstance(getattr(kind, name, None), cached_property)
        if not (follows or name.startswith("_")):
            raise TypeError(
                f"`policy` keeps {name!r} outside of its fields, which alone are written; make "
                f"{kind.__name__} a dataclass(frozen=True) whose fields are all its settings."
            )


def from_json(text: str) -> Policy:
    """Read a policy that `Policy.to_json` or a person wrote.

    Example:
        >>> from divaug import policies
        >>> policies.from_json(policies.RandAugment(3, 4).to_json())
        RandAugment(n=3, m=4, scale=10)
    """
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"a policy must be JSON text: {error}") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError(f"a policy must be a JSON object with `format` {_FORMAT!r}.")
    return _made(content.get("policy"), content.get("settings", {}))


def _read(value: Any) -> Any:
    """Read what `_written` gave; lists become tuples."""
    if isinstance(value, list | tuple):
        return tuple(_read(item) for item in value)
    if isinstance(value, dict) and value.keys() == {"policy", "settings"}:
        return _made(value["policy"], value["settings"])
    return value


def _made(kind: object, settings: object) -> Policy:
    """Make the policy of that name and those settings, as JSON holds them."""
    kinds = {name: cls for name, cls in Policy.kinds.items() if not isabstract(cls)}
    check_name("policy", kind, kinds)
    made = kinds[str(kind)]
    if not isinstance(settings, dict):
        raise ValueError(f"`settings` must be a JSON object, got {type(settings).__name__}.")
    known = tuple(sorted(field.name for field in fields(made)))
    for name in settings:
        check_name(f"setting of {kind}:", name, known)
    return made(**{name: _read(value) for name, value in settings.items()})
