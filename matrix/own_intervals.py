"""Intervals of releases on which the user's tests pass or fail. Pure, on records as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from matrix.history import histories, runs
from matrix.own_results import WORDS, Failing, Interval
from matrix.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matrix.own_results import OwnCell
    from matrix.records import Record


def failing(records: Iterable[Record]) -> tuple[Failing, ...]:
    """Each run of neighbouring releases that failed, and the passed ones on both sides."""
    return tuple(
        Failing(
            runtime=run.records[0].runtime,
            first=run.first,
            last=run.last,
            last_passed_before=run.after,
            first_passed_after=run.before,
        )
        for history in histories(records).values()
        for run in runs(history)
        if run.status is Status.AFFECTED
    )


def intervals(
    records: Iterable[Record], cells: Mapping[tuple[str, str], OwnCell], stable: Sequence[str]
) -> tuple[Interval, ...]:
    """Neighbouring releases that passed, or that failed in the same tests by the same exceptions.

    Args:
        records: One for each cell.
        cells: The cells by (release, runtime).
        stable: Every stable release.
    """

    def outcome(record: Record) -> tuple[object, ...]:
        return record.status, cells[record.release, record.runtime].kind

    found: list[Interval] = []
    for history in histories(records).values():
        tried = {record.transformers for record in history}
        untried = [Version(release) for release in stable if release not in tried]
        for run in runs(history, outcome):
            first = run.records[0]
            failed = run.status is Status.AFFECTED
            between = (
                [one for one in untried if Version(run.after) < one < Version(run.first)]
                if run.after
                else []
            )
            found.append(
                Interval(
                    runtime=first.runtime,
                    status=WORDS[run.status],
                    message=cells[first.release, first.runtime].message if failed else None,
                    first=run.first,
                    last=run.last,
                    tested=len(run.records),
                    after=run.after,
                    before=run.before,
                    untested_between=len(between),
                    undecided=run.unknown,
                )
            )
    return tuple(found)
