"""The folders of a dataset that hold its training and its test images, by their names."""

from pathlib import Path

_TRAIN = ("train", "training")
#: Where several are there, the first of these is what a network is tested on.
_TEST = ("val", "valid", "validation", "test", "testing")


def parts_of(root: Path) -> tuple[Path, Path] | None:
    """The folder of training images and the one of test images; None where there are none.

    Names count without regard to capitals, and with "set" or "data" behind them: ``Train``,
    ``test_set``. A folder ``train`` of pictures of trains, without folders of its own and without
    one of test images beside it, is a class.

    Raises:
        FileNotFoundError: If there is one of them and not the other.
        ValueError: If two folders could be the one, or nothing but parts is there.
    """
    train, test = _find(root, _TRAIN), _find(root, _TEST)
    if train is not None and test is not None:
        return train, test
    if train is not None and _has_folders(train):
        raise FileNotFoundError(
            f"{root} has a folder {train.name} but none of test images, val or test; add one"
        )
    others = [each for each in _folders(root) if _plain(each) not in (*_TRAIN, *_TEST)]
    if test is not None and not others:
        raise FileNotFoundError(
            f"{root} has a folder {test.name} but none of training images, train; add one"
        )
    return None


def has_training_part(root: Path) -> bool:
    """Say whether a folder has one of training images, with a folder for each class."""
    return any(_plain(each) in _TRAIN and _has_folders(each) for each in _folders(root))


def _find(root: Path, names: tuple[str, ...]) -> Path | None:
    folders = _folders(root)
    for name in names:
        found = [each for each in folders if _plain(each) == name]
        if len(found) > 1:
            both = " and ".join(each.name for each in found)
            raise ValueError(f"{root} has {both}, which mean the same; rename or remove one")
        if found:
            return found[0]
    return None


def _folders(root: Path) -> list[Path]:
    found = (each for each in root.iterdir() if not each.name.startswith("."))
    return sorted((each for each in found if each.is_dir()), key=lambda each: each.name)


def _has_folders(path: Path) -> bool:
    return bool(_folders(path))


def _plain(path: Path) -> str:
    """A name without its capitals, and without what is put behind such names."""
    name = path.name.lower().replace("-", "_")
    for end in ("set", "data", "images"):
        name = name.removesuffix(end).rstrip("_ ") or name
    return name
