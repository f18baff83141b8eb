"""The folders of a dataset that hold its training and its test images, by their names."""

from pathlib import Path

_TRAIN = ("train", "training")
#: Where several are there, the first of these is what a network is tested on.
_TEST = ("val", "test", "valid", "validation", "testing")


def parts_of(root: Path) -> tuple[Path, Path] | None:
    """The folder of training images and the one of test images; None where there are none.

    Names count without regard to capitals, and with "set", "data" or "images" behind them:
    ``Train``, ``test_set``. Folders of pictures of trains and of tests, without folders of their
    own and beside other classes, are classes.

    Raises:
        FileNotFoundError: If there is one of them and not the other.
        ValueError: If two folders could be the one.
    """
    train, test = _find(root, _TRAIN), _find(root, _TEST)
    alone = all(_plain(each) in (*_TRAIN, *_TEST) for each in _folders(root))
    if train is not None and (_folders(train) or (test is not None and alone)):
        if test is None:
            raise FileNotFoundError(
                f"{root} has a folder {train.name} but no folder of test images (val or test); "
                "add one"
            )
        return train, test
    if train is None and test is not None and alone:
        raise FileNotFoundError(
            f"{root} has a folder {test.name} but no folder of training images (train); add one"
        )
    return None


def has_training_part(root: Path) -> bool:
    """Say whether a folder has one that is called as training images are, whatever is in it."""
    return any(_plain(each) in _TRAIN for each in _folders(root))


def _find(root: Path, names: tuple[str, ...]) -> Path | None:
    folders = _folders(root)
    for name in names:
        found = [each for each in folders if _plain(each) == name]
        exact = [each for each in found if each.name == name]
        if len(found) > 1 and not exact:
            both = " and ".join(each.name for each in found)
            raise ValueError(f"{root} has {both}, which mean the same; rename or remove one")
        if found:
            return (exact or found)[0]
    return None


def _folders(root: Path) -> list[Path]:
    found = (each for each in root.iterdir() if not each.name.startswith("."))
    return sorted((each for each in found if each.is_dir()), key=lambda each: each.name)


def _plain(path: Path) -> str:
    """A name without its capitals, and without what is put behind such names."""
    name = path.name.lower().replace("-", "_")
    for end in ("set", "data", "images"):
        name = name.removesuffix(end).rstrip("_ ")
    return name
