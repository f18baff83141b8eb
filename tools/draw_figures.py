"""Draw the pictures of README and docs anew: operations, and candidates of a trained network."""

import tempfile
from pathlib import Path

from divaug import recipes
from divaug.cli import app
from divaug.figures.candidates import draw_candidates
from divaug.figures.canvas import save_picture, to_picture
from divaug.figures.scene import DAY, scene
from divaug.reporting import read_run
from divaug.reporting.choosing import choose_candidates
from divaug.training import train
from divaug.training.progress import Silent

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"


def draw_operations(folder: Path) -> None:
    """Write operations.png, with the command line itself."""
    small = folder / "small.png"
    save_picture(to_picture(scene(72, DAY)), small)
    app(
        args=["preview", str(small), "--out", str(IMAGES / "operations.png")], standalone_mode=False
    )


def draw_choice(folder: Path) -> None:
    """Write candidates.png: what the network of the demo keeps after its last epoch."""
    recipe = recipes.recipe("demo-divaug")
    train(recipe, folder / "run", device="cpu", reporter=Silent())
    found = choose_candidates(read_run(folder / "run"), count=2)
    kept, made = found.choice.chosen.shape[1], found.choice.probs.shape[1]
    title = f"DivAug keeps {kept} of {made} candidates ({found.method}, seed {recipe.seed})"
    about = f"{recipe.model} after {recipe.epochs} epochs of {recipe.name}; bars: its probabilities"
    save_picture(draw_candidates(found.choice, title, about), IMAGES / "candidates.png")


def main() -> None:
    """Write docs/images/*.png; the second takes a minute of training."""
    with tempfile.TemporaryDirectory() as folder:
        draw_operations(Path(folder))
        draw_choice(Path(folder))


if __name__ == "__main__":
    main()
