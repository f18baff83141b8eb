"""DivAug: automated data augmentation that follows the model.

Every image gets E random sub-policies, the model says what it makes of each, and the S candidates
whose predictions lie far apart are kept.
"""

from divaug import default_augmentation, operations, policies
from divaug.default_augmentation import DefaultAugmentation
from divaug.diversity import affinity, loss_diversity, variance_diversity
from divaug.expansion import expand
from divaug.following import follow
from divaug.plugin import DivAug
from divaug.replaying import replay
from divaug.scoring import score
from divaug.selection import select
from divaug.subpolicies import SubPolicies
from divaug.views import Views

__version__ = "0.1.0"

__all__ = [
    "DefaultAugmentation",
    "DivAug",
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
