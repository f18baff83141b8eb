"""From a recipe and a dataset to the parts of a run."""

from dataclasses import dataclass, replace

from torch import Tensor, nn

from divaug._base import Augmenter
from divaug.default_augmentation import DefaultAugmentation
from divaug.lab import methods as augmenters
from divaug.lab import models
from divaug.lab.datasets import Dataset, ImageFiles, plain_name
from divaug.lab.methods import Settings
from divaug.lab.recipes import Recipe
from divaug.lab.train.averaging import Average
from divaug.lab.train.batchnorm import share_statistics
from divaug.lab.train.data import default_of
from divaug.lab.train.distributed import Processes
from divaug.lab.train.evaluation import TestFiles, TestImages, TestSet
from divaug.lab.train.feeds import Epochs, Feed, Resident, Streamed
from divaug.lab.train.hardware import Hardware, workers
from divaug.lab.train.mixture import mix
from divaug.lab.train.networks import build_network, compiled, forward_of
from divaug.lab.train.optimization import SGD
from divaug.lab.train.semi_step import SemiStep
from divaug.lab.train.splits import Split, draw_split, fingerprint
from divaug.lab.train.step import Step, TrainingStep
from divaug.objectives import OBJECTIVES, UnlabelledLoss

__all__ = ["STREAMED_SIZE", "Parts", "assemble", "build_augmenter", "build_network", "set_to_test"]

#: Side of the squares that streamed images are cut to before anything else; ImageNet's custom.
STREAMED_SIZE = 256


@dataclass(frozen=True, eq=False)
class Parts:
    """What a run is made of.

    Args:
        network: the bare network.
        default: the default augmentation.
        augment: the augmenter, which asks `called`.
        feed: where batches come from.
        step: the training step.
        test: the test images.
        called: the network as it is evaluated, compiled where the hardware compiles; of a run with
            an average of weights that one, as it is.
        split: which images are labelled, where not all are.
    """

    network: nn.Module
    default: DefaultAugmentation
    augment: Augmenter
    feed: Epochs
    step: TrainingStep
    test: TestSet
    called: nn.Module
    split: Split | None = None


def build_augmenter(
    recipe: Recipe,
    model: nn.Module,
    default: DefaultAugmentation,
    hardware: Hardware,
    pool: Tensor | None,
) -> Augmenter:
    """The augmenter of a recipe."""
    return augmenters.build(
        recipe.augmenter,
        Settings(
            model=model,
            default=default,
            dataset=plain_name(recipe.dataset),
            num_candidates=recipe.num_candidates,
            num_selected=recipe.num_selected,
            space=recipe.space,
            randaugment_n=recipe.randaugment_n,
            randaugment_m=recipe.randaugment_m,
            total_epochs=recipe.epochs,
            seed=recipe.seed,
            pool=pool,
            dtype=hardware.dtype,
            channels_last=hardware.channels_last,
        ),
    )


def set_to_test(
    recipe: Recipe, data: Dataset | ImageFiles, hardware: Hardware, processes: Processes
) -> TestSet:
    """The test images of a dataset."""
    device = hardware.device
    if isinstance(data, Dataset):
        images, labels = data.test_images.to(device), data.test_labels.to(device)
        return TestImages(images, labels, processes, _chunk_size(recipe, hardware, processes))
    decoding = workers(recipe.num_workers)
    return TestFiles(data.test, STREAMED_SIZE, len(data.mean), device, decoding, processes)


def _chunk_size(recipe: Recipe, hardware: Hardware, processes: Processes) -> int:
    """Test images in one pass: where it is compiled, as many as candidates are scored in one."""
    if not hardware.compiled:
        return 1000
    return recipe.originals_per_step // processes.count * recipe.num_candidates


def assemble(
    recipe: Recipe,
    data: Dataset | ImageFiles,
    hardware: Hardware,
    processes: Processes,
    *,
    split: Split | None = None,
    unlabelled: Tensor | None = None,
) -> Parts:
    """Build everything that a run needs; nothing is written anywhere.

    Args:
        recipe: of the run.
        data: its dataset.
        hardware: where it runs.
        processes: who shares the work.
        split: which images are labelled, for objectives with unlabelled ones; None to draw it.
        unlabelled: uint8 `[U,C,H,W]`; None for all training images.
    """
    processes.part_of(recipe.batch_size)
    loss = OBJECTIVES[recipe.objective].unlabelled
    if loss is not None:
        return _semi_supervised(recipe, data, hardware, processes, loss, split, unlabelled)
    if split is not None or unlabelled is not None:
        raise ValueError(
            f"a split and unlabelled images go with another objective than {recipe.objective!r}; "
            "choose one that has unlabelled images, such as uda."
        )
    default = default_of(recipe.dataset, data)
    feed = _feed(recipe, data, hardware, processes)
    network = build_network(recipe, data, hardware)
    if recipe.sync_batchnorm and processes.shared:
        share_statistics(network)
    called = compiled(network) if hardware.compiled else network
    augment = build_augmenter(recipe, called, default, hardware, feed.pool)
    # The noise of a shaking network depends on the place in the whole batch of trained images.
    models.seed_noise(network, recipe.seed, rank=processes.rank, num_ranks=processes.count)
    step = Step(
        feed.gather,
        augment,
        network,
        forward_of(called, hardware, processes),
        SGD(network, recipe, recipe.epochs * feed.steps),
        hardware,
        processes,
    )
    test = set_to_test(recipe, data, hardware, processes)
    return Parts(network, default, augment, feed, step, test, called)


def _semi_supervised(
    recipe: Recipe,
    data: Dataset | ImageFiles,
    hardware: Hardware,
    processes: Processes,
    loss: UnlabelledLoss,
    split: Split | None,
    unlabelled: Tensor | None,
) -> Parts:
    if not isinstance(data, Dataset):
        raise ValueError(
            f"objective {recipe.objective!r} needs a dataset in memory, and {data.name!r} is a "
            "folder of images; write its images to an .npz file."
        )
    processes.part_of(recipe.unlabelled_batch_size, "unlabelled_batch_size")
    drawn = split or draw_split(data, recipe.labels, recipe.seed)
    _check_number(recipe, drawn)
    chosen = replace(drawn, unlabelled=fingerprint(unlabelled))
    default = default_of(recipe.dataset, data)
    feed = mix(data, chosen, unlabelled, recipe, processes, hardware.device)
    network = build_network(recipe, data, hardware)
    if recipe.sync_batchnorm and processes.shared:
        share_statistics(network)
    called = compiled(network) if hardware.compiled else network
    augment = build_augmenter(recipe, called, default, hardware, feed.pool)
    # As `SemiStep.predict` puts them together.
    sizes = (recipe.batch_size, recipe.unlabelled_batch_size)
    num_labelled, num_originals = (size // processes.count for size in sizes)
    together = (num_labelled, num_originals, num_originals * augment.views)
    models.seed_noise(
        network,
        recipe.seed,
        rank=processes.rank,
        num_ranks=processes.count,
        kinds=together if recipe.joint_forward else (),
    )
    average = Average(network, recipe.ema_decay) if recipe.ema_decay else None
    step = SemiStep(
        feed.gather,
        augment,
        replace(default, cutout=0),
        network,
        forward_of(called, hardware, processes),
        SGD(network, recipe, recipe.epochs * feed.steps),
        loss,
        recipe,
        hardware,
        processes,
        average,
    )
    test = set_to_test(recipe, data, hardware, processes)
    asked = average.network if average else called
    return Parts(network, default, augment, feed, step, test, asked, chosen)


def _check_number(recipe: Recipe, split: Split) -> None:
    """Refuse a split that the recipe, which is kept with the run, would tell otherwise."""
    if recipe.labels not in (0, len(split.labelled)):
        raise ValueError(
            f"the split has {len(split.labelled)} labelled images and the recipe's `labels` is "
            f"{recipe.labels}; say how many there are (--labels {len(split.labelled)})."
        )


def _feed(
    recipe: Recipe, data: Dataset | ImageFiles, hardware: Hardware, processes: Processes
) -> Feed:
    if isinstance(data, ImageFiles):
        return Streamed(data, recipe, processes, hardware.device, STREAMED_SIZE)
    images, labels = data.train_images, data.train_labels
    device = hardware.device
    return Resident(images.to(device).contiguous(), labels.to(device), recipe, processes)
