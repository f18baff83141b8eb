"""Print the lowest version of every dependency that pyproject.toml promises to work, for pip -c.

    python tools/lowest.py > constraints.txt

`make lowest` runs all tests with them.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

_FLOOR = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)>=(?P<version>[0-9.]+)")


def lowest(project: dict[str, Any]) -> list[str]:
    """`name==version` of each requirement, those of the extras too.

    Raises:
        ValueError: a requirement has no lowest version, or more than that.

    Example:
        >>> lowest({"dependencies": ["torch>=2.11"], "optional-dependencies": {"x": ["rich>=13"]}})
        ['torch==2.11', 'rich==13']
    """
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(each for extra in extras.values() for each in extra)]
    wanted = [one for one in wanted if not one.startswith("divaug[")]  # an extra within an extra
    found = [_FLOOR.fullmatch(requirement) for requirement in wanted]
    if None in found:
        unclear = wanted[found.index(None)]
        raise ValueError(f"requirements must read name>=version, got {unclear!r}.")
    return [f"{match['name']}=={match['version']}" for match in found]


if __name__ == "__main__":
    pyproject = Path(__file__).parents[1] / "pyproject.toml"
    sys.stdout.write("\n".join(lowest(tomllib.loads(pyproject.read_text())["project"])) + "\n")
