"""Every number carries the commit of the sources that made it, also those of a copy."""

import os
import subprocess

import pytest

from divaug.lab import checkout
from divaug.lab.bench import harness


@pytest.fixture
def repository(tmp_path):
    """A checkout with one file of sources and one of results, and how to ask git there."""

    def git(*words):
        who = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *who, *words], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    for name in ("src/a.py", "results/b.json"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    return tmp_path, git


@pytest.fixture(autouse=True)
def untold(monkeypatch):
    monkeypatch.delenv(checkout.VARIABLE, raising=False)


def test_the_commit_is_that_of_the_checkout(repository, monkeypatch):
    root, git = repository
    monkeypatch.setenv(checkout.VARIABLE, "0" * 40)  # its own history knows better
    assert checkout.commit(root) == git("rev-parse", "HEAD")


def test_changed_sources_are_marked_and_new_results_are_not(repository):
    root, git = repository
    (root / "results" / "b.json").write_text("2")
    assert checkout.commit(root) == git("rev-parse", "HEAD")
    (root / "src" / "a.py").write_text("2")
    assert checkout.commit(root) == git("rev-parse", "HEAD") + "+changes"


def test_a_changed_file_may_have_a_name_in_any_encoding(repository):
    root, git = repository
    git("config", "core.quotePath", "false")
    try:
        (root / "src" / os.fsdecode(b"\xe4.py")).write_text("1")
    except (OSError, UnicodeError):
        pytest.skip("file names are Unicode here")
    git("add", "-A")
    assert checkout.commit(root) == git("rev-parse", "HEAD") + "+changes"


def test_the_repository_around_a_copy_is_not_its_own(repository):
    root, _ = repository
    assert checkout.commit(root / "src") is None


@pytest.mark.parametrize("number", ["a8637b0", "f91d5e2" + "0" * 33, "a8637b0a3180+changes"])
def test_a_copy_is_told_its_commit(tmp_path, monkeypatch, number):
    monkeypatch.setenv(checkout.VARIABLE, number)
    assert checkout.commit(tmp_path) == number


@pytest.mark.parametrize("number", ["main", "a8637", "A8637B0", "a8637b0 "])
def test_what_is_no_commit_is_refused(tmp_path, monkeypatch, number):
    monkeypatch.setenv(checkout.VARIABLE, number)
    with pytest.raises(ValueError, match="DIVAUG_COMMIT must be the number of a commit"):
        checkout.commit(tmp_path)


def test_a_copy_that_nobody_told_says_so(tmp_path, monkeypatch):
    assert checkout.commit(tmp_path) is None
    monkeypatch.setattr(harness, "commit", lambda: None)
    assert harness.environment()["commit"] is None


def test_benchmarks_shorten_it(monkeypatch):
    monkeypatch.setattr(harness, "commit", lambda: "0123456789abcdef+changes")
    assert harness.environment()["commit"] == "0123456789ab+changes"
