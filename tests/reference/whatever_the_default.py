"""A digest of all that the library computes, under the default dtype and device that are named.

In a process of its own: what is kept between calls would otherwise be that of other tests.
"""

import hashlib
import sys

import torch
from torch import Tensor, nn

from divaug import (
    DivAug,
    SubPolicies,
    affinity,
    default_augmentation,
    expand,
    follow,
    replay,
    score,
    select,
)
from divaug._diversity import loss_diversity, variance_diversity
from divaug.policies import (
    PBA,
    AutoAugment,
    FastAutoAugment,
    RandAugment,
    SharedLevel,
    TrivialAugment,
    Uniform,
)

POLICIES = (
    Uniform(), Uniform(space="released"), Uniform(space="uda"), RandAugment(3, 4.0), AutoAugment(),
    FastAutoAugment(), PBA(total_epochs=200), TrivialAugment(), SharedLevel(),
)  # fmt: skip
DEFAULTS = (default_augmentation.cifar10(), default_augmentation.imagenet(12), None)
RULES = ("kmeans++", "greedy", "exact", "uniform")


def images(channels: int = 3) -> Tensor:
    generator = torch.Generator("cpu").manual_seed(0)
    shape = (6, channels, 14, 13)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator, device="cpu")


def model() -> nn.Module:
    """A network in float32 on the CPU, whatever the defaults are."""
    generator = torch.Generator("cpu").manual_seed(1)
    linear = nn.Linear(3 * 14 * 13, 5, device="cpu", dtype=torch.float32)
    for weight in linear.parameters():
        shape = weight.shape
        drawn = torch.randn(shape, dtype=torch.float64, generator=generator, device="cpu")
        weight.data = (0.05 * drawn).to(torch.float32)
    return nn.Sequential(nn.Flatten(), linear)


def tensors_of(drawn: SubPolicies) -> list[tuple[str, Tensor]]:
    """Name → tensor of all that was drawn."""
    placed = drawn.placement.tensors() if drawn.placement else {}
    return [*drawn.tensors().items(), *((f"placed {name}", one) for name, one in placed.items())]


def outputs() -> dict[str, Tensor]:
    """Name → tensor."""
    batch, network, found = images(), model(), {}
    for i, policy in enumerate(POLICIES):
        for j, default in enumerate(DEFAULTS):
            candidates, drawn = expand(batch, 4, policy, default, epoch=50)
            found[f"expand {i} {j}"] = candidates
            found |= {f"{name} {i} {j}": one for name, one in tensors_of(drawn)}
    # Values that float32 holds, and bytes between which they lie.
    scale = torch.tensor(256.0, dtype=torch.float32, device="cpu")
    floats = (images().to(torch.float32) + 0.25) / scale
    found["expand floats"], _ = expand(floats, 16, POLICIES[0], None)
    plain = default_augmentation.plain((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    candidates, _ = expand(batch, 6, POLICIES[0], plain)
    found["score"] = probs = score(network, candidates)
    for rule in RULES:
        found[f"select {rule}"] = select(probs, 3, method=rule, seed=4)
        kept, labels = DivAug(network, method=rule, num_candidates=6, num_selected=3)(
            batch, torch.arange(6, device="cpu")
        )
        found[f"plug-in {rule}"], found[f"labels {rule}"] = kept, labels
    augment = DivAug(network, num_candidates=6, num_selected=3)
    augment(batch)
    again = DivAug(network, num_candidates=6, num_selected=3)
    again.load_record_state(augment.record_state())
    found["record"] = torch.tensor(list(again.record().operations.values()), device="cpu")
    found["replay"] = replay(batch, augment.kept())
    found["follow"] = follow(batch[:, 0], augment.kept(), fill=0)
    written = SubPolicies.from_json(drawn.to_json())
    found |= {f"{name} written": one for name, one in tensors_of(written)}
    found["variance diversity"] = variance_diversity(probs)
    logits = probs.log()
    labels = torch.arange(6, device="cpu") % 5
    found["loss diversity"] = loss_diversity(logits, labels)
    found["affinity"] = torch.as_tensor(affinity(logits[:, 0], logits[:, 1], labels), device="cpu")
    return found


def main() -> None:
    torch.set_default_dtype(getattr(torch, sys.argv[1]))
    torch.set_default_device(sys.argv[2])
    for name, tensor in outputs().items():
        content = tensor.detach().flatten().contiguous().view(torch.uint8).numpy().tobytes()
        print(name, tensor.dtype, tuple(tensor.shape), hashlib.sha256(content).hexdigest())


if __name__ == "__main__":
    main()
