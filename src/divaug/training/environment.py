"""What a run ran on: machine, versions, commit."""

import os
import platform
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from divaug.training.distributed import Processes
from divaug.training.hardware import Hardware

__all__ = ["environment"]

_PACKAGES = ("divaug", "torch", "torchvision", "numpy", "triton", "safetensors")


def environment(hardware: Hardware, processes: Processes) -> dict[str, Any]:
    """Versions, hardware and, in a git checkout, the commit."""
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
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "processes": processes.count,
        "precision": str(hardware.dtype).removeprefix("torch."),
        "compiled": hardware.compiled,
        "graphed": hardware.graphed,
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": versions,
        "commit": _commit(),
    }


def _processor() -> str:
    try:
        listing = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    names = [
        line.partition(":")[2].strip() for line in listing.splitlines() if "model name" in line
    ]
    return names[0] if names else platform.machine()


def _commit() -> str | None:
    """The commit of the checkout that this file lies in, with a mark where it was changed."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+changes" if changed else "")


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *words], capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout.strip()
