"""What goes wrong around the cells: each gets its message, its exit code, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from matrix.errors import (
    INTERRUPTED,
    CorruptFileError,
    GridError,
    IndexUnreachableError,
    NoSuchReleaseError,
    OptionsError,
    PythonMissingError,
)
from tests.fixture_index import PACKAGE
from tests.pipeline.harness import ROOT, Harness

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow


@pytest.fixture
def harness(tmp_path: Path, runtimes: Path, fixture_index: str) -> Harness:
    """A checkout whose grid asks for one release that is fine and one that hangs."""
    harness = Harness(folder=tmp_path, runtimes=runtimes, index=fixture_index)
    harness.write_grid(
        package=PACKAGE, since="1.0.0", run=("1.0.0", "1.7.0"), scenarios=("decode-crossing",)
    )
    return harness


def wait_for(condition: Callable[[], bool], seconds: float = 240) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.2)


def processes_under(folder: Path) -> list[str]:
    """Command lines of processes whose environment or arguments name `folder`."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            text = command + (entry / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in text and int(entry.name) != os.getpid():
            found.append(command)
    return found


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_an_interrupt_keeps_what_was_finished_and_leaves_no_process(harness: Harness) -> None:
    """And says how to go on."""
    assert harness.run("matrix", "plan").code == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "matrix", "cells", "3.11/2.13.0"],
        cwd=ROOT,
        env=harness.environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_for(lambda: (harness.ledger.root / "py3.11-torch2.13.0" / "1.0.0.jsonl").exists())
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, output
    assert "the same command goes on from there" in output
    assert {record.release for record in harness.ledger.load()[0]} == {"1.0.0"}
    wait_for(lambda: not processes_under(harness.folder), 20)
    again = harness.run("matrix", "plan")
    assert "1 cells to run" in again.output
    assert "known already: 1 cells" in again.output


def test_an_unreachable_index_is_named(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what still works."""
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    done = harness.run("matrix", "plan")
    assert done.code == IndexUnreachableError.exit_code
    assert "http://127.0.0.1:9/simple did not answer" in done.output
    assert "nox -s report" in done.output


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (["--releases", "9.9.9"], NoSuchReleaseError, "`9.9.9`: no such release"),
        (["--releases", "latst"], OptionsError, "'latst' is no release spec"),
        (["--runtimes", "3.11"], OptionsError, "'3.11' is no pair"),
        (["--bogus"], OptionsError, "--bogus"),
    ],
)
def test_a_mistake_on_the_command_line_is_told(
    harness: Harness, options: list[str], error: type[Exception], words: str
) -> None:
    """Before anything is installed."""
    done = harness.run("matrix", "plan", *options)
    assert done.code == error.exit_code  # type: ignore[attr-defined]
    assert words in done.output
    assert "Traceback" not in done.output


def test_a_mistake_in_the_grid_is_told(harness: Harness) -> None:
    """With its place."""
    harness.grid.write_text("[releases]\n", encoding="utf-8")
    done = harness.run("matrix", "plan")
    assert done.code == GridError.exit_code
    assert "[cases]: this table is missing" in done.output


def test_a_missing_python_is_told(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do."""
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    harness.grid.write_text(
        harness.grid.read_text(encoding="utf-8").replace('"3.11"', '"3.99"'), encoding="utf-8"
    )
    assert harness.run("matrix", "plan").code == 0
    done = harness.run("matrix", "cells", "3.99/2.13.0")
    assert done.code == PythonMissingError.exit_code
    assert "There is no Python 3.99 here" in done.output


def test_cells_without_a_plan_say_how_to_make_one(harness: Harness) -> None:
    """Not a traceback."""
    done = harness.run("matrix", "cells", "3.11/2.13.0")
    assert done.code == CorruptFileError.exit_code
    assert "nox -s plan" in done.output


def test_a_damaged_record_is_named_and_run_again(harness: Harness) -> None:
    """In the terminal and in the report; the others are used."""
    folder = harness.ledger.root / "py3.11-torch2.13.0"
    folder.mkdir(parents=True)
    (folder / "1.0.0.jsonl").write_text("half a li", encoding="utf-8")
    done = harness.run("matrix", "plan")
    assert "a damaged file is passed over" in done.output
    assert "1.0.0.jsonl" in done.output
    assert "2 cells to run" in done.output
    report = harness.run("reports", "--site", str(harness.site))
    assert report.code == 0, report.output
    assert "1.0.0.jsonl" in (harness.site / "report.md").read_text(encoding="utf-8")
