"""Datasets as uint8 tensors with labels and statistics; folders of large images as streams."""

from divaug.lab.datasets.catalogue import (
    DATASETS,
    SHIPPED,
    Facts,
    check_name,
    default_root,
    load,
    plain_name,
)
from divaug.lab.datasets.dataset import (
    DataIdentity,
    Dataset,
    Files,
    ImageFiles,
    Statistics,
    balanced_indices,
    channel_statistics,
    identify,
)
from divaug.lab.datasets.folder import decode, image_files, is_image_folder
from divaug.lab.datasets.npz import npz
from divaug.lab.datasets.order import order
from divaug.lab.datasets.stream import MAX_PARTNERS, ImageStream, StreamBatch, partners

__all__ = [
    "DATASETS",
    "MAX_PARTNERS",
    "SHIPPED",
    "DataIdentity",
    "Dataset",
    "Facts",
    "Files",
    "ImageFiles",
    "ImageStream",
    "Statistics",
    "StreamBatch",
    "balanced_indices",
    "channel_statistics",
    "check_name",
    "decode",
    "default_root",
    "identify",
    "image_files",
    "is_image_folder",
    "load",
    "npz",
    "order",
    "partners",
    "plain_name",
]
