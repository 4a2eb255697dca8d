"""When a model has more cases than a page can tell: one case for each way of use, its worst.

The condensed records are records like any other, so histories, stories and the grid are made
from them by the same functions; every detail stays on the pages of the releases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from matrix.records import Status
from reports.stories import ANY_CASE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matrix.records import Record

WORST_FIRST: Final = {
    Status.AFFECTED: 0,
    Status.ERROR: 1,
    Status.INCONCLUSIVE: 2,
    Status.OK: 3,
    Status.NOT_RUN: 4,
    Status.UNSUPPORTED: 5,
}
"""A scenario is affected if any case of it is, and right only if nothing tried is in doubt."""


def condense(records: Iterable[Record]) -> tuple[Record, ...]:
    """For each release, model and scenario its worst record, as the only case of it.

    Of equally bad ones the first counts, so give them in the order of the catalog.
    """
    worst: dict[tuple[str, str, str], Record] = {}
    for record in records:
        key = (record.release, record.model, record.scenario)
        known = worst.get(key)
        if known is None or WORST_FIRST[record.status] < WORST_FIRST[known.status]:
            worst[key] = record
    return tuple(
        msgspec.structs.replace(
            record,
            attention=ANY_CASE,
            device=ANY_CASE,
            dtype=ANY_CASE,
            python=ANY_CASE,
            torch=ANY_CASE,
        )
        for record in worst.values()
    )
