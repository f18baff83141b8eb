"""The commands that train, evaluate, measure, report and time: words in, files and lines out."""

import errno
import html
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import divaug
from divaug import demonstration, score, training
from divaug.cli import app, run
from divaug.figures import choosing
from divaug.figures.choosing import run_network
from divaug.recipes import RECIPES, override, recipe
from divaug.training import checkpoints, train
from divaug.training.runs import read_metrics, read_recipe
from tests.test_cli import refusal
from tests.training_helpers import StopAfter, toy_data

SMALL = ("--set", "epochs=2", "--set", "batch_size=8", "--device", "cpu")


def own(data):
    """A file as a dataset of its own."""
    return ("--data", str(data), "--set", f"dataset={data}")


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "toy.npz"
    toy = toy_data(num_train=24, num_test=12)
    np.savez(
        path,
        x_train=toy.train_images.numpy(),
        y_train=toy.train_labels.numpy(),
        x_test=toy.test_images.numpy(),
        y_test=toy.test_labels.numpy(),
    )
    return path


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    result = call("train", "demo-divaug", "--out", out, *own(data), "--seed", 3, *SMALL)
    assert result.exit_code == 0
    return out, result.output


def test_training_prints_the_resolved_recipe_and_saves_it(finished, data):
    path, (out, output) = data, finished
    expected = override(
        recipe("demo-divaug"), ["epochs=2", "batch_size=8", f"dataset={path}", "seed=3"]
    )
    assert read_recipe(out) == expected
    data, printed, *_ = output.splitlines()
    changed = f"batch_size=8, dataset={path}, epochs=2, seed=3".split(", ")
    assert printed.startswith(f"recipe demo-divaug: tiny-resnet-8 on {path} with divaug; changed: ")
    assert sorted(printed.partition("changed: ")[2].partition(" (")[0].split(", ")) == changed
    assert data.startswith("data 'toy' (24 training and 12 test images, 4 classes, fingerprint ")
    assert "epoch 2/2" in output
    last = read_metrics(out)[-1]
    assert f"test accuracy {last['test_accuracy']:.2%}" in output.splitlines()[-2]
    assert output.splitlines()[-1].endswith(f"written to {out}")


@pytest.mark.parametrize("made", [False, True])
def test_resuming_nothing_starts_and_says_so(data, tmp_path, made):
    out = tmp_path / "run"
    if made:
        out.mkdir()
    words = ("train", "demo-divaug", "--out", out, *own(data), *SMALL, "--set", "epochs=1")
    output = call(*words, "--resume").output
    assert output.splitlines()[0] == f"nothing to resume in {out}, starting"
    assert len([line for line in read_metrics(out) if line["kind"] == "epoch"]) == 1
    assert "nothing to resume" not in call(*words, "--resume").output


def test_evaluating_a_run_gives_what_training_said(finished, data):
    out, _ = finished
    last = read_metrics(out)[-1]
    output = call("evaluate", out, "--data", data, "--device", "cpu").output
    assert f"test accuracy {last['test_accuracy']:.2%}" in output
    assert "(12 images)" in output
    newest = checkpoints.find(out / "checkpoints")[-1]
    again = call("evaluate", newest, "--data", data, "--device", "cpu").output
    assert again == output


def test_measuring_prints_a_table_and_writes_json(finished, data, tmp_path):
    out, _ = finished
    path = tmp_path / "new" / "folder" / "measured.json"
    words = ("--augmenter", "none", "--augmenter", "divaug", "--json", path, "--device", "cpu")
    output = call("measure", out, "--data", data, *words).output
    found = json.loads(path.read_text())
    assert list(found) == ["none", "divaug"]
    assert found["none"]["variance_diversity"] == pytest.approx(0.0, abs=1e-9)
    for name, one in found.items():
        row = next(line for line in output.splitlines() if line.startswith(f"{name} "))
        assert f"{one['variance_diversity']:.4f}" in row
        assert f"{one['affinity']:+.4f}" in row


def test_reporting_writes_the_files_asked_for(finished, data, tmp_path):
    out, _ = finished
    files = [tmp_path / name for name in ("page.html", "table.md", "table.csv")]
    words = ("--out", files[0], "--markdown", files[1], "--csv", files[2], "--data", data)
    output = call("report", out, *words).output
    assert output.splitlines() == [f"wrote {path}" for path in files]
    accuracy = f"{read_metrics(out)[-1]['test_accuracy']:.2%}"
    assert f">{accuracy}<" in files[0].read_text(encoding="utf-8")
    assert f"| {accuracy} |" in files[1].read_text(encoding="utf-8")
    assert "Classes from the top: " in files[0].read_text(encoding="utf-8")  # --data was read


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("demo-divagu",), "Did you mean 'demo-divaug'?"),
        (("demo-divaug", "--set", "epoch=3"), "Did you mean 'epochs'?"),
        (("demo-divaug", "--set", "epochs=0"), "`epochs` must be at least 1"),
        (("demo-divaug", "--set", f"epochs={10**23}"), "`epochs` must be at most 1000000000"),
        (("demo-divaug", "--set", "learning_rate=inf"), "`learning_rate` must be finite"),
        (("demo-divaug", "--set", "epochs"), "field=value"),
        (("demo-divaug", "--data", "{tmp}/none.npz"), "does not exist"),
        (("demo-divaug", "--device", "gpu"), "`device` must be"),
        (("demo-divaug", "--set", "batch_size=100000"), "`batch_size` must not exceed"),
        (("demo-divaug", "--set", "dataset=cifar11"), "unknown dataset 'cifar11'"),
        (("demo-divaug", "--set", "dataset=foo", "--data", "{toy}"), "unknown dataset 'foo'"),
        (("demo-divaug", "--data", "{tmp}/broken.npz"), "broken.npz"),
        (("demo-divaug", "--data", "{toy}"), "the 10 classes of fashion_mnist_small"),
        (("cifar100-wide-resnet-40-2-none", "--data", "{toy}"), "the 100 classes of cifar100"),
        (("demo-divaug", "--set", "test_fraction=1"), "`test_fraction` must lie in [0.01, 0.9]"),
        (("demo-divaug", "--set"), "'--set' requires an argument"),
        (("demo-divaug", "--sett", "epochs=1"), "No such option"),
        (("demo-divaug", "--seed", "one"), "Invalid value for '--seed'"),
        (("demo-divaug", "another"), "unexpected extra argument"),
        ((), "`divaug train --list` lists all"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(capsys, tmp_path, data, words, message):
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 no archive")
    words = [word.format(tmp=tmp_path, toy=data) for word in words]
    device = () if "--device" in words else ("--device", "cpu")
    code, lines = refusal(capsys, "train", "--out", tmp_path / "run", *device, *words)
    assert code == 2
    assert len(lines) == 1
    assert lines[0].startswith("divaug: ")
    assert message in lines[0]
    assert not (tmp_path / "run").exists()


def test_where_the_results_go_is_looked_at_before_the_work(capsys, finished, tmp_path, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("measured, with nowhere to write to")

    monkeypatch.setattr("divaug.measuring.measure", forbidden)
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "below.json"):
        code, lines = refusal(capsys, "measure", finished[0], "--json", path, "--device", "cpu")
        assert (code, len(lines)) == (2, 1)
        assert str(tmp_path) in lines[0]


@pytest.mark.parametrize("old", [None, "what was there"])
@pytest.mark.parametrize("command", [("measure", "--json"), ("report", "--out")])
def test_results_that_do_not_fit_on_the_disk_name_their_file(
    capsys, finished, data, tmp_path, monkeypatch, command, old
):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("divaug.training.files.os.fsync", full)
    path = tmp_path / "result"
    if old:
        path.write_text(old)
    name, option = command
    words = (name, finished[0], "--data", data, option, path)
    words += ("--images", 8) if name == "measure" else ()
    with pytest.raises(SystemExit) as end:
        run([str(word) for word in words])
    shown, said = capsys.readouterr()
    lines = said.splitlines()
    assert end.value.code == 2
    assert ("Variance Diversity" in shown) == (name == "measure")  # what was measured is not lost
    assert lines[-1] == f"divaug: cannot write {path}: No space left on device."
    assert len([line for line in lines if line.startswith("divaug:")]) == 1
    assert [file.name for file in tmp_path.iterdir()] == (["result"] if old else [])
    assert not old or path.read_text() == old


def test_results_can_go_to_a_pipe(tmp_path):
    from divaug.training.files import replace_text

    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    replace_text(path, "result")
    assert os.read(reader, 100) == b"result"
    os.close(reader)
    assert path.is_fifo()


def test_recipes_can_be_listed_and_filtered():
    rows = [line.split() for line in call("train", "--list").output.splitlines()]
    assert rows[0] == ["recipe", "network", "dataset", "augmenter", "epochs"]
    listed = [
        [one.name, one.model, one.dataset, one.augmenter, str(one.epochs)]
        for one in RECIPES.values()
    ]
    assert rows[2:] == listed
    for word in ("Demo", "fashion"):  # of the names, of the dataset
        part = [line.split()[0] for line in call("train", "--list", word).output.splitlines()[2:]]
        assert part == ["demo-default", "demo-divaug"]


def test_recipes_are_drawn_as_a_table_on_a_terminal(monkeypatch, capsys):
    from divaug.cli import console

    monkeypatch.setattr(console.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        run(["train", "--list", "svhn"])
    drawn = capsys.readouterr().out
    assert "┃" in drawn
    assert drawn.count("svhn-wide-resnet-28-10-") >= 10


def test_a_bare_command_shows_its_help(capsys):
    with pytest.raises(SystemExit) as error:
        run([])
    assert error.value.code == 0
    assert "evaluate" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [("evaluate",), ("measure",), ("report", "--out", "{tmp}/r.html")]
)
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("metrics.jsonl", b'{"kind": "epoch"}\n', "is no run: there is no recipe.json in it"),
        ("recipe.json", b'{"title": "Soup", "steps": ["Boil."]}', "`format` 'divaug.recipe/1'"),
        ("recipe.json", b"\xff\xfe\x00", "recipe.json"),
        ("recipe.json", None, "is no run: there is no recipe.json in it"),
        ("state.json", b"{}", "is no checkpoint"),
    ],
)
def test_files_of_something_else_make_no_run(capsys, tmp_path, words, name, content, message):
    folder = tmp_path / "some" / "folder"
    folder.mkdir(parents=True)
    (folder / name).mkdir() if content is None else (folder / name).write_bytes(content)
    command, *rest = (word.format(tmp=tmp_path) for word in words)
    code, lines = refusal(capsys, command, folder, *rest)
    assert (code, len(lines)) == (2, 1)
    if command == "report" and name == "state.json":
        message = "is no run"  # a report takes runs only
    assert message in lines[0]
    assert str(folder) in lines[0]
    assert [path.name for path in tmp_path.rglob("*.html")] == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu_where_one_was_asked_for(capsys, tmp_path):
    words = ("train", "demo-default", "--out", tmp_path / "run", "--device", "cuda")
    code, lines = refusal(capsys, *words)
    assert (code, len(lines)) == (2, 1)
    assert "torch sees 0 GPUs" in lines[0]


def test_other_commands_refuse_too(capsys, tmp_path, finished, data):
    out, _ = finished
    for words, message in (
        (("evaluate", tmp_path), "is no run"),
        (("evaluate", tmp_path / "none"), "does not exist"),
        (("evaluate",), "Missing argument"),
        (("measure", out, "--views", "0"), "Invalid value for '--views'"),
        (("measure", out, "--json", tmp_path), "is a folder"),
        (("measure", out, "--json", data / "new" / "file.json"), str(data)),
        (("train", "demo-divaug"), "--out is missing"),
        (("train", "--list", "no such"), "no recipe has 'no such' in its name or dataset"),
        (("train", "--list", "--out", out), "--out does nothing with --list"),
        (("train", "--list", "--seed", 0), "--seed does nothing with --list"),
        (("train", "--list", "--unlabelled", out), "--unlabelled does nothing with --list"),
        (("train", "demo-divaug", "--out", ""), "what follows --out is empty"),
        (("train", "demo-divaug", "--out="), "what follows --out= is empty"),
        (("", "demo-divaug"), "what follows divaug is empty"),
        (("reprot", out), "No such command 'reprot'"),
        (("measure", out, "--data", data, "--augmenter", "divag"), "Did you mean 'divaug'?"),
        (("train", "demo-divaug", "--out", out, "--data", data), "--resume"),
        (("bench", "step", "demo-divagu"), "Did you mean 'demo-divaug'?"),
    ):
        code, lines = refusal(capsys, *words)
        assert (code, len(lines)) == (2, 1), words
        assert message in lines[0]


def test_sigterm_saves_says_so_and_resume_continues(data, tmp_path):
    source = str(Path(divaug.__file__).parents[1])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": source}
    words = [sys.executable, "-m", "divaug", "train", "demo-divaug", "--set", f"dataset={data}"]
    folder = tmp_path / "a run"
    words += ["--out", str(folder), "--device", "cpu", "--set", "batch_size=8"]
    words += ["--set", "epochs=500", "--set", "evaluate_every=500", "--set", "log_every=2"]
    process = subprocess.Popen(
        words,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    metrics, begun = folder / "metrics.jsonl", time.monotonic()
    while not (metrics.exists() and metrics.stat().st_size):
        assert process.poll() is None
        assert time.monotonic() - begun < 60
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert err == ""
    last = out.splitlines()[-1]
    assert last.startswith("stopped by SIGTERM after step ")
    assert last.endswith(f"continue with divaug train --out '{folder}' --resume --device cpu")
    found, notes = checkpoints.load_latest(folder / "checkpoints")
    assert f"step {found.step}," in last
    assert notes == []


def test_the_command_that_goes_on_with_a_run_does_so(data, tmp_path, monkeypatch):
    """It says again what the run's folder does not: the device, the unlabelled images."""
    images = tmp_path / "more images.npy"
    np.save(images, toy_data(num_train=24, seed=5).train_images.numpy())
    begin, reporters = training.train, iter([StopAfter(2, signal.SIGTERM)])

    def interrupted(*given, **keywords):
        return begin(*given, **keywords | {"reporter": next(reporters, None)})

    monkeypatch.setattr(training, "train", interrupted)
    words = ("--objective", "uda", "--labels", 8, "--out", tmp_path / "run", *own(data), *SMALL)
    small = ("model=tiny-resnet-8", "epoch_steps=4", "unlabelled_batch_size=8", "epochs=1")
    given = [word for one in small for word in ("--set", one)]
    more = ("--unlabelled", images, "--eager", "--log", "tensorboard")
    stopped = call("train", *words, *given, *more)
    assert stopped.exit_code == 143
    command = shlex.split(stopped.output.splitlines()[-1].partition("continue with ")[2])
    assert command[:2] == ["divaug", "train"]
    assert set(command) >= {"--eager", "--device", "cpu", "--unlabelled", str(images)}
    assert call(*command[1:]).exit_code == 0
    assert len(list((tmp_path / "run" / "tensorboard").iterdir())) == 2  # of either start


def test_preview_asks_the_network_of_a_run_as_the_run_did(finished, data):
    """With its own size of images, mean and deviation, whatever else is usual."""
    network, (mean,), (std,) = run_network(finished[0]), *own_statistics(finished[0])
    with np.load(data) as held:
        images = torch.from_numpy(held["x_test"])
    photo = images[0].repeat(3, 2, 2)
    choice = choosing.choose([photo], network, num_candidates=4, num_selected=2)
    assert choice.candidates.shape[-2:] == images.shape[-2:] != (32, 32)
    by_hand = score(network.model, (choice.candidates.float() / 255 - mean) / std)
    torch.testing.assert_close(choice.probs, by_hand)
    checkpoint = sorted((finished[0] / "checkpoints").iterdir())[-1]
    for place in (finished[0], checkpoint):
        caption = run_network(place).caption
        assert caption == f"tiny-resnet-8 of {finished[0].name}, {checkpoint.name}"


def test_preview_draws_as_many_candidates_as_the_run_and_chooses_by_its_rule(
    finished, tmp_path, monkeypatch
):
    chosen = mock.Mock(wraps=choosing.choose)
    monkeypatch.setattr(choosing, "choose", chosen)
    run = shutil.copytree(finished[0], tmp_path / "run")
    kept = json.loads((run / "recipe.json").read_text())
    own = {"num_candidates": 6, "num_selected": 3, "space": "released"}
    (run / "recipe.json").write_text(json.dumps(kept | own | {"augmenter": "divaug-greedy"}))
    upright = Image.Exif()
    upright[0x0112] = 6  # the camera was turned
    photo = tmp_path / "photo.jpg"
    Image.new("RGB", (40, 30), "teal").save(photo, exif=upright)
    words = ("preview", "--candidates", photo, "--out", tmp_path / "out.png")
    given = ("--num-selected", 2, "--method", "exact", "--space", "uda")
    for more, expected, shape in (
        ((), {"num_candidates": 8, "space": "paper"}, (3, 40, 30)),
        (("--checkpoint", run), own | {"method": "greedy"}, (3, 30, 40)),  # as it has seen others
        (
            ("--checkpoint", run, *given),
            {"num_candidates": 6, "num_selected": 2, "method": "exact", "space": "uda"},
            (3, 30, 40),
        ),
    ):
        assert call(*words, *more).exit_code == 0
        assert expected.items() <= chosen.call_args.kwargs.items()
        assert chosen.call_args.args[0][0].shape == shape


def own_statistics(folder):
    kept = json.loads((folder / "data.json").read_text())
    return kept["mean"], kept["std"]


def test_preview_draws_the_choice_of_a_run_or_a_checkpoint(finished, tmp_path, capsys):
    photo, out = tmp_path / "photo.png", tmp_path / "out.png"
    Image.new("RGB", (40, 30), "teal").save(photo)
    checkpoint = sorted((finished[0] / "checkpoints").iterdir())[-1]
    words = ("preview", "--candidates", photo, "--out", out, "--checkpoint")
    for place in (finished[0], checkpoint):
        assert call(*words, place).exit_code == 0
        assert out.exists()
        out.unlink()
    assert "is no run" in refusal(capsys, *words, tmp_path)[1][0]
    _, lines = refusal(capsys, "preview", photo, "--out", out, "--data", photo)
    assert "--data goes with --candidates" in lines[0]
    assert not out.exists()


def test_preview_takes_the_data_of_a_run_where_it_is_now_and_no_other(finished, data, tmp_path):
    moved = shutil.copy(data, tmp_path / "moved.npz")
    assert run_network(finished[0], Path(moved)).size == run_network(finished[0]).size
    other = toy_data(num_train=24, num_test=12, seed=9)
    np.savez(
        tmp_path / "other.npz",
        x_train=other.train_images.numpy(),
        y_train=other.train_labels.numpy(),
        x_test=other.test_images.numpy(),
        y_test=other.test_labels.numpy(),
    )
    with pytest.raises(ValueError, match="other"):
        run_network(finished[0], tmp_path / "other.npz")


def test_preview_says_that_a_newer_checkpoint_is_damaged(data, tmp_path, capsys):
    photo, folder = tmp_path / "photo.png", tmp_path / "run"
    Image.new("RGB", (40, 30), "teal").save(photo)
    changes = [f"dataset={data}", "epochs=2", "batch_size=8", "checkpoint_every=1"]
    train(override(recipe("demo-default"), changes), folder, data=data, device="cpu")
    older, last = sorted((folder / "checkpoints").iterdir())
    (last / "model.safetensors").write_bytes(b"not any more")
    network = run_network(folder)
    assert network.caption == f"tiny-resnet-8 of run, {older.name}"
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        run(["preview", "--candidates", str(photo), "--out", str(tmp_path / "a.png"),
             "--checkpoint", str(folder)])  # fmt: skip
    assert end.value.code == 0
    assert last.name in capsys.readouterr().err


def test_a_run_goes_on_by_its_own_recipe(data, tmp_path):
    """Without a name and without the changes it was begun with, to the bits of one that did not."""
    begun = override(recipe("demo-divaug"), [f"dataset={data}", "epochs=2", "batch_size=8"])
    stopped = train(
        begun, tmp_path / "run", data=data, device="cpu", reporter=StopAfter(2, signal.SIGTERM)
    )
    assert not stopped.finished
    assert call("train", "--out", tmp_path / "run", "--resume", "--device", "cpu").exit_code == 0
    whole = ("train", "demo-divaug", "--out", tmp_path / "whole", *own(data), *SMALL)
    assert call(*whole).exit_code == 0
    ends = [checkpoints.load_latest(tmp_path / n / "checkpoints")[0] for n in ("run", "whole")]
    assert ends[0].step == ends[1].step
    for name, tensor in ends[0].model.items():
        assert torch.equal(tensor, ends[1].model[name])


def test_a_change_of_a_run_that_goes_on_is_refused(tmp_path, capsys, finished):
    """Also without the recipe's name; and where there is no run, there is no recipe either."""
    copied = shutil.copytree(finished[0], tmp_path / "run")
    code, lines = refusal(capsys, "train", "--out", copied, "--resume", "--set", "epochs=9")
    assert code == 2
    assert "epochs was 2 and is 9" in lines[-1]
    words = ("train", "demo-default", "--out", copied, "--resume")  # by name: that one is meant
    code, lines = refusal(capsys, *words)
    assert code == 2
    assert "augmenter was 'divaug' and is 'default'" in lines[-1]
    code, lines = refusal(capsys, "train", "--out", tmp_path / "none", "--resume")
    assert code == 2
    assert "there is nothing to resume in" in lines[-1]
    assert "a recipe is missing" in lines[-1]
    assert not (tmp_path / "none").exists()


def test_a_run_that_goes_on_is_of_its_own_objective(tmp_path, capsys, finished):
    """Said again it is no other recipe, and another one is refused as any change is."""
    copied = shutil.copytree(finished[0], tmp_path / "run")
    words = ("train", "--out", copied, "--resume", "--device", "cpu", "--objective")
    assert call(*words, "supervised").exit_code == 0
    code, lines = refusal(capsys, *words, "uda", "--labels", 8)
    assert code == 2
    assert "objective was 'supervised' and is 'uda'" in lines[-1]


def test_what_is_no_folder_is_no_run_to_go_on_with(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    code, lines = refusal(capsys, "train", "--out", tmp_path / "file", "--resume")
    assert (code, len(lines)) == (2, 1)
    assert "file is no run" in lines[0]
    code, lines = refusal(capsys, "train", "--resume")
    assert (code, len(lines)) == (2, 1)
    assert "--out is missing" in lines[-1]


def test_a_demo_that_is_stopped_says_what_is_saved_and_goes_on(tmp_path, capsys, monkeypatch):
    words = ["demo", "--out", str(tmp_path), "--set", "epochs=1", "--set", "train_images=100"]
    words += ["--set", "batch_size=20"]
    begin = demonstration.train
    reporters = iter([None, StopAfter(3, signal.SIGINT)])

    def interrupted(*given, **keywords):
        return begin(*given, **keywords | {"reporter": next(reporters, None)})

    monkeypatch.setattr(demonstration, "train", interrupted)
    with pytest.raises(SystemExit) as end:
        run(words)
    said = capsys.readouterr()
    assert end.value.code == 130
    assert said.err == "divaug: stopped by SIGINT\n"
    saved = checkpoints.find(tmp_path / "divaug" / "checkpoints")[-1]
    assert said.out.splitlines()[-1] == (
        f"stopped after step 3 of divaug, saved to {saved}; give the same command again to go on"
    )
    with pytest.raises(SystemExit) as end:
        run(words)
    assert end.value.code == 0
    assert "from step 3" in capsys.readouterr().out


def test_a_demo_that_cannot_be_written_says_why(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    code, told = refusal(capsys, "demo", "--out", tmp_path / "file")
    assert (code, len(told)) == (2, 1)
    assert f"must be a folder, and {tmp_path / 'file'} is a file" in told[0]
    assert (tmp_path / "file").read_text() == "mine"


def test_the_demo_trains_at_equal_steps_and_at_equal_time_and_compares(tmp_path):
    words = ("--set", "epochs=1", "--set", "train_images=100", "--set", "batch_size=20")
    output = call("demo", "--out", tmp_path / "demo", *words).output
    assert (tmp_path / "demo" / "operations.png").exists()
    rows = {line.split()[0]: line.split() for line in output.splitlines() if line.split()}
    for name, steps in (("default", 5), ("divaug", 5), ("default-long", 35)):
        last = read_metrics(tmp_path / "demo" / name)[-1]
        row = rows[name] if name in rows else rows["default,"][4:]
        assert row[1:3] == [str(steps), f"{last['test_accuracy']:.2%}"]
    assert rows["default,"][:5] == ["default,", "as", "long", "as", "divaug"]
    assert output.splitlines()[-1] == f"report page: {tmp_path / 'demo' / 'report.html'}"
    page = html.unescape((tmp_path / "demo" / "report.html").read_text(encoding="utf-8"))
    assert rows["divaug"][2] in page
    # One table alone gives the run's diversity.
    assert "Diversity" not in page[: page.index("<h2>Runs</h2>")]
    # Who opens the page alone reads the same warnings, before anything else.
    for words_told in ("compare DivAug with that row", "mean nothing", "as long as divaug"):
        assert words_told in output.replace("\n", " ")
        assert page.index(words_told) < page.index("<h2>Runs</h2>")
    again = call("demo", "--out", tmp_path / "demo", *words)
    assert again.exit_code == 0  # finished runs are not run again
    assert rows["divaug"][2] in again.output


@pytest.mark.parametrize("change", ["epoch=2", "epochs=0", "epochs=1000000000"])
def test_a_demo_that_is_refused_writes_nothing(capsys, tmp_path, change):
    code, lines = refusal(capsys, "demo", "--out", tmp_path / "demo", "--set", change)
    assert (code, len(lines)) == (2, 1)
    assert "epochs" in lines[0]
    assert not (tmp_path / "demo").exists()


def test_bench_step_prints_and_writes_its_cases(monkeypatch, tmp_path):
    from divaug.benchmarks import step as benchmark
    from tests.training_helpers import toy_recipe

    ready = benchmark.ready

    def small(recipe, device, **_):
        toy = toy_recipe(name=recipe.name, augmenter=recipe.augmenter)
        return replace(ready(toy, device, data=toy_data()), recipe=recipe)

    monkeypatch.setattr(benchmark, "ready", small)
    path = tmp_path / "step.json"
    words = ("demo-default", "demo-divaug", "--device", "cpu", "--json", path, "--repeats", 3)
    output = call("bench", "step", *words).output
    cases = json.loads(path.read_text())["cases"]
    assert [case["recipe"]["name"] for case in cases] == ["demo-default", "demo-divaug"]
    median = [case["step_ms"]["median"] for case in cases]
    assert f"{median[1] / median[0]:.2f}" in output
    assert "optimiser" in output


def test_few_labels_and_unlabelled_images(data, tmp_path):
    words = ["--objective", "uda", "--labels", 8, "--set", "epoch_steps=2", *SMALL]
    small = ["--set", "unlabelled_batch_size=8", "--set", "epochs=1", "--set", "annealing=linear"]
    result = call("train", "demo-divaug", "--out", tmp_path / "run", *own(data), *words, *small)
    assert result.exit_code == 0
    saved = read_recipe(tmp_path / "run")
    assert (saved.objective, saved.labels, saved.annealing) == ("uda", 8, "linear")
    split = tmp_path / "run" / "split.json"
    assert len(json.loads(split.read_text())["labelled"]) == 8
    more = ["--split", split, "--unlabelled", data]
    again = call(
        "train", "demo-divaug", "--out", tmp_path / "again", *own(data), *words, *small, *more
    )
    assert again.exit_code == 0
    both = [json.loads((tmp_path / n / "split.json").read_text()) for n in ("run", "again")]
    assert both[0]["labelled"] == both[1]["labelled"]
    assert [one["unlabelled"] is None for one in both] == [True, False]
    assert call("evaluate", tmp_path / "run", "--data", data, "--device", "cpu").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["demo-divaug", "--objective", "udda"], "unknown objective 'udda'. Did you mean 'uda'?"),
        (["demo-divaug", "--objective", "uda", "--labels", "3"], "`labels` must be at least 4"),
        (
            ["demo-divaug", "--objective", "uda", "--labels", "25"],
            "must not exceed the 24 training",
        ),
        (["demo-divaug", "--labels", "8"], "`labels` goes with an objective"),
        (
            ["demo-divaug", "--objective", "uda", "--set", "confidence=2"],
            "`confidence` must lie in",
        ),
        (["--objective", "supervised"], "a recipe is missing"),
    ],
)
def test_few_labels_asked_for_wrongly(capsys, data, tmp_path, words, said):
    out = tmp_path / "run"
    with pytest.raises(SystemExit) as end:
        run(["train", *words, "--out", str(out), *own(data), *SMALL])
    assert end.value.code == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_unlabelled_images_that_do_not_fit_are_one_line(capsys, data, tmp_path):
    wrong = {
        "got float32; convert": np.zeros((5, 1, 16, 16), np.float32),
        "resize or convert them": np.zeros((5, 3, 16, 16), np.uint8),
    }
    for said, images in wrong.items():
        np.save(tmp_path / "more.npy", images)
        words = ["demo-divaug", "--objective", "uda", "--unlabelled", str(tmp_path / "more.npy")]
        with pytest.raises(SystemExit) as end:
            run(["train", *words, "--out", str(tmp_path / "run"), *own(data), *SMALL])
        assert end.value.code == 2
        told = capsys.readouterr().err.splitlines()
        assert len(told) == 1
        assert said in told[0]
        assert not (tmp_path / "run").exists()


def test_timing_an_objective_that_does_not_exist(capsys):
    with pytest.raises(SystemExit) as end:
        run(["bench", "step", "--objective", "udda"])
    assert end.value.code == 2
    assert "unknown objective 'udda'" in capsys.readouterr().err
