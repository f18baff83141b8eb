"""The networks: published counts and costs, where they downsample, and what they promise to run on.

The shaking of Shake-Shake and ShakeDrop has its own file, ``test_models_shaking.py``.
"""

import copy
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from divaug.models import MODELS, build
from divaug.models.pyramidnet import PyramidNet, PyramidUnit
from divaug.models.resnet import ResNet
from divaug.models.shake_shake import ShakeShake, ShiftedShortcut
from divaug.models.wide_resnet import WideBlock, WideResNet

# The published counts for CIFAR-10 and CIFAR-100. For Wide-ResNet they are given without
# convolution biases for CIFAR-10 only; 90 more classes add 90 * (64 * k + 1) parameters.
COUNTS = [
    ("wide-resnet-40-2", 10, 2_243_546),
    ("wide-resnet-40-2", 100, 2_243_546 + 90 * 129),
    ("wide-resnet-28-10", 10, 36_479_194),
    ("wide-resnet-28-10", 100, 36_479_194 + 90 * 641),
    ("wide-resnet-28-2", 10, 1_467_610),
    ("wide-resnet-28-2", 100, 1_467_610 + 90 * 129),
    ("shake-shake-26-2x96d", 10, 26_192_906),
    ("shake-shake-26-2x96d", 100, 26_227_556),
    ("pyramidnet-272", 10, 26_210_842),
    ("pyramidnet-272", 100, 26_288_692),
    ("resnet-50", 1000, 25_557_032),
    # The known count of the 32 px variant, and the one that our docstring states.
    ("resnet-18", 10, 11_173_962),
    ("tiny-resnet-8", 10, 78_042),
]

# The same classes with few layers, for tests that compute.
SMALL = {
    "wide": lambda in_channels=3: WideResNet(10, 1, 5, in_channels),
    "shake": lambda in_channels=3: ShakeShake(8, 8, 5, in_channels),
    "pyramid": lambda in_channels=3: PyramidNet(11, 12, 5, in_channels),
    "resnet": lambda in_channels=3: ResNet((8, 16), 1, 5, in_channels),
}


def on_meta(name, num_classes=10, in_channels=3):
    with torch.device("meta"):
        return build(name, num_classes, in_channels).eval()


def small(kind, in_channels=3):
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return SMALL[kind](in_channels)


def random_images(*shape, seed=1, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize(("name", "num_classes", "count"), COUNTS)
def test_parameter_counts_are_the_published_ones(name, num_classes, count):
    network = on_meta(name, num_classes)
    assert sum(parameter.numel() for parameter in network.parameters()) == count


@pytest.mark.parametrize("in_channels", [1, 3])
@pytest.mark.parametrize("name", list(MODELS))
def test_logits_have_one_column_a_class_for_any_image_size(name, in_channels):
    network = on_meta(name, 7, in_channels)
    for height, width in ((16, 16), (17, 30), (28, 28), (32, 32), (65, 33)):
        images = torch.empty(2, in_channels, height, width, device="meta")
        assert network(images).shape == (2, 7)


@pytest.mark.parametrize(
    ("name", "side", "giga"),
    [("wide-resnet-28-10", 32, 5.243), ("resnet-50", 224, 4.1)],
)
def test_forward_cost_is_that_of_the_published_stride_positions(name, side, giga):
    # A stride on the second 3x3 would cost 5.951 for 28-10; one on the first 1x1, 3.9 for ResNet-50
    network = on_meta(name, 1000 if name == "resnet-50" else 10)
    with FlopCounterMode(display=False) as counter:
        network(torch.empty(1, 3, side, side, device="meta"))
    # Half of the last printed digit, on multiply-adds: two operations each.
    tolerance = 0.5 * 10 ** -len(str(giga).split(".")[1])
    assert counter.get_total_flops() / 2e9 == pytest.approx(giga, abs=tolerance)


def resolutions(network, blocks, side=32):
    """The side of each block's output."""
    sides = []
    hooks = [
        block.register_forward_hook(lambda _module, _args, out: sides.append(out.shape[-1]))
        for block in blocks
    ]
    network(torch.empty(1, 3, side, side, device="meta"))
    for hook in hooks:
        hook.remove()
    return sides


@pytest.mark.parametrize(
    ("name", "blocks", "expected"),
    [
        ("wide-resnet-40-2", "blocks", [32] * 6 + [16] * 6 + [8] * 6),
        ("wide-resnet-28-10", "blocks", [32] * 4 + [16] * 4 + [8] * 4),
        ("shake-shake-26-2x96d", "blocks", [32] * 4 + [16] * 4 + [8] * 4),
        ("pyramidnet-272", "units", [32] * 30 + [16] * 30 + [8] * 30),
        ("resnet-18", "blocks", [32, 32, 16, 16, 8, 8, 4, 4]),
        ("tiny-resnet-8", "blocks", [16, 8, 4]),
    ],
)
def test_resolution_halves_at_the_first_block_of_a_stage(name, blocks, expected):
    network = on_meta(name)
    assert resolutions(network, getattr(network, blocks)) == expected


def strided(network):
    return [
        n for n, m in network.named_modules() if isinstance(m, nn.Conv2d) and m.stride != (1, 1)
    ]


def test_wide_resnet_strides_are_on_the_first_3x3_and_the_shortcut():
    expected = [f"blocks.{b}.{conv}" for b in (6, 12) for conv in ("conv1", "shortcut")]
    assert strided(on_meta("wide-resnet-40-2")) == expected


def test_pyramid_strides_are_on_the_3x3():
    # branch.4 is the 3x3: BN, 1x1, BN, ReLU, 3x3
    network = on_meta("pyramidnet-272")
    assert strided(network) == ["units.30.branch.4", "units.60.branch.4"]
    assert network.units[30].branch[4].kernel_size == (3, 3)


def test_pyramid_widths_grow_linearly_to_216_and_864():
    widths = [unit.branch[1].out_channels for unit in on_meta("pyramidnet-272").units]
    assert widths == [round(16 + 200 * unit / 90) for unit in range(1, 91)]
    assert on_meta("pyramidnet-272").fc.in_features == 4 * widths[-1] == 864


@pytest.mark.parametrize("stride", [1, 2])
def test_wide_block_shortcut_reads_the_preactivated_input(stride):
    block = WideBlock(3, 4, stride).eval()
    x = random_images(2, 3, 7, 7)
    with torch.no_grad():
        block.bn1.running_mean.copy_(torch.tensor([0.5, -0.5, 1.0]))
        h = torch.relu((x - block.bn1.running_mean.view(1, 3, 1, 1)) / (1 + 1e-5) ** 0.5)
        inner = torch.relu(
            F.conv2d(h, block.conv1.weight, stride=stride, padding=1) / (1 + 1e-5) ** 0.5
        )
        expected = F.conv2d(inner, block.conv2.weight, padding=1)
        expected = expected + F.conv2d(h, block.shortcut.weight, stride=stride)
        torch.testing.assert_close(block(x), expected)


def test_wide_block_of_equal_shape_adds_its_raw_input():
    block = WideBlock(4, 4)
    nn.init.zeros_(block.conv2.weight)
    x = random_images(2, 4, 6, 6)
    assert block.shortcut is None
    assert torch.equal(block(x), x)


def test_shifted_shortcut_reads_pixels_one_further_with_black_beyond_the_border():
    shortcut = ShiftedShortcut(1, 2, stride=2).eval()
    nn.init.ones_(shortcut.conv1.weight)
    nn.init.ones_(shortcut.conv2.weight)
    x = torch.arange(25.0).view(1, 1, 5, 5)
    out = shortcut(x) * (1 + 1e-5) ** 0.5  # undo BatchNorm's eps
    first = torch.tensor([[0.0, 2, 4], [10, 12, 14], [20, 22, 24]])
    second = torch.tensor([[6.0, 8, 0], [16, 18, 0], [0, 0, 0]])
    torch.testing.assert_close(out[0], torch.stack([first, second]))


def test_pyramid_shortcut_averages_pixels_and_adds_zero_channels():
    unit = PyramidUnit(3, 2, stride=2, drop_probability=0.0)
    nn.init.zeros_(unit.branch[-1].weight)  # the branch gives nothing
    x = random_images(2, 3, 6, 6)
    out = unit(x)
    means = x.unfold(2, 2, 2).unfold(3, 2, 2).mean(dim=(4, 5))
    torch.testing.assert_close(out[:, :3], means)
    assert torch.equal(out[:, 3:], torch.zeros(2, 5, 3, 3))


@pytest.mark.parametrize("name", ["wide-resnet-28-2", "shake-shake-26-2x96d", "resnet-18"])
def test_convolutions_start_with_he_fan_out_weights(name):
    for module in build(name, 10).modules():
        if isinstance(module, nn.Conv2d) and module.weight.numel() >= 4096:
            expected = (2 / (module.kernel_size[0] ** 2 * module.out_channels)) ** 0.5
            # The standard deviation of n normal numbers has relative error 1/sqrt(2n): 1.2 % here.
            assert module.weight.std().item() == pytest.approx(expected, rel=0.06)
        if isinstance(module, nn.Linear):
            assert not module.bias.any()


@pytest.mark.parametrize("kind", list(SMALL))
def test_channels_last_gives_the_same_logits_and_keeps_its_layout(kind):
    network = small(kind)
    images = random_images(4, 3, 18, 18)
    expected = copy.deepcopy(network)(images)
    network = network.to(memory_format=torch.channels_last)
    kept = []
    blocks = network.units if kind == "pyramid" else network.blocks
    for block in blocks:
        block.register_forward_hook(
            lambda _m, _a, out: kept.append(out.is_contiguous(memory_format=torch.channels_last))
        )
    logits = network(images.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-5)
    assert kept
    assert all(kept)


@pytest.mark.parametrize("kind", list(SMALL))
def test_bfloat16_autocast_trains_close_to_float32(kind):
    network = small(kind)
    images = random_images(8, 3, 16, 16)
    expected = copy.deepcopy(network)(images)
    with torch.autocast("cpu", torch.bfloat16):
        logits = network(images)
    assert logits.dtype == torch.bfloat16
    # A rounding is 2^-9 of a value and at most 24 follow one another: 5 % of the whole.
    assert (logits.float() - expected).norm() < 0.05 * expected.norm()
    F.cross_entropy(logits.float(), torch.zeros(8, dtype=torch.int64)).backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in network.parameters())


@pytest.mark.parametrize("kind", list(SMALL))
def test_compiles_whole_and_trains_as_without_compiling(kind):
    network = small(kind)
    plain = copy.deepcopy(network)
    compiled = torch.compile(network, backend="aot_eager", fullgraph=True)
    for seed in (1, 2):  # the second pass continues the noise of the first
        images = random_images(4, 3, 16, 16, seed=seed)
        for model in (compiled, plain):
            model(images).square().sum().backward()
    for (name, ours), theirs in zip(network.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-4, msg=name)
    for (name, ours), theirs in zip(network.named_buffers(), plain.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs, msg=name)


def test_tiny_network_learns_random_labels_by_heart():
    network = build("tiny-resnet-8", 10, in_channels=1)
    images = random_images(32, 1, 28, 28)
    labels = torch.randint(10, (32,), generator=torch.Generator().manual_seed(2))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for _ in range(60):
        optimizer.zero_grad()
        F.cross_entropy(network(images), labels).backward()
        optimizer.step()
    assert (network.eval()(images).argmax(dim=1) == labels).all()


def test_weights_follow_the_seed_and_leave_the_default_generator_alone():
    before = torch.get_rng_state()
    first, again, other = (build("tiny-resnet-8", 10, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), before)
    for name, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[name])
    assert not torch.equal(first.stem.weight, other.stem.weight)


def test_unknown_name_gives_all_names_and_the_nearest():
    with pytest.raises(ValueError, match="Did you mean 'wide-resnet-40-2'") as caught:
        build("WideResNet-40-2", 10)
    assert all(name in str(caught.value) for name in MODELS)
    with pytest.raises(ValueError, match=r"unknown network 'zzz'\. Known"):
        build("zzz", 10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: build("resnet-18", 0),
            "`num_classes` must be .* of at least 1, got 0",
        ),
        (
            lambda: build("resnet-18", 10, -1),
            "`in_channels` must be .* of at least 1, got -1",
        ),
        (lambda: build("tiny-resnet-8", 10, seed=-1), r"`seed` must be a whole number in \[0, "),
        (lambda: WideResNet(39, 2, 10), "depth must be 6n"),
        (lambda: ShakeShake(25, 96, 10), "depth must be 6n"),
        (lambda: ShakeShake(26, 95, 10), "width must be even"),
        (lambda: PyramidNet(270, 200, 10), "depth must be 9n"),
    ],
)
def test_bad_arguments_are_refused_with_the_rule(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("number", ["10", 10.0, None, True, torch.tensor(10)], ids=repr)
@pytest.mark.parametrize("argument", ["num_classes", "in_channels", "seed"])
def test_numbers_that_are_not_whole_are_refused_by_name(argument, number):
    with pytest.raises(ValueError, match=f"`{argument}` must be a whole number.*got "):
        build("tiny-resnet-8", **({"num_classes": 10} | {argument: number}))


def test_resnet_50_without_torchvision_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision.models", None)
    with pytest.raises(ImportError, match=r"\.\[train\]"):
        build("resnet-50", 10)
