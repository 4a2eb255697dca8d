"""Layers: a folder for each release, with what the runtime does not already provide.

The runtime's versions are constraints, so that everything the fork server has imported
fits every layer. Where a release cannot live with them, it gets a whole environment.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import filelock
import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from matrix.ledger import write_atomically
from matrix.records import Reason, Source
from matrix.runtimes import create_environment, describe, runtime_requirements
from matrix.uv import Uv, UvError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matrix.releases import Release
    from matrix.runtimes import Environment


class Installer(Protocol):
    """Whatever can get a release ready to run."""

    def install(self, release: Release) -> Installed | NotInstalled:
        """Get `release` ready, now or from an earlier run."""


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """Where a release is, and on what it runs.

    Attributes:
        isolation: ``layer`` or ``environment``.
        paths: Folders to put ahead of the packages of `executable`: the layer.
        executable: The interpreter that runs it.
        packages: Name -> version of everything that the release sees.
    """

    isolation: str
    paths: tuple[str, ...]
    executable: str
    packages: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One resolved requirement.

    Attributes:
        name: Normalised name.
        version: Its version; None for a direct reference to sources.
        line: The requirement as uv wrote it.
    """

    name: str
    version: str | None
    line: str


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
        locks: Release key -> the exact packages to rebuild it with.
    """

    package: str
    runtime: Environment
    extras: tuple[str, ...]
    uv: Uv
    folder: Path
    locks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def install(self, release: Release) -> Installed | NotInstalled:
        """The layer or environment of `release`, made now or kept from an earlier run.

        Raises:
            DiskFullError: No space is left.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        # Another run may want the same release at the same time.
        with filelock.FileLock(self.folder / f"{release.key}.lock"):
            locked = self.locks.get(release.key)
            return self._locked(release, locked) if locked else self._usual(release)

    def _usual(self, release: Release) -> Installed | NotInstalled:
        """`release` with what resolves now, or what an earlier run has left."""
        stamp = self.folder / f"{release.key}.json"
        # Sources on this machine may have changed since; uv decides what to build again.
        kept = None if release.source is Source.PATH else _kept(stamp, self.runtime)
        if kept is not None:
            return kept
        try:
            installed = self._resolved(release)
        except UvError as error:
            message = f"{self.package} {release.name} could not be installed"
            missing = self._is_missing(release, error.log)
            reason = Reason.NO_SUCH_RELEASE if missing else error.reason
            return NotInstalled(reason=reason, message=message, log=error.log)
        write_atomically(stamp, msgspec.json.encode(installed))
        return installed

    def _locked(self, release: Release, packages: Mapping[str, str]) -> Installed | NotInstalled:
        """`release` with exactly `packages`: a layer if the runtime has its part of them."""
        pins = tuple(
            Pin(name=name, version=version, line=f"{name}=={version}")
            if name != canonicalize_name(self.package)
            else Pin(name=name, version=version, line=self._requirement(release))
            for name, version in packages.items()
        )
        place = self.folder / f"{release.key}-locked"
        runtime = self.runtime.packages.items()
        try:
            if all(packages.get(name) == version for name, version in runtime):
                return install_pins(self.uv, self.runtime, pins, place)
            lines = [pin.line for pin in pins]
            return _whole(
                create_environment(place, self.runtime.executable, ["--no-deps", *lines], self.uv)
            )
        except UvError as error:
            message = f"{self.package} {release.name} could not be rebuilt from its lock"
            return NotInstalled(reason=error.reason, message=message, log=error.log)

    def _resolved(self, release: Release) -> Installed:
        """A layer; or an environment, where the runtime is in the way of the release."""
        refresh = release.source is Source.PATH
        try:
            return self._layer(release, refresh=refresh)
        except UvError as error:
            problem = error
        if self._is_missing(release, problem.log) and not refresh:
            # uv trusts a page of the index for minutes, and the plan has seen a newer one.
            try:
                return self._layer(release, refresh=True)
            except UvError as error:
                problem = error
        missing = self._is_missing(release, problem.log)
        if problem.reason is not Reason.DEPENDENCY_CONFLICT or missing:
            raise problem
        return self._environment(release)

    def _is_missing(self, release: Release, log: str) -> bool:
        """Whether uv says that the index has no such release."""
        wanted = re.escape(f"{canonicalize_name(self.package)}=={release.version}")
        return re.search(rf"no version of {wanted}(?![\w.])", log) is not None

    def _layer(self, release: Release, *, refresh: bool) -> Installed:
        options = ("--refresh-package", self.package) if refresh else ()
        requirement = self._requirement(release)
        pins = resolve_pins(
            self.uv, self.runtime, self.folder, requirement=requirement, options=options
        )
        place = self.folder / release.key
        return install_pins(self.uv, self.runtime, pins, place, options=options)

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
        return _whole(environment)

    def _requirement(self, release: Release) -> str:
        if release.source is Source.GIT:
            return f"{self.package} @ git+{_git_url(release.url or '')}@{release.commit}"
        if release.source is Source.PATH:
            return f"{self.package} @ {Path(release.path or '').as_uri()}"
        return f"{self.package}=={release.version}"


def _whole(environment: Environment) -> Installed:
    return Installed(
        isolation="environment",
        paths=(),
        executable=str(environment.executable),
        packages=environment.packages,
    )


def _git_url(url: str) -> str:
    """A repository's address as a requirement wants it: with a scheme."""
    return url if "://" in url else Path(url).expanduser().resolve().as_uri()


def resolve_pins(
    uv: Uv,
    runtime: Environment,
    folder: Path,
    *,
    requirement: str | None = None,
    source: str = "-",
    options: Sequence[str] = (),
) -> tuple[Pin, ...]:
    """Everything that a requirement needs, with the runtime's versions as constraints.

    Args:
        uv: uv.
        runtime: The runtime.
        folder: Where the constraints are written.
        requirement: A requirement; or else `source` is read.
        source: A ``setup.py`` or ``pyproject.toml`` that declares requirements.
        options: More for uv.

    Raises:
        UvError: It cannot be resolved; `dependency_conflict` where the runtime is in the way.
    """
    constraints = folder / "constraints.txt"
    text = "".join(f"{name}=={version}\n" for name, version in sorted(runtime.packages.items()))
    if not constraints.exists() or constraints.read_text(encoding="utf-8") != text:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(constraints, text.encode())
    resolved = uv.run(
        *("pip", "compile", "--quiet", "--no-header", "--no-annotate"),
        *("--python", str(runtime.executable), "--constraints", str(constraints)),
        *options,
        source,
        stdin=f"{requirement}\n" if requirement else None,
    )
    return tuple(_pins(resolved))


def install_pins(
    uv: Uv, runtime: Environment, pins: Sequence[Pin], place: Path, *, options: Sequence[str] = ()
) -> Installed:
    """Put those pins that the runtime does not provide into the folder `place`, atomically.

    Raises:
        UvError: One of them cannot be installed.
    """
    missing = [
        pin.line for pin in pins if not pin.version or runtime.packages.get(pin.name) != pin.version
    ]
    building = Path(tempfile.mkdtemp(dir=place.parent, prefix=".building-"))
    try:
        if missing:
            uv.run(
                *("pip", "install", "--quiet", "--no-deps", "--link-mode", "hardlink"),
                *("--python", str(runtime.executable), "--target", str(building)),
                *options,
                *missing,
            )
        shutil.rmtree(place, ignore_errors=True)
        building.chmod(0o755)
        building.rename(place)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return Installed(
        isolation="layer",
        paths=(str(place),),
        executable=str(runtime.executable),
        packages={**runtime.packages, **{pin.name: pin.version for pin in pins if pin.version}},
    )


def _pins(resolved: str) -> Iterator[Pin]:
    for line in resolved.splitlines():
        try:
            requirement = Requirement(line.strip())
        except InvalidRequirement:
            continue  # an option such as --find-links, or a comment
        exact = [one.version for one in requirement.specifier if one.operator == "=="]
        yield Pin(
            name=canonicalize_name(requirement.name),
            version=exact[0] if exact else None,
            line=line.strip(),
        )


def _kept(stamp: Path, runtime: Environment) -> Installed | None:
    """What an earlier run installed, if it is still there and still fits the runtime."""
    try:
        installed = msgspec.json.decode(stamp.read_bytes(), type=Installed)
    except (OSError, msgspec.MsgspecError):
        return None
    if not all(Path(path).exists() for path in (*installed.paths, installed.executable)):
        return None
    if installed.isolation == "layer":
        shared = set(installed.packages) & set(runtime.packages)
        fits = all(installed.packages[name] == runtime.packages[name] for name in shared)
        return installed if fits else None
    environment = describe(Path(installed.executable).parents[1])
    return installed if environment.packages == installed.packages else None
