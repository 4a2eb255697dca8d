"""Which devices this machine has, as far as that can be told without torch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from checks.catalog import DEVICES


def present_devices() -> tuple[str, ...]:
    """Devices of the catalog that are worth trying here; ``cpu`` is always one.

    `MATRIX_DEVICES` names them instead, where a plan is made for other machines than this one.
    Whether torch can really use one is the check's to say.
    """
    if named := os.environ.get("MATRIX_DEVICES", "").split():
        return tuple(device for device in DEVICES if device in named)
    here = {"cpu"}
    if _has_nvidia():
        here.add("cuda")
    if sys.platform == "darwin":
        here.add("mps")
    if Path("/dev/dri").is_dir() and shutil.which("xpu-smi"):
        here.add("xpu")
    return tuple(device for device in DEVICES if device in here)


def _has_nvidia() -> bool:
    if Path("/dev/nvidiactl").exists():
        return True
    try:
        listing = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, check=True, timeout=20
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    return "GPU" in listing
