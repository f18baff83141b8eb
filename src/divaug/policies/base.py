"""What a policy is: something that fills sub-policies, and that can be written down as text."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar

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
        return asdict(self)

    def to_json(self) -> str:
        """Text that `divaug.policies.from_json` turns back into an equal policy."""
        check_policy(self)
        content = {"format": _FORMAT, "policy": type(self).__name__, "settings": self.settings()}
        return json.dumps(content, indent=1)


def check_policy(policy: object) -> None:
    """Refuse what is neither a policy nor None, and a policy whose settings are no fields."""
    if policy is None:
        return
    if not isinstance(policy, Policy):
        raise TypeError(
            f"`policy` must be one of divaug.policies, such as RandAugment(2, 9), got {policy!r}."
        )
    kind = type(policy)
    if "__dataclass_params__" in vars(kind):
        return
    # It compares equal to others of its class whatever these are, and would get their tables.
    known = {field.name for field in fields(policy)}
    unknown = [name for name in vars(policy) if name not in known and not hasattr(kind, name)]
    if unknown:
        raise TypeError(
            f"`policy` keeps {unknown[0]!r} outside of its fields, by which policies are told "
            f"apart and written down; make {kind.__name__} a dataclass(frozen=True) with a field "
            f"{unknown[0]!r}."
        )


@dataclass(frozen=True)
class TablePolicy(Policy):
    """A policy that is a table of entries: rows drawn uniformly, jointly or one per operation."""

    joint: ClassVar[bool] = False

    @abstractmethod
    def rows(self) -> Sequence[Sequence[Entry]]:
        """R rows of K entries."""

    def extra_operations(self) -> tuple[Operation, ...]:
        """Operations beyond the sixteen that the rows name."""
        named = {entry.operation for row in self.rows() for entry in row}
        return tuple(this for name, this in FURTHER.items() if name in named)

    @property
    def num_operations(self) -> int:
        """K, the number of operations of a sub-policy."""
        return len(self.rows()[0])

    def table(self, height: int, width: int, device: torch.device) -> PolicyTable:
        """The entries as tensors for images of that size; made once for each device."""
        return _compiled(self, height, width, device)

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
def _compiled(policy: TablePolicy, height: int, width: int, device: torch.device) -> PolicyTable:
    extra = policy.extra_operations()
    table = compile_table(
        policy.rows(), joint=policy.joint, height=height, width=width, extra=extra
    )
    return table.to(device)


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
    kind, settings = content.get("policy"), content.get("settings", {})
    kinds = {name: cls for name, cls in Policy.kinds.items() if name != "TablePolicy"}
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(unknown_name("policy", str(kind), tuple(kinds)))
    if not isinstance(settings, dict):
        raise ValueError(f"`settings` must be a JSON object, got {type(settings).__name__}.")
    known = {field.name for field in fields(kinds[kind])}
    unknown = sorted(set(settings) - known)
    if unknown:
        raise ValueError(unknown_name(f"setting of {kind}:", unknown[0], tuple(sorted(known))))
    return kinds[kind](**{name: frozen(value) for name, value in settings.items()})
