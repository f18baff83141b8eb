"""Options of a reproduction: what says which cell a run belongs to is said once."""

import pytest
from typer.testing import CliRunner

from divaug.lab.cli import app
from divaug.lab.reproduce.options import DEMO_ROW, PAPER_ROW, Options, recipe_of


@pytest.mark.parametrize(
    ("change", "instead"),
    [
        ("augmenter=none", "--method"),
        ("model=wide-resnet-28-10", "--row"),
        ("dataset=cifar100", "--row"),
        ("objective=uda", "--row"),
        ("name=mine", "--row"),
        ("seed=7", "--seeds"),
        (" seed = 7", "--seeds"),
    ],
)
def test_a_change_of_the_cell_is_refused_and_told_where_to_say_it(change, instead):
    field = change.split("=")[0].strip()
    with pytest.raises(ValueError, match=rf"must leave '{field}' alone.*\({instead}\)"):
        Options(changes=("weight_decay=0", change))


def test_what_an_option_says_is_not_said_again():
    with pytest.raises(ValueError, match=r"'epochs' alone.*`epochs` \(--epochs\), which is given"):
        Options(epochs=5, changes=("epochs=3",))
    with pytest.raises(ValueError, match=r"'train_images' alone.*\(--scale\), which is given"):
        Options(scale=0.5, changes=("train_images=3",))


def test_the_number_of_labels_may_be_changed_of_one_row():
    """Of several, which differ in nothing else, it would make one."""
    changes = ("labels=500",)
    found = Options(rows=("uda-paper-1000",), changes=changes)
    assert recipe_of("uda-paper-1000", "divaug", 0, found).labels == 500
    for rows in ((), ("uda-paper-1000", "uda-paper-2000")):
        with pytest.raises(ValueError, match=r"'labels' alone.*\(--row\); name one row"):
            Options(rows=rows, changes=changes)


def test_what_no_option_says_may_be_changed():
    changes = ("epochs=3", "train_images=40", "weight_decay=0")
    found = recipe_of(PAPER_ROW, "divaug", 2, Options(changes=changes))
    assert (found.epochs, found.train_images, found.weight_decay) == (3, 40, 0.0)
    assert (found.seed, found.augmenter) == (2, "divaug")


def test_the_command_says_it_in_a_line_and_writes_nothing(tmp_path):
    words = ("random-baseline", "--row", DEMO_ROW, "--set", "augmenter=none")
    folders = ("--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results"))
    result = CliRunner().invoke(app, ["reproduce", *words, *folders])
    assert result.exit_code != 0
    assert "--method" in str(result.exception)
    assert list(tmp_path.iterdir()) == []
