"""Evaluation mode: modules that work when they are told are told, and are afterwards as before."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import ViTConfig, ViTForImageClassification

from divaug._untouched import untouched
from tests.reference.small_models import network

CPU = torch.device("cpu")
X = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))


class FailingError(Exception):
    """Raised by the models of these tests alone."""


class Steerable(nn.Module):
    """While it evaluates it has its filter made beforehand; while it trains it has none."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3))
        self.told = []

    def train(self, mode=True):
        self.told.append(mode)
        if mode and hasattr(self, "filter"):
            del self.filter
        if not mode and self.training:
            self.register_buffer("filter", 2 * self.weight.detach())
        return super().train(mode)

    def forward(self, x):
        return F.linear(x, 2 * self.weight if self.training else self.filter)


class LowRank(nn.Module):
    """Puts a low-rank part into the weights of its inner layer while it evaluates."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 4)
        self.part = nn.Parameter(torch.randn(4, 3) / 3)
        self.merged = False

    def train(self, mode=True):
        if self.merged == mode:
            self.inner.weight.data += -self.part if mode else self.part
            self.merged = not mode
        return super().train(mode)

    def forward(self, x):
        return self.inner(x) + (0 if self.merged else F.linear(x, self.part))


class Counted(TorchDispatchMode):
    """Counts what torch is asked for."""

    calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls += 1
        return function(*args, **(kwargs or {}))


def states(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(first, second):
    return first.keys() == second.keys() and all(
        torch.equal(tensor, second[name]) for name, tensor in first.items()
    )


def test_a_table_is_made_from_the_weights_of_now_and_dropped_again():
    model = nn.Sequential(nn.Dropout(), Steerable())
    for _ in range(2):  # the second time after a step of an optimiser
        with untouched(model, CPU):
            assert torch.equal(model(X), F.linear(X, 2 * model[1].weight))
        assert not hasattr(model[1], "filter")
        assert model[0].training
        with torch.no_grad():
            model[1].weight += 1


def test_a_frozen_part_inside_of_one_that_trains_keeps_its_table():
    """To tell the outer one is to tell the inner one too, which must hear its own mode last."""

    class Outer(Steerable):
        def __init__(self):
            super().__init__()
            self.inner = Steerable().eval()

    model = Outer()
    with untouched(model, CPU):
        pass
    assert (model.training, model.inner.training) == (True, False)
    assert not hasattr(model, "filter")
    assert torch.equal(model.inner(X), F.linear(X, 2 * model.inner.weight))


def test_merged_weights_have_their_old_bits():
    torch.manual_seed(1)
    model = nn.Sequential(LowRank())
    before, by_rounding = states(model), copy.deepcopy(model)
    by_rounding.eval().train()
    assert not same(states(by_rounding), before)  # taken away again is not what it was
    with untouched(model, CPU):
        assert model[0].merged
        torch.testing.assert_close(model(X), by_rounding(X))
    assert not model[0].merged
    assert same(states(model), before)


def test_putting_back_is_no_change_to_autograd():
    model = nn.Sequential(nn.Linear(3, 3), LowRank(), nn.ReLU())
    loss = model(X).sum()  # keeps the inner layer's weights for the way back
    with untouched(model, CPU), torch.no_grad():
        model(X)
    loss.backward()
    assert model[0].weight.grad is not None


def test_what_raises_on_its_way_back_leaves_modes_and_weights_as_they_were():
    class Stuck(LowRank):
        def train(self, mode=True):
            super().train(mode)
            if mode:
                raise FailingError
            return self

    model = nn.Sequential(Stuck(), nn.Dropout())
    before = states(model)
    with pytest.raises(FailingError), untouched(model, CPU):
        pass
    assert all(module.training for module in model.modules())
    assert same(states(model), before)


def test_layers_without_a_shape_yet():
    class Lazy(Steerable):
        def __init__(self):
            super().__init__()
            self.later = nn.LazyLinear(2)

    model = Lazy()
    with untouched(model, CPU):
        assert not model.later.training
    assert model.later.training


def test_a_train_that_passes_nothing_on_is_put_into_evaluation_all_the_same():
    class Frozen(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone, self.head = nn.Dropout(), nn.Dropout()

        def train(self, mode=True):
            self.head.train(mode)
            return self

    model = nn.Sequential(Frozen())
    with untouched(model, CPU):
        assert not any(module.training for module in model.modules())
    assert all(module.training for module in model.modules())


def test_a_model_of_hugging_face_is_told_and_not_copied():
    """Its `train` leaves weights alone, and there are many of them."""
    config = ViTConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8,
        image_size=8, patch_size=4,
    )  # fmt: skip
    model = ViTForImageClassification(config).train()
    with Counted() as counted, untouched(model, CPU):
        assert not any(module.training for module in model.modules())
    assert counted.calls == 0
    assert all(module.training for module in model.modules())


def test_nothing_is_copied_of_models_that_only_pass_the_mode_on():
    for model, copied in ((network(), False), (nn.Sequential(LowRank()), True)):
        with Counted() as counted, untouched(model, CPU):
            pass
        assert bool(counted.calls) is copied
