"""ImageNet (ILSVRC 2012), as files to stream."""

from pathlib import Path

from divaug.lab.datasets._image_files import ImageFiles, image_files
from divaug.lab.datasets._statistics import STATISTICS

_CLASSES = 1000
_PAGE = "https://image-net.org/download.php"


def imagenet(root: str | Path) -> ImageFiles:
    """List ImageNet's 1,281,167 training and 50,000 validation images.

    The terms of use do not allow downloading it here.

    Args:
        root: The folder with ``train/<class>/*.JPEG`` and ``val/<class>/*.JPEG``, or a folder with
            that in its sub-folder ``imagenet``.

    Raises:
        FileNotFoundError: If the folders are missing.
        ValueError: If they do not hold 1000 classes.
    """
    folder = Path(root) / "imagenet"
    if not folder.is_dir():
        folder = Path(root)
    if not (folder / "train").is_dir():
        raise FileNotFoundError(
            f"{folder / 'train'} is missing; get ImageNet at {_PAGE} (it needs an account) and "
            f"unpack it to train/<class>/ and val/<class>/ under {folder.absolute()}"
        )
    files = image_files(folder, statistics=STATISTICS["imagenet"])
    if files.num_classes != _CLASSES:
        raise ValueError(
            f"{folder} must hold {_CLASSES} classes to be ImageNet, got {files.num_classes}; "
            "load a part of it by its path, as an image folder"
        )
    return files
