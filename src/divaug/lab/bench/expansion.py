"""Expansion on a GPU: time against the roofline, and against torchvision, Kornia and Pillow."""

import importlib.util
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from divaug import SubPolicies, expand
from divaug.default_augmentation import cifar10
from divaug.lab.bench import device, loops
from divaug.lab.bench.harness import environment, median_seconds, place, progress
from divaug.lab.bench.operations import Case, photographs
from divaug.lab.figures.canvas import to_picture
from divaug.lab.tables import Table
from divaug.policies import AutoAugment, Policy, RandAugment, Uniform

__all__ = ["KIND", "STEP_SHAPES", "measure", "rivals_table", "table", "verify", "with_rivals"]

KIND = "expand"
# (batch, candidates, side, dtype, channels last)
CASES = (
    (128, 8, 32, torch.bfloat16, True),
    (128, 8, 32, torch.float32, False),
    (256, 4, 224, torch.bfloat16, True),
    (256, 4, 224, torch.bfloat16, False),
    (256, 4, 224, torch.float32, False),
)
LARGE_SIDE = 129
# Side → images of a batch of the alternatives.
RIVAL_IMAGES = {32: 256, 224: 64}
#: What a training step on small images asks of the kernels; see `verify`.
STEP_SHAPES = ((64, 32, torch.bfloat16, True),)
Shape: TypeAlias = tuple[int, int, torch.dtype, bool]
# Number of images, their side, the seed.
_Task: TypeAlias = tuple[int, int, int]


def _images(batch: int, side: int, seed: int) -> Tensor:
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randint(
        0, 256, (batch, 3, side, side), dtype=torch.uint8, device="cuda", generator=generator
    )


def verify(seed: int, cases: Sequence[Shape] | None = None) -> int:
    """Compare the kernels with batched PyTorch, on this device and on the CPU, to the bit.

    Args:
        seed: of the images and the draws.
        cases: batch, side, dtype and whether channels are last; None for all that `bench expand`
            times, in smaller batches, and a size that fills no tile.

    Returns:
        The number of candidates compared.

    Raises:
        ValueError: where a single bit differs; no number is shown then.
    """
    few: tuple[Policy, ...] = (Uniform(), Uniform("released"))
    all_policies = (*few, RandAugment(3, 9), AutoAugment())
    compared = 0
    timed = [(min(batch, 2048 // side), side, dtype, last) for batch, _, side, dtype, last in CASES]
    for batch, side, dtype, channels_last in cases or [*timed, (16, 45, torch.float16, False)]:
        images = _images(batch, side, seed + side)
        # Other policies draw the same operations: they are compared where that is quick.
        for policy in all_policies if side < LARGE_SIDE else few:
            for originals in (images, images // 5 + 90):
                compared += _compare(originals, policy, dtype, channels_last, seed)
    return compared


def _compare(
    images: Tensor, policy: Policy, dtype: torch.dtype, channels_last: bool, seed: int
) -> int:
    def run(originals: Tensor, backend: str) -> tuple[Tensor, Any]:
        return expand(
            originals, 8, policy, cifar10(), seed, step=seed, dtype=dtype,
            channels_last=channels_last, backend=backend,
        )  # fmt: skip

    kernel, drawn = run(images, "triton")
    on_cpu, drawn_on_cpu = run(images.cpu(), "torch")
    batched, _ = run(images, "torch")
    same = torch.equal(kernel, batched) and torch.equal(kernel.cpu(), on_cpu)
    if not (same and drawn.to("cpu").equal(drawn_on_cpu)):
        raise ValueError(
            f"the kernels differ from batched PyTorch for {policy} at {tuple(images.shape)}: no "
            "times are shown."
        )
    return len(kernel.flatten(0, 1))


def _case(
    batch: int, candidates: int, side: int, dtype: torch.dtype, channels_last: bool, seed: int
) -> dict[str, Any]:
    progress(f"measuring expansion of {batch} images at {side} px, {dtype}")
    images = _images(batch, side, seed)
    index = torch.arange(batch, device="cuda")
    step = torch.zeros((), dtype=torch.int64, device="cuda")
    default = cifar10()

    def run() -> object:
        return expand(
            images, candidates, None, default, seed, index, step=step, dtype=dtype,
            channels_last=channels_last,
        )  # fmt: skip

    device.no_waits(run)
    times = device.time_calls(run)
    originals = images.numel()
    result = originals * candidates * dtype.itemsize
    bandwidth = device.copy_bandwidth(originals + result)
    floor, graph = 1000 * (originals + result) / bandwidth, times["graph_ms"]
    progress(f"  {graph:.3f} ms, {graph / floor:.1f} times the floor")
    return {
        "batch": batch,
        "candidates": candidates,
        "side": side,
        "dtype": str(dtype).removeprefix("torch."),
        "channels_last": channels_last,
        **times,
        "images_per_second": batch * candidates / graph * 1000,
        "bytes_moved": originals + result,
        "copy_bytes_per_second": bandwidth,
        "floor_ms": floor,
        "times_the_floor": graph / floor,
        "peak_bytes": device.peak_memory(run),
        "candidate_bytes": result,
        "original_bytes": originals,
        "host_waits": 0,
    }


def measure(seed: int = 0) -> dict[str, Any]:
    """Verify, then time every case."""
    device.require_cuda()
    progress("comparing the kernels with batched PyTorch")
    compared = verify(seed + 1)
    return {
        "benchmark": KIND,
        "environment": environment(),
        "verified_candidates": compared,
        "cases": [_case(*case, seed=seed) for case in CASES],
        "rivals": {},
    }


def with_rivals(result: dict[str, Any], seed: int = 0) -> dict[str, Any]:
    """Add the speeds of the alternatives to what `measure` returned."""
    others = {}
    for side, count in RIVAL_IMAGES.items():
        progress(f"measuring the alternatives at {side} px")
        others[str(side)] = _speeds(_images(count, side, seed), side, seed)
    return result | {"rivals": others}


def _speeds(images: Tensor, side: int, seed: int) -> dict[str, float]:
    """Return images a second of the alternatives, each image with an augmentation of its own.

    Args:
        images: uint8 `[B,3,side,side]` on a GPU.
        side: their height and width.
        seed: of Pillow's images and draws.
    """
    from torchvision.transforms import v2

    found = {"torchvision": _per_image(images, v2.RandAugment(num_ops=2))}
    if importlib.util.find_spec("kornia") is not None:
        from kornia.augmentation.auto import RandAugment as KorniaRandAugment

        augment = KorniaRandAugment(n=2, m=10)
        scaled = images.to(torch.float32) / 255
        found["kornia"] = _per_image(scaled, lambda image: augment(image[None]))
    cores = environment()["cores"]
    share = 8 * RIVAL_IMAGES[side]
    with ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
        tasks = [(share, side, seed)] * cores
        for name, work in {"": _operations, ", finished": _finished}.items():
            everywhere = partial(_on_all, pool, work, tasks)
            seconds = median_seconds(everywhere, repeats=5, warm_up=3)
            found[f"Pillow on {cores} cores{name}"] = share * cores / seconds
    return found


def _on_all(pool: ProcessPoolExecutor, work: Callable[[_Task], int], tasks: list[_Task]) -> None:
    list(pool.map(work, tasks))


def _per_image(images: Tensor, augment: Callable[[Tensor], object]) -> float:
    def loop() -> None:
        for image in images:
            augment(image)

    return len(images) / device.seconds_per_call(loop, 2)


@lru_cache(maxsize=4)
def _drawn(task: _Task) -> tuple[Tensor, list[Any], SubPolicies, list[list[loops.Step]]]:
    """Return images, also as Pillow's, and draws, made once in every process."""
    torch.set_num_threads(1)
    count, side, seed = task
    images = photographs(Case(count, side), seed)
    drawn = expand(images, 1, Uniform(), cifar10(), seed)[1]
    return images, [to_picture(image) for image in images], drawn, loops.steps_of(drawn[:, 0])


def _operations(task: _Task) -> int:
    """Apply the sub-policies alone, to images that are already Pillow's."""
    _, pictures, _, steps = _drawn(task)
    return len(loops.apply_loop(pictures, steps, loops.PILLOW))


def _finished(task: _Task) -> int:
    """Make finished candidates from bytes, as `expand` does."""
    images, _, drawn, steps = _drawn(task)
    assert drawn.placement is not None
    return len(loops.finished_by_pillow(images, steps, drawn.placement, torch.bfloat16))


def table(result: dict[str, Any]) -> Table:
    """Return time, roofline and memory of every case."""
    rows = []
    for case in result["cases"]:
        layout = "channels last" if case["channels_last"] else "contiguous"
        allowed = case["candidate_bytes"] + case["original_bytes"]
        rows.append(
            (
                f"{case['batch']} × {case['candidates']}, {case['side']} px",
                f"{case['dtype']}, {layout}",
                f"{case['graph_ms']:.3f}",
                f"{case['eager_ms']:.3f}",
                f"{case['images_per_second'] / 1e6:.1f} M",
                f"{case['floor_ms']:.3f}",
                f"{case['times_the_floor']:.1f}",
                f"{(case['peak_bytes'] + case['original_bytes']) / allowed - 1:+.1%}",
            )
        )
    columns = (
        "B × E", "candidates", "graph, ms", "eager, ms", "candidates/s", "floor, ms", "× floor",
        "memory",
    )  # fmt: skip
    best = max(case["copy_bytes_per_second"] for case in result["cases"])
    notes = (
        f"{result['verified_candidates']:,} candidates were compared to the bit with batched "
        "PyTorch on the same device and on the CPU before any time was taken.",
        "The floor is the time to read the originals once and write the candidates once at the "
        f"copy bandwidth of the same run ({best / 1e12:.2f} TB/s at best); memory is the peak "
        "beyond originals and candidates. No call waits for the host.",
        place(result["environment"]),
    )
    return Table(columns, tuple(rows), "Expansion on a GPU", tuple(range(2, 8)), notes)


def rivals_table(result: dict[str, Any]) -> Table:
    """Return the alternatives beside ours, at the same size."""
    rows = []
    for side, others in result["rivals"].items():
        # A size's first case: bfloat16 with channels last.
        ours = next(case for case in result["cases"] if case["side"] == int(side))
        made = ours["batch"] * ours["candidates"]
        graph, eager = (1000 * made / ours[way] for way in ("graph_ms", "eager_ms"))
        rows.append((f"{side} px", "divaug in a captured graph", f"{graph:,.0f}", "", ""))
        rows.append((f"{side} px", "divaug called from Python", f"{eager:,.0f}", "", ""))
        for name, speed in others.items():
            times = f"{graph / speed:,.0f}×", f"{eager / speed:,.0f}×"
            rows.append((f"{side} px", name, f"{speed:,.0f}", *times))
    notes = (
        "Draws included. torchvision's and Kornia's RandAugment (two operations) are called image "
        "by image on tensors of the GPU. Pillow applies sub-policies of the universal set, drawn "
        "before, to images that are already Pillow's; finished: from bytes to the candidates that "
        "`expand` makes.",
        place(result["environment"]),
    )
    columns = ("size", "what", "images/s", "graph ÷ it", "calls ÷ it")
    return Table(columns, tuple(rows), "Images a second", (2, 3, 4), notes)
