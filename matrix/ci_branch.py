"""The branch on which scheduled runs keep what they measured: fetched, and added to.

======================================  ===================================================
``python -m matrix.ci_branch fetch``    put what is kept into a folder; empty the first time
``python -m matrix.ci_branch keep``     add the folder's content to the branch, if it is new
======================================  ===================================================

The branch holds `ledger/`, and of the published site `site/results.json` and `site/runs/`.
Standard library only: `keep` runs with a token that may write, where nothing is installed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from matrix.errors import HarnessError, RepositoryError
from matrix.git import without_prompts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BRANCH: Final = "data"
REMOTE: Final = "origin"
AUTHOR: Final = {
    "GIT_AUTHOR_NAME": "github-actions[bot]",
    "GIT_AUTHOR_EMAIL": "41898282+github-actions[bot]@users.noreply.github.com",
}
README: Final = """\
# What the scheduled runs keep

`ledger/` holds the records, `site/` what the page needs to know of earlier runs. Written by the
workflow `matrix`; see `matrix/ci_branch.py` on the main branch. Nothing here is edited by hand.
"""


def main(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m matrix.ci_branch", description=__doc__)
    parser.add_argument("command", choices=("fetch", "keep"))
    parser.add_argument("folder", type=Path, nargs="?", default=Path("data"))
    options = parser.parse_args(arguments)
    repository = Path.cwd()
    try:
        if options.command == "fetch":
            commit = fetch(repository, options.folder)
            print(f"{BRANCH}: {commit or 'there is none yet'}")
        else:
            commit = keep(repository, options.folder)
            print(f"{BRANCH}: {commit or 'nothing new to keep'}")
    except HarnessError as error:
        print(f"matrix.ci_branch: {error.message}\n  → {error.advice}", file=sys.stderr)
        return error.exit_code
    return 0


def fetch(repository: Path, folder: Path) -> str | None:
    """Write what the branch holds into `folder`; returns its commit, or None without a branch.

    Raises:
        RepositoryError: The remote did not answer, or its history cannot be read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    commit = _head(repository)
    if commit is None:
        return None
    with tempfile.TemporaryDirectory() as place:
        environ = {"GIT_INDEX_FILE": str(Path(place, "index"))}
        _git(repository, "read-tree", commit, environ=environ)
        prefix = f"{folder.resolve()}{os.sep}"
        _git(
            repository, "checkout-index", "--all", "--force", f"--prefix={prefix}", environ=environ
        )
    return commit


def keep(repository: Path, folder: Path) -> str | None:
    """Add the content of `folder` to the branch; returns the new commit, or None without news.

    Raises:
        RepositoryError: The branch has moved on, or must not be written.
    """
    parent = _head(repository)
    (folder / "README.md").write_text(README, encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        environ = {
            **AUTHOR,
            **{key.replace("AUTHOR", "COMMITTER"): value for key, value in AUTHOR.items()},
            "GIT_INDEX_FILE": str(Path(place, "index")),
        }
        own = {
            **environ,
            "GIT_DIR": _git(repository, "rev-parse", "--absolute-git-dir"),
            "GIT_WORK_TREE": str(folder.resolve()),
        }
        _git(folder, "add", "--force", "--all", ".", environ=own)
        tree = _git(repository, "write-tree", environ=environ)
        if parent and _git(repository, "rev-parse", f"{parent}^{{tree}}") == tree:
            return None
        onto = ["-p", parent] if parent else []
        commit = _git(
            repository, "commit-tree", tree, *onto, "-m", "Records of a run", environ=environ
        )
        _git(repository, *_credentials(), "push", REMOTE, f"{commit}:refs/heads/{BRANCH}")
    return commit


def _head(repository: Path) -> str | None:
    """Fetch the branch's last commit; None where there is no such branch."""
    ref = f"refs/heads/{BRANCH}"
    if not _git(repository, *_credentials(), "ls-remote", REMOTE, ref):
        return None
    _git(repository, *_credentials(), "fetch", "--quiet", "--depth=1", REMOTE, ref)
    return _git(repository, "rev-parse", "FETCH_HEAD")


def _credentials() -> tuple[str, ...]:
    """How git gets the token of the job, if it has one: from gh, and from no file."""
    if os.environ.get("GH_TOKEN") and shutil.which("gh"):
        return ("-c", "credential.helper=", "-c", "credential.helper=!gh auth git-credential")
    return ()


def _git(folder: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> str:
    """Run git in `folder` and return what it printed, stripped.

    Raises:
        RepositoryError: git failed; carries its message.
    """
    try:
        return subprocess.run(
            ["git", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
            env={**without_prompts(), **(environ or {})},
        ).stdout.strip()
    except subprocess.CalledProcessError as error:
        raise RepositoryError(
            f"git {' '.join(arguments)} failed: {error.stderr.strip()}",
            advice=f"May this token write the branch {BRANCH}? If another run has written it "
            "meanwhile, run this one again.",
        ) from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
