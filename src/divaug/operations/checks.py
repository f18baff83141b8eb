"""Checks of the arguments of `apply`."""

from collections.abc import Callable

import torch
from torch import Tensor

from divaug._checks import holds_integers, real
from divaug._names import unknown_name
from divaug.operations.table import EVERY, OPERATIONS, Operation

__all__ = [
    "FLOAT_DTYPES",
    "MAX_SIDE",
    "check_argument",
    "check_center",
    "check_images",
    "check_partner",
    "operation_ids",
]

FLOAT_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
#: Up to here every coordinate of the widest shear and translation fits Pillow's 16.16 fixed point;
#: beyond it Pillow changes to another arithmetic.
MAX_SIDE = 8192


def check_images(images: object, name: str = "images") -> Tensor:
    """Return `images` if it is a batch that the operations can work on."""
    if not isinstance(images, Tensor):
        raise TypeError(
            f"`{name}` must be a torch.Tensor [B,C,H,W], got {type(images).__name__}; convert with "
            "torch.from_numpy, or stack images of one size with torch.stack."
        )
    if images.dtype != torch.uint8 and images.dtype not in FLOAT_DTYPES:
        raise TypeError(
            f"`{name}` must be uint8, or float32, float16 or bfloat16 in [0, 1], got "
            f"{images.dtype}; convert integers up to 255 with .to(torch.uint8), floats with "
            ".float()."
        )
    if images.ndim != 4:
        raise ValueError(
            f"`{name}` must have four axes [B,C,H,W], got shape {tuple(images.shape)}; add a "
            f"missing axis with {name}[None], join leading ones with .flatten."
        )
    _, channels, height, width = images.shape
    if channels not in (1, 3):
        raise ValueError(
            f"`{name}` must have 1 or 3 channels [B,C,H,W], got C={channels} in shape "
            f"{tuple(images.shape)}; {_channels_remedy(name, images.shape)}."
        )
    if not (1 <= height <= MAX_SIDE and 1 <= width <= MAX_SIDE):
        raise ValueError(
            f"`{name}` must be between 1×1 and {MAX_SIDE}×{MAX_SIDE} pixels, got "
            f"{height}×{width}; resize or tile the images first."
        )
    if images.dtype != torch.uint8 and images.numel():
        _check_unit_range(images, name)
    return images


def _channels_remedy(name: str, shape: torch.Size) -> str:
    if shape[3] in (1, 3):
        return f"move the channel axis with {name}.permute(0, 3, 1, 2)"
    return f"pass grey or RGB images, without an alpha channel, such as {name}[:, :3] of RGBA"


def _check_unit_range(images: Tensor, name: str) -> None:
    low, high = (float(bound) for bound in images.detach().aminmax())
    if not (low >= 0.0 and high <= 1.0):
        raise ValueError(
            f"float `{name}` must lie in [0, 1], got values from {low!r} to {high!r}; of values "
            "from 0 to 255 pass uint8; move Normalize after the augmentation."
        )


def operation_ids(operation: str | Tensor, batch: int, device: torch.device) -> Tensor:
    """Return the ids [B] of one name for all images or of a tensor of ids."""
    if isinstance(operation, str):
        if operation not in EVERY:
            raise ValueError(unknown_name("operation", operation, tuple(EVERY)))
        return torch.full((batch,), tuple(EVERY).index(operation), device=device)
    if not isinstance(operation, Tensor):
        raise TypeError(
            f"`operation` must be a name or an integer tensor [B], got {type(operation).__name__}."
        )
    if not holds_integers(operation):
        raise TypeError(f"`operation` must hold integers, got {operation.dtype}.")
    if operation.shape != (batch,):
        raise ValueError(
            f"`operation` must have shape ({batch},), one id per image, "
            f"got {tuple(operation.shape)}."
        )
    if batch and not (int(operation.min()) >= 0 and int(operation.max()) < len(OPERATIONS)):
        raise ValueError(
            f"`operation` ids must lie in [0, {len(OPERATIONS) - 1}], positions in OPERATIONS, "
            f"got {int(operation.min())} to {int(operation.max())}."
        )
    return operation.to(device=device, dtype=torch.int64)


def check_argument(argument: float | Tensor | None, ids: Tensor, side: int) -> Tensor:
    """Return the argument of every image as float64 [B], each in its operation's range."""
    used = [name for i, name in enumerate(EVERY) if bool((ids == i).any())]
    if argument is None:
        lacking = [name for name in used if EVERY[name].needs_argument]
        if lacking:
            raise ValueError(
                f"`argument` is missing: {lacking[0]} needs one, in {EVERY[lacking[0]].unit}."
            )
        return torch.zeros(len(ids), dtype=torch.float64, device=ids.device)
    values = _as_float64(argument, ids)
    for name in used:
        if EVERY[name].needs_argument:
            _check_range(name, values[ids == tuple(EVERY).index(name)], side)
    return values


def _as_float64(argument: float | Tensor, ids: Tensor) -> Tensor:
    if isinstance(argument, Tensor):
        if argument.is_complex() or argument.dtype == torch.bool:
            raise TypeError(f"`argument` must hold real numbers, got {argument.dtype}.")
        if argument.ndim and argument.shape != ids.shape:
            raise ValueError(
                f"`argument` must be a number or have shape ({len(ids)},), one per image, "
                f"got {tuple(argument.shape)}."
            )
        return argument.to(device=ids.device, dtype=torch.float64).expand(len(ids))
    number = real(argument)
    if number is None:
        raise TypeError(
            f"`argument` must be a number or a tensor [B], got {type(argument).__name__}."
        )
    return torch.full((len(ids),), float(number), dtype=torch.float64, device=ids.device)


def _check_range(name: str, values: Tensor, side: int) -> None:
    this = EVERY[name]
    # A square over twice the longer side covers the image from anywhere: more is a mistake.
    high = 2.0 * side if this.needs_center else this.high
    bad = ~((values >= this.low) & (values <= high))
    if this.whole:
        bad |= values != values.floor()
    if bool(bad.any()):
        kind = "an integer" if this.whole else "finite and"
        raise ValueError(
            f"`argument` of {name} must be {kind} in [{this.low:g}, {high:g}] {this.unit}, "
            f"got {float(values[bad][0])!r}; nothing is clamped, so pass a value in that range."
        )


def _needing(ids: Tensor, what: Callable[[Operation], bool]) -> Tensor:
    """Return a mask [B] of the images whose operation needs something."""
    return torch.tensor([what(this) for this in EVERY.values()], device=ids.device)[ids]


def check_center(center: Tensor | None, ids: Tensor, height: int, width: int) -> Tensor | None:
    """Return the places [B,2] of Cutout, checked where Cutout is used."""
    placed = _needing(ids, lambda operation: operation.needs_center)
    if not bool(placed.any()):
        return None
    if center is None:
        raise ValueError("`center` is missing: Cutout needs an integer tensor [B,2] of (y, x).")
    if not isinstance(center, Tensor) or not holds_integers(center):
        kind = center.dtype if isinstance(center, Tensor) else type(center).__name__
        raise TypeError(f"`center` must be an integer tensor [B,2] of (y, x), got {kind}.")
    if center.shape != (len(ids), 2):
        raise ValueError(
            f"`center` must have shape ({len(ids)}, 2) as (y, x), got {tuple(center.shape)}."
        )
    places = center.to(device=ids.device, dtype=torch.int64)
    size = torch.tensor([height, width], device=ids.device)
    outside = placed & ((places < 0) | (places >= size)).any(1)
    if bool(outside.any()):
        y, x = places[outside][0].tolist()
        raise ValueError(
            f"`center` must be a pixel of the {height}×{width} image as (y, x), got ({y}, {x})."
        )
    return places


def check_partner(partner: Tensor | None, images: Tensor, ids: Tensor) -> Tensor | None:
    """Return the second images of SamplePairing, checked where SamplePairing is used."""
    if not bool(_needing(ids, lambda operation: operation.needs_partner).any()):
        return None
    if partner is None:
        raise ValueError(
            "`partner` is missing: SamplePairing needs a second batch of the same shape as "
            "`images`."
        )
    check_images(partner, "partner")
    if partner.shape != images.shape or partner.dtype != images.dtype:
        raise ValueError(
            f"`partner` must match `images` {tuple(images.shape)} {images.dtype}, "
            f"got {tuple(partner.shape)} {partner.dtype}."
        )
    return partner.to(images.device)
