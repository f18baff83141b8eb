"""Counting in shared memory: nothing is lost, added twice or left over, whoever meets at a bin."""

import pytest
import torch

from divaug import SubPolicies, kernels, operations, replay
from divaug._render import render_in_kernels

pytest.importorskip("triton")
pytestmark = pytest.mark.gpu

#: The first three are the work of one program each, the others are shared out in tiles. None but
#: 32×32 and 224×224 fills its last tile.
SIZES = [(5, 6), (32, 32), (61, 70), (129, 131), (224, 224), (225, 223)]
#: Which operations, and their arguments.
PAIRS = [
    (("Equalize",), (0.0,)),
    ((None, "Equalize"), (0.0, 0.0)),
    (("Rotate", "Equalize"), (23.0, 0.0)),
    (("ShearY", "Equalize"), (-0.3, 0.0)),
    (("TranslateX", "Equalize"), (3.0, 0.0)),
    (("Sharpness", "Equalize"), (1.7, 0.0)),
    (("Equalize", "Equalize"), (0.0, 0.0)),
    (("AutoContrast", "Equalize"), (0.0, 0.0)),
    (("Equalize", "Rotate"), (0.0, -17.0)),
    (("Equalize", "Sharpness"), (0.0, 0.3)),
]
COPIES = 6  # of every pair, so that many programs run at once
REPEATS = 20


def awkward_images(channels, height, width):
    """Images of one value, two, a ramp, a narrow one, and noise; the channels differ."""
    shape = (channels, height, width)
    ramp = torch.linspace(0, 255, height * width).reshape(1, height, width).to(torch.uint8)
    generator = torch.Generator().manual_seed(height * width + channels)
    noise = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    offset = torch.arange(channels, dtype=torch.uint8)[:, None, None] * 85
    return torch.stack(
        [
            torch.zeros(shape, dtype=torch.uint8),
            torch.full(shape, 255, dtype=torch.uint8),
            torch.full(shape, 77, dtype=torch.uint8) + offset,
            (noise & 1) * 255,
            ramp + offset,  # wraps around
            ramp.transpose(1, 2).reshape(1, height, width).expand(shape) // 16 + offset,
            noise,
        ]
    )


def drawn(batch):
    """Every pair for every image, several times."""
    ids = {name: i for i, name in enumerate(operations.OPERATIONS)} | {None: -1}
    rows = [
        ([ids[name] for name in (*names, None)[:2]], (*arguments, 0.0)[:2])
        for names, arguments in PAIRS * COPIES
    ]
    shape = (batch, len(rows), 2)
    return SubPolicies(
        operation=torch.tensor([ids for ids, _ in rows], dtype=torch.int32).repeat(batch, 1, 1),
        applied=torch.ones(shape, dtype=torch.bool),
        argument=torch.tensor([arguments for _, arguments in rows]).repeat(batch, 1, 1),
        center=torch.zeros((*shape, 2), dtype=torch.int32),
        partner=torch.zeros(shape, dtype=torch.int64),
        probability=torch.ones(shape),
        magnitude=torch.ones(shape),
    )


def assert_same(found, expected, when):
    wrong = (found != expected).flatten(2).any(2).nonzero().tolist()
    named = [(image, PAIRS[row % len(PAIRS)][0]) for image, row in wrong]
    assert not wrong, f"{when}: {len(wrong)} candidates differ, as (image, operations) {named[:5]}"


def test_this_device_counts_in_shared_memory():
    """Without it the tests below would compare another way of counting."""
    assert kernels.has_shared_atomics(torch.device("cuda")) == (torch.version.hip is None)


@pytest.mark.parametrize("block", [32, 64, 128, 256, 512])
@pytest.mark.parametrize("channels", [1, 3])
def test_histograms_are_those_of_torch(channels, block):
    from tests.reference.count_values import count

    atomics = kernels.has_shared_atomics(torch.device("cuda"))
    for height, width in SIZES[:4]:
        for values in awkward_images(channels, height, width).cuda().flatten(2):
            expected = torch.zeros(3, 256, dtype=torch.int32, device="cuda")
            for c in range(channels):
                expected[c] = torch.bincount(values[c], minlength=256)
            found = count(values, atomics, programs=1500, rounds=3, block=block)
            wrong = (found != expected).flatten(2).any(2).nonzero()
            assert not len(wrong), f"{height}×{width}: {len(wrong)}, first {wrong[:3].tolist()}"


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width"), SIZES, ids=[f"{h}x{w}" for h, w in SIZES])
def test_equalize_makes_the_pixels_of_torch_every_time(height, width, channels):
    images = awkward_images(channels, height, width)
    subpolicies = drawn(len(images))
    expected = replay(images, subpolicies, backend="torch").cuda()
    images, subpolicies = images.cuda(), subpolicies.to("cuda")
    for turn in range(REPEATS):
        found = replay(images, subpolicies, backend="triton")
        assert_same(found, expected, f"turn {turn}")


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width"), [(32, 32), (225, 223)], ids=["small", "large"])
def test_equalize_in_a_graph_follows_its_images(height, width, channels):
    """Each replay counts afresh: nothing stays from the images before."""
    first = awkward_images(channels, height, width)
    batches = [first, first.flip(0), 255 - first.roll(1, 0)]
    subpolicies = drawn(len(first))
    expected = [replay(batch, subpolicies, backend="torch").cuda() for batch in batches]
    batches = [batch.cuda() for batch in batches]
    subpolicies, images = subpolicies.to("cuda"), first.cuda()

    def rendered():
        return render_in_kernels(images, subpolicies, images, torch.uint8, False)

    rendered()  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = rendered()
    for turn in range(REPEATS):
        which = turn % len(batches)
        images.copy_(batches[which])
        graph.replay()
        assert_same(found, expected[which], f"turn {turn}")
