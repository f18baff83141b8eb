"""What a run ran on: machine, versions, commit."""

import os
import platform
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from divaug.lab.checkout import commit, processor
from divaug.lab.train.distributed import Processes
from divaug.lab.train.hardware import Hardware

__all__ = ["environment"]

_PACKAGES = ("divaug", "torch", "torchvision", "numpy", "triton", "safetensors")


def environment(hardware: Hardware, processes: Processes) -> dict[str, Any]:
    """Versions, hardware and, where it is known, the commit."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    cuda = hardware.device.type == "cuda"
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "device": hardware.device.type,
        "gpu": torch.cuda.get_device_name(hardware.device) if cuda else None,
        "cuda": torch.version.cuda if cuda else None,
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "processes": processes.count,
        "precision": str(hardware.dtype).removeprefix("torch."),
        "compiled": hardware.compiled,
        "graphed": hardware.graphed,
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": versions,
        "commit": commit(),
    }
