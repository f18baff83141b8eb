"""Datasets as uint8 tensors with labels and statistics; folders of large images as streams."""

from divaug.lab.datasets import streaming
from divaug.lab.datasets._cifar import cifar10, cifar100
from divaug.lab.datasets._dataset import Dataset, balanced_indices
from divaug.lab.datasets._download import RemoteFile
from divaug.lab.datasets._fashion_mnist import SHIPPED, fashion_mnist, shipped
from divaug.lab.datasets._identity import DataIdentity, identify
from divaug.lab.datasets._image_files import (
    Files,
    ImageFiles,
    image_files,
    is_image_folder,
    unread_extension,
)
from divaug.lab.datasets._image_folder import image_folder
from divaug.lab.datasets._imagenet import imagenet
from divaug.lab.datasets._npz import npz
from divaug.lab.datasets._order import order
from divaug.lab.datasets._partners import MAX_PARTNERS, partners
from divaug.lab.datasets._statistics import STATISTICS, Statistics, channel_statistics
from divaug.lab.datasets._svhn import svhn
from divaug.lab.datasets._table import DATASETS, check_name, default_root, load
from divaug.lab.datasets.streaming import ImageStream, StreamBatch

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
