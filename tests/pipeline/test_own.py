"""Tests of the user's own on the grid: every way that they can end, on fixture releases."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from matrix.errors import INTERRUPTED, OptionsError
from tests.fixture_index import PACKAGE
from tests.pipeline.harness import ROOT, Done, Harness

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.slow

CONFTEST = """
import pytest, transformers

@pytest.fixture
def release():
    if transformers.__version__ == "1.8.0":
        raise RuntimeError("no model for you")
    return transformers.__version__
"""
TESTS = """
import os, signal, time, warnings
from pathlib import Path
import pytest
import checks  # the one beside this file, whatever else is called so

@pytest.mark.of_ours_unknown
def test_answer(release):
    warnings.warn("errors in the checkout's own tests")
    if release == "1.0.1":
        pytest.skip("not for this one")
    if release == "1.7.0":
        os._exit(3)
    if release == "1.6.0":
        time.sleep(600)
    if release == "1.1.1":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        time.sleep(600)
    assert checks.ANSWER == 42
    assert release != "1.1.0", f"wrong in {Path(__file__).parent} " + 400 * "x"

def test_place(release):
    if release == "1.0.1":
        pytest.skip("nor this")
    assert not list(Path.cwd().iterdir())
"""
IMPORTS = """
import pytest, transformers
from transformers.models.phi3 import modeling_phi3

@pytest.mark.skipif(transformers.__version__ == "1.0.1", reason="all of it")
def test_model():
    assert modeling_phi3.Phi3ForCausalLM
"""
NAMED = ("1.0.0", "1.1.0", "1.1.1", "1.2.0", "1.3.0", "1.5.0", "1.6.0", "1.7.0", "1.8.0", "1.9.0")


@pytest.fixture(scope="module")
def harness(
    tmp_path_factory: pytest.TempPathFactory, runtimes: Path, fixture_index: str
) -> Harness:
    """A checkout beside a project whose tests end differently on each release."""
    folder = tmp_path_factory.mktemp("own")
    project = folder / "project"
    project.mkdir()
    for name, text in {
        "conftest.py": CONFTEST,
        "test_it.py": TESTS,
        "test_model.py": IMPORTS,
        "checks.py": "ANSWER = 42",
        "pytest.ini": "[pytest]\naddopts = --no-such-option\nmarkers = of_ours_unknown",
    }.items():
        (project / name).write_text(text, encoding="utf-8")
    harness = Harness(folder=folder, runtimes=runtimes, index=fixture_index)
    harness.write_grid(package=PACKAGE, since="1.0.0", case_seconds=3, seconds=10)
    return harness


def own(harness: Harness, test: str, *options: str) -> Done:
    """Run the tests as a user would."""
    return harness.run("reports.own", *words(harness, test, options))


def words(harness: Harness, test: str, options: Sequence[str]) -> list[str]:
    """The command line of it."""
    folder = str(harness.folder / "project")
    return [test, *options, "--from", folder, "--site", str(harness.site)]


def cells(harness: Harness) -> dict[str, Any]:
    """The cells of own.json by release."""
    result = json.loads((harness.site / "own.json").read_text(encoding="utf-8"))
    return {cell["release"]: cell for cell in result["cells"]}


@pytest.fixture(scope="module")
def done(harness: Harness) -> Done:
    """The run over all fixture releases but one, which lies at a boundary."""
    done = own(harness, ".", "--releases", *NAMED)
    assert done.code == 0, done.output
    return done


@pytest.fixture(scope="module")
def result(harness: Harness, done: Done) -> Any:
    """Its own.json."""
    return json.loads((harness.site / "own.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("release", "status", "reason", "words"),
    [
        ("1.0.0", "passed", None, "3 passed"),
        ("1.0.1", "skipped", None, "test_answer: not for this one (and 2 more)"),
        ("1.1.0", "failed", None, "test_answer: AssertionError: wrong in project xxx"),
        ("1.7.0", "error", "crashed", "test_it.py::test_answer: the process died"),
        ("1.2.0", "passed", None, "3 passed"),
        ("1.3.0", "error", "install_failed", "could not be installed"),
        ("1.5.0", "error", "import_failed", "ImportError: this release fails to import"),
        ("1.6.0", "error", "timeout", "test_answer: gave up after 3 s"),
        ("1.1.1", "error", "timeout", "test_answer: the cell was stopped"),
        ("1.8.0", "error", "check_error", "test_answer: RuntimeError: no model for you"),
        ("1.9.0", "error", "check_error", "test_model.py: ImportError: cannot import name"),
    ],
)
def test_each_cell_says_how_it_ended(
    result: Any, release: str, status: str, reason: str | None, words: str
) -> None:
    """1.0.1 was not asked for: it lies between two that differ. A message has no path and ends."""
    cell = next(cell for cell in result["cells"] if cell["release"] == release)
    assert (cell["status"], cell["reason"]) == (status, reason)
    assert words in cell["message"]
    assert len(cell["message"]) <= 300
    assert str(Path.home()) not in json.dumps(result)
    assert "/tmp" not in json.dumps(result)


def test_each_test_has_its_own_outcome(harness: Harness, result: Any) -> None:
    """Also those in a process that died: the one that it died in, and those it never reached."""
    with (harness.site / "own.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    by_release: dict[str, list[tuple[str, str]]] = {}
    for row in table:
        by_release.setdefault(row["release"], []).append((row["test"], row["outcome"]))
    names = ("test_it.py::test_answer", "test_it.py::test_place", "test_model.py::test_model")
    for release, outcomes in {
        "1.0.0": ("passed", "passed", "passed"),
        "1.1.0": ("failed", "passed", "passed"),
        "1.1.1": ("error", "not_run", "not_run"),
        "1.6.0": ("error", "passed", "passed"),
        "1.8.0": ("error", "error", "passed"),
    }.items():
        assert by_release[release] == list(zip(names, outcomes, strict=True))
    assert by_release["1.3.0"] == [("", "")]
    assert ("test_model.py", "error") in by_release["1.9.0"]


def test_only_passed_and_failed_decide(result: Any) -> None:
    """What lies between is named and belongs to nothing."""
    told = [
        (one["status"], one["first"], one["last"], one["after"], one["before"], one["undecided"])
        for one in result["intervals"]
    ]
    assert told == [
        ("passed", "1.0.0", "1.0.0", None, "1.1.0", []),
        ("failed", "1.1.0", "1.1.0", "1.0.0", "1.2.0", []),
        ("passed", "1.2.0", "1.2.0", "1.1.0", None, []),
    ]
    (failing,) = result["failing"]
    assert (failing["first"], failing["first_passed_after"]) == ("1.1.0", "1.2.0")


def test_the_terminal_and_the_file_say_the_same(harness: Harness, done: Done) -> None:
    """A line for each cell as it ends, then the table; what is unknown has a question mark."""
    assert "/10] 1.1.0 3.11/2.13.0: failed (test_answer: AssertionError: wrong" in done.output
    for text in (done.output, (harness.site / "own.md").read_text(encoding="utf-8")):
        assert "Fails from 1.1.0 (1.0.0 passes); the first to pass after it is 1.2.0." in text
        assert "Unknown on 8 of 11." in text
        assert "? skipped" in text
        assert text.count("✓") == 2
    assert not (harness.folder / "ledger").exists()
    assert not (harness.folder / "work" / "ledger").exists()


@pytest.fixture
def patient(harness: Harness, result: Any) -> Harness:
    """The same, with limits that nothing meets."""
    harness.write_grid(package=PACKAGE, since="1.0.0")
    return harness


def test_a_test_that_is_not_there_is_told(patient: Harness) -> None:
    """The harness could not work: not a table of unknowns."""
    missing = own(patient, "test_it.py::test_nothing", "--releases", "1.0.0")
    assert missing.code == OptionsError.exit_code
    assert "pytest collects no test from test_it.py::test_nothing" in missing.output
    assert "Traceback" not in missing.output


def test_an_interrupt_keeps_what_was_finished_and_fresh_interpreters_see_the_same(
    patient: Harness, result: Any
) -> None:
    """In the files and on the terminal, with how much is left. One test, by pytest's name."""
    options = ["--releases", "1.1.0", "1.1.1", "--isolated"]
    process = subprocess.Popen(
        [
            *(sys.executable, "-u", "-m", "reports.own"),
            *words(patient, "test_it.py::test_answer", options),
        ],
        cwd=ROOT,
        env=patient.environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "1.1.0 3.11/2.13.0: failed" in line:
            break
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, output
    assert "stopped: 1 cells were not run" in output
    finished = cells(patient)
    assert set(finished) == {"1.1.0"}
    forked = next(cell for cell in result["cells"] if cell["release"] == "1.1.0")
    assert (finished["1.1.0"]["process"], forked["process"]) == ("fresh", "fork")
    assert finished["1.1.0"]["message"] == forked["message"]
    assert finished["1.1.0"]["tests"] == forked["tests"][:1]
