"""The plug-in inside other people's loops: loaders, Lightning, Hugging Face, timm.

What stands here needs torch alone. The adapters of a framework are modules of their own,
`divaug.adapters.lightning`, `.transformers` and `.timm`, and import it when they are imported.
"""

from divaug.adapters.fields import Fields
from divaug.adapters.loader import AugmentedLoader, Numbered

__all__ = ["AugmentedLoader", "Fields", "Numbered"]
