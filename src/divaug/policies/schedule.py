"""PBA's schedule as numbers, which batched PyTorch and the kernel read alike."""

from typing import NamedTuple

from torch import Tensor

from divaug.policies.checks import check_epoch

__all__ = ["AT_MOST", "MOST_OPERATIONS", "Schedule", "needed_epoch"]

#: Chances that at most 0 and at most 1 operations are applied; otherwise at most 2.
AT_MOST = (0.2, 0.5)
MOST_OPERATIONS = 2


class Schedule(NamedTuple):
    """A schedule as tensors, for one size of image.

    Args:
        integers: int32 `[segments,entries,4]`; see `PolicyTable`.
        floats: float32 `[segments,entries,8]`; likewise.
        segment_of_epoch: int64 `[epochs]`.
    """

    integers: Tensor
    floats: Tensor
    segment_of_epoch: Tensor


def needed_epoch(epoch: int | Tensor | None, policy: str) -> int | Tensor:
    """The epoch, which a policy of that name cannot do without.

    Raises:
        ValueError: there is none, or it is no number of an epoch.
    """
    if epoch is None:
        raise ValueError(f"{policy} is a schedule: pass `epoch`, the number of the current epoch.")
    return check_epoch(epoch)
