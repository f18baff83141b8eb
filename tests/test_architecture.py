"""The shape of the package: two products, one arrow, and imports without side effects."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import divaug

SOURCE = Path(divaug.__file__).parent
STAGES = ("_expand", "_render", "_score", "_select", "_base", "_augmenters", "adapters", "lab")
PUBLIC = [
    "AffinityMeter",
    "Augmenter",
    "DefaultAugmentation",
    "DivAug",
    "Expansion",
    "Explanation",
    "Mean",
    "Placement",
    "Record",
    "SubPolicies",
    "Views",
    "__version__",
    "affinity",
    "default_augmentation",
    "expand",
    "follow",
    "loss_diversity",
    "objectives",
    "operations",
    "policies",
    "replay",
    "score",
    "select",
    "upper_bound",
    "variance_diversity",
]


def imported(path):
    """The modules of this package that a file imports, wherever in its text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def users_of(package, *, outside):
    """The files beyond a folder that import a package."""
    return {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if not path.is_relative_to(SOURCE / outside)
        and any(f"{name}.".startswith(f"divaug.{package}.") for name in imported(path))
    }


def test_the_core_never_imports_the_laboratory():
    assert users_of("lab", outside="lab") == {"__main__.py"}


def test_kernels_import_no_stage():
    for path in (SOURCE / "kernels").glob("*.py"):
        for name in imported(path):
            assert not name.startswith(tuple(f"divaug.{stage}" for stage in STAGES)), path


def test_nothing_imports_the_command_line():
    assert users_of("lab.cli", outside="lab/cli") == {"__main__.py"}


def imported_with(module):
    """All modules that a fresh interpreter has after one import."""
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}, sys; print(*sys.modules)"],
        env=os.environ | {"PYTHONPATH": str(SOURCE.parent), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_adapters_without_a_framework_import_none():
    found = imported_with("divaug.adapters")
    assert not {"lightning", "transformers", "accelerate", "timm"} & found


def test_the_command_line_comes_without_what_only_some_commands_need():
    found = imported_with("divaug.lab.cli.app")
    assert not {"torch", "divaug.lab.train", "divaug.lab.reproduce", "matplotlib"} & found


def test_the_package_itself_imports_torch_on_first_use():
    assert "torch" not in imported_with("divaug")


WITHOUT_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("there is no torch")
sys.meta_path.insert(0, NoTorch())
import divaug.lab.results
print(*sys.modules)
"""


def test_results_import_where_torch_cannot_be_imported():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH],
        env=os.environ | {"PYTHONPATH": str(SOURCE.parent), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"divaug.lab.train", "divaug.lab.reproduce"} & set(done.stdout.split())


def test_the_public_names_are_exactly_these():
    assert divaug.__all__ == PUBLIC
    assert all(hasattr(divaug, name) for name in PUBLIC)


IMPORT = """
import json, random, sys
import numpy, torch
before = set(sys.modules)
random.seed(1); numpy.random.seed(1); torch.manual_seed(1)
def states():
    name, keys, *rest = numpy.random.get_state()
    return [torch.get_rng_state().tolist(), repr(random.getstate()), name, keys.tolist(), rest]
first = states()
threads = torch.get_num_threads(), torch.get_default_dtype()
import divaug
for name in divaug.__all__:
    getattr(divaug, name)
new = sorted({name.split(".")[0] for name in set(sys.modules) - before})
print(json.dumps([new, states() == first,
                  (torch.get_num_threads(), torch.get_default_dtype()) == threads]))
"""


def test_importing_brings_nothing_heavy_and_touches_no_global_state():
    environment = os.environ | {"PYTHONPATH": str(SOURCE.parent), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", IMPORT],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    new, generators_kept, settings_kept = json.loads(done.stdout)
    heavy = {"torchvision", "PIL", "matplotlib", "typer", "rich", "safetensors", "jinja2",
             "pandas", "sklearn", "scipy", "triton", "lightning", "transformers",
             "accelerate", "timm"}  # fmt: skip
    assert not heavy & set(new)
    assert generators_kept
    assert settings_kept
