"""The user's own tests: where they and their settings are, and what their outcomes add up to."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from matrix.errors import OptionsError
from matrix.own_intervals import failing, intervals
from matrix.own_options import OwnOptions, parse_own_options
from matrix.own_results import LONGEST, Outcome, own_cell, read_tests
from matrix.runner.own_cell import Watcher, last_reason
from matrix.specs import Minors
from matrix.work import ROOT
from tests.matrix.factory import record

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.own_results import OwnCell


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with settings of pytest, a library and a test."""
    for folder in ("tests/unit", "src"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "setup.cfg").write_text("[metadata]", encoding="utf-8")
    (tmp_path / "tox.ini").write_text("[pytest]", encoding="utf-8")
    (tmp_path / "tests/unit/test_a.py").touch()
    return tmp_path


def parse(folder: Path, *words: str) -> OwnOptions:
    """The options as given in `folder`."""
    return parse_own_options([*words, "--from", str(folder)], prog="own")


def test_a_test_brings_the_settings_and_the_library_of_its_project(project: Path) -> None:
    """Which is the nearest folder above it that looks like one; names of tests begin there."""
    options = parse(project / "tests", "unit/test_a.py::test_b[x::y]")
    assert options.tests == (f"{project}/tests/unit/test_a.py::test_b[x::y]",)
    assert options.project == project
    assert options.paths == (project / "src", project)
    assert options.arguments[1:5] == (
        f"--rootdir={project}",
        f"--confcutdir={project}",
        "-c",
        str(project / "tox.ini"),
    )
    assert options.grid.releases == (Minors(),)


def test_settings_of_this_checkout_are_nobodys() -> None:
    """Also where the test lies in it, and at its root."""
    for place in ("tests/matrix/test_own.py", "noxfile.py"):
        options = parse(ROOT, place)
        assert options.arguments[options.arguments.index("-c") + 1] == os.devnull
        assert ROOT not in options.paths


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["unit/test_z.py::test_a"], "There is no test unit/test_z.py"),
        ([], "TEST"),
        (["unit", "--record"], "--record"),
        (["unit", "--releases", "latst"], "'latst'"),
        (["unit", "--path", "nowhere"], "nowhere"),
    ],
)
def test_a_mistake_is_told_before_anything_runs(project: Path, words: list[str], told: str) -> None:
    """Also an option that means nothing here."""
    with pytest.raises(OptionsError, match=told):
        parse(project / "tests", *words)


class Report:
    """A report of pytest, as far as the watcher looks."""

    def __init__(self, when: str, outcome: str, message: str = "") -> None:
        self.when, self.outcome, self.passed = when, outcome, outcome == "passed"
        self.longrepr = f"E   {message}" if message else None


def conclude(*tests: tuple[Report, ...], collected: int | None = None, code: int = 0) -> Any:
    """What a session with these reports, a tuple for each test, adds up to."""
    watcher = Watcher(lambda **_: None, nullcontext, 5)
    names = [f"test_{n}" for n in range(len(tests) if collected is None else collected)]
    items = [SimpleNamespace(nodeid=name) for name in names]
    watcher.pytest_collection_finish(SimpleNamespace(items=items))
    for number, reports in enumerate(tests):
        watcher.pytest_runtest_logstart(f"test_{number}")
        for report in reports:
            watcher.pytest_runtest_logreport(report)
        watcher.pytest_runtest_logfinish(f"test_{number}")
    return watcher.conclusion(code, "!!! Exit: enough")


PASS = Report("call", "passed")
SKIP = Report("setup", "skipped", "Skipped")
FAIL = Report("call", "failed", "AssertionError: no")
BROKEN = Report("setup", "failed", "OSError: no file")
UNTIDY = Report("teardown", "failed", "OSError: left")
LATE = Report("setup", "failed", "checks.errors.CaseTimeout")


@pytest.mark.parametrize(
    ("tests", "status", "reason"),
    [
        ([(PASS,), (SKIP,)], "ok", None),
        ([(SKIP,), (SKIP,)], "inconclusive", None),
        ([(PASS,), (FAIL,), (BROKEN,)], "affected", None),
        ([(PASS,), (BROKEN,)], "error", "check_error"),
        ([(PASS, UNTIDY)], "error", "check_error"),
        ([(FAIL, UNTIDY)], "affected", None),
        ([(PASS,), (LATE,)], "error", "timeout"),
        ([], "not_run", "not_selected"),
    ],
)
def test_what_the_tests_add_up_to(
    tests: list[tuple[Report, ...]], status: str, reason: str | None
) -> None:
    """One failure decides; without one an error leaves it open; skips alone are no pass."""
    result = conclude(*tests, code=0 if tests else 5)
    assert (result["status"], result["reason"]) == (status, reason)


def test_a_session_that_stops_early_has_not_passed() -> None:
    """Whether pytest says so or tests are missing."""
    assert conclude((PASS,), collected=2)["status"] == "error"
    assert conclude((PASS,), code=2)["evidence"]["message"] == "pytest stopped: !!! Exit: enough"


def test_the_reason_is_the_exception_that_pytest_marks() -> None:
    """The last one of a chain, in one line."""
    text = "a.py:1: in f\nE   KeyError: 1\nb.py:2: in g\nE   ValueError: two\nE     words\n"
    assert last_reason(text) == "ValueError: two words"
    assert last_reason("noise\nERROR: file is odd\n") == "ERROR: file is odd"
    assert last_reason("") == "no reason was given"


def test_what_a_dead_process_wrote_is_read(tmp_path: Path) -> None:
    """The test that it died in, those that it never reached, and no half a line; no paths."""
    path = tmp_path / "cell.tests"
    lines = [
        *({"test": f"test_{name}", "outcome": "collected", "message": ""} for name in "abc"),
        {"test": "test_a", "outcome": "failed", "message": f"E: {tmp_path}/x " + 500 * "y"},
        {"test": "test_b", "outcome": "started", "message": ""},
    ]
    text = "\n".join(json.dumps(line) for line in lines) + '\n{"test": "te'
    path.write_text(text, encoding="utf-8")
    tests = read_tests(path, "it died", {str(tmp_path): "here"})
    assert [(one.test, one.outcome) for one in tests] == [
        ("test_a", Outcome.FAILED),
        ("test_b", Outcome.ERROR),
        ("test_c", Outcome.NOT_RUN),
    ]
    assert tests[0].message.startswith("E: here/x y")
    assert len(tests[0].message) == LONGEST
    assert tests[1].message == "it died"


def cells(tmp_path: Path, *outcomes: str) -> tuple[list[Any], dict[tuple[str, str], OwnCell]]:
    """Records and cells of releases 1.0, 2.0, …: ``ok``, ``error``, or the exception raised."""
    records, found = [], {}
    for number, outcome in enumerate(outcomes, start=1):
        failed = outcome not in ("ok", "error")
        one = record(f"{number}.0", "lost" if failed else outcome)
        path = tmp_path / f"{number}.tests"
        line = {"test": "test_a", "outcome": "failed", "message": f"{outcome}: in {number}"}
        path.write_text(json.dumps(line) if failed else "", encoding="utf-8")
        records.append(one)
        found[one.release, one.runtime] = own_cell(one, path, {})
    return records, found


def test_releases_that_fail_alike_share_an_interval(tmp_path: Path) -> None:
    """Alike is the same tests and exceptions, whatever the words; unknown belongs to none."""
    records, found = cells(tmp_path, "ok", "error", "KeyError", "KeyError", "OSError", "ok")
    stable = [f"{number}.0" for number in range(1, 7)] + ["2.5"]
    told = [
        (one.status, one.first, one.last, one.after, one.before, one.untested_between)
        for one in intervals(records, found, stable)
    ]
    assert told == [
        ("passed", "1.0", "1.0", None, "3.0", 0),
        ("failed", "3.0", "4.0", "1.0", "5.0", 1),
        ("failed", "5.0", "5.0", "4.0", "6.0", 0),
        ("passed", "6.0", "6.0", "5.0", None, 0),
    ]
    (one,) = failing(records)
    assert (one.first, one.last) == ("3.0", "5.0")
    assert (one.last_passed_before, one.first_passed_after) == ("1.0", "6.0")


def test_unknown_inside_an_interval_is_named(tmp_path: Path) -> None:
    """It does not cut the interval, and is not counted in it."""
    records, found = cells(tmp_path, "ok", "error", "ok")
    (one,) = intervals(records, found, [])
    assert (one.first, one.last, one.tested, one.undecided) == ("1.0", "3.0", 2, ("2.0",))
