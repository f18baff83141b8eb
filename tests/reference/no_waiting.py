"""A mode in which every operation that would make the host wait for the device is an error."""

from torch.utils._python_dispatch import TorchDispatchMode

# A number read from a tensor, or a result whose shape depends on values.
WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "is_nonzero", "equal")


class NoWaiting(TorchDispatchMode):
    """Refuse what needs values on the host."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.__name__.split(".")[0]
        if name in WAITING or name.startswith(("_unique", "nonzero")):
            raise AssertionError(f"{name} makes the host wait for the device")
        return function(*args, **(kwargs or {}))
