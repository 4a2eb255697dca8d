"""Compiled modules that layers share: what one release has compiled, the next need not.

Most of what a release imports is the same text as in the release before it, and compiling it
is a large part of a first import. Python's own hash-based ``.pyc`` files make sharing safe:
before it uses one, Python reads the source and compares its hash with the one inside, and
compiles anew where they differ. Nothing here decides what is run; a wrong file in the cache
costs time, no more. Paths in tracebacks are right as well: Python sets them when it loads.

In a folder, one for each version of Python, there are

- ``paths``: the modules that were ever imported from a layer, relative to it, a line each;
- ``SOURCE-CODE.pyc``: what Python wrote for a source, named by digests of both, so that one
  that is damaged is found out.

Before an import, `lend` puts hard links to those that fit into a layer; for other modules on
the list it puts a header alone, which fits no source, so that Python compiles as it would, but
writes its file in this form. Afterwards `keep` takes what was compiled. Where the file system
has no hard links, and wherever else anything fails, Python compiles as ever.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import sys
import tempfile
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHECKED = (0b11).to_bytes(4, "little")
"""The flags of PEP 552 that say: by hash, and compare it each time."""
_HEADER_SIZE = 16


class Bytecode:
    """The cache under one folder, for the Python that runs this. Several processes may use it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / f"{sys.implementation.cache_tag}-{platform.python_version()}"
        self._paths = self._folder / "paths"

    def lend(self, layer: Path) -> None:
        """Put into `layer` what is known of the modules in it that are not compiled yet."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            known = self._known()
            with tempfile.NamedTemporaryFile(dir=self._folder, prefix=".") as empty:
                empty.write(util.MAGIC_NUMBER + _CHECKED + bytes(8))
                empty.flush()
                # The first layer of all has only guesses: each module in it.
                sources = {layer / path for path in self._listed()} or layer.rglob("*.py")
                for source in sources:
                    place = Path(util.cache_from_source(str(source)))
                    if not place.exists():
                        self._lend_one(source, place, known, Path(empty.name))

    def _lend_one(self, source: Path, place: Path, known: dict[str, str], empty: Path) -> None:
        with contextlib.suppress(OSError):  # also where this release has no such module
            name = known.get(_digest(source.read_bytes()))
            place.parent.mkdir(exist_ok=True)
            if name is not None and self._is_whole(self._folder / name):
                os.link(self._folder / name, place)
            else:
                os.link(empty, place)

    def _is_whole(self, file: Path) -> bool:
        """Whether a file of the cache is as it was written; if not, it is forgotten."""
        if file.stem.partition("-")[2] == _digest(file.read_bytes()):
            return True
        file.unlink()
        return False

    def keep(self, layer: Path) -> None:
        """Take what is compiled of the modules that this process has from `layer`."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            imported = dict(_imported(layer))
            new = sorted(imported.keys() - self._listed())
            if new:
                # One write at the end of the file: whole lines beside those of other processes.
                with self._paths.open("ab", buffering=0) as file:
                    file.write("".join(f"\n{path}" for path in new).encode() + b"\n")
            known = self._known()
            for path, place in imported.items():
                self._keep_one(layer / path, place, known)

    def _keep_one(self, source: Path, place: Path, known: dict[str, str]) -> None:
        with contextlib.suppress(OSError):
            if place.stat().st_nlink > 1:
                return  # it was lent
            code, content = place.read_bytes(), source.read_bytes()
            header = util.MAGIC_NUMBER + _CHECKED + util.source_hash(content)
            if not code.startswith(header) or len(code) == _HEADER_SIZE:
                return  # not by hash, or none that Python has written
            digest = _digest(content)
            # Its bytes differ by the layer that it was made in; one of them is enough.
            if digest not in known:
                os.link(place, self._folder / f"{digest}-{_digest(code)}.pyc")

    def _known(self) -> dict[str, str]:
        """Digest of a source -> name of a file for it."""
        # Thousands of names: strings are enough.
        return {name.partition("-")[0]: name for name in os.listdir(self._folder)}  # noqa: PTH208

    def _listed(self) -> set[str]:
        try:
            return {line for line in self._paths.read_text(encoding="utf-8").split("\n") if line}
        except FileNotFoundError:
            return set()


def _imported(layer: Path) -> Iterator[tuple[str, Path]]:
    """Modules that this process has from `layer`: path in it, and place of the compiled file."""
    inside = f"{layer}{os.sep}"
    for module in tuple(sys.modules.values()):
        # Not `getattr`, for which a lazy module might import something.
        spec = getattr(module, "__dict__", {}).get("__spec__")
        origin, cached = getattr(spec, "origin", None), getattr(spec, "cached", None)
        if isinstance(origin, str) and isinstance(cached, str) and origin.startswith(inside):
            yield origin[len(inside) :], Path(cached)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
