"""The run before: read back from its site, so that a report can say what is new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from matrix.records import SCHEMA_VERSION
from reports.changes import Said
from reports.results import PastRun, Results

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_KEPT: Final = 30
"""How many runs a site keeps, the one that is reported among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Previous:
    """What is known of the run before.

    Attributes:
        results: Its results; None if there are none that can be read.
        problem: Why not, in a sentence; empty if nothing is wrong.
        site: Its site, where kept runs can be copied from; None if there is none.
    """

    results: Results | None
    problem: str
    site: Path | None

    @property
    def said(self) -> Said | None:
        """What it said."""
        if self.results is None:
            return None
        return Said(
            check_revision=self.results.check_revision,
            records=self.results.records,
            statements=self.results.statements,
        )


NONE: Final = Previous(results=None, problem="", site=None)


def read_previous(path: Path | None) -> Previous:
    """Read a site, or a results.json, of a former run.

    A file that is not there is no problem; one that cannot be understood is told, and the
    report goes on without.
    """
    if path is None:
        return NONE
    file = path / "results.json" if path.is_dir() else path
    site = file.parent
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return NONE
    except OSError as error:
        return Previous(results=None, problem=_problem(str(error)), site=None)
    try:
        results = msgspec.json.decode(content, type=Results)
    except (msgspec.MsgspecError, ValueError) as error:
        return Previous(results=None, problem=_problem(str(error)), site=None)
    if results.schema_version != SCHEMA_VERSION:
        problem = _problem(f"it has form {results.schema_version}")
        return Previous(results=None, problem=problem, site=None)
    return Previous(results=results, problem="", site=site)


def _problem(why: str) -> str:
    return f"The report of the run before cannot be read, so changes are not known: {why}"


def kept_runs(previous: Previous) -> tuple[PastRun, ...]:
    """The runs of the site before, newest first, as far as they are kept."""
    return previous.results.runs[: MOST_KEPT - 1] if previous.results else ()


def kept_files(previous: Previous) -> Iterator[tuple[str, bytes]]:
    """The files of those runs, path and content."""
    if previous.site is None:
        return
    for run in kept_runs(previous):
        for path in run.files:
            try:
                yield path, (previous.site / path).read_bytes()
            except FileNotFoundError:
                continue
