"""The digest that says whether a record must be made again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import checks
from checks.revision import check_revision

FOLDER = Path(checks.__file__).parent


def _copied(target: Path) -> Path:
    shutil.copytree(FOLDER, target / "checks", ignore=shutil.ignore_patterns("__pycache__"))
    return target / "checks"


def _revision_in(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", "from checks.revision import check_revision as r; print(r())"],
        cwd=folder.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_the_same_sources_have_the_same_revision(tmp_path: Path) -> None:
    """A copy somewhere else, with other line ends, measures the same."""
    copy = _copied(tmp_path)
    for path in copy.rglob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert _revision_in(copy) == check_revision()


def test_what_measures_changes_it(tmp_path: Path) -> None:
    """A line in a scenario is another measurement."""
    copy = _copied(tmp_path)
    path = copy / "scenarios" / "decoding.py"
    path.write_text(path.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    assert _revision_in(copy) != check_revision()


def test_what_only_tells_does_not(tmp_path: Path) -> None:
    """The command line, the reproducer's text and the plugin leave the history as it is."""
    copy = _copied(tmp_path)
    for name in ("__main__.py", "reproduce.py", "plugin.py", "conftest.py", "test_crossing.py"):
        path = copy / name
        path.write_text(path.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    assert _revision_in(copy) == check_revision()
