"""Tables on terminals: drawn where they fit, folded where they do not, never cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divaug.lab.cli import app, console
from divaug.lab.cli.narrow import fold_table
from divaug.lab.listing import magnitude_table
from divaug.lab.recipes import RECIPES
from divaug.lab.tables import Table

WORDS = st.text("abcdef-", min_size=1, max_size=9)
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)
NUMBERS = st.integers(-10_000, 10_000).map("{:,} ± 0.25".format)


@pytest.fixture
def terminal(monkeypatch, capsys):
    """What a table looks like on a terminal of a width."""

    def on(width, show):
        monkeypatch.setattr(console.sys.stdout, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("COLUMNS", str(width))
        show()
        return capsys.readouterr().out

    return on


@st.composite
def tables(draw):
    numeric = tuple(i for i, yes in enumerate(draw(st.lists(st.booleans(), max_size=6))) if yes)
    kinds = [NUMBERS if i in numeric else TEXTS for i in range(6)]
    rows = draw(st.lists(st.tuples(*kinds), min_size=1, max_size=4))
    return Table(draw(st.tuples(*[TEXTS] * 6)), tuple(rows), "title", numeric, ("a note",))


@given(tables(), st.integers(40, 120))
def test_a_folded_table_keeps_every_number_whole_and_every_word_in_order(table, width):
    folded = fold_table(table, width)
    lines = folded.splitlines()
    for row in table.rows:
        for i, cell in enumerate(row):
            if i in table.numeric:
                assert any(cell in line for line in lines)
            for word in cell.split():
                assert word in folded.split()
    assert [lines[0], lines[-1]] == ["title", "a note"]


def test_columns_without_a_place_follow_beside_the_names_of_the_rows():
    columns = ("labels", "method", "error", "steps")
    rows = (("50", "a", "1" * 20, "2" * 20), ("50", "b", "3" * 20, "4" * 20))
    found = fold_table(Table(columns, rows, numeric=(0, 2, 3)), 40).splitlines()
    # One column does not tell these rows apart, two do.
    assert [line.split() for line in found if line.startswith("labels")] == [
        ["labels", "method", "error"],
        ["labels", "method", "steps"],
    ]
    assert ["50", "b", "4" * 20] in [line.split() for line in found]
    assert max(map(len, found)) <= 40


def test_operations_on_eighty_columns_lose_nothing(terminal):
    table = magnitude_table("paper")
    drawn = terminal(80, lambda: console.show(table))
    assert "…" not in drawn
    assert max(map(len, drawn.splitlines())) <= 80
    pieces = [line.split() for line in drawn.splitlines()]
    for row in table.rows:
        numbers = [cell for i, cell in enumerate(row) if i in table.numeric]
        assert any(line[:1] == [row[0]] and line[-5:] == numbers for line in pieces)
        assert any(line[:2] == [row[0], row[7]] for line in pieces)


def test_recipes_on_eighty_columns_keep_their_names(terminal):
    drawn = terminal(80, lambda: app(["train", "--list"], standalone_mode=False))
    words = drawn.split()
    assert "…" not in drawn
    assert max(map(len, drawn.splitlines())) <= 80
    assert set(RECIPES) <= set(words)


def test_a_table_that_fits_is_drawn_and_one_that_just_does_not_is_folded(terminal):
    table = Table(("name", "ms"), (("ab", "1.5"),), numeric=(1,), notes=("as is",))
    # Two cells of 4 and 3, a space on both sides of each, three lines between and beside them.
    assert "┃" in terminal(14, lambda: console.show(table))
    folded = terminal(13, lambda: console.show(table))
    assert folded == "name   ms\n----  ---\nab    1.5\n\nas is\n"
