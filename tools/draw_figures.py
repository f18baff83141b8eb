"""Draw the pictures of README and docs anew, with the command line itself."""

import tempfile
from pathlib import Path

from divaug.cli import app
from divaug.figures.canvas import save_picture, to_picture
from divaug.figures.scene import DAY, NIGHT, scene

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"


def main() -> None:
    """Write docs/images/*.png."""
    with tempfile.TemporaryDirectory() as folder:
        day, night = Path(folder, "day.png"), Path(folder, "night.png")
        small = Path(folder, "small.png")
        save_picture(to_picture(scene(72, DAY)), small)
        save_picture(to_picture(scene(96, DAY)), day)
        save_picture(to_picture(scene(96, NIGHT)), night)
        operations = [str(small), "--out", str(IMAGES / "operations.png")]
        candidates = [str(day), str(night), "--size", "64", "--candidates"]
        candidates += ["--out", str(IMAGES / "candidates.png")]
        for words in (operations, candidates):
            app(args=["preview", *words], standalone_mode=False)


if __name__ == "__main__":
    main()
