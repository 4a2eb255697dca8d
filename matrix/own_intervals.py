"""Intervals of releases on which the user's tests pass or fail. Pure, on records as they are."""

from __future__ import annotations

from itertools import groupby
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
    found: list[Interval] = []
    for history in histories(records).values():
        groups = [
            tuple(members)
            for run in runs(history)
            for _, members in groupby(run.records, key=lambda r: cells[r.release, r.runtime].kind)
        ]
        found += (_interval(index, groups, history, cells, stable) for index in range(len(groups)))
    return tuple(found)


def _interval(
    index: int,
    groups: Sequence[tuple[Record, ...]],
    history: Sequence[Record],
    cells: Mapping[tuple[str, str], OwnCell],
    stable: Sequence[str],
) -> Interval:
    members = groups[index]
    first, last = members[0], members[-1]
    after = groups[index - 1][-1].transformers if index else None
    inside = history[history.index(first) : history.index(last)]
    tried = {record.transformers for record in history}
    between = [
        one
        for one in stable
        if after and Version(after) < Version(one) < Version(first.transformers)
    ]
    return Interval(
        runtime=first.runtime,
        status=WORDS[first.status],
        message=cells[first.release, first.runtime].message
        if first.status is Status.AFFECTED
        else None,
        first=first.transformers,
        last=last.transformers,
        tested=len(members),
        after=after,
        before=groups[index + 1][0].transformers if index + 1 < len(groups) else None,
        untested_between=len([one for one in between if one not in tried]),
        undecided=tuple(one.transformers for one in inside if not one.status.conclusive),
    )
