"""Which network a measurement asked: what its own training came to, and where that was."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from divaug.lab.reproduce.content import to_number
from divaug.lab.reproduce.machines import read_starts
from divaug.lab.train.checkpoint import MODEL, find, read_state
from divaug.lab.train.folder import read_epochs

__all__ = ["AskedNetwork", "began", "read_asked_network"]

_DIGITS = 16


@dataclass(frozen=True)
class AskedNetwork:
    """A trained network, told from others with the same recipe and seed.

    Args:
        accuracy: on the test images, at the end of its training.
        weights: first digits of the SHA-256 of the file that holds them.
        starts: machine, versions, commit and command of each start of its training.
    """

    accuracy: float
    weights: str
    starts: tuple[Mapping[str, Any], ...]

    @property
    def began(self) -> str | None:
        """When its training began; see `began`."""
        return began(self.starts)

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold."""
        return asdict(self)

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> "AskedNetwork":
        """Read what `to_dict` gave.

        Raises:
            KeyError, TypeError: it is no such thing.
        """
        weights, starts = content["weights"], content["starts"]
        whole = isinstance(starts, list) and starts and all(isinstance(s, dict) for s in starts)
        if not isinstance(weights, str) or not whole:
            raise TypeError(f"weights and starts were expected, got {weights!r} and {starts!r}")
        return AskedNetwork(to_number(content["accuracy"]), weights, tuple(starts))


def began(starts: tuple[Mapping[str, Any], ...]) -> str | None:
    """When a training began: what two trainings of one recipe do not have in common."""
    found: str | None = starts[0].get("started")
    return found


def read_asked_network(folder: Path) -> AskedNetwork:
    """The network that a finished run ends with.

    Args:
        folder: of the run; its last checkpoint must be there.
    """
    accuracy = float(read_epochs(folder)[-1]["test_accuracy"])
    state = read_state(find(folder / "checkpoints")[-1])
    return AskedNetwork(accuracy, state.sha256[MODEL][:_DIGITS], read_starts(folder))
