"""Commits of a local clone as releases: the sources are the layer, nothing is installed.

One worktree goes from commit to commit. Dependencies are resolved when the files that declare
them change, and kept.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from matrix.errors import RepositoryError
from matrix.git import git
from matrix.layers import Installed, NotInstalled, install_pins, resolve_pins
from matrix.records import Reason, Source
from matrix.releases import Release
from matrix.uv import Uv, UvError

if TYPE_CHECKING:
    from matrix.runtimes import Environment

DECLARING = (
    "setup.py",
    "setup.cfg",
    "pyproject.toml",
    "src/transformers/dependency_versions_table.py",
)
"""Files that say what a commit needs."""


_OWN_VERSION = re.compile(rb"""^\s*version\s*=\s*["'][^"']*["'],?[^\n]*$""", re.MULTILINE)


def line_of_commits(repository: Path, old: str, new: str) -> list[str]:
    """Commits from `old` to `new`, both included, along first parents; the oldest first.

    Raises:
        RepositoryError: A ref is none, or `old` is no ancestor of `new`.
    """
    first, last = (
        git(repository, "rev-parse", "--verify", f"{ref}^{{commit}}") for ref in (old, new)
    )
    line = git(repository, "rev-list", "--first-parent", "--reverse", f"{first}..{last}").split()
    base = git(repository, "merge-base", first, last)
    if base != first or not line:
        raise RepositoryError(
            f"{old} is no ancestor of {new} in {repository}.",
            advice="Name two refs of one line of history.",
        )
    return [first, *line]


def is_ancestor(repository: Path, old: str, new: str) -> bool:
    """Whether `old` comes before `new`."""
    first = git(repository, "rev-parse", "--verify", f"{old}^{{commit}}")
    return git(repository, "merge-base", first, new) == first


def subject(repository: Path, commit: str) -> str:
    """One line about a commit: its date and its subject."""
    return git(repository, "show", "--no-patch", "--format=%cs %s", commit)


@dataclass(slots=True, kw_only=True)
class CommitLayers:
    """Checks commits out, one at a time. Close it after use.

    Attributes:
        repository: The local clone.
        package: The package whose sources it has.
        runtime: The environment under it.
        uv: uv.
        folder: Where the worktree and the dependencies go.
    """

    repository: Path
    package: str
    runtime: Environment
    uv: Uv
    folder: Path
    _worktree: Path | None = None
    _commit: str | None = None
    _dependencies: dict[str, Installed] = field(default_factory=dict)

    def release(self, commit: str) -> Release:
        """A commit as a release."""
        return Release(
            version=commit[:12],
            source=Source.GIT,
            ref=f"commit {commit[:12]}",
            commit=commit,
            url=str(self.repository),
        )

    def install(self, release: Release) -> Installed | NotInstalled:
        """Check the commit of `release` out, and install what it needs if that has changed."""
        assert release.commit is not None
        worktree = self._checkout(release.commit)
        key = self._key(worktree)
        try:
            if key not in self._dependencies:
                self._dependencies[key] = self._resolve(worktree, key)
        except UvError as error:
            message = f"what {release.name} needs could not be installed"
            return NotInstalled(reason=error.reason, message=message, log=error.log)
        needed = self._dependencies[key]
        sources = worktree / "src" if (worktree / "src").is_dir() else worktree
        return Installed(
            isolation="layer",
            paths=(str(sources), *needed.paths),
            executable=needed.executable,
            packages=needed.packages,
        )

    def close(self) -> None:
        """Take the worktree away; the clone is as it was."""
        if self._worktree is not None:
            git(self.repository, "worktree", "remove", "--force", str(self._worktree))
            self._worktree = None

    def _checkout(self, commit: str) -> Path:
        if self._worktree is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            place = Path(tempfile.mkdtemp(dir=self.folder, prefix="worktree-"))
            git(
                self.repository,
                "worktree",
                "add",
                "--quiet",
                "--detach",
                "--force",
                str(place),
                commit,
            )
            self._worktree = place
        elif self._commit is not None:
            changed = git(
                self._worktree, "diff", "--name-only", "--no-renames", self._commit, commit
            )
            git(self._worktree, "checkout", "--quiet", "--detach", "--force", commit)
            # Python trusts compiled files by time and size, which two commits may share.
            for name in changed.splitlines():
                path = self._worktree / name
                for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
                    compiled.unlink()
        self._commit = commit
        return self._worktree

    def _key(self, worktree: Path) -> str:
        digest = hashlib.sha256()
        for name in DECLARING:
            path = worktree / name
            content = path.read_bytes() if path.is_file() else b""
            # What a commit needs does not depend on how it calls itself.
            content = _OWN_VERSION.sub(b"", content)
            digest.update(name.encode() + b"\0" + content)
        return digest.hexdigest()[:16]

    def _resolve(self, worktree: Path, key: str) -> Installed:
        declaring = next(
            (name for name in ("setup.py", "pyproject.toml") if (worktree / name).is_file()), None
        )
        if declaring is None:
            raise UvError(
                Reason.INSTALL_FAILED, "the commit has neither setup.py nor pyproject.toml"
            )
        pins = resolve_pins(self.uv, self.runtime, self.folder, source=str(worktree / declaring))
        place = self.folder / f"dependencies-{key}"
        return install_pins(self.uv, self.runtime, pins, place)
