"""Draw the pictures of README and docs anew: operations, masks, candidates of a trained network."""

import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from divaug import DefaultAugmentation, Views, policies
from divaug.lab import recipes
from divaug.lab.cli import app
from divaug.lab.figures.candidates import draw_candidates
from divaug.lab.figures.canvas import Page, save_picture, to_picture
from divaug.lab.figures.scene import DAY, scene
from divaug.lab.report import read_run
from divaug.lab.report.page import choose_candidates
from divaug.lab.train import train
from divaug.lab.train.console import Silent

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"


def draw_operations(folder: Path) -> None:
    """Write operations.png, with the command line itself."""
    small = folder / "small.png"
    save_picture(to_picture(scene(72, DAY)), small)
    app(
        args=["preview", str(small), "--out", str(IMAGES / "operations.png")], standalone_mode=False
    )


BLACK = (0, 0, 0)
# The landscape with one of its parts in black: where it differs, that part is.
PARTS = (
    replace(DAY, hills=(BLACK, BLACK, BLACK)),
    replace(DAY, meadow=(BLACK, BLACK)),
    replace(DAY, wall=BLACK, roof=BLACK, window=BLACK),
    replace(DAY, tree=(BLACK, BLACK)),
)
# Sky, hills, meadow, house, trees; and where there is nothing.
COLORS = (
    (154, 197, 232),
    (120, 132, 150),
    (112, 170, 80),
    (214, 92, 62),
    (34, 92, 60),
    (255, 255, 255),
)


def _classes(side: int) -> Tensor:
    """Sky, hills, meadow, house and trees of the landscape as classes `[side,side]`."""
    picture, mask = scene(side, DAY), torch.zeros(side, side, dtype=torch.uint8)
    for number, palette in enumerate(PARTS, 1):
        other = scene(side, palette)
        mask[(other.int() - picture.int()).abs().amax(0) > 24] = number
    return mask


def draw_masks() -> None:
    """Write masks.png: views of the landscape, and what its mask becomes with each."""
    side, gap, views = 96, 6, 6
    image, mask = scene(side, DAY), _classes(side)
    scaled = DefaultAugmentation((0.0,) * 3, (1.0,) * 3, padding=12, flip=0.5)
    augment = Views(policies.Uniform(), scaled, views, seed=1)
    shown, _ = augment(image[None])
    images = [image, *(shown * 255).round().to(torch.uint8)]
    masks = [mask, *augment.follow(mask[None], fill=len(COLORS) - 1)]
    colors = torch.tensor(COLORS, dtype=torch.uint8)
    page = Page.blank((views + 1) * (side + gap) - gap, 2 * side + gap)
    for place, (view, moved) in enumerate(zip(images, masks, strict=True)):
        left = place * (side + gap)
        page.paste(view, left, 0, side, side)
        page.paste(colors[moved.long()].permute(2, 0, 1), left, side + gap, side, side)
    save_picture(page.picture, IMAGES / "masks.png")


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
    """Write docs/images/*.png; the last takes a minute of training."""
    with tempfile.TemporaryDirectory() as folder:
        draw_operations(Path(folder))
        draw_masks()
        draw_choice(Path(folder))


if __name__ == "__main__":
    main()
