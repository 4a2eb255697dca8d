"""The edge to git: which commit a ref stands for, and the files of a commit."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

from matrix.errors import RepositoryError

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = re.compile(r"[0-9a-f]{40}")


class UnreachableError(Exception):
    """A repository did not answer; the message is git's own last line."""


def resolve_ref(url: str, ref: str, *, timeout: float = 60) -> str | None:
    """The commit that `ref` of the repository at `url` stands for: one lookup, no clone.

    A full commit stands for itself. A branch outranks a tag of the same name, and an
    annotated tag stands for the commit that it marks. None where there is no such ref.

    Raises:
        UnreachableError: The repository did not answer in `timeout` seconds.
    """
    if COMMIT.fullmatch(ref):
        return ref
    patterns = [ref] if ref.startswith("refs/") else [f"refs/heads/{ref}", f"refs/tags/{ref}"]
    try:
        listing = subprocess.run(
            ["git", "ls-remote", "--", url, *(p for r in patterns for p in (r, r + "^{}"))],
            capture_output=True,
            text=True,
            check=True,
            timeout=timeout,
            env=without_prompts(),
        ).stdout
    except FileNotFoundError:
        raise UnreachableError("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise UnreachableError(f"no answer within {timeout:.0f} s") from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines()
        fatal = [line for line in lines if line.startswith("fatal:")] or lines or ["git failed"]
        raise UnreachableError(fatal[0].removeprefix("fatal: ")) from None
    rows = (line.partition("\t") for line in listing.splitlines())
    found = {name: commit for commit, _, name in rows}
    for pattern in patterns:
        commit = found.get(pattern + "^{}") or found.get(pattern)
        if commit:
            return commit
    return None


def without_prompts() -> dict[str, str]:
    """The environment, with git kept from asking for a password that nobody will type."""
    return {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}


def git(repository: Path, *arguments: str) -> str:
    """Run git in a local repository and return what it printed, stripped.

    Raises:
        RepositoryError: git failed; carries its message.
    """
    try:
        return subprocess.run(
            ["git", "-C", str(repository), *arguments],
            capture_output=True,
            text=True,
            check=True,
            env=without_prompts(),
        ).stdout.strip()
    except FileNotFoundError:
        raise RepositoryError("git is not installed.", advice="Install git.") from None
    except subprocess.CalledProcessError as error:
        raise RepositoryError(
            f"git {' '.join(arguments[:2])} failed in {repository}: {error.stderr.strip()}",
            advice="Name a local clone, and refs that it has (git fetch first?).",
        ) from None
