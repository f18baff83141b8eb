"""Pictures: sizes, what is drawn where, and that what they show is what the library does."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from divaug import expand, score, select, variance_diversity
from divaug.default_augmentation import plain
from divaug.figures.candidates import CELL, FRAME, GAP, KEPT, MARGIN, ROW, TITLE, draw_candidates
from divaug.figures.canvas import Page, fit, fit_square, read_image, resize, to_picture, to_tensor
from divaug.figures.choosing import LARGEST, Network, choose
from divaug.figures.magnitudes import draw_magnitudes, signed_magnitudes
from divaug.figures.scene import DAY, NIGHT, scene
from divaug.models import build
from divaug.operations import apply
from divaug.policies import Uniform

MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)
MODEL = build("tiny-resnet-8", 10, seed=0)
NETWORK = Network(MODEL, "it", MEAN, STD, 24, (), 6, 3, "kmeans++", "paper")


@pytest.fixture(scope="module")
def choice():
    return choose([scene(64), scene(64, NIGHT)], NETWORK, num_candidates=6, num_selected=3, seed=4)


def pixels(picture):
    return np.asarray(picture.convert("RGB"))


def test_the_scene_has_something_for_every_operation():
    image = scene(96, DAY)
    assert image.shape == (3, 96, 96)
    assert image.dtype == torch.uint8
    assert len(image.flatten(1).unique(dim=1).T) > 200  # gradients
    for name, value in [
        ("AutoContrast", None), ("Equalize", None), ("Solarize", 128), ("Posterize", 4),
        ("Contrast", 1.5), ("Color", 1.5), ("Brightness", 1.5), ("Sharpness", 1.5), ("Rotate", 9),
    ]:  # fmt: skip
        changed = (apply(image[None], name, value)[0] != image).any(0).float().mean()
        assert changed > 0.2, name


def test_tensors_survive_pictures():
    image = scene(17)
    assert torch.equal(to_tensor(to_picture(image)), image)
    grey = image[:1]
    assert torch.equal(to_tensor(to_picture(grey)), grey.expand(3, -1, -1))


def test_fitting_keeps_proportions_and_small_images():
    wide = resize(scene(64), 50, 200)
    assert fit(wide, 100).shape == (3, 25, 100)
    assert fit(wide, 400) is wide
    assert fit_square(wide, 32).shape == (3, 32, 32)


def test_reading_turns_images_upright_and_grey_into_colour(tmp_path):
    picture = Image.new("L", (10, 20), 50)
    exif = picture.getexif()
    exif[0x0112] = 6  # taken with the camera on its side
    picture.save(tmp_path / "a.jpg", exif=exif)
    assert read_image(tmp_path / "a.jpg").shape == (3, 10, 20)


def test_sixteen_bits_are_scaled_to_eight(tmp_path):
    deep = np.array([[0, 128, 129, 257, 300, 32768, 65406, 65407, 65535]], dtype=np.uint16)
    expected = torch.tensor([round(v * 255 / 65535) for v in deep[0].tolist()])
    for name in ("a.png", "a.tif"):
        Image.fromarray(deep).save(tmp_path / name)
        read = read_image(tmp_path / name)
        assert torch.equal(read, expected.to(torch.uint8).expand(3, 1, 9)), name


def test_what_is_transparent_is_shown_on_white(tmp_path):
    colours = [(10, 20, 30, 255), (10, 20, 30, 0), (0, 0, 0, 51)]
    picture = Image.new("RGBA", (3, 1))
    picture.putdata(colours)
    picture.save(tmp_path / "a.png")
    shown = [(10, 20, 30), (255, 255, 255), (204, 204, 204)]
    assert read_image(tmp_path / "a.png")[:, 0].T.tolist() == [list(c) for c in shown]
    palette = Image.new("P", (2, 1))
    palette.putpalette([9, 8, 7, 50, 60, 70])
    palette.putpixel((1, 0), 1)
    palette.save(tmp_path / "b.png", transparency=0)
    assert read_image(tmp_path / "b.png")[:, 0].T.tolist() == [[255, 255, 255], [50, 60, 70]]


@pytest.mark.parametrize(("dtype", "kind"), [(np.float32, "floats"), (np.int32, "32-bit whole")])
def test_numbers_of_no_known_range_are_refused(dtype, kind, tmp_path):
    Image.fromarray(np.linspace(0, 1, 6, dtype=dtype).reshape(2, 3)).save(tmp_path / "a.tif")
    with pytest.raises(ValueError, match=rf"a\.tif holds {kind}.*8 or 16 bits"):
        read_image(tmp_path / "a.tif")


def test_huge_pictures_are_refused_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("divaug.datasets._decode.MAX_PIXELS", 99)
    Image.new("L", (10, 10)).save(tmp_path / "a.png")
    with pytest.raises(ValueError, match=r"a\.png has 10×10 pixels, more than 99"):
        read_image(tmp_path / "a.png")


def test_magnitudes_are_mirrored():
    assert signed_magnitudes(2) == (-1.0, 0.0, 1.0)
    assert len(signed_magnitudes(5)) == 9
    with pytest.raises(ValueError, match="22"):
        signed_magnitudes(22)


def test_the_sheet_shows_what_apply_does():
    image = scene(96)
    sheet = pixels(draw_magnitudes([image], "paper", 2))

    def shown(expected):
        """Whether those very pixels stand somewhere on the sheet."""
        wanted = pixels(to_picture(expected))
        first = wanted[0, :8]
        height, width = sheet.shape[0] - 96, sheet.shape[1] - 96
        for y in range(height + 1):
            row = np.lib.stride_tricks.sliding_window_view(sheet[y], (8, 3))[:, 0]
            for x in np.flatnonzero((row == first).all((1, 2))):
                if x <= width and (sheet[y : y + 96, x : x + 96] == wanted).all():
                    return True
        return False

    assert shown(apply(image[None], "Rotate", 30.0)[0])
    assert shown(apply(image[None], "Rotate", -30.0)[0])
    assert shown(apply(image[None], "Posterize", 4)[0])
    assert not shown(apply(image[None], "Rotate", 15.0)[0])


def test_a_sheet_grows_with_images_magnitudes_and_operations():
    one = draw_magnitudes([scene(32)], "paper", 3)
    assert draw_magnitudes([scene(32), scene(32)], "paper", 3).height == 2 * one.height
    assert draw_magnitudes([scene(32)], "paper", 4).width > one.width
    assert draw_magnitudes([scene(32)], "uda", 3).height > one.height  # 20 and not 16
    assert draw_magnitudes([resize(scene(96), 1, 7)], "released", 2).width > 0


def test_frames_are_drawn_around_the_kept_candidates_and_no_others(choice):
    sheet = pixels(draw_candidates(choice, "title", "subtitle"))
    B, E = choice.probs.shape[:2]
    assert sheet.shape[:2] == (
        TITLE + B * ROW + MARGIN,
        2 * MARGIN + (E + 1) * (CELL + GAP) + GAP,
    )
    for b in range(B):
        kept = set(choice.chosen[b].tolist())
        for e in range(E):
            left, top = MARGIN + (e + 1) * (CELL + GAP) + GAP, TITLE + b * ROW + FRAME
            below = tuple(int(v) for v in sheet[top + CELL + 1, left + CELL // 2])
            right = tuple(int(v) for v in sheet[top + CELL // 2, left + CELL + 1])
            assert (below == KEPT) == (right == KEPT) == (e in kept)


def ink(text, anchor="lt", size=12, at=(200, 40)):
    """The box that a line of text fills, and its columns without ink."""
    page = Page.blank(400, 80)
    page.write(text, *at, size, anchor=anchor)
    dark = (pixels(page.picture) < 128).any(-1)
    rows, columns = np.flatnonzero(dark.any(1)), np.flatnonzero(dark.any(0))
    return (columns[0], rows[0], columns[-1], rows[-1]), columns


@pytest.mark.parametrize("text", ["HOLE", "HOLE HOLE IT"])
def test_text_stands_where_its_anchor_says(text):
    left, top, right, _ = ink(text, "lt")[0]
    width = right - left
    assert 200 <= left <= 202
    assert abs(top - 40) <= 1
    middle, ending = ink(text, "mm")[0], ink(text, "rm")[0]
    assert abs((middle[0] + middle[2]) / 2 - 200) <= 2
    assert abs((middle[1] + middle[3]) / 2 - 40) <= 3
    assert 197 <= ending[2] <= 201
    assert middle[2] - middle[0] == pytest.approx(width, abs=1)


@pytest.mark.parametrize("size", [10, 12, 16])
def test_words_stand_apart_and_on_one_line(size):
    (left, _, right, _), columns = ink("Y 0", size=size)
    assert np.diff(columns).max() - 1 >= 0.3 * size - 1  # nothing but the space is as wide
    together = ink("Y0", size=size)[0]
    assert right - left > together[2] - together[0] + 0.2 * size
    # A low word is not lifted to the top of a high one.
    high, low = ink("H", size=size)[0], ink("H n", size=size)[0]
    assert (high[1], high[3]) == (low[1], low[3])
    page = Page.blank(400, 80)
    page.write("H n", 200, 40, size)
    dark = (pixels(page.picture) < 128).any(-1)
    n = np.flatnonzero(dark[:, 200 + round(0.9 * size) :].any(1))
    assert n[0] > high[1]
    assert n[-1] == high[3]


def test_what_is_kept_is_compared_with_chance(choice, monkeypatch):
    written = []
    monkeypatch.setattr(Page, "write", lambda _, text, *__, **___: written.append(text))
    draw_candidates(choice, "t")
    for probs, chosen in zip(choice.probs, choice.chosen, strict=True):
        sets = [list(one) for one in itertools.combinations(range(6), 3)]
        chance = torch.stack([variance_diversity(probs[one]) for one in sets]).mean()
        expected = {
            "kept": variance_diversity(probs[chosen]),
            "by chance": chance,
            "all": variance_diversity(probs),
        }
        for name, value in expected.items():
            found = [float(text.split(": ")[1]) for text in written if text.startswith(f"{name}: ")]
            assert any(one == pytest.approx(float(value), rel=5e-3) for one in found)


def test_bars_are_as_high_as_the_probabilities(choice):
    even = torch.full_like(choice.probs, 0.1)
    sure = torch.zeros_like(choice.probs)
    sure[..., 3] = 1.0

    def kept(probs):
        sheet = pixels(draw_candidates(replace(choice, probs=probs), "t"))
        return int((sheet == KEPT).all(-1).sum())

    # Ten full bars against one: the rest of the picture is the same.
    assert kept(even) - kept(sure) > 8 * (CELL // 10 - 2) * 50 * choice.chosen.numel()


def test_many_classes_and_broken_probabilities_are_drawn(choice):
    many = torch.softmax(torch.randn(2, 6, 1000, generator=torch.Generator().manual_seed(0)), -1)
    draw_candidates(replace(choice, probs=many), "t")
    draw_candidates(replace(choice, probs=torch.full_like(many, float("nan"))), "t")


@pytest.mark.parametrize("method", ["kmeans++", "greedy", "exact", "uniform"])
def test_the_choice_is_the_librarys(method):
    images = [scene(64), scene(64, NIGHT)]
    choice = choose(images, NETWORK, num_candidates=6, num_selected=3, method=method, seed=4)
    squares = torch.stack([fit_square(image, 24) for image in images])
    candidates, subpolicies = expand(squares, 6, Uniform("paper"), seed=4)
    assert torch.equal(choice.candidates, candidates)
    assert choice.subpolicies.equal(subpolicies)
    finished, _ = expand(squares, 6, Uniform("paper"), plain(MEAN, STD), 4)
    torch.testing.assert_close(choice.probs, score(MODEL, finished))
    assert torch.equal(choice.chosen, select(choice.probs, 3, method, seed=4))
    # A choice that the first three of each would not pass for.
    assert not torch.equal(choice.chosen, torch.arange(3).expand(2, 3))


def test_without_a_network_candidates_are_large_and_nothing_is_kept():
    photos = [resize(scene(96), 300, 400), resize(scene(96, NIGHT), 500, 260)]
    choice = choose(photos, None, num_candidates=3, seed=4)
    squares = torch.stack([fit_square(photo, LARGEST) for photo in photos])
    assert torch.equal(choice.candidates, expand(squares, 3, Uniform("paper"), seed=4)[0])
    assert choose([scene(40)], None).candidates.shape[-2:] == (40, 40)
    written = pixels(draw_candidates(choice, "t"))
    assert not (written == KEPT).all(-1).any()


@pytest.mark.parametrize("letters", ["éüß", "×–…", "ΩЖł"])
def test_letters_of_other_languages_are_told_apart(letters):
    """Where a font lacks one it draws a box, the same for all."""

    def drawn(text):
        page = Page.blank(60, 40)
        page.write(text, 10, 10, 20)
        return pixels(page.picture).tobytes()

    assert len({drawn(letter) for letter in letters} | {drawn("\ue123")}) == len(letters) + 1
