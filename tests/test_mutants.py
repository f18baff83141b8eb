"""The list of mutants keeps up with the sources, so that `make mutants` can run at any time."""

from pathlib import Path

import pytest

from tests import mutants

SOURCES = Path(__file__).resolve().parent.parent / "src" / mutants.FOLDER


def test_there_are_enough():
    assert sum(map(len, mutants.MUTANTS.values())) >= 40


@pytest.mark.parametrize("file", mutants.MUTANTS)
def test_every_mutants_text_stands_exactly_once(file):
    source = (SOURCES / file).read_text(encoding="utf-8")
    for old, new in mutants.MUTANTS[file]:
        assert source.count(old) == 1, old
        assert new != old
