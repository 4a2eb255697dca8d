"""The environment that a cell sees: enough to run, and nothing of the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Tokens have many names, so what may pass is listed, not what may not.
_PASS = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "COMSPEC",
    "PATHEXT",
    "NUMBER_OF_PROCESSORS",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
)
_PASS_PREFIXES = ("CUDA_", "NVIDIA_", "ROCR_", "HIP_", "OPENBLAS_CORETYPE", "OPENBLAS_L2")

_ALWAYS = {
    # Nothing is looked up or sent while a cell runs.
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "DO_NOT_TRACK": "1",
    # One thread, and the same order of everything.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONHASHSEED": "0",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    "PYTHONNOUSERSITE": "1",
    "PYTHONUTF8": "1",
}


def cell_environ(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """The environment of a cell, made from the user's.

    `home` stands for the user's home folder, so that no token, cache or configuration in it is
    found.
    """
    passed = {
        name: value
        for name, value in environ.items()
        if name.upper() in _PASS or name.upper().startswith(_PASS_PREFIXES)
    }
    return {
        **passed,
        **_ALWAYS,
        "HOME": str(home),
        "USERPROFILE": str(home),
        "HF_HOME": str(home / "huggingface"),
        "XDG_CACHE_HOME": str(home / "cache"),
    }
