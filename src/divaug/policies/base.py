"""What a policy is: something that fills sub-policies, and that can be written down as text."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cached_property
from inspect import getattr_static, isabstract
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from divaug.names import unknown_name
from divaug.policies.table import Partners
from divaug.randomness import Stream
from divaug.subpolicies import SubPolicies

__all__ = ["Policy", "check_policy", "comes_along", "from_json", "frozen"]

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


def comes_along(kind: type) -> bool:
    """Whether a policy of that class is one of ours."""
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
        if taken is not None and comes_along(taken) and not comes_along(cls):
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
    for name, value in vars(policy).items():
        there = name in vars(again)
        if not (_alike(value, vars(again)[name]) if there else _is_kept_for_later(kind, name)):
            raise TypeError(
                f"`policy` keeps {name!r} outside of its fields, which alone are written down; "
                f"{remedy}."
            )


def _is_kept_for_later(kind: type, name: str) -> bool:
    """Whether a value that a new policy does not have yet follows from its fields."""
    return name.startswith("_") or isinstance(getattr_static(kind, name, None), cached_property)


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


def from_json(text: str) -> Policy:
    """Read a policy that `Policy.to_json` or a person wrote.

    Example:
        >>> from divaug import policies
        >>> policies.from_json(policies.RandAugment(3, 4).to_json())
        RandAugment(n=3, m=4, scale=10)
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
    kinds = {name: cls for name, cls in Policy.kinds.items() if not isabstract(cls)}
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(unknown_name("policy", str(kind), tuple(kinds)))
    if not isinstance(settings, dict):
        raise ValueError(f"`settings` must be a JSON object, got {type(settings).__name__}.")
    known = {field.name for field in fields(kinds[kind])}
    unknown = sorted(set(settings) - known)
    if unknown:
        raise ValueError(unknown_name(f"setting of {kind}:", unknown[0], tuple(sorted(known))))
    return kinds[kind](**{name: _read(value) for name, value in settings.items()})
