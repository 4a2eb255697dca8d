"""results.json: its type, and the JSON schema generated from it.

`python -m reports.results` writes the schema; a test holds the committed one to it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from matrix.records import SCHEMA_VERSION, Record
from reports.changes import Change
from reports.paths import slug
from reports.statements import Statement
from reports.verdicts import Interval

if TYPE_CHECKING:
    from reports.findings import Findings
    from reports.run import RunInfo
    from reports.view import View

SCHEMA_PATH: Final = Path(__file__).parent / "schema" / "results.schema.json"


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the plan is conclusive; see `reports.measured.Coverage`."""

    planned: int
    conclusive: int
    records: int
    undecided: int
    unsupported: int
    not_run: int


class PastRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose report the site keeps.

    Attributes:
        generated_at: When its report was made.
        check_revision: Revision of the checks whose records counted.
        summary: Its answer.
    """

    generated_at: str
    check_revision: str
    summary: str

    @property
    def folder(self) -> str:
        """Its folder in the site; made from its time, never from a path that somebody gave."""
        return f"runs/{slug(self.generated_at.replace(':', '').lower())}"

    @property
    def report(self) -> str:
        """Path of its report."""
        return f"{self.folder}/report.md"

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of all that is kept of it."""
        return (self.report, f"{self.folder}/results.json.gz")


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The content of results.json.

    Attributes:
        schema_version: Version of this form; it changes when a reader could break.
        generated_at: When the report was made, ISO 8601 in UTC.
        check_revision: Revision of the checks whose records count.
        harness_commit: Commit of the harness, or null.
        summary: The answer in one or two sentences.
        coverage: How much of the plan is conclusive.
        problems: What went wrong outside of any cell.
        records: Every record that counts.
        intervals: Runs of tested releases, for each case and runtime.
        statements: What is said of each release.
        changes: Differences from the run before, newest first, this run's and older ones.
        runs: The runs that the site keeps, newest first, this one among them.
    """

    schema_version: int
    generated_at: str
    check_revision: str
    harness_commit: str | None
    summary: str
    coverage: Counts
    problems: tuple[str, ...]
    records: tuple[Record, ...]
    intervals: tuple[Interval, ...]
    statements: tuple[Statement, ...]
    changes: tuple[Change, ...]
    runs: tuple[PastRun, ...]


def results(
    findings: Findings,
    view: View,
    run: RunInfo,
    changes: tuple[Change, ...],
    runs: tuple[PastRun, ...],
) -> Results:
    """The document of a run."""
    covered = view.coverage
    return Results(
        schema_version=SCHEMA_VERSION,
        generated_at=run.generated_at,
        check_revision=run.check_revision,
        harness_commit=run.harness_commit,
        summary=view.summary,
        coverage=Counts(
            planned=covered.planned,
            conclusive=covered.conclusive,
            records=covered.records,
            undecided=covered.undecided,
            unsupported=covered.unsupported,
            not_run=covered.not_run,
        ),
        problems=run.problems,
        records=findings.records,
        intervals=findings.intervals,
        statements=findings.statements,
        changes=changes,
        runs=runs,
    )


def encode(document: object) -> bytes:
    """JSON as the site publishes it: members in their order, a line feed at the end.

    Half a surrogate pair, which JSON in UTF-8 cannot hold, is replaced.
    """
    try:
        return msgspec.json.encode(document) + b"\n"
    except UnicodeEncodeError:
        return msgspec.json.encode(_writable(msgspec.to_builtins(document))) + b"\n"


def _writable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_writable(key): _writable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(item) for item in value]
    return value


def schema() -> dict[str, Any]:
    """JSON schema (2020-12) of results.json."""
    generated = msgspec.json.schema(Results)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Results of the LongRoPE compatibility matrix",
        **generated,
    }


def schema_text() -> str:
    """The schema as it is committed."""
    return msgspec.json.format(msgspec.json.encode(schema(), order="sorted")).decode() + "\n"


if __name__ == "__main__":
    SCHEMA_PATH.parent.mkdir(exist_ok=True)
    SCHEMA_PATH.write_text(schema_text(), encoding="utf-8", newline="\n")
