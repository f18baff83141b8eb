"""The shape of the package: imports point one way, the public names are documented and typed."""

import ast
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import divaug

SOURCE = Path(divaug.__file__).parent

# The way of the data: a stage imports only what stands before it (or its own package).
STAGES = (
    ("checks",),
    ("names",),
    ("constants",),
    ("compilation",),
    ("modes",),
    ("buffers",),
    ("tables",),
    ("data_files",),
    ("operations",),
    ("randomness",),
    ("fixed_point",),
    ("products",),
    ("validity",),
    ("subpolicies",),
    ("policies",),
    ("kernels",),
    ("random_crop",),
    ("photometric",),
    ("default_augmentation",),
    ("rendering",),
    ("own_operations",),
    ("expansion",),
    ("replaying",),
    ("following",),
    ("scoring",),
    ("selection",),
    ("diversity",),
    ("objectives",),
    ("records",),
    ("source",),
    ("sourced",),
    ("plugin",),
    ("views",),
    ("augmenters",),
)
RANK = {name: rank for rank, names in enumerate(STAGES) for name in names}
# What stands around the core, which it may use: from what others need to the command line.
AROUND = (
    ("extras", "checkout", "ways"),
    ("adapters", "choices", "datasets", "models"),
    ("recipes",),
    ("training",),
    ("examining", "figures", "measuring"),
    ("benchmarks", "reporting"),
    ("demonstration", "reproduction"),
    ("cli",),
    ("__main__",),
)
PLACE = {name: place for place, names in enumerate(AROUND) for name in names}
# What kernels may look up: numbers and tables, never a stage that calls them.
KERNELS_MAY_IMPORT = (
    "kernels", "randomness", "fixed_point", "operations", "policies.table", "policies.schedule",
)  # fmt: skip
PUBLIC = [
    "DefaultAugmentation",
    "DivAug",
    "SubPolicies",
    "Views",
    "__version__",
    "affinity",
    "default_augmentation",
    "expand",
    "follow",
    "loss_diversity",
    "operations",
    "policies",
    "replay",
    "score",
    "select",
    "variance_diversity",
]
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if path != SOURCE / "__init__.py"
)
CORE = [name for name in MODULES if name.split(".")[0] in RANK]
HAS_TRITON = importlib.util.find_spec("triton") is not None


def _absolute(node, path):
    if not node.level:
        return node.module
    package = ("divaug", *path.relative_to(SOURCE).parts[:-1])
    kept = package[: len(package) - node.level + 1]
    return ".".join((*kept, node.module) if node.module else kept)


def imported(module):
    """Modules of this package that a module imports, wherever in its text."""
    path = SOURCE / Path(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, path)
            inner = {f"{base}.{alias.name}" for alias in node.names}
            found |= inner if base == "divaug" else {base}
    return {name.removeprefix("divaug.") for name in found if name.split(".")[0] == "divaug"}


def test_every_stage_exists():
    assert {name.split(".")[0] for name in CORE} == set(RANK)


@pytest.mark.parametrize("module", CORE)
def test_a_stage_imports_only_what_stands_before_it(module):
    own = module.split(".")[0]
    for name in imported(module):
        stage = name.split(".")[0]
        assert stage in RANK, f"{module} imports {name}, which is no stage of the core"
        assert stage == own or RANK[stage] < RANK[own], f"{module} imports {name}"


@pytest.mark.parametrize("module", [m for m in MODULES if m.split(".")[0] not in RANK])
def test_what_stands_around_the_core_imports_only_what_stands_before_it(module):
    own = module.split(".")[0]
    for stage in {name.split(".")[0] for name in imported(module)} - {own, *RANK, "__version__"}:
        assert PLACE[stage] < PLACE[own], f"{module} imports {stage}"


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("kernels")])
def test_kernels_import_only_tables_and_numbers(module):
    for name in imported(module):
        allowed = any(name == a or name.startswith(f"{a}.") for a in KERNELS_MAY_IMPORT)
        assert allowed, f"{module} imports {name}"


def test_kernels_are_imported_only_where_they_are_chosen():
    users = {
        module for module in CORE if any(name.startswith("kernels") for name in imported(module))
    } - {module for module in CORE if module.startswith("kernels")}
    # The source asks for the names of backends alone, to refuse others when it is made.
    assert users == {"expansion", "rendering", "selection", "source"}
    assert {n for n in imported("source") if n.startswith("kernels")} == {"kernels"}


@pytest.mark.parametrize(
    "module", [m for m in MODULES if m.split(".")[0] not in ("cli", "__main__")]
)
def test_nothing_imports_the_command_line(module):
    assert not any(name.split(".")[0] == "cli" for name in imported(module))


def test_reports_are_the_end_of_the_way():
    users = {
        module for module in MODULES if any(n.startswith("reporting") for n in imported(module))
    } - {module for module in MODULES if module.startswith("reporting")}
    assert {name for name in users if not name.startswith("reproduction")} == {
        "demonstration",
        "cli.report",
    }


def test_reproduction_is_called_by_the_command_line_alone():
    users = {
        module for module in MODULES if any(n.startswith("reproduction") for n in imported(module))
    } - {module for module in MODULES if module.startswith("reproduction")}
    assert users == {"cli.examine", "cli.records", "cli.report", "cli.reproduce"}


def test_adapters_stand_on_the_core_and_nothing_stands_on_them():
    adapters = {module for module in MODULES if module.split(".")[0] == "adapters"}
    assert adapters
    for module in adapters:
        assert {name.split(".")[0] for name in imported(module)} <= {"adapters", "extras", *RANK}, (
            module
        )
    for module in set(MODULES) - adapters:
        assert not any(name.split(".")[0] == "adapters" for name in imported(module)), module


def imported_with(module):
    """All modules that a fresh interpreter has after one import."""
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}, sys; print(*sys.modules)"],
        env=os.environ | {"PYTHONPATH": str(SOURCE.parent), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = set(done.stdout.split())
    assert module in found
    return found


def test_adapters_without_a_framework_import_none():
    found = imported_with("divaug.adapters")
    assert not {"lightning", "transformers", "accelerate", "timm"} & found


def test_the_command_line_comes_without_what_only_some_commands_need():
    """Whoever asks for help does not wait for the training and its tools."""
    found = imported_with("divaug.cli.app")
    assert not {"divaug.training", "divaug.reproduction", "matplotlib", "tensorboard"} & found


def test_the_public_names_are_exactly_these():
    assert divaug.__all__ == PUBLIC
    assert all(hasattr(divaug, name) for name in PUBLIC)


def public_objects():
    for module in CORE:
        if module.startswith("kernels.") or (module == "kernels" and not HAS_TRITON):
            continue  # functions in Triton's own language
        loaded = importlib.import_module(f"divaug.{module}")
        for name in loaded.__all__:
            value = getattr(loaded, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                yield f"{module}.{name}", value


OBJECTS = dict(public_objects())


def test_every_module_says_what_is_public():
    assert len(OBJECTS) > 60
    for module in CORE:
        if not module.startswith("kernels."):
            loaded = importlib.import_module(f"divaug.{module}")
            assert loaded.__doc__, module
            assert len(set(loaded.__all__)) == len(loaded.__all__), module
            assert all(hasattr(loaded, name) for name in loaded.__all__), module


def functions_of(value):
    if inspect.isfunction(value):
        yield value
        return
    for name, member in vars(value).items():
        function = member.fget if isinstance(member, property) else inspect.unwrap(
            getattr(member, "__func__", member))  # fmt: skip
        if inspect.isfunction(function) and not name.startswith("_"):
            yield function


@pytest.mark.parametrize("name", OBJECTS)
def test_public_things_are_documented_and_typed(name):
    value = OBJECTS[name]
    assert (value.__doc__ or "").strip(), f"{name} has no docstring"
    for function in functions_of(value):
        where = f"{name}: {function.__qualname__}"
        assert (function.__doc__ or "").strip(), f"{where} has no docstring"
        signature = inspect.signature(function)
        assert signature.return_annotation is not inspect.Signature.empty, where
        for parameter in signature.parameters.values():
            if parameter.name not in ("self", "cls"):
                assert parameter.annotation is not inspect.Parameter.empty, f"{where} {parameter}"


# A letter or number with a full stop at the beginning, of a docstring or of what it says of an
# argument: the built pages show it as the item of a list.
ITEM = re.compile(r"(?m)(?:\A|^ +\w+: )(\w\.)(?=\s|\Z)")


@pytest.mark.parametrize("module", [m for m in MODULES if m.split(".")[0] != "kernels"])
def test_no_docstring_begins_as_an_item_of_a_list(module):
    path = SOURCE / Path(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, kinds):
            found = ITEM.search(ast.get_docstring(node) or "")
            assert found is None, f"{module}, {getattr(node, 'name', '')}: {found}"


def test_items_of_lists_are_found():
    assert ITEM.search("K.")
    assert ITEM.search("Say.\n\nArgs:\n    count: E.\n    more: of them.")
    assert ITEM.search("Say.\n\nArgs:\n    width: W. What is more.")
    assert not ITEM.search("Say E.\n\nArgs:\n    count: E, how many.\n    space: of a. Or b.")


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
             "tensorboard", "sklearn", "scipy", "triton", "lightning", "transformers",
             "accelerate", "timm"}  # fmt: skip
    assert not heavy & set(new)
    assert generators_kept
    assert settings_kept
