"""Folders of small images for tests."""

from pathlib import Path

import numpy as np
from PIL import Image


def write_images(folder: Path, classes: dict[str, int], size: tuple[int, int] = (20, 30)) -> None:
    """Write PNG images, every one different, `size` being height and width."""
    for c, (name, count) in enumerate(classes.items()):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            rng = np.random.default_rng([c, i])
            pixels = rng.integers(0, 256, (*size, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{i:02}.png")
