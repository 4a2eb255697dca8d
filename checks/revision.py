"""A digest of the sources that could change a measurement.

A released version does not change, so a record made under the same revision need never be
made again. Whatever cannot change a record (the command line, the text of the reproducer, how
pytest is driven) is left out, so that touching it doesn't cost a new run of the whole history.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_NOT_MEASURING = frozenset(
    {
        "__init__.py",
        "__main__.py",
        "configuration.py",
        "conftest.py",
        "limits.py",
        "plugin.py",
        "reproduce.py",
        "revision.py",
        "verdict.py",
    }
)


@cache
def check_revision() -> str:
    """Twelve hex digits, the same on every platform and for every checkout of the same text."""
    folder = Path(__file__).resolve().parent
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if path.name not in _NOT_MEASURING and not path.name.startswith("test_")
    )
    digest = hashlib.sha256()
    for name in names:
        # Checkouts may turn line ends into those of the platform.
        text = (folder / name).read_bytes().replace(b"\r\n", b"\n")
        digest.update(name.encode() + b"\0" + hashlib.sha256(text).digest())
    return digest.hexdigest()[:12]
