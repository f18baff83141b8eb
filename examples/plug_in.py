"""DivAug in a stranger's training loop: two lines beyond what was there before."""

import torch
from torch import nn
from torch.nn import functional as F

from divaug import DivAug
from divaug.default_augmentation import DefaultAugmentation
from divaug.lab.datasets import load
from divaug.lab.models import build


def main(steps: int = 30, batch: int = 32) -> float:
    """Train a small network on the shipped images; returns the accuracy on test images."""
    data = load("fashion_mnist_small")
    model: nn.Module = build("tiny-resnet-8", data.num_classes, in_channels=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    default = DefaultAugmentation(data.mean, data.std, padding=2, flip=0.5)

    augment = DivAug(model, num_candidates=8, num_selected=4, default=default)
    for step in range(steps):
        rows = torch.arange(step * batch, (step + 1) * batch) % len(data.train_images)
        images, labels = data.train_images[rows], data.train_labels[rows]
        images, labels = augment(images, labels, index=rows)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    record = augment.record()
    print(f"diversity of the kept {record.diversity_kept:.4f}, of all {record.diversity_all:.4f}")
    return accuracy(model, default, data.test_images, data.test_labels)


@torch.no_grad()
def accuracy(
    model: nn.Module, default: DefaultAugmentation, images: torch.Tensor, labels: torch.Tensor
) -> float:
    """Share of images classified as labelled."""
    logits = model.eval()(default.for_evaluation(images))
    return float((logits.argmax(1) == labels).float().mean())


if __name__ == "__main__":
    print(f"accuracy {main():.1%}")
