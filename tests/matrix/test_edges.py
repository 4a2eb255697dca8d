"""The edges: options, uv's failures, git, the environment of a cell, this machine."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from matrix.environment import cell_environ
from matrix.errors import DiskFullError, HarnessError, OptionsError, UvMissingError
from matrix.git import UnreachableError, resolve_ref
from matrix.machine import workers_here
from matrix.options import parse_options, parse_shard
from matrix.records import Reason
from matrix.uv import PAUSES, Uv, UvError, classify, last_lines

if TYPE_CHECKING:
    from pathlib import Path


def test_every_error_has_an_exit_code_of_its_own() -> None:
    """So that a script can tell them apart."""
    codes = [kind.exit_code for kind in HarnessError.__subclasses__()]
    assert len(codes) == len(set(codes)) >= 10
    assert 0 not in codes


def test_every_mistake_in_the_options_is_told_at_once() -> None:
    """With what is allowed."""
    with pytest.raises(OptionsError) as caught:
        parse_options(
            [
                "--releases",
                "latst",
                "5.16.1",
                "--scenarios",
                "cor",
                "--attention",
                "egar",
                "--shard",
                "3/2",
            ]
        )
    message = caught.value.message
    for part in ("'latst'", "did you mean core?", "did you mean eager?", "shards 1/2 to 2/2"):
        assert part in message


def test_an_unknown_option_is_an_error_of_ours() -> None:
    """Not a traceback, and not an exit inside a library."""
    with pytest.raises(OptionsError, match="--relases"):
        parse_options(["--relases", "latest"])


@pytest.mark.parametrize("text", ["1", "0/2", "3/2", "a/b", "1/", "-1/2"])
def test_a_shard_is_one_of_so_many(text: str) -> None:
    """Counted from 1."""
    with pytest.raises(ValueError, match=r"1/"):
        parse_shard(text)
    assert parse_shard("2/3") == (2, 3)


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("error: Failed to fetch: `https://…` operation timed out", Reason.UNREACHABLE),
        ("x No solution found when resolving dependencies:", Reason.DEPENDENCY_CONFLICT),
        ("x Failed to build `transformers==1.3.0`", Reason.INSTALL_FAILED),
        ("something else", Reason.INSTALL_FAILED),
    ],
)
def test_why_uv_failed_is_read_from_what_it_said(log: str, reason: Reason) -> None:
    """Each has another record."""
    assert classify(log) is reason


def fake_uv(tmp_path: Path, script: str, waits: list[float]) -> Uv:
    """A program in place of uv."""
    program = tmp_path / "uv"
    program.write_text(f"#!{sys.executable}\n{script}", encoding="utf-8")
    program.chmod(0o755)
    return Uv(executable=str(program), environ={}, sleep=waits.append)


def test_what_the_network_spoils_is_tried_again(tmp_path: Path) -> None:
    """With a pause, a few times; then it is an error."""
    waits: list[float] = []
    count = tmp_path / "count"
    script = (
        "import pathlib, sys\n"
        f"p = pathlib.Path({str(count)!r})\n"
        "n = len(p.read_text()) if p.exists() else 0\n"
        "p.write_text('x' * (n + 1))\n"
        "sys.exit('dns error') if n < 2 else print('fine')\n"
    )
    assert fake_uv(tmp_path, script, waits).run("pip") == "fine\n"
    assert waits == list(PAUSES)
    with pytest.raises(UvError) as caught:
        fake_uv(tmp_path, "import sys; sys.exit('dns error')", []).run("pip")
    assert caught.value.reason is Reason.UNREACHABLE


def test_what_would_fail_again_is_not_tried_again(tmp_path: Path) -> None:
    """A conflict stays one."""
    waits: list[float] = []
    with pytest.raises(UvError):
        fake_uv(tmp_path, "import sys; sys.exit('No solution found')", waits).run()
    assert waits == []


def test_a_full_disk_stops_the_run(tmp_path: Path) -> None:
    """It is no property of a release."""
    with pytest.raises(DiskFullError):
        fake_uv(tmp_path, "import sys; sys.exit('No space left on device')", []).run()


def test_a_missing_uv_says_how_to_get_it(tmp_path: Path) -> None:
    """With the line to paste."""
    with pytest.raises(UvMissingError, match="pip install"):
        Uv(executable=str(tmp_path / "uv"), environ={}).run()


def test_only_the_end_of_a_log_is_kept() -> None:
    """Records are committed."""
    assert last_lines("a\n\nb\nc\n", 2) == "b\nc"
    assert len(last_lines("x" * 9000, 5)) == 2000


def commit(repository: Path, text: str) -> str:
    """Commit a file; returns the commit."""
    (repository / "file").write_text(text, encoding="utf-8")
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    for words in (["add", "."], [*identity, "commit", "-qm", text]):
        subprocess.run(["git", "-C", str(repository), *words], check=True)
    rev = ["git", "-C", str(repository), "rev-parse", "HEAD"]
    return subprocess.run(rev, check=True, capture_output=True, text=True).stdout.strip()


def test_refs_are_resolved_without_a_clone(tmp_path: Path) -> None:
    """A branch outranks a tag; an annotated tag stands for its commit."""
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    first = commit(tmp_path, "one")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    subprocess.run([*git, "tag", "-a", "v1", "-m", "v1"], check=True)
    subprocess.run([*git, "tag", "both"], check=True)
    second = commit(tmp_path, "two")
    subprocess.run([*git, "branch", "both"], check=True)
    url = tmp_path.as_uri()
    assert resolve_ref(url, "refs/heads/main") == second
    assert resolve_ref(url, "v1") == first
    assert resolve_ref(url, "both") == second
    assert resolve_ref(url, "none") is None
    assert resolve_ref("https://never.asked.invalid", first) == first


def test_a_repository_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    """With git's own words."""
    with pytest.raises(UnreachableError, match="does not"):
        resolve_ref((tmp_path / "none").as_uri(), "main")


def test_a_cell_sees_no_token_and_no_home_of_the_user(tmp_path: Path) -> None:
    """What may pass is listed; the hub is offline; one thread."""
    environ = cell_environ(
        {"PATH": "/bin", "HF_TOKEN": "t", "GITHUB_TOKEN": "t", "MY_SECRET": "t", "HOME": "/me"},
        tmp_path,
    )
    assert environ["PATH"] == "/bin"
    assert not {"HF_TOKEN", "GITHUB_TOKEN", "MY_SECRET"} & set(environ)
    assert environ["HOME"] == str(tmp_path)
    assert (environ["HF_HUB_OFFLINE"], environ["OMP_NUM_THREADS"]) == ("1", "1")


def test_workers_are_what_was_asked_for_or_at_least_one() -> None:
    """By cores and memory."""
    assert workers_here(7) == 7
    assert workers_here() >= 1
