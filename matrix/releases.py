"""Releases: what the specs of a user stand for, on the index and in repositories."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.specifiers import SpecifierSet

from matrix.errors import NoSuchReleaseError
from matrix.git import UnreachableError
from matrix.records import Source
from matrix.specs import All, Exact, GitRef, Latest, LocalPath, Matching, Minors, Spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from packaging.version import Version

    from matrix.index import Published


class Release(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One installable transformers.

    Attributes:
        version: Version on the index; the name asked for, where only building would tell.
        source: Where it comes from.
        ref: What was asked for, where that moves: ``main``, ``pr:1``, ``git:…``, ``path:…``.
        commit: The commit behind `ref`.
        url: The repository, for a git release.
        path: Absolute path, for a local one.
        released_at: Upload time on the index.
        requires_python: Which Pythons may install it.
        unreachable: Why there is nothing to install; then no cell of it is run.
    """

    version: str
    source: Source
    ref: str | None = None
    commit: str | None = None
    url: str | None = None
    path: str | None = None
    released_at: str | None = None
    requires_python: str | None = None
    unreachable: str | None = None

    @property
    def name(self) -> str:
        """How the user and the report call it."""
        return self.ref or self.version

    @property
    def key(self) -> str:
        """A name that is good for a file, and that always stands for the same sources."""
        if self.source is Source.GIT:
            return f"git-{(self.commit or 'unknown')[:12]}"
        if self.source is Source.PATH:
            return "path-" + "".join(c if c.isalnum() else "-" for c in self.path or "")[-60:]
        return self.version

    def admits_python(self, python: str) -> bool:
        """Whether this release may be installed on ``3.11`` (any patch of it)."""
        return self.requires_python is None or any(
            SpecifierSet(self.requires_python).contains(f"{python}.{patch}") for patch in (0, 99)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolver:
    """Turns specs into releases.

    Attributes:
        published: What the index has, in version order.
        since: Where `minors`, `all` and specifier sets start.
        repository: Where `main` and pull requests are looked up.
        resolve_ref: Looks up the commit of (url, ref); see `matrix.git.resolve_ref`.
        base: Folder that relative paths start from.
    """

    published: Sequence[Published]
    since: Version
    repository: str
    resolve_ref: Callable[[str, str], str | None]
    base: Path

    def resolve(self, specs: Iterable[Spec]) -> tuple[Release, ...]:
        """Releases that any of `specs` stands for, each once: versions in order, then refs.

        Raises:
            NoSuchReleaseError: Some specs stand for nothing; the message lists them all,
                each with the nearest that there is.
        """
        versions: dict[Version, Release] = {}
        others: dict[str, Release] = {}
        mistakes: list[str] = []
        for spec in specs:
            try:
                if isinstance(spec, GitRef):
                    others.setdefault(spec.name, self._git(spec))
                elif isinstance(spec, LocalPath):
                    release = self._path(spec)
                    others.setdefault(release.name, release)
                else:
                    for found in self._from_index(spec):
                        versions[found.version] = as_release(found)
            except LookupError as error:
                mistakes.append(error.args[0])
        if mistakes:
            listed = "\n".join(f"  - {mistake}" for mistake in mistakes)
            raise NoSuchReleaseError(
                f"Some release specs stand for nothing:\n{listed}",
                advice="Correct them after `--releases`, or in matrix/grid.toml under [releases].",
            )
        return tuple([versions[version] for version in sorted(versions)] + list(others.values()))

    def stable(self) -> tuple[Published, ...]:
        """Releases since `since` that are neither yanked nor pre-releases."""
        return tuple(
            one
            for one in self.published
            if one.version >= self.since and not one.yanked and not one.version.is_prerelease
        )

    def _from_index(self, spec: Exact | Matching | Latest | Minors | All) -> Sequence[Published]:
        stable = self.stable()
        if isinstance(spec, Exact):
            return self._exact(spec.version)
        if isinstance(spec, Matching):
            # The set alone decides on pre-releases; stable ones are what it filters from.
            found = [one for one in stable if spec.specifiers.contains(one.version)]
            if not found:
                raise LookupError(f"`{spec.specifiers}`: no release fits; {self._known()}")
            return found
        if not stable:
            raise LookupError(f"no release since {self.since} on the index")
        if isinstance(spec, Latest):
            return stable[-1:]
        if isinstance(spec, Minors):
            return list({one.version.release[:2]: one for one in stable}.values())
        return stable

    def _exact(self, version: Version) -> Sequence[Published]:
        found = [one for one in self.published if one.version == version]
        if found:
            return found
        near = difflib.get_close_matches(str(version), [str(one.version) for one in self.published])
        hint = f"the nearest are {', '.join(near)}" if near else self._known()
        raise LookupError(f"`{version}`: no such release; {hint}")

    def _known(self) -> str:
        stable = self.stable()
        return (
            f"there are {stable[0].version} to {stable[-1].version}" if stable else "there is none"
        )

    def _git(self, spec: GitRef) -> Release:
        url = spec.url or self.repository
        try:
            commit = self.resolve_ref(url, spec.ref)
        except UnreachableError as error:
            return Release(
                version=spec.name,
                source=Source.GIT,
                ref=spec.name,
                url=url,
                unreachable=f"{url} could not be reached: {error}",
            )
        if commit is None:
            raise LookupError(f"`{spec.name}`: {url} has no ref {spec.ref}")
        return Release(version=spec.name, source=Source.GIT, ref=spec.name, commit=commit, url=url)

    def _path(self, spec: LocalPath) -> Release:
        path = (self.base / Path(spec.path).expanduser()).resolve()
        if path.suffix == ".whl" and path.is_file():
            pass
        elif not any((path / name).is_file() for name in ("pyproject.toml", "setup.py")):
            raise LookupError(
                f"`path:{spec.path}`: {path} is neither a wheel nor a folder with a "
                "pyproject.toml or setup.py"
            )
        return Release(
            version=f"path:{spec.path}",
            source=Source.PATH,
            ref=f"path:{spec.path}",
            path=str(path),
        )


def as_release(published: Published) -> Release:
    """The release that is this version on the index."""
    return Release(
        version=str(published.version),
        source=Source.INDEX,
        released_at=published.released_at,
        requires_python=str(published.requires_python) if published.requires_python else None,
    )
