"""Numbers that were published, in files of this package: each with its source and a checksum."""

import hashlib
import json
from functools import lru_cache
from importlib import resources
from typing import Any

__all__ = ["read_data"]


@lru_cache(maxsize=16)
def read_data(name: str) -> Any:
    """The content of a data file of this package, after checking its SHA-256."""
    folder = resources.files("divaug") / "policies" / "data"
    sums = json.loads((folder / "checksums.json").read_text(encoding="utf-8"))
    text = (folder / name).read_bytes()
    found = hashlib.sha256(text).hexdigest()
    if found != sums[name]:
        raise ValueError(
            f"the policy file {name} is damaged: SHA-256 {found}, expected {sums[name]}; "
            "install divaug again."
        )
    return json.loads(text)
