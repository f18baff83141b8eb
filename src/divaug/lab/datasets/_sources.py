"""Where the datasets come from: files, addresses and checksums of the official sites.

The MD5 sums are those the dataset pages publish, or that torchvision checks where they do not.
"""

from dataclasses import dataclass

from divaug.lab.datasets._download import RemoteFile


@dataclass(frozen=True)
class CifarSource:
    """The archive of a CIFAR dataset and what is inside.

    Attributes:
        archive: The file to download.
        folder: The folder inside the archive.
        train: (file, checksum) of each training batch, in order.
        test: (file, checksum) of the test batch.
        meta: (file, checksum) of the class names.
        labels_key: Under which key a batch has its labels.
        names_key: Under which key the meta file has the class names.
    """

    archive: RemoteFile
    folder: str
    train: tuple[tuple[str, str], ...]
    test: tuple[str, str]
    meta: tuple[str, str]
    labels_key: str
    names_key: str

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """All files that are read, with their checksums."""
        return (*self.train, self.test, self.meta)


@dataclass(frozen=True)
class FourFiles:
    """Images and labels of both parts in four files of their own."""

    train_images: RemoteFile
    train_labels: RemoteFile
    test_images: RemoteFile
    test_labels: RemoteFile


@dataclass(frozen=True)
class TwoFiles:
    """Training and test part, each in one file."""

    train: RemoteFile
    test: RemoteFile


_CIFAR = "https://www.cs.toronto.edu/~kriz/"
_SVHN = "http://ufldl.stanford.edu/housenumbers/"
_FASHION_MNIST = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"

CIFAR10 = CifarSource(
    archive=RemoteFile(
        "cifar-10-python.tar.gz",
        _CIFAR + "cifar-10-python.tar.gz",
        ("md5:c58f30108f718f92721af3b95e74349a",),
    ),
    folder="cifar-10-batches-py",
    train=(
        ("data_batch_1", "md5:c99cafc152244af753f735de768cd75f"),
        ("data_batch_2", "md5:d4bba439e000b95fd0a9bffe97cbabec"),
        ("data_batch_3", "md5:54ebc095f3ab1f0389bbae665268c751"),
        ("data_batch_4", "md5:634d18415352ddfa80567beed471001a"),
        ("data_batch_5", "md5:482c414d41f54cd18b22e5b47cb7c3cb"),
    ),
    test=("test_batch", "md5:40351d587109b95175f43aff81a1287e"),
    meta=("batches.meta", "md5:5ff9c542aee3614f3951f8cda6e48888"),
    labels_key="labels",
    names_key="label_names",
)

CIFAR100 = CifarSource(
    archive=RemoteFile(
        "cifar-100-python.tar.gz",
        _CIFAR + "cifar-100-python.tar.gz",
        ("md5:eb9058c3a382ffc7106e4002c42a8d85",),
    ),
    folder="cifar-100-python",
    train=(("train", "md5:16019d7e3df5f24257cddd939b257f8d"),),
    test=("test", "md5:f0ef6b0ae62326f3e7ffdfab6717acfc"),
    meta=("meta", "md5:7973b15100ade9c7d40fb424638fde48"),
    labels_key="fine_labels",
    names_key="fine_label_names",
)

SVHN = TwoFiles(
    train=RemoteFile(
        "train_32x32.mat",
        _SVHN + "train_32x32.mat",
        ("md5:e26dedcc434d2e4c54c9b2d4a06d8373",),
    ),
    test=RemoteFile(
        "test_32x32.mat",
        _SVHN + "test_32x32.mat",
        ("md5:eb5a983be6a315427106f1b164d9cef3",),
    ),
)


def _fashion_mnist_file(name: str, official: str, debian: str) -> RemoteFile:
    return RemoteFile(name, _FASHION_MNIST + name, (f"md5:{official}", f"md5:{debian}"))


# Second checksum: the same content as Debian's package dataset-fashion-mnist has it, compressed
# with another time and no file name in the header.
FASHION_MNIST = FourFiles(
    train_images=_fashion_mnist_file(
        "train-images-idx3-ubyte.gz",
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "cf8536b0aa1a6ac5fa3f23001093305c",
    ),
    train_labels=_fashion_mnist_file(
        "train-labels-idx1-ubyte.gz",
        "25c81989df183df01b3e8a0aad5dffbe",
        "10bea18fdb374794d4bb42e356e600c9",
    ),
    test_images=_fashion_mnist_file(
        "t10k-images-idx3-ubyte.gz",
        "bef4ecab320f06d8554ea6380940ec79",
        "f78720b4224f21cce2f2ccf2d7a94c9a",
    ),
    test_labels=_fashion_mnist_file(
        "t10k-labels-idx1-ubyte.gz",
        "bb300cfdad3c16e7a12a480ee83cd310",
        "0d30e22e447f3c33dab9ed536400ac01",
    ),
)
