"""Every number carries the commit of the sources that made it, also those of a copy."""

import subprocess

import pytest

from divaug.lab import checkout
from divaug.lab.bench import harness


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A checkout with one file of sources and one of results, and a function that runs git."""
    monkeypatch.delenv(checkout.VARIABLE, raising=False)

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


def test_the_default_is_the_checkout_of_these_sources():
    assert (checkout._ROOT / "src" / "divaug" / "lab" / "checkout.py").is_file()


def test_the_commit_is_that_of_the_checkout(repository, monkeypatch):
    root, git = repository
    assert checkout.commit(root / "src") is None  # the repository around a copy is not its own
    monkeypatch.setenv(checkout.VARIABLE, "0" * 40)  # the checkout's own history comes first
    assert checkout.commit(root) == git("rev-parse", "HEAD")


def test_changed_sources_are_marked_and_new_results_are_not(repository):
    root, git = repository
    (root / "results" / "b.json").write_text("2")
    assert checkout.commit(root) == git("rev-parse", "HEAD")
    (root / "src" / "a.py").write_text("2")
    assert checkout.commit(root) == git("rev-parse", "HEAD") + "+changes"


@pytest.mark.parametrize("number", ["a8637b0", "f91d5e2" + "0" * 33, "a8637b0a3180+changes"])
def test_a_copy_has_the_commit_of_the_variable(tmp_path, monkeypatch, number):
    monkeypatch.setenv(checkout.VARIABLE, number)
    assert checkout.commit(tmp_path) == number


@pytest.mark.parametrize("number", ["main", "a8637", "A8637B0", "a8637b0 "])
def test_a_variable_without_a_commit_is_refused(tmp_path, monkeypatch, number):
    monkeypatch.setenv(checkout.VARIABLE, number)
    with pytest.raises(ValueError, match="DIVAUG_COMMIT must be a commit"):
        checkout.commit(tmp_path)


@pytest.mark.parametrize(
    ("number", "short"), [(None, None), ("0123456789abcdef+changes", "0123456789ab+changes")]
)
def test_benchmarks_shorten_it(monkeypatch, number, short):
    monkeypatch.setattr(harness, "commit", lambda: number)
    assert harness.environment()["commit"] == short
