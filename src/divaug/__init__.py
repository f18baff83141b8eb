"""Image augmentation on the device of the model, and DivAug's choice among views.

`Views` draws augmented views of every image from a policy. `DivAug` also scores E candidates of
each image with the model and keeps the S whose predictions lie far apart.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from divaug import default_augmentation, objectives, operations, policies
    from divaug._augmenters import DivAug, Explanation, Views
    from divaug._base import Augmenter, Expansion
    from divaug._diversity import (
        AffinityMeter,
        Mean,
        affinity,
        loss_diversity,
        upper_bound,
        variance_diversity,
    )
    from divaug._expand import expand, replay
    from divaug._follow import follow
    from divaug._record import Record
    from divaug._score import score
    from divaug._select import select
    from divaug._subpolicies import Placement, SubPolicies
    from divaug.default_augmentation import DefaultAugmentation

__version__ = "0.1.0"

__all__ = [
    "AffinityMeter",
    "Augmenter",
    "DefaultAugmentation",
    "DivAug",
    "Expansion",
    "Explanation",
    "Mean",
    "Placement",
    "Record",
    "SubPolicies",
    "Views",
    "__version__",
    "affinity",
    "default_augmentation",
    "expand",
    "follow",
    "loss_diversity",
    "objectives",
    "operations",
    "policies",
    "replay",
    "score",
    "select",
    "upper_bound",
    "variance_diversity",
]

# Module → the public names that it has. Imported on first use: the tables of `divaug.lab.results`
# and the help of the command line need no torch, which takes most of the time.
_HOMES = {
    "_augmenters": ("DivAug", "Explanation", "Views"),
    "_base": ("Augmenter", "Expansion"),
    "_diversity": (
        "AffinityMeter",
        "Mean",
        "affinity",
        "loss_diversity",
        "upper_bound",
        "variance_diversity",
    ),
    "_expand": ("expand", "replay"),
    "_follow": ("follow",),
    "_record": ("Record",),
    "_score": ("score",),
    "_select": ("select",),
    "_subpolicies": ("Placement", "SubPolicies"),
    "default_augmentation": ("DefaultAugmentation",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker must refuse names that are not there

    def __getattr__(name: str) -> object:
        """Import a public name, or a public module, on first use."""
        if name in _HOME_OF:
            value = getattr(import_module(f"divaug.{_HOME_OF[name]}"), name)
        elif name in __all__:
            value = import_module(f"divaug.{name}")
        else:
            raise AttributeError(f"module 'divaug' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List public names, also those that were not imported yet."""
    return sorted({*globals(), *__all__})
