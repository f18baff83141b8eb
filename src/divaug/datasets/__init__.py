"""Datasets as uint8 tensors with labels and statistics; folders of large images as streams."""

from divaug.datasets import streaming
from divaug.datasets._cifar import cifar10, cifar100
from divaug.datasets._dataset import Dataset, balanced_indices
from divaug.datasets._download import RemoteFile
from divaug.datasets._fashion_mnist import SHIPPED, fashion_mnist, shipped
from divaug.datasets._identity import DataIdentity, identify
from divaug.datasets._image_files import (
    Files,
    ImageFiles,
    image_files,
    is_image_folder,
    unread_extension,
)
from divaug.datasets._image_folder import image_folder
from divaug.datasets._imagenet import imagenet
from divaug.datasets._npz import npz
from divaug.datasets._order import order
from divaug.datasets._partners import MAX_PARTNERS, partners
from divaug.datasets._statistics import STATISTICS, Statistics, channel_statistics
from divaug.datasets._svhn import svhn
from divaug.datasets._table import DATASETS, check_name, default_root, load
from divaug.datasets.streaming import ImageStream, StreamBatch

__all__ = [
    "DATASETS",
    "MAX_PARTNERS",
    "SHIPPED",
    "STATISTICS",
    "DataIdentity",
    "Dataset",
    "Files",
    "ImageFiles",
    "ImageStream",
    "RemoteFile",
    "Statistics",
    "StreamBatch",
    "balanced_indices",
    "channel_statistics",
    "check_name",
    "cifar10",
    "cifar100",
    "default_root",
    "fashion_mnist",
    "identify",
    "image_files",
    "image_folder",
    "imagenet",
    "is_image_folder",
    "load",
    "npz",
    "order",
    "partners",
    "shipped",
    "streaming",
    "svhn",
    "unread_extension",
]
