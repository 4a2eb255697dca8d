"""Layers: a folder for each release, with what the runtime does not already provide.

The runtime's versions are constraints, so that everything the fork server has imported
fits every layer. Where a release cannot live with them, it gets a whole environment.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from matrix.ledger import write_atomically
from matrix.records import Reason, Source
from matrix.runtimes import create_environment, describe, runtime_requirements
from matrix.uv import Uv, UvError

if TYPE_CHECKING:
    from matrix.releases import Release
    from matrix.runtimes import Environment


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """Where a release is, and on what it runs.

    Attributes:
        isolation: ``layer`` or ``environment``.
        folder: The layer, or the environment of its own.
        executable: The interpreter that runs it.
        packages: Name -> version of everything that the release sees.
    """

    isolation: str
    folder: str
    executable: str
    packages: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotInstalled:
    """Why a release could not be installed.

    Attributes:
        reason: Code for its records.
        message: In one sentence.
        log: End of uv's log.
    """

    reason: Reason
    message: str
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Makes and keeps the layers of one runtime.

    Attributes:
        package: The package whose releases these are.
        runtime: The environment under them.
        extras: What the grid adds to the runtime.
        uv: uv.
        folder: Where layers are kept.
    """

    package: str
    runtime: Environment
    extras: tuple[str, ...]
    uv: Uv
    folder: Path

    def install(self, release: Release) -> Installed | NotInstalled:
        """The layer or environment of `release`, made now or kept from an earlier run.

        Raises:
            DiskFullError: No space is left.
        """
        stamp = self.folder / f"{release.key}.json"
        # Sources on this machine may have changed since; uv decides what to build again.
        kept = None if release.source is Source.PATH else _kept(stamp, self.runtime)
        if kept is not None:
            return kept
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            try:
                installed = self._layer(release)
            except UvError as error:
                if error.reason is not Reason.DEPENDENCY_CONFLICT:
                    raise
                installed = self._environment(release)
        except UvError as error:
            message = f"{self.package} {release.name} could not be installed"
            return NotInstalled(reason=error.reason, message=message, log=error.log)
        write_atomically(stamp, msgspec.json.encode(installed))
        return installed

    def _layer(self, release: Release) -> Installed:
        constraints = self.folder / "constraints.txt"
        text = "".join(
            f"{name}=={version}\n" for name, version in sorted(self.runtime.packages.items())
        )
        if not constraints.exists() or constraints.read_text(encoding="utf-8") != text:
            write_atomically(constraints, text.encode())
        resolved = self.uv.run(
            *("pip", "compile", "--quiet", "--no-header", "--no-annotate"),
            *("--python", str(self.runtime.executable), "--constraints", str(constraints)),
            *self._refresh(release),
            "-",
            stdin=self._requirement(release) + "\n",
        )
        wanted = _pins(resolved)
        missing = [
            line
            for name, (version, line) in wanted.items()
            if version is None or self.runtime.packages.get(name) != version
        ]
        place = self.folder / release.key
        building = Path(tempfile.mkdtemp(dir=self.folder, prefix=".building-"))
        try:
            self.uv.run(
                *("pip", "install", "--quiet", "--no-deps", "--link-mode", "hardlink"),
                *("--python", str(self.runtime.executable), "--target", str(building)),
                *self._refresh(release),
                *missing,
            )
            shutil.rmtree(place, ignore_errors=True)
            building.chmod(0o755)
            building.rename(place)
        finally:
            shutil.rmtree(building, ignore_errors=True)
        versions = {name: version for name, (version, _) in wanted.items() if version}
        return Installed(
            isolation="layer",
            folder=str(place),
            executable=str(self.runtime.executable),
            packages={**self.runtime.packages, **versions},
        )

    def _environment(self, release: Release) -> Installed:
        place = self.folder / f"{release.key}-environment"
        environment = create_environment(
            place,
            self.runtime.executable,
            [
                f"torch=={self.runtime.torch}",
                *runtime_requirements(),
                *self.extras,
                self._requirement(release),
            ],
            self.uv,
        )
        return Installed(
            isolation="environment",
            folder=str(place),
            executable=str(environment.executable),
            packages=environment.packages,
        )

    def _requirement(self, release: Release) -> str:
        if release.source is Source.GIT:
            return f"{self.package} @ git+{_git_url(release.url or '')}@{release.commit}"
        if release.source is Source.PATH:
            return f"{self.package} @ {Path(release.path or '').as_uri()}"
        return f"{self.package}=={release.version}"

    def _refresh(self, release: Release) -> list[str]:
        return ["--refresh-package", self.package] if release.source is Source.PATH else []


def _git_url(url: str) -> str:
    """A repository's address as a requirement wants it: with a scheme."""
    return url if "://" in url else Path(url).expanduser().resolve().as_uri()


def _pins(resolved: str) -> dict[str, tuple[str | None, str]]:
    """Name -> (version, or None for a direct reference; the line) of resolved requirements."""
    pins: dict[str, tuple[str | None, str]] = {}
    for line in resolved.splitlines():
        try:
            requirement = Requirement(line.strip())
        except InvalidRequirement:
            continue  # an option such as --find-links, or a comment
        exact = [one.version for one in requirement.specifier if one.operator == "=="]
        version = exact[0] if exact else None
        pins[canonicalize_name(requirement.name)] = (version, line.strip())
    return pins


def _kept(stamp: Path, runtime: Environment) -> Installed | None:
    """What an earlier run installed, if it is still there and still fits the runtime."""
    try:
        installed = msgspec.json.decode(stamp.read_bytes(), type=Installed)
    except (OSError, msgspec.MsgspecError):
        return None
    if not Path(installed.folder).is_dir():
        return None
    if installed.isolation == "layer":
        shared = set(installed.packages) & set(runtime.packages)
        fits = all(installed.packages[name] == runtime.packages[name] for name in shared)
        return installed if fits else None
    return installed if describe(Path(installed.folder)).packages == installed.packages else None
