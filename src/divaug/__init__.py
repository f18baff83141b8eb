"""DivAug: automated data augmentation that follows the model.

Every image gets E random sub-policies, the model says what it makes of each, and the S candidates
whose predictions lie far apart are kept.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from divaug import default_augmentation, operations, policies
    from divaug._augmenters import DivAug, Explanation, Views
    from divaug._base import Augmenter, Expansion
    from divaug.default_augmentation import DefaultAugmentation
    from divaug.diversity import affinity, loss_diversity, variance_diversity
    from divaug.expansion import expand
    from divaug.following import follow
    from divaug.records import Record
    from divaug.replaying import replay
    from divaug.scoring import score
    from divaug.selection import select
    from divaug.subpolicies import SubPolicies

__version__ = "0.1.0"

__all__ = [
    "Augmenter",
    "DefaultAugmentation",
    "DivAug",
    "Expansion",
    "Explanation",
    "Record",
    "SubPolicies",
    "Views",
    "__version__",
    "affinity",
    "default_augmentation",
    "expand",
    "follow",
    "loss_diversity",
    "operations",
    "policies",
    "replay",
    "score",
    "select",
    "variance_diversity",
]

# Module → the public names that it has. Imported on first use: the tables of `divaug.lab.results`
# and the help of the command line need no torch, which takes most of the time.
_HOMES = {
    "_augmenters": ("DivAug", "Explanation", "Views"),
    "_base": ("Augmenter", "Expansion"),
    "default_augmentation": ("DefaultAugmentation",),
    "diversity": ("affinity", "loss_diversity", "variance_diversity"),
    "expansion": ("expand",),
    "following": ("follow",),
    "records": ("Record",),
    "replaying": ("replay",),
    "scoring": ("score",),
    "selection": ("select",),
    "subpolicies": ("SubPolicies",),
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
