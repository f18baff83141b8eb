"""One of several processes that share the samples of a step; started by the test of the plug-in."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import divaug
from tests.reference import samples
from tests.reference.small_models import network

SAMPLES = 16
STEPS = 2


def pool():
    """The training set, which lives on every process."""
    return samples.images(3, 12, 12, 40, "processes")


def policy():
    """Pairing often, so that a partner that depended on the batch would show."""
    others = ("Invert", "Rotate", "SamplePairing")
    absent = tuple(n for n in divaug.operations.OPERATIONS if n not in others)
    return divaug.policies.Uniform(exclude=absent)


def augment_share(model, numbers):
    """Augment those samples in two steps; everything that comes out, by step."""
    augment = divaug.DivAug(
        model, 6, 3, policy=policy(), default=divaug.default_augmentation.cifar10(), seed=11,
        pool=pool(),
    )  # fmt: skip
    results = []
    for step in range(STEPS):
        index = torch.tensor(numbers) + SAMPLES * step
        images, labels = augment(pool()[index], index * 10, index=index)
        results.append((images.unflatten(0, (len(index), 3)), labels.view(-1, 3)))
    return results


def run(rank, world, folder):
    """What each process does: every other sample, with the model wrapped for DDP."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world
    )
    try:
        model = DistributedDataParallel(network(10))
        results = augment_share(model, list(range(rank, SAMPLES, world)))
        torch.save(results, f"{folder}/rank{rank}.pt")
    finally:
        dist.destroy_process_group()
