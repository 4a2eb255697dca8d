"""Refinement: which releases to run next, so that every boundary is exact.

Pure. Where two neighbouring conclusive records of a history differ, what lies between them
has to be run, until nothing does. Releases that turned out not to be conclusive are stepped
around, as a bisection does with a skip: they stay visible as a gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrix.history import runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matrix.history import Axis
    from matrix.records import Record

RUN_ALL = 6
"""A gap of at most this many releases is run whole; a wider one is halved first."""


def next_releases(
    histories: Mapping[Axis, Sequence[Record]],
    releases: Sequence[str],
    *,
    asked: Iterable[tuple[Axis, str]] = (),
) -> dict[Axis, tuple[str, ...]]:
    """The releases to run next on each axis that has a boundary which is not exact.

    Args:
        histories: The records so far, each history in version order.
        releases: All releases that could be run, in version order.
        asked: (axis, release) pairs that were run already without giving a record.
    """
    position = {release: index for index, release in enumerate(releases)}
    gone = set(asked)
    wanted: dict[Axis, tuple[str, ...]] = {}
    for axis, history in histories.items():
        recorded = {record.transformers for record in history}
        chosen: list[str] = []
        for run in runs(history)[:-1]:
            assert run.before is not None
            if run.last not in position or run.before not in position:
                continue  # a pre-release or a yanked one: it has no neighbours to run
            between = releases[position[run.last] + 1 : position[run.before]]
            unknown = [
                release
                for release in between
                if release not in recorded and (axis, release) not in gone
            ]
            chosen += unknown if len(unknown) <= RUN_ALL else [unknown[len(unknown) // 2]]
        if chosen:
            wanted[axis] = tuple(chosen)
    return wanted
