"""Scoring: probabilities in float32, and a model that is afterwards as it was."""

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.parameter import UninitializedBuffer

from divaug import score
from tests.reference.small_models import OUTPUTS, Wrapped, network, same, state

CANDIDATES = torch.randn(3, 4, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def trained_a_bit():
    """A model in training mode with gradients and BatchNorm statistics of its own."""
    model = network()
    F.cross_entropy(model(CANDIDATES[0]), torch.tensor([0, 1, 2, 3])).backward()
    return model


def by_hand(model, candidates):
    """Softmax of the logits in evaluation mode, one candidate at a time."""
    model.eval()
    with torch.no_grad():
        rows = [[model(c[None])[0].float().softmax(0) for c in image] for image in candidates]
    model.train()
    return torch.stack([torch.stack(row) for row in rows])


def test_probabilities_are_the_softmax_in_evaluation_mode():
    model = trained_a_bit()
    probs = score(model, CANDIDATES)
    assert probs.shape == (3, 4, 5)
    assert probs.dtype == torch.float32
    assert not probs.requires_grad
    torch.testing.assert_close(probs.sum(-1), torch.ones(3, 4))
    torch.testing.assert_close(probs, by_hand(model, CANDIDATES), rtol=1e-5, atol=1e-6)


def test_candidates_do_not_influence_each_other():
    model = trained_a_bit()
    alone = score(model, CANDIDATES[1:2, 2:3])
    torch.testing.assert_close(score(model, CANDIDATES)[1:2, 2:3], alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("chunk", [1, 5, 12, 100])
def test_chunks_give_what_the_whole_gives(chunk):
    model, sizes = trained_a_bit(), []
    handle = model.register_forward_pre_hook(lambda _module, args: sizes.append(len(args[0])))
    probs = score(model, CANDIDATES, chunk_size=chunk)
    handle.remove()
    assert sum(sizes) == 12
    assert max(sizes) == min(chunk, 12)
    torch.testing.assert_close(probs, score(model, CANDIDATES), rtol=1e-5, atol=1e-6)


def test_the_model_is_as_it_was():
    model = trained_a_bit()
    before = state(model)
    score(model, CANDIDATES, chunk_size=5)
    assert same(state(model), before)


def test_every_module_returns_to_its_own_mode():
    model = trained_a_bit()
    model[1].eval()  # a frozen BatchNorm in a model that trains
    before = state(model)
    assert len(set(before[2])) == 2
    inside = []
    model.register_forward_pre_hook(lambda m, _args: inside.extend(x.training for x in m.modules()))
    score(model, CANDIDATES)
    assert not any(inside)
    assert same(state(model), before)


def test_a_model_in_evaluation_mode_stays_there():
    model = network().eval()
    score(model, CANDIDATES)
    assert not any(module.training for module in model.modules())


class Watching(nn.Module):
    """Notes what it sees in buffers, in whatever mode, as observers of quantisation do."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.register_buffer("seen", torch.tensor(0))
        self.register_buffer("largest", torch.tensor(-1.0))
        self.register_buffer("means", torch.zeros(0))

    def forward(self, images):
        self.seen += len(images)  # in place
        self.largest = torch.maximum(self.largest, images.max())  # another tensor
        self.means.resize_(3).copy_(images.mean((0, 2, 3)))  # of another size
        return self.inner(images)


@pytest.mark.parametrize("training", [True, False])
def test_buffers_that_change_also_in_evaluation_mode_are_as_they_were(training):
    model = Watching(trained_a_bit()).train(training)
    model(CANDIDATES[0])
    before, largest = state(model), model.largest
    score(model, CANDIDATES, chunk_size=5)
    assert same(state(model), before)
    assert model.largest is largest
    fresh = Watching(network()).train(training)
    score(fresh, CANDIDATES)
    assert (int(fresh.seen), float(fresh.largest), fresh.means.shape) == (0, -1.0, (0,))


class NeverEvaluates(nn.BatchNorm2d):
    def forward(self, images):
        return F.batch_norm(images, self.running_mean, self.running_var, training=True)


class KeepsItTraining(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.norm, self.inner = nn.BatchNorm2d(3), inner

    def forward(self, images):
        self.norm.train()
        return self.inner(self.norm(images))


class MakesBuffers(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.register_buffer("later", None)
        self.register_buffer("never", None)
        self.register_buffer("gone", torch.ones(2), persistent=False)

    def forward(self, images):
        self.later = images.mean(0)
        del self.never
        self.register_buffer("new", images.mean(), persistent=False)
        del self.gone
        self.__dict__["gone"] = 3  # no longer a buffer
        return self.inner(images)


class Adds(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, images):
        self.register_buffer("new", images.mean())
        return self.inner(images)


class Swaps(Adds):
    def __init__(self, inner):
        super().__init__(inner)
        self.register_buffer("never", None)

    def forward(self, images):
        del self.never
        return super().forward(images)


def _counting(how, inner):
    model = nn.Sequential(nn.Identity(), inner)
    model.register_buffer("seen", torch.tensor(0))
    if how == "patched":
        whole = model.forward
        model.forward = lambda images: whole(images + 0 * model.seen.add_(1))
    else:
        getattr(model, how)(lambda module, *_: module.seen.add_(1) and None)
    return model


MEDDLING = {
    "a BatchNorm of one's own": lambda: nn.Sequential(NeverEvaluates(3), network()),
    "a layer put into training mode": lambda: KeepsItTraining(network()),
    "a hook": lambda: _counting("register_forward_hook", network()),
    "a hook before": lambda: _counting("register_forward_pre_hook", network()),
    "a forward that was patched": lambda: _counting("patched", network()),
    "a buffer made": lambda: Adds(network()),
    "a buffer made in the place of none": lambda: Swaps(network()),
    "buffers made and removed": lambda: MakesBuffers(network()),
}


@pytest.mark.parametrize("name", MEDDLING)
def test_models_that_meddle_with_their_buffers_are_as_they_were(name):
    model = MEDDLING[name]()
    before = [(n, id(b), None if b is None else b.clone()) for m in model.modules()
              for n, b in m._buffers.items()]  # fmt: skip
    passing = [set(module._non_persistent_buffers_set) for module in model.modules()]
    keys = list(model.state_dict())
    for _ in range(2):
        score(model, CANDIDATES)
        after = [(n, b) for m in model.modules() for n, b in m._buffers.items()]
        assert [(n, id(b)) for n, b in after] == [(n, i) for n, i, _ in before]
        assert all(old is None or torch.equal(new, old)
                   for (_, new), (_, _, old) in zip(after, before, strict=True))  # fmt: skip
        assert [set(m._non_persistent_buffers_set) for m in model.modules()] == passing
        assert list(model.state_dict()) == keys
        assert getattr(model, "gone", None) is model._buffers.get("gone")


def test_a_hook_on_all_modules_may_change_buffers():
    model = network()
    before = state(model)

    def move_statistics(module, *_):
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.add_(1)

    hook = nn.modules.module.register_module_forward_hook(move_statistics)
    try:
        score(model, CANDIDATES)
    finally:
        hook.remove()
    assert same(state(model), before)


class Scripted(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.register_buffer("seen", torch.tensor(0))
        self.register_buffer("largest", torch.tensor(-1.0))

    def forward(self, images):
        self.seen += 1
        self.largest = torch.maximum(self.largest, images.max())
        return self.inner(images)


@pytest.mark.filterwarnings("ignore")  # torch announces the end of scripts
def test_scripted_models_are_as_they_were():
    model = torch.jit.script(Scripted(network()))
    score(model, CANDIDATES)
    assert (int(model.seen), float(model.largest)) == (0, -1.0)
    model(CANDIDATES[0])
    assert int(model.seen) == 1


def test_a_model_of_known_layers_has_no_buffer_copied(monkeypatch):
    monkeypatch.setattr(torch, "_foreach_copy_", lambda *_: pytest.fail("copied"))
    score(network(), CANDIDATES)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_buffers_that_were_expanded_are_sparse_or_not_there_yet():
    class Placing(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", torch.arange(8.0)[:, None].expand(8, 8))
            self.register_buffer("links", torch.eye(3).to_sparse_coo())
            self.register_buffer("rules", torch.eye(3).to_sparse_csr())
            self.register_buffer("later", UninitializedBuffer())
            self.inner = network()

        def forward(self, images):
            self.rows = self.rows + 1
            self.links = 2 * self.links
            return self.inner(images + self.links.to_dense().sum())

    model = Placing()
    rows, links = model.rows, model.links
    score(model, CANDIDATES)
    assert model.rows is rows
    assert model.links is links
    assert torch.equal(rows[:, 3], torch.arange(8.0))
    assert torch.equal(links.to_dense(), torch.eye(3))


def test_buffers_made_in_inference_mode_may_be_scored_outside_of_it():
    with torch.inference_mode():
        model = Watching(network()).eval()
    with torch.inference_mode():
        score(model, CANDIDATES)
    assert int(model.seen) == 0

    class Reading(nn.Module):
        def __init__(self):
            super().__init__()
            with torch.inference_mode():
                self.register_buffer("scale", torch.tensor(2.0))
            self.inner = network()

        def forward(self, images):
            return self.inner(self.scale * images)

    assert score(Reading(), CANDIDATES).shape == (3, 4, 5)


class FailingError(Exception):
    pass


def test_a_model_that_raises_is_as_it_was():
    def fail(logits):
        raise FailingError

    model = Wrapped(fail, trained_a_bit())
    model.inner[3].eval()
    before = state(model)
    with pytest.raises(FailingError):
        score(model, CANDIDATES)
    assert same(state(model), before)


@pytest.mark.parametrize("chunk_size", [None, 5])
def test_a_model_may_work_in_place_on_its_input(chunk_size):
    class InPlace(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def forward(self, x):
            return self.inner(x.sub_(0.5).div_(0.25))

    candidates = CANDIDATES.clone()
    probs = score(InPlace(), candidates, chunk_size=chunk_size)
    assert torch.equal(candidates, CANDIDATES)
    torch.testing.assert_close(probs, score(network(), (CANDIDATES - 0.5) / 0.25))


class Failing(nn.Module):
    def forward(self, _):
        raise FailingError


class Caching(nn.Module):
    """Keeps parametrised weights for the length of its own pass."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        with nn.utils.parametrize.cached():
            return self.inner(x)


def test_weights_that_the_training_pass_keeps_are_not_those_of_scoring():
    """Made without gradients, they would have none in the training pass either."""
    inner = nn.utils.parametrizations.weight_norm(nn.Linear(CANDIDATES[0, 0].numel(), 3))
    model = nn.Sequential(nn.Flatten(), inner)
    with nn.utils.parametrize.cached():
        model(CANDIDATES[0])
        kept = inner.weight
        score(model, CANDIDATES)
        assert inner.weight is kept
        with pytest.raises(FailingError):
            score(nn.Sequential(model, Failing()), CANDIDATES)
        assert inner.weight is kept
        score(Caching(model), CANDIDATES)
        assert inner.weight is kept
    with nn.utils.parametrize.cached():
        for asked in (model, Caching(model)):
            score(asked, CANDIDATES)
        model(CANDIDATES[0]).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


class Merging(nn.Linear):
    """Adds a second weight to its own while it evaluates, as low-rank adapters do."""

    def __init__(self, width, classes):
        super().__init__(width, classes)
        self.other = nn.Parameter(torch.randn(classes, width))
        self.merged = False

    def train(self, mode=True):
        super().train(mode)
        if self.merged == mode:
            self.weight.data += -self.other if mode else self.other
            self.merged = not mode
        return self

    def forward(self, x):
        return super().forward(x) + (0 if self.merged else F.linear(x, self.other))


class Decorated(nn.Module):
    """Switches autocast on by itself, and with it the cache of weights."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    @torch.autocast("cpu", dtype=torch.bfloat16)
    def forward(self, x):
        return self.inner(x)


@pytest.mark.parametrize("around", [lambda inner: inner, Decorated], ids=["plain", "decorated"])
def test_within_autocast_neither_pass_takes_the_weights_that_the_other_cast(around):
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Flatten(), Merging(CANDIDATES[0, 0].numel(), 3))
    model = around(inner)
    half = torch.autocast("cpu", torch.bfloat16)
    with half:
        trained = model(CANDIDATES[0])
    with half:
        scored = score(model, CANDIDATES)
    with half:
        assert torch.equal(score(model, CANDIDATES), scored)
        assert torch.equal(model(CANDIDATES[0]), trained)
        assert torch.equal(score(model, CANDIDATES), scored)
        with pytest.raises(FailingError):
            score(nn.Sequential(model, Failing()), CANDIDATES)
        assert torch.equal(model(CANDIDATES[0]), trained)
    for enabled in (True, False):
        with torch.autocast("cpu", torch.bfloat16, cache_enabled=enabled):
            score(model, CANDIDATES)
            assert torch.is_autocast_cache_enabled() == enabled
            model(CANDIDATES[0]).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_model_that_is_compiled_is_compiled_once():
    times = []

    def count(graph, _inputs):
        times.append(graph)
        return graph.forward

    torch._dynamo.reset()
    model = nn.Sequential(nn.Flatten(), nn.Linear(CANDIDATES[0, 0].numel(), 3)).eval()
    compiled = torch.compile(model, backend=count)
    score(compiled, CANDIDATES)
    with torch.no_grad():
        compiled(CANDIDATES.flatten(0, 1))
    assert len(times) == 1


def test_an_exported_model_is_refused_in_our_words():
    model = nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(CANDIDATES[0, 0].numel(), 3))
    exported = torch.export.export(model, (CANDIDATES[0],)).module()
    with pytest.raises(TypeError, match=r"evaluation mode.*exported, give the one"):
        score(exported, CANDIDATES)


@pytest.mark.parametrize("kind", OUTPUTS)
def test_logits_are_found_in_any_output(kind):
    probs = score(Wrapped(OUTPUTS[kind]), CANDIDATES)
    torch.testing.assert_close(probs, score(network(), CANDIDATES))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits_are_made_float32_before_the_softmax(dtype):
    logits = torch.tensor([[8.0, 0.0, -8.0]]).expand(12, 3).to(dtype)
    probs = score(Wrapped(lambda _logits: logits), CANDIDATES)
    assert probs.dtype == torch.float32
    assert torch.equal(probs[0, 0], logits[0].float().softmax(0))


def test_autocast_around_the_call_is_respected():
    model, seen = trained_a_bit(), []
    model[-1].register_forward_hook(lambda _m, _args, output: seen.append(output.dtype))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        probs = score(model, CANDIDATES)
    assert seen == [torch.bfloat16]
    assert probs.dtype == torch.float32
    torch.testing.assert_close(probs.sum(-1), torch.ones(3, 4))
    torch.testing.assert_close(probs, score(model, CANDIDATES), rtol=0, atol=0.02)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_model(backend):
    model = trained_a_bit()
    expected, before = score(model, CANDIDATES), state(model)
    compiled = torch.compile(model, backend=backend)
    torch.testing.assert_close(score(compiled, CANDIDATES), expected, rtol=1e-5, atol=1e-6)
    assert same(state(model), before)
    assert compiled.training


def test_a_channels_last_model_gets_channels_last_images():
    model = network().to(memory_format=torch.channels_last)
    flat = CANDIDATES.flatten(0, 1).contiguous(memory_format=torch.channels_last)
    seen = []
    model.register_forward_pre_hook(
        lambda _m, args: seen.append(args[0].is_contiguous(memory_format=torch.channels_last))
    )
    probs = score(model, flat.unflatten(0, (3, 4)), chunk_size=5)
    assert all(seen)
    torch.testing.assert_close(probs, score(network(), CANDIDATES), rtol=1e-5, atol=1e-6)


@pytest.fixture
def _one_process(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("_one_process")
@pytest.mark.parametrize("compiled", [False, True])
def test_a_model_wrapped_for_distributed_training(compiled):
    inner = trained_a_bit()
    expected = score(inner, CANDIDATES)
    model = DistributedDataParallel(inner)
    wrapped = torch.compile(model, backend="eager") if compiled else model
    before, calls = state(model), []
    model.register_forward_pre_hook(lambda _m, _args: calls.append(1))
    torch.testing.assert_close(score(wrapped, CANDIDATES), expected, rtol=1e-5, atol=1e-6)
    assert same(state(model), before)
    # DDP's own forward sends rank 0's BatchNorm statistics to all others: it must not run.
    assert not calls
    # The model still trains afterwards.
    F.cross_entropy(model(CANDIDATES[0]), torch.tensor([0, 1, 2, 3])).backward()


class Wrapper(nn.Module):
    """What Lightning's Fabric puts around a model that is wrapped already."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, images):
        return self.inner(images)


@pytest.mark.usefixtures("_one_process")
@pytest.mark.parametrize("compiled", [False, True])
def test_a_model_wrapped_for_distributed_training_inside_of_another_wrapper(compiled, monkeypatch):
    inner = trained_a_bit()
    expected = score(inner, CANDIDATES)
    ddp = DistributedDataParallel(inner)
    wrapped = Wrapper(torch.compile(ddp, backend="eager") if compiled else ddp)
    with monkeypatch.context() as patch:
        patch.setattr(DistributedDataParallel, "_pre_forward", None)  # what sends the statistics
        torch.testing.assert_close(score(wrapped, CANDIDATES), expected, rtol=1e-5, atol=1e-6)
    assert "forward" not in vars(ddp)
    F.cross_entropy(wrapped(CANDIDATES[0]), torch.tensor([0, 1, 2, 3])).backward()


@pytest.mark.usefixtures("_one_process")
def test_a_wrapped_model_that_raises_is_left_as_it_was():
    ddp = DistributedDataParallel(trained_a_bit())
    ddp.module.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        score(Wrapper(ddp), CANDIDATES)
    assert "forward" not in vars(ddp)


def test_bytes_are_scaled_to_the_unit_interval():
    candidates = torch.arange(12 * 192).remainder(256).to(torch.uint8).view(3, 4, 3, 8, 8)
    model = network()
    torch.testing.assert_close(score(model, candidates), score(model, candidates.float() / 255))


def test_bytes_come_in_the_models_dtype():
    candidates = torch.arange(12 * 192).remainder(256).to(torch.uint8).view(3, 4, 3, 8, 8)
    probs = score(network().to(torch.bfloat16), candidates)
    torch.testing.assert_close(probs, score(network(), candidates), rtol=0, atol=0.02)


@pytest.mark.parametrize(("change", "message"), [
    (lambda logits: logits[0], r"got shape \(5,\)"),
    (lambda logits: logits[:-1], r"N=12.*\(11, 5\)"),
    (lambda logits: logits[:, :1], r"two classes.*logsigmoid\(z\)"),
    (lambda logits: logits[:, :, None], r"\(12, 5, 1\)"),
])  # fmt: skip
def test_logits_of_the_wrong_shape_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        score(Wrapped(change), CANDIDATES)


@pytest.mark.parametrize("output", [None, "cat", {"scores": 1}, ()])
def test_an_output_without_logits_is_refused(output):
    with pytest.raises(TypeError, match="logits"):
        score(Wrapped(lambda _logits: output), CANDIDATES)


def test_wrong_candidates_are_refused():
    with pytest.raises(ValueError, match=r"\[B,E,C,H,W\]"):
        score(network(), CANDIDATES[0])
    with pytest.raises(ValueError, match="five axes"):
        score(network(), [CANDIDATES])
    with pytest.raises(ValueError, match="empty"):
        score(network(), CANDIDATES[:0])
    with pytest.raises(ValueError, match=r"at least one candidate of each image, got E=0.*expand"):
        score(network(), CANDIDATES[:, :0])
    with pytest.raises(TypeError, match=r"uint8 or floats, got torch\.int64"):
        score(network(), CANDIDATES.long())


@pytest.mark.parametrize("chunk_size", [0, -1, 2.5, "8", True])
def test_a_chunk_that_is_no_number_of_candidates_is_refused(chunk_size):
    with pytest.raises(ValueError, match="`chunk_size` must be a whole number of at least 1"):
        score(network(), CANDIDATES, chunk_size=chunk_size)


@pytest.mark.parametrize("model", [None, F.relu])
def test_a_model_that_is_no_module_is_refused(model):
    with pytest.raises(TypeError, match=rf"`model`.*Module.*got {type(model).__name__}"):
        score(model, CANDIDATES)


def test_generators_are_left_alone_by_a_model_that_draws():
    class Noisy(torch.nn.Module):
        def forward(self, images):
            return torch.rand(len(images), 3)

    before = torch.get_rng_state()
    score(Noisy(), torch.rand(2, 3, 1, 4, 4, generator=torch.Generator().manual_seed(1)))
    assert torch.equal(torch.get_rng_state(), before)


def test_layers_that_learn_their_size_are_scored():
    model = nn.Sequential(nn.Flatten(), nn.LazyLinear(5))
    assert score(model, CANDIDATES).shape[-1] == 5
