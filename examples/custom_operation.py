"""An operation of your own in the universal set: a function on batches, and a range."""

import torch
from torch import Tensor

import divaug
from divaug.operations import Operation
from divaug.operations.magnitude import Range
from divaug.policies import Uniform


def stripes(images: Tensor, width: Tensor, center: Tensor, partner: Tensor) -> Tensor:  # noqa: ARG001
    """Blacken every other stripe of `width` pixels; 0 leaves the image alone."""
    column = torch.arange(images.shape[3], device=images.device)
    pixels = width.round().to(torch.int64)[:, None]
    dark = ((column // pixels.clamp(min=1)) % 2 == 1) & (pixels > 0)
    return images.masked_fill(dark[:, None, None, :], 0)


def main() -> list[str]:
    """Draw from the paper's space without Invert, and with stripes of up to eight pixels."""
    operation = Operation("Stripes", stripes, unit="pixels", low=0.0, high=8.0)
    policy = Uniform(exclude=("Invert",), extra=((operation, Range(0.0, 8.0, "this example")),))
    images = torch.randint(0, 256, (64, 3, 32, 32), dtype=torch.uint8)
    candidates, subpolicies = divaug.expand(images, num_candidates=8, policy=policy, seed=1)
    assert candidates.shape == (64, 8, 3, 32, 32)
    return [line for line in subpolicies.describe() if "Stripes" in line]


if __name__ == "__main__":
    print("\n".join(main()[:5]))
