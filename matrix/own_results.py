"""What the user's own tests showed, cell by cell and test by test; and what that means in words.

A cell's whole run is a record like any other (`ok` is "passed" here, `affected` is "failed"), so
that boundaries and intervals are found by what finds them for the matrix.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from matrix.records import Reason, Record, Source, Status
from matrix.tidy import rename

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCHEMA_VERSION: Final = 1
LONGEST: Final = 300
"""Characters of a message."""
WORDS: Final = {
    Status.OK: "passed",
    Status.AFFECTED: "failed",
    Status.INCONCLUSIVE: "skipped",
    Status.UNSUPPORTED: "unsupported",
    Status.NOT_RUN: "not_run",
    Status.ERROR: "error",
}
"""What a record's status is called, where the record is one run of pytest."""


class Outcome(StrEnum):
    """What became of one test."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    NOT_RUN = "not_run"


class OneTest(msgspec.Struct, frozen=True, kw_only=True):
    """One test in one cell.

    Attributes:
        test: Its name for pytest, from the folder of its project.
        outcome: What became of it; an error is one outside of the test itself: a fixture, an
            import, or its process.
        message: Why, in one line; empty if it passed.
    """

    test: str
    outcome: Outcome
    message: str = ""


class OwnCell(msgspec.Struct, frozen=True, kw_only=True):
    """One release on one runtime: the whole run of pytest, and each test.

    Attributes:
        release: How the user calls the release.
        transformers: Its version, as installed or as asked for.
        source: Where it came from.
        commit: The commit, for a release that moves.
        released_at: When it was uploaded to the index.
        runtime: Name of the runtime.
        python: Full version of the interpreter.
        torch: Version of torch with its build.
        status: ``passed``, ``failed``; or what is neither: ``skipped``, ``error``,
            ``unsupported``, ``not_run``.
        reason: Code of why it is neither.
        message: In one line.
        isolation: ``layer`` on the runtime, or ``environment`` of its own.
        process: ``fork`` or ``fresh``.
        seconds: How long the cell took.
        tests: Each test, in the order of pytest; empty where pytest was not reached.
    """

    release: str
    transformers: str
    source: Source
    commit: str | None
    released_at: str | None
    runtime: str
    python: str
    torch: str
    status: str
    reason: Reason | None
    message: str | None
    isolation: str | None
    process: str | None
    seconds: float | None
    tests: tuple[OneTest, ...]

    @property
    def kind(self) -> tuple[str, ...]:
        """What two failed cells have in common if they failed alike: tests and exceptions."""
        failed = (one for one in self.tests if one.outcome is Outcome.FAILED)
        return tuple(sorted(f"{one.test} {one.message.partition(':')[0]}" for one in failed))


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """Neighbouring releases on one runtime that passed, or failed alike.

    Attributes:
        runtime: Name of the runtime.
        status: ``passed`` or ``failed``.
        message: Why the first of them failed.
        first: The first release.
        last: The last one.
        tested: How many releases these are.
        after: The release tested before, that passed or failed otherwise; None if there is none.
        before: The same behind it.
        untested_between: Stable releases between `after` and `first` that were not tried.
        undecided: Releases inside that are neither passed nor failed.
    """

    runtime: str
    status: str
    message: str | None
    first: str
    last: str
    tested: int
    after: str | None
    before: str | None
    untested_between: int
    undecided: tuple[str, ...]


class Failing(msgspec.Struct, frozen=True, kw_only=True):
    """Neighbouring releases that failed, however they did: where it begins, and where it ends."""

    runtime: str
    first: str
    last: str
    last_passed_before: str | None
    first_passed_after: str | None


class OwnRun(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one run of the user's tests showed; ``own.json`` is this.

    Attributes:
        tests: The tests, as they were named, from the folder of their project.
        package: The package whose releases these are.
        generated_at: When, ISO 8601 in UTC.
        harness_commit: Commit of this repository.
        cells: The cells, in the order of runtimes and releases.
        intervals: What was passed and failed, by runtime and release.
        failing: Where failing begins and ends.
        problems: What could not be reached, or was not done, a sentence each.
        schema_version: Form of this file.
    """

    tests: tuple[str, ...]
    package: str
    generated_at: str
    harness_commit: str | None
    cells: tuple[OwnCell, ...]
    intervals: tuple[Interval, ...]
    failing: tuple[Failing, ...]
    problems: tuple[str, ...]
    schema_version: int = SCHEMA_VERSION


class _Line(msgspec.Struct, frozen=True):
    test: str
    outcome: str
    message: str


def shorten(text: str, longest: int = LONGEST) -> str:
    """`text`, cut where it gets long."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def own_cell(record: Record, tests: Path, places: Mapping[str, str]) -> OwnCell:
    """The cell of `record`, with what its process wrote into the file `tests`."""
    message = record.evidence.message or ""
    ran = read_tests(tests, message, places)
    ended_in = [one.test for one in ran if one.outcome is Outcome.ERROR and one.message == message]
    if ended_in:
        message = f"{ended_in[0]}: {message}"
    return OwnCell(
        release=record.release,
        transformers=record.transformers,
        source=record.source,
        commit=record.commit,
        released_at=record.released_at,
        runtime=record.runtime,
        python=record.python,
        torch=record.torch,
        status=WORDS[record.status],
        reason=record.reason,
        message=shorten(message) or None,
        isolation=record.provenance.isolation,
        process=record.provenance.process,
        seconds=record.provenance.seconds,
        tests=ran,
    )


def read_tests(path: Path, ending: str, places: Mapping[str, str]) -> tuple[OneTest, ...]:
    """What became of each test of one process.

    Args:
        path: The file that the process wrote, line by line as things happened.
        ending: What became of the process, for the test that it ended in.
        places: Folders of this machine -> what to call them.
    """
    newest: dict[str, _Line] = {}
    for raw in path.read_bytes().splitlines() if path.exists() else ():
        try:
            line = msgspec.json.decode(raw, type=_Line)
        except msgspec.MsgspecError:
            continue  # cut off, where the process died
        newest[line.test] = line
    found: list[OneTest] = []
    for line in newest.values():
        outcome, message = line.outcome, shorten(rename(line.message, places) or "")
        if outcome == "collected":
            outcome, message = Outcome.NOT_RUN, "the process ended before it"
        elif outcome == "started":
            outcome, message = Outcome.ERROR, ending
        found.append(OneTest(test=line.test, outcome=Outcome(outcome), message=message))
    return tuple(found)
