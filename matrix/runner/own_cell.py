"""Tests of the user's own, in this process: pytest on them, and lines for what each showed.

Two files come of it. ``job.out`` has the lines of the protocol that `checks` writes, with the
whole run as its one case, so that the harness reads both alike. The file beside it, ending in
``.tests``, has a line of JSON for each thing that happened to a test.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from matrix.runner.cell import Job

NO_PLUGINS = "--disable-plugin-autoload"
"""Argument of ours; pytest itself has it only since 8.4."""

_OPTIONS = (
    *("-o", "addopts="),  # of the project: coverage, reports and what else is for other runs
    *("-p", "no:cacheprovider"),
    "--continue-on-collection-errors",
    "--capture=sys",  # what a library writes past Python belongs into the log of the cell
    "--tb=short",
    "-q",
)
_RANK = ("passed", "skipped", "error", "failed")
"""What counts of the phases of one test: the last of these."""
_LONGEST = 2000
"""Characters of a reason; the harness cuts it further, when it has taken out the paths."""
_INTERNAL_ERROR, _USAGE_ERROR, _NOTHING = 3, 4, 5
"""Exit codes of pytest."""


def measure(job: Job) -> None:
    """Run pytest with ``job.tests``, and write what came of it."""
    environment = importlib.import_module("checks.environment")
    time_limit = importlib.import_module("checks.limits").time_limit
    pytest = importlib.import_module("pytest")
    protocol = _Lines(Path(job.out))
    # What the release itself has as its default, where the checks want it quieter.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "warning")
    failure = environment.import_transformers()
    if failure is not None:
        protocol.write(kind="import_failed", **_fields(failure))
        return
    case = job.cases[0]
    protocol.write(
        kind="environment",
        transformers=sys.modules["transformers"].__version__,
        torch=sys.modules["torch"].__version__,
        python=platform.python_version(),
    )
    protocol.write(kind="start", case=case)
    tests = _Lines(Path(job.out).with_suffix(".tests"))
    watcher = Watcher(tests.write, lambda: time_limit(job.case_seconds), job.case_seconds)
    arguments = [argument for argument in job.tests if argument != NO_PLUGINS]
    if len(arguments) < len(job.tests):
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    _hide_the_harness()
    code = int(pytest.main([*arguments, *_OPTIONS], plugins=[watcher]))
    sys.stdout.flush()
    sys.stderr.flush()
    said = Path(job.log).read_text(encoding="utf-8", errors="replace")
    protocol.write(kind="result", case=case, **watcher.conclusion(code, said))


class _Lines:
    """A file of JSON lines, each flushed at once, so that a process that dies has told."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", newline="\n")

    def write(self, **fields: Any) -> None:
        self._file.write(json.dumps(fields) + "\n")
        self._file.flush()


def _fields(failure: Any) -> dict[str, str]:
    return {name: getattr(failure, name) for name in ("reason", "message", "traceback")}


def _hide_the_harness() -> None:
    """Let ``import tests`` or ``import matrix`` find the user's, not those of this checkout."""
    root = Path(__file__).resolve().parents[2]
    sys.path[:] = [entry for entry in sys.path if entry and Path(entry).resolve() != root]
    for name in list(sys.modules):
        if name.partition(".")[0] in ("checks", "matrix"):
            del sys.modules[name]
    importlib.invalidate_caches()


class Watcher:
    """A plugin of pytest that tells what happens to each test.

    Attributes:
        ended: Outcome and reason of each test that ended, and of each file that could not be
            collected, in order.
    """

    def __init__(
        self,
        write: Callable[..., None],
        time_limit: Callable[[], AbstractContextManager[None]],
        seconds: float,
    ) -> None:
        self._write = write
        self._time_limit = time_limit
        self._seconds = seconds
        self._running = ExitStack()
        self._now: tuple[str, str] = ("", "")
        self._collected = 0
        self._timed_out = False
        self.ended: dict[str, tuple[str, str]] = {}

    def pytest_collectreport(self, report: Any) -> None:
        """A file that cannot be imported is an error of its own; one may also skip itself."""
        if report.failed:
            self._end(report.nodeid, "error", reason_of(report))
        elif report.skipped:
            self._end(report.nodeid, "skipped", reason_of(report))

    def pytest_collection_finish(self, session: Any) -> None:
        """Name what is going to run."""
        self._collected = len(session.items)
        for item in session.items:
            self._write(test=item.nodeid, outcome="collected", message="")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins, and so does its time."""
        self._now = ("", "")
        self._write(test=nodeid, outcome="started", message="")
        self._running.enter_context(self._time_limit())

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One phase of a test ended: setup, call or teardown."""
        if report.passed and report.when != "call":
            return
        outcome, reason = report.outcome, reason_of(report)
        if outcome == "failed" and reason.endswith("CaseTimeout"):
            outcome, reason = "error", f"gave up after {self._seconds:g} s"
            self._timed_out = True
        elif outcome == "failed" and report.when != "call":
            outcome = "error"
        if not self._now[0] or _RANK.index(outcome) > _RANK.index(self._now[0]):
            self._now = (outcome, reason)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test ended."""
        self._running.close()
        self._end(nodeid, *self._now)

    def _end(self, test: str, outcome: str, reason: str) -> None:
        self.ended[test] = (outcome, reason)
        self._write(test=test, outcome=outcome, message=reason)

    def conclusion(self, code: int, said: str) -> dict[str, Any]:
        """What the whole run showed, in the words of a record.

        Args:
            code: Exit code of pytest.
            said: All that it printed.
        """
        outcomes = [outcome for outcome, _ in self.ended.values()]
        first = self._first("failed") or self._first("error") or self._first("skipped")
        if "failed" in outcomes:
            return _result("affected", first, defect="unclassified")
        if "error" in outcomes:
            return _result("error", first, reason="timeout" if self._timed_out else "check_error")
        if not outcomes and (code == _NOTHING or (code == _USAGE_ERROR and _is_missing(said))):
            return _result("not_run", "pytest collects no test here", reason="not_selected")
        if code not in (0, _NOTHING) or len(outcomes) < self._collected:
            stopped = "pytest stopped" if code <= _INTERNAL_ERROR else "pytest"
            return _result("error", f"{stopped}: {last_reason(said)}", reason="check_error")
        if "passed" in outcomes:
            return _result("ok", f"{outcomes.count('passed')} passed")
        return _result("inconclusive", first)

    def _first(self, wanted: str) -> str:
        """The first test with that outcome, its reason, and how many more there are."""
        found = [item for item in self.ended.items() if item[1][0] == wanted]
        if not found:
            return ""
        (test, (_, reason)), *more = found
        name, bracket, parameters = test.partition("[")
        told = f"{name.rpartition('::')[2]}{bracket}{parameters}: {reason}"[:_LONGEST]
        return f"{told} (and {len(more)} more)" if more else told


def _result(
    status: str, message: str, *, reason: str | None = None, defect: str | None = None
) -> dict[str, Any]:
    return {
        "status": status,
        "reason": reason,
        "defect": defect,
        "evidence": {"message": message},
    }


def _is_missing(said: str) -> bool:
    """Whether pytest says that a test is not there."""
    return "ERROR: not found:" in said or "ERROR: found no collectors" in said


def reason_of(report: Any) -> str:
    """Why a report is what it is, in one line; empty if it passed."""
    expected = getattr(report, "wasxfail", None)
    if expected is not None:
        told = str(expected).strip()
        return f"expected to fail{': ' if told else ''}{told}"[:_LONGEST]
    if report.longrepr is None or report.outcome == "passed":
        return ""
    if isinstance(report.longrepr, tuple):  # (file, line, why it was skipped)
        return one_line(str(report.longrepr[2]).replace("Skipped: ", "", 1))
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None:
        return last_reason(str(report.longrepr))
    # pytest leaves the name out where its own explanation of an assert follows.
    name = "AssertionError: " if crash.message.startswith("assert ") else ""
    return one_line(name + crash.message)


def last_reason(text: str) -> str:
    """The exception at the end of what pytest prints of a traceback, or else the last line."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    marked = [index for index, line in enumerate(lines) if line.startswith("E  ")]
    if marked:
        first = marked[-1]
        while first - 1 in marked:
            first -= 1
        return one_line(" ".join(line[1:] for line in lines[first : marked[-1] + 1]))
    told = [line for line in lines if line.startswith(("ERROR: ", "INTERNALERROR> "))] or lines
    return one_line(told[-1].partition("> ")[2] or told[-1]) if told else "no reason was given"


def one_line(text: str) -> str:
    """`text` with every stretch of white space as one blank, cut where it gets long."""
    words = " ".join(text.replace("Use -v to get more diff", "").split())
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"
