"""Everything that is concluded from the records, before it is put in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reports.statements import Statement, statements
from reports.verdicts import Interval, current, intervals, known_releases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.records import Record
    from reports.run import RunInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the records say.

    Attributes:
        records: The records that count, in the order of `verdicts.current`.
        outdated: How many were left out, since another revision of the checks made them.
        releases: Every known published release, in version order.
        intervals: Runs of releases, axis by axis.
        statements: What is said of each release, model by model.
    """

    records: tuple[Record, ...]
    outdated: int
    releases: tuple[str, ...]
    intervals: tuple[Interval, ...]
    statements: tuple[Statement, ...]


def conclude(records: Sequence[Record], run: RunInfo) -> Findings:
    """Draw every conclusion from the records that count in `run`."""
    kept = current(records, run.check_revision)
    return Findings(
        records=kept,
        outdated=sum(r.provenance.check_revision != run.check_revision for r in records),
        releases=known_releases(kept, run.releases),
        intervals=intervals(kept, run.releases),
        statements=statements(kept),
    )
