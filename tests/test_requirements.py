"""What pyproject.toml promises to work with."""

import importlib.util
import tomllib
from pathlib import Path

import pytest

import divaug

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def lowest():
    spec = importlib.util.spec_from_file_location("lowest", ROOT / "tools" / "lowest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.lowest


def test_every_requirement_has_a_lowest_version_and_one_alone(lowest):
    extras = PROJECT["optional-dependencies"].values()
    wanted = [*PROJECT["dependencies"], *(each for extra in extras for each in extra)]
    names = [one.split(">=")[0] for one in wanted if not one.startswith("divaug[")]
    assert [pin.split("==")[0] for pin in lowest(PROJECT)] == names
    assert len(set(names)) == len(names)


def test_the_readme_names_the_same_python_and_torch(lowest):
    pins = dict(pin.split("==") for pin in lowest(PROJECT))
    python = PROJECT["requires-python"].removeprefix(">=")
    named = f"Python {python} or newer, torch {pins['torch']} or newer."
    assert named in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("requirement", ["torch", "torch>=2.11,<3"])
def test_a_requirement_without_a_plain_lowest_version_is_refused(lowest, requirement):
    with pytest.raises(ValueError, match="name>=version"):
        lowest({"dependencies": [requirement], "optional-dependencies": {}})


def test_the_citation_names_the_version():
    assert f"\nversion: {divaug.__version__}\n" in (ROOT / "CITATION.cff").read_text(
        encoding="utf-8"
    )
