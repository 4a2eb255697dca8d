"""Sources: git refs, local paths and commits, on repositories that the test makes."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from matrix.records import Record, Source, Status
from tests.fixture_index import PACKAGE, FixtureRelease, fixture_files
from tests.pipeline.harness import Harness

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

CROSSING = "phi3/decode-crossing/eager/cpu/float32"
FIRST_BAD = 6
COMMITS = 10

# Builds itself with the standard library, so that no build tool is downloaded.
BACKEND = """
import pathlib, zipfile

def build_wheel(directory, config_settings=None, metadata_directory=None):
    name = "crossing_fixture-{version}"
    with zipfile.ZipFile(pathlib.Path(directory, name + "-py3-none-any.whl"), "w") as wheel:
        for path in sorted(pathlib.Path("src").rglob("*.py")):
            wheel.write(path, path.relative_to("src"))
        wheel.writestr(name + ".dist-info/METADATA",
                       "Metadata-Version: 2.1\\nName: crossing-fixture\\nVersion: {version}\\n")
        wheel.writestr(name + ".dist-info/WHEEL",
                       "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(name + ".dist-info/RECORD", "")
    return name + "-py3-none-any.whl"
"""
PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "crossing-fixture"
version = "{version}"
"""


def write_sources(folder: Path, version: str, fault: str) -> None:
    """Write a checkout of the fixture package."""
    files = fixture_files(FixtureRelease(version=version, fault=fault))
    contents = {f"src/{path}": data.decode() for path, data in files.items()}
    contents["backend.py"] = BACKEND.replace("{version}", version)
    contents["pyproject.toml"] = PYPROJECT.format(version=version)
    for name, text in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def git(folder: Path, *words: str) -> str:
    """Run git there."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten commits: one breaks the crossing, one cannot be imported, the last is tagged."""
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "-q", "-b", "main")
    for number in range(COMMITS):
        fault = "disagrees" if number >= FIRST_BAD else "agrees"
        # The middle, which a bisection would ask for first, cannot be tested.
        fault = "fails to import" if number == COMMITS // 2 - 1 else fault
        write_sources(folder, f"1.0.dev{number}", fault)
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", f"change {number}")
        git(folder, "tag", f"c{number}")
    return folder


@pytest.fixture(scope="module")
def harness(
    tmp_path_factory: pytest.TempPathFactory, runtimes: Path, fixture_index: str, repository: Path
) -> Harness:
    """A checkout whose repository is the local one."""
    harness = Harness(
        folder=tmp_path_factory.mktemp("sources"), runtimes=runtimes, index=fixture_index
    )
    harness.write_grid(
        package=PACKAGE,
        since="1.0.0",
        run=("main",),
        repository=repository.as_uri(),
        scenarios=("decode-crossing",),
    )
    return harness


def records_of(harness: Harness) -> dict[str, Record]:
    """Release -> record of the crossing."""
    return {r.release: r for r in harness.ledger.load()[0] if r.case == CROSSING}


def test_refs_and_paths_are_built_and_measured(
    harness: Harness, repository: Path, tmp_path: Path
) -> None:
    """main, a tag and a checkout; the commit stands in the record, and a gone one stops nothing."""
    write_sources(tmp_path, "7.0", "agrees")
    tag = f"git:{repository.as_uri()}@c0"
    gone = "git:file:///nowhere/at/all@main"
    done = harness.matrix("--releases", "main", tag, f"path:{tmp_path}", gone)
    assert done.code == 0, done.output
    found = records_of(harness)
    assert found["main"].status is Status.AFFECTED
    assert found["main"].commit == git(repository, "rev-parse", "main")
    assert found["main"].transformers == f"1.0.dev{COMMITS - 1}"
    assert found[tag].status is Status.OK
    assert found[tag].commit == git(repository, "rev-parse", "c0")
    local = found[f"path:{tmp_path}"]
    assert (local.source, local.status, local.transformers) == (Source.PATH, Status.OK, "7.0")
    assert f"{gone}: unreachable" in done.output


def test_a_commit_is_measured_once_and_a_path_each_time(
    harness: Harness, repository: Path, tmp_path: Path
) -> None:
    """A commit never changes; what lies in a folder may."""
    write_sources(tmp_path, "7.0", "agrees")
    path = f"path:{tmp_path}"
    first = harness.matrix("--releases", "main", path)
    assert first.code == 0, first.output
    write_sources(tmp_path, "7.0", "disagrees")
    again = harness.matrix("--releases", "main", path)
    assert "known already: 1 cells" in again.output, again.output
    assert records_of(harness)[path].status is Status.AFFECTED


def test_a_bisection_finds_the_commit(harness: Harness, repository: Path) -> None:
    """Both ends first, around the commit that cannot be imported; the clone is as it was."""
    before = git(repository, "status", "--porcelain"), git(repository, "worktree", "list")
    done = harness.run(
        "matrix", "bisect", "--repo", str(repository), "--good", "c0", "--bad", "main"
    )
    assert done.code == 0, done.output
    bad = git(repository, "rev-parse", f"c{FIRST_BAD}")
    assert f"first bad: {bad}" in done.output
    assert f"change {FIRST_BAD}" in done.output
    assert "affected (prefix_lost)" in done.output
    assert (git(repository, "status", "--porcelain"), git(repository, "worktree", "list")) == before


def test_a_bisection_finds_the_release(harness: Harness) -> None:
    """Without a clone, between releases of the index."""
    done = harness.run("matrix", "bisect", "--good", "1.2.0", "--bad", "1.1.0")
    assert done.code == 0, done.output
    assert "first fixed: 1.2.0" in done.output


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("c0", "c1", "both ends are ok"),
        ("c0", "nowhere", "Name a local clone, and refs that it has"),
    ],
)
def test_a_bisection_that_cannot_be_says_so(
    harness: Harness, repository: Path, good: str, bad: str, words: str
) -> None:
    """With an exit code that is not 0."""
    done = harness.run("matrix", "bisect", "--repo", str(repository), "--good", good, "--bad", bad)
    assert done.code != 0
    assert words in done.output
