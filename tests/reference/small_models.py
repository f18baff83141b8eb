"""Small models for the tests of scoring and of the plug-in, in every form a model comes in."""

from types import SimpleNamespace

import torch
from torch import nn


def network(classes=5, channels=3, seed=0):
    """Convolution, BatchNorm, dropout and a linear layer, with weights that depend on the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(channels, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
            nn.Linear(64, classes),
        )


class Wrapped(nn.Module):
    """A network whose output is changed by a function."""

    def __init__(self, change, inner=None):
        super().__init__()
        self.inner = inner if inner is not None else network()
        self.change = change

    def forward(self, images):
        return self.change(self.inner(images))


class Named(dict):
    """A mapping that names its logits otherwise, and has them as `.logits` too."""

    @property
    def logits(self):
        return self["out"]


OUTPUTS = {
    "tensor": lambda logits: logits,
    "tuple": lambda logits: (logits, torch.zeros(3)),
    "list": lambda logits: [logits],
    "object": lambda logits: SimpleNamespace(logits=logits, loss=None),
    "mapping": lambda logits: {"features": torch.zeros(3), "logits": logits},
    "mapping with a property": lambda logits: Named(out=logits),
}


def state(model):
    """A copy of everything that scoring must not change."""
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    grads = {
        name: None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()
    }
    modes = [module.training for module in model.modules()]
    return tensors, grads, modes


def same(first, second):
    """Whether two states are equal to the bit."""

    def equal(a, b):
        return a is b if a is None or b is None else torch.equal(a, b)

    return (
        first[2] == second[2]
        and all(equal(first[0][n], second[0][n]) for n in first[0])
        and all(equal(first[1][n], second[1][n]) for n in first[1])
    )
