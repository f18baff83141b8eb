"""The command line: what it prints, what it writes, and how it refuses."""

import errno
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import get_type_hints

import pytest
from PIL import Image
from typer.models import OptionInfo
from typer.testing import CliRunner

from divaug import __main__ as entry
from divaug import __version__
from divaug.cli import app, bench, run
from divaug.cli import console as console_module
from divaug.cli.options import parse_size, prepare_file
from divaug.operations.further import EVERY
from divaug.operations.magnitude import argument, spaces
from divaug.training.files import WriteError, replace_text


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "photo.png"
    Image.linear_gradient("L").convert("RGB").resize((40, 30)).save(path)
    return path


def refusal(capsys, *words):
    """The exit code and the lines on stderr of a command that is refused."""
    with pytest.raises(SystemExit) as error:
        run([str(word) for word in words])
    captured = capsys.readouterr()
    assert captured.out == ""
    return error.value.code, captured.err.splitlines()


COMMANDS = (
    *((name,) for name in ("operations", "preview", "demo", "train", "evaluate", "measure")),
    ("examine",),
    ("report",),
    ("reproduce",),
    *(("bench", name) for name in ("operations", "select", "expand", "step")),
)


@pytest.mark.parametrize("words", COMMANDS)
def test_options_with_a_metavar_say_their_name_themselves(words):
    """Typer 0.27.0 names an option after its metavar where its name is left to be inferred."""
    group = app if len(words) == 1 else bench.app
    (command,) = (each for each in group.registered_commands if each.name == words[-1])
    for parameter, hint in get_type_hints(command.callback, include_extras=True).items():
        for option in getattr(hint, "__metadata__", ()):
            if isinstance(option, OptionInfo) and option.metavar:
                # In an annotation the first word given lies where the default would.
                assert str(option.default).startswith("--"), parameter


@pytest.mark.parametrize("words", [(), ("bench",), *COMMANDS])
def test_help_cuts_nothing_and_gives_flags_no_value(words):
    listed = call(*words, "--help").output
    # Three dots after a word of capitals alone say that it may be repeated.
    cut = [line for line in listed.splitlines()[1:] if line.endswith("...")]
    assert not [line for line in cut if not re.fullmatch(r"\s+\[?[A-Z]+\]?\.\.\.", line)]
    assert "bool" not in listed.lower()
    assert set(re.findall(r"<.*?>", listed)) <= {"<cpu|cuda>", "<tensorboard>"}  # no types
    if "--set" in listed:
        assert "--set field=value" in listed


def test_the_page_says_which_benchmarks_take_threads():
    page = (Path(__file__).parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if "--threads N" in line)
    for name in ("operations", "select", "expand", "step"):
        assert ("--threads" in call("bench", name, "--help").output) == (f"`bench {name}`" in line)


def test_version_and_help():
    assert call("--version").output.strip() == f"divaug {__version__}"
    listed = call("--help").output
    for command in ("operations", "preview", "demo", "bench", *(name for name, *_ in COMMANDS)):
        assert command in listed


@pytest.mark.parametrize(
    ("typed", "offered"), [("divaug eval", ["evaluate"]), ("divaug train --res", ["--resume"])]
)
def test_a_shell_completes_commands_and_options(typed, offered, monkeypatch, capsys):
    monkeypatch.setenv("_DIVAUG_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
    with pytest.raises(SystemExit) as end:
        run([])
    assert end.value.code == 0
    assert capsys.readouterr().out.split() == offered


@pytest.mark.parametrize("space", spaces())
def test_operations_lists_every_operation_of_the_space_with_its_arguments(space):
    lines = call("operations", "--space", space, "--size", "64x48").output.splitlines()
    rows = {line.split()[0]: line for line in lines if line.split()[:1]}
    assert [name for name in rows if name in EVERY] == list(spaces()[space])
    for name, entry_ in spaces()[space].items():
        strongest = argument(name, 1.0, space=space, height=64, width=48)
        if strongest is not None:
            assert f"{strongest:.4g}" in rows[name]
        assert (" yes " in rows[name]) == entry_.signed
        assert rows[name].endswith(entry_.source)


def test_operations_draws_a_table_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(console_module.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    from divaug.cli.operations import operations

    operations("paper", "32x32")
    assert "┃" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["32", "0x4", "axb", "1x2x3", "-1x4", "²x2", ""])
def test_a_size_must_be_two_numbers(text):
    with pytest.raises(ValueError, match="HEIGHTxWIDTH"):
        parse_size(text)


def test_preview_writes_a_picture(photo, tmp_path):
    out = tmp_path / "new folder" / "sheet.png"
    assert str(out) in call("preview", photo, "--out", out, "--magnitudes", 3).output
    with Image.open(out) as picture:
        assert picture.format == "PNG"
        # 5 columns of enlarged 40×30 images and 16 rows.
        assert picture.width > 5 * 80
        assert picture.height > 16 * 60


def test_preview_of_candidates_depends_on_the_seed_alone(photo, tmp_path):
    pictures = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        out = tmp_path / f"{name}.png"
        call(
            *("preview", "--candidates", photo, "--out", out, "--seed", seed),
            *("--num-candidates", 5),
        )
        pictures.append(out.read_bytes())
    assert pictures[0] == pictures[1] != pictures[2]


def test_preview_draws_a_landscape_unless_images_are_given(photo, tmp_path):
    out = tmp_path / "sheet.png"
    assert call("preview", "--out", out, "--magnitudes", 2).exit_code == 0
    shown = out.read_bytes()
    call("preview", photo, "--out", out, "--magnitudes", 2)
    assert out.read_bytes() != shown


BAD = [
    (("operations", "--space", "papper"), "Did you mean 'paper'?"),
    (("operations", "--size", "32"), "HEIGHTxWIDTH"),
    (("preview", "{tmp}/none.png"), "no such file"),
    (("preview", "{tmp}"), "is a folder"),
    (("preview", "{tmp}/text.png"), "not a readable image"),
    (("preview", "{tmp}/half.png"), "damaged"),
    (("preview", "{photo}", "--out", "{tmp}/a.xyz"), ".png"),
    (("preview", "{photo}", "--out", "{tmp}/text.png/a.png"), "text.png"),
    (("preview", "{photo}", "--magnitudes", "1"), "[2, 21]"),
    *(
        (
            ("preview", "{photo}", "--out", "{tmp}/a.png", *words),
            f"{words[0]} goes with --candidates",
        )
        for words in (
            ("--num-candidates", "8"),  # the default, but given: also without effect
            *(("--num-selected", "2"), ("--method", "greedy"), ("--seed", "1")),
            ("--checkpoint", "{tmp}"),
        )
    ),
    (("preview", "--candidates", "{photo}", "--magnitudes", "3"), "nothing with --candidates"),
    (("preview", "--candidates", "{photo}", "--method", "exact"), "goes with --checkpoint"),
    (("preview", "--candidates", "{photo}", "--num-selected", "9"), "goes with --checkpoint"),
    (("preview", "--candidates", "{photo}", "--checkpoint", "{tmp}/none"), "does not exist"),
    (("preview", "--candidates", "{photo}", "--checkpoint", "{tmp}/text.png"), "is no run"),
]


@pytest.mark.parametrize(("words", "told"), BAD, ids=[" ".join(words)[:60] for words, _ in BAD])
def test_bad_input_is_one_line_and_exit_code_2(words, told, photo, tmp_path, capsys):
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "half.png").write_bytes(photo.read_bytes()[:90])
    filled = [word.format(tmp=tmp_path, photo=photo) for word in words]
    code, lines = refusal(capsys, *filled)
    assert code == 2
    assert len(lines) == 1
    assert lines[0].startswith("divaug: ")
    assert told in lines[0]
    assert not (tmp_path / "a.png").exists()


def test_our_own_mistakes_keep_their_traceback(monkeypatch):
    def broken(*_):
        raise KeyError("a mistake of ours")

    monkeypatch.setattr("divaug.cli.operations.magnitude_table", broken)
    with pytest.raises(KeyError):
        run(["operations"])


def test_without_typer_the_command_says_what_to_install(monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "typer" else find(name)
    )
    with pytest.raises(SystemExit) as error:
        entry.main()
    assert error.value.code == 2
    assert "pip install '.[train]'" in capsys.readouterr().err  # as the README says


def test_python_dash_m_runs_the_command_and_a_closed_pipe_is_no_error():
    # Quoted: the project may lie in a folder whose name has a space.
    command = f"{shlex.quote(sys.executable)} -m divaug operations | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Space 'paper'")
    assert done.stderr == ""


def test_the_library_needs_nothing_of_the_command_line():
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['typer', 'rich', 'PIL', 'matplotlib',"
        " 'torchvision', 'safetensors'])); import divaug"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_bench_writes_its_file_and_prints_its_tables(monkeypatch, tmp_path):
    from divaug.benchmarks import operations as benchmark
    from divaug.benchmarks import operations_tables as tables
    from divaug.benchmarks.harness import read_result

    small = (benchmark.Case(8, 16),)
    measure = benchmark.measure
    monkeypatch.setattr(benchmark, "measure", lambda repeats: measure(small, repeats))
    path = tmp_path / "result.json"
    output = call("bench", "operations", "--json", path, "--threads", 1, "--repeats", 3).output
    result = read_result(path, "operations")
    assert tables.table(result).to_text() in output
    assert tables.operation_table(result).to_text() in output
    assert {"processor", "cores", "threads", "packages", "commit"} <= set(result["environment"])


# Words of a measuring command → where it begins to work.
BENCHES = {
    ("operations",): "operations.measure",
    ("select",): "selection.measure",
    ("select", "--device", "cuda"): "selection_device.measure",
    ("expand",): "expansion.measure",
    ("step",): "step.compare",
    ("step", "--objective", "uda"): "semi_step.compare",
    ("step", "--objective", "fixmatch"): "semi_step.compare",
}


@pytest.mark.parametrize("words", BENCHES, ids=" ".join)
def test_a_place_that_cannot_be_written_is_refused_before_any_measurement(
    monkeypatch, tmp_path, capsys, words
):
    def work(*_arguments, **_keywords):
        raise AssertionError("measured before it was known where to write")

    monkeypatch.setattr(f"divaug.benchmarks.{BENCHES[words]}", work)
    (tmp_path / "file").write_text("not a folder")
    for path, named in ((tmp_path, "is a folder"), (tmp_path / "file" / "x.json", "file")):
        code, lines = refusal(capsys, "bench", *words, "--json", path)
        assert code == 2
        assert len(lines) == 1
        assert named in lines[0]
    # A folder that is not there is made, and only then the work begins.
    with pytest.raises(AssertionError, match="measured before"):
        run(["bench", *words, "--json", str(tmp_path / "new" / "folder" / "x.json")])
    assert (tmp_path / "new" / "folder").is_dir()


def test_interrupted_alternatives_leave_what_was_measured_of_ours(monkeypatch, tmp_path):
    from divaug.benchmarks import expansion
    from divaug.benchmarks.harness import read_result

    ours = read_result(Path("benchmarks/results/expand.json"), "expand") | {"rivals": {}}

    def interrupted(_result):
        raise KeyboardInterrupt

    monkeypatch.setattr(expansion, "measure", lambda: ours)
    monkeypatch.setattr(expansion, "with_rivals", interrupted)
    path = tmp_path / "expand.json"
    with pytest.raises(SystemExit) as end:
        run(["bench", "expand", "--json", str(path)])
    assert end.value.code == 130
    assert read_result(path, "expand") == ours


def test_a_place_that_only_seems_to_be_writable_is_refused_before_the_work(monkeypatch, tmp_path):
    """As below /proc: its rights say yes, and no file can be made there."""

    def refuse(**_):
        raise OSError(errno.EROFS, "Read-only file system", str(tmp_path / "tmpabc"))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(
        PermissionError, match=r"new.json cannot be written \(Read-only file system\)"
    ):
        prepare_file(tmp_path / "new.json")
    (tmp_path / "old.json").touch()  # which is replaced, and so needs a new file beside it
    with pytest.raises(PermissionError, match=r"old\.json cannot be written"):
        prepare_file(tmp_path / "old.json")
    os.mkfifo(tmp_path / "pipe")
    prepare_file(tmp_path / "pipe")
    prepare_file(None)


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(WriteError, match=r"cannot write .*/gone/x.json: No such file"):
        replace_text(tmp_path / "gone" / "x.json", "text")
