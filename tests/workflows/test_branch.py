"""The branch that keeps what scheduled runs measured."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from matrix.ci_branch import BRANCH, fetch, keep
from matrix.errors import RepositoryError

if TYPE_CHECKING:
    from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    """Run git."""
    who = ("-c", "user.name=t", "-c", "user.email=t@t.invalid")
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A bare repository with a main branch."""
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "--quiet", "--initial-branch=main")
    (source / "harness.py").write_text("pass\n")
    git(source, "add", ".")
    git(source, "commit", "--quiet", "-m", "The harness")
    git(source, "clone", "--quiet", "--bare", ".", str(tmp_path / "remote.git"))
    return tmp_path / "remote.git"


def checkout(remote: Path, name: str) -> Path:
    """A checkout as a job has it, of the newest commit alone."""
    place = remote.parent / name
    git(remote.parent, "clone", "--quiet", "--depth=1", remote.as_uri(), str(place))
    return place


def test_the_first_run_finds_nothing_and_starts_the_branch(remote: Path) -> None:
    """Without anybody having made it."""
    job = checkout(remote, "job")
    data = job / "data"
    assert fetch(job, data) is None
    (data / "ledger").mkdir()
    (data / "ledger" / "1.jsonl").write_text("one\n")
    assert keep(job, data)
    assert sorted(git(remote, "ls-tree", "-r", "--name-only", BRANCH).split()) == [
        "README.md",
        "ledger/1.jsonl",
    ]
    assert git(remote, "log", "--format=%an", BRANCH) == "github-actions[bot]"
    assert git(job, "status", "--porcelain", "--untracked-files=no") == ""


def test_a_later_run_finds_what_was_kept_and_adds_to_it(remote: Path) -> None:
    """The history stays, and a run without news adds nothing to it."""
    first = checkout(remote, "first")
    (first / "data").mkdir()
    (first / "data" / "a").write_text("a\n")
    commit = keep(first, first / "data")
    second = checkout(remote, "second")
    assert fetch(second, second / "data") == commit
    assert (second / "data" / "a").read_text() == "a\n"
    assert keep(second, second / "data") is None
    (second / "data" / "b").write_text("b\n")
    newer = keep(second, second / "data")
    assert git(remote, "rev-parse", BRANCH) == newer
    assert git(remote, "rev-parse", f"{BRANCH}^") == commit


def test_what_another_run_kept_meanwhile_is_not_overwritten(
    remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The push is refused, and the message says to run again."""
    slow = checkout(remote, "slow")
    (slow / "data").mkdir()
    (slow / "data" / "a").write_text("slow\n")
    quick = checkout(remote, "quick")
    (quick / "data").mkdir()
    (quick / "data" / "a").write_text("quick\n")
    assert keep(quick, quick / "data")
    monkeypatch.setattr("matrix.ci_branch._head", lambda repository: None)
    with pytest.raises(RepositoryError) as caught:
        keep(slow, slow / "data")
    assert "run this one again" in caught.value.advice
    assert git(remote, "show", f"{BRANCH}:a") == "quick"
