"""Where a measurement was made: versions, machine, devices. And whether it can be made at all."""

from __future__ import annotations

import importlib.metadata
import logging
import os
import platform
import re
import sys
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checks.catalog import DEVICES
from checks.revision import check_revision

_PACKAGES = (
    "accelerate",
    "flash-attn",
    "huggingface-hub",
    "kernels",
    "numpy",
    "pytest",
    "safetensors",
    "tokenizers",
)


@dataclass(frozen=True)
class ImportFailure:
    """Why no case can be measured.

    Attributes:
        reason: ``import_failed`` or ``torch_too_old``.
        message: one line.
        traceback: the last lines.
    """

    reason: str
    message: str
    traceback: str


class _Heard(logging.Handler):
    """Keeps what transformers logs while it is imported."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def import_transformers() -> ImportFailure | None:
    """Import torch and transformers, and see that the release can use this torch.

    A release that finds torch too old doesn't say so in its error: it warns, hides torch, and
    fails later as if there were none. So the warning is listened for.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    heard = _Heard()
    logger = logging.getLogger("transformers")
    logger.addHandler(heard)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                import torch

                torch.set_num_threads(1)
                from transformers.utils import is_torch_available

                if not is_torch_available():
                    raise ImportError("transformers finds no torch")  # noqa: TRY301 - as others
            except BaseException as error:
                if isinstance(error, (KeyboardInterrupt, SystemExit)):
                    raise
                said = [*heard.lines, *(str(warning.message) for warning in warned)]
                return _failure(error, said)
    finally:
        logger.removeHandler(heard)
    return None


def _failure(error: BaseException, said: list[str]) -> ImportFailure:
    lines = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    tail = "\n".join(lines.strip().splitlines()[-6:]).replace(str(Path.home()), "~")
    floor = torch_floor([*said, str(error)]) or torch_floor([_source_of_floor()])
    if floor is not None and _torch_older_than(floor):
        return ImportFailure(
            "torch_too_old", f"needs torch >= {floor}, found {_torch_version()}", tail
        )
    message = " ".join(str(error).split())
    return ImportFailure("import_failed", f"{type(error).__name__}: {message}"[:300], tail)


def torch_floor(texts: list[str]) -> str | None:
    """The oldest torch that a release asks for, as its messages or its source say it."""
    for text in texts:
        found = re.search(
            r"(?:PyTorch|torch)\s*(?:version\s*)?>=\s*v?(\d+(?:\.\d+)+)|"
            r"(?:PyTorch|torch) version (\d+(?:\.\d+)+) or (?:newer|higher|later)",
            text,
        )
        if found:
            return found.group(1) or found.group(2)
    return None


def _source_of_floor() -> str:
    """The text in which a release compares torch's version with its floor."""
    module = sys.modules.get("transformers")
    folder = Path(getattr(module, "__file__", None) or "missing").parent
    try:
        text = (folder / "utils" / "import_utils.py").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(r"Disabling PyTorch because[^\n]*", text)
    return found.group(0) if found else ""


def _torch_version() -> str:
    module = sys.modules.get("torch")
    return str(getattr(module, "__version__", "none"))


def _torch_older_than(floor: str) -> bool:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text.split("+")[0])]

    return numbers(_torch_version()) < numbers(floor)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def describe_environment() -> dict[str, Any]:
    """The ``environment`` line of the protocol. torch and transformers are imported already."""
    import torch
    import transformers

    from checks.measure import device_present

    devices = {"cpu": platform.processor() or platform.machine()}
    for device in DEVICES[1:]:
        if device_present(device):
            name = getattr(getattr(torch, device), "get_device_name", None)
            devices[device] = str(name(0)) if callable(name) else device
    packages = {name: found for name in _PACKAGES if (found := _version(name)) is not None}
    return {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "python_build": f"{platform.python_implementation()} {' '.join(platform.python_build())}",
        "platform": platform.platform(),
        "machine": platform.machine(),
        "devices": devices,
        "transformers_path": str(Path(transformers.__file__).parent),
        "packages": packages,
        "check_revision": check_revision(),
    }
