"""What an answer rests on: how much of the plan is conclusive, when and on what it was measured."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from matrix.records import Source, Status, short_python, short_torch
from reports.words import count, enumerate_some, unique

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matrix.records import Record
    from reports.findings import Findings
    from reports.run import RunInfo
    from reports.statements import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of the plan is conclusive.

    Attributes:
        planned: Cells planned or seen.
        conclusive: Cells of them in which something was decided and nothing failed to be.
        records: Records that decide something.
        undecided: Records that tried to, in vain.
        unsupported: Records of cases that the release cannot do.
        not_run: Records of cases that were not run.
    """

    planned: int
    conclusive: int
    records: int
    undecided: int
    unsupported: int
    not_run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingRef:
    """What `main`, or another moving ref, was when it was measured.

    Attributes:
        ref: What was asked for.
        commit: The commit it stood for, or None.
        version: The version that this commit calls itself.
        measured_at: The day on which it was measured; None if it was not run.
        stale: Whether that is too long ago to speak for the ref.
        statement: What is said of it, or None.
        model: The model of which it is said.
    """

    ref: str
    commit: str | None
    version: str
    measured_at: str | None
    stale: bool
    statement: Statement
    model: str


def coverage(records: Sequence[Record], run: RunInfo) -> Coverage:
    """Count what was planned, what gave an answer and what did not."""
    decided: set[str] = set()
    open_cells: set[str] = set()
    cells: set[str] = set(run.planned)
    tally = dict.fromkeys(Status, 0)
    for record in records:
        tally[record.status] += 1
        cell = f"{record.release} {record.runtime}"
        cells.add(cell)
        if record.status.conclusive:
            decided.add(cell)
        elif record.status in (Status.INCONCLUSIVE, Status.ERROR):
            open_cells.add(cell)
    return Coverage(
        planned=len(cells),
        conclusive=len(decided - open_cells),
        records=tally[Status.OK] + tally[Status.AFFECTED],
        undecided=tally[Status.INCONCLUSIVE] + tally[Status.ERROR],
        unsupported=tally[Status.UNSUPPORTED],
        not_run=tally[Status.NOT_RUN],
    )


def moving_refs(
    statements: Iterable[Statement], records: Iterable[Record], run: RunInfo
) -> tuple[MovingRef, ...]:
    """The statements about refs, with the day on which each was measured."""
    started: dict[str, str] = {}
    for record in records:
        if record.ref is not None and record.status is not Status.NOT_RUN:
            started[record.ref] = max(started.get(record.ref, ""), record.provenance.started_at)
    return tuple(
        MovingRef(
            ref=s.release,
            commit=s.commit,
            version=s.transformers,
            measured_at=started[s.release][:10] if s.release in started else None,
            stale=_age_in_days(started.get(s.release), run) > run.stale_after_days,
            statement=s,
            model=s.model,
        )
        for s in statements
        if s.source is not Source.INDEX
    )


def _age_in_days(started_at: str | None, run: RunInfo) -> float:
    if started_at is None:
        return 0.0
    try:
        age = datetime.fromisoformat(run.generated_at) - datetime.fromisoformat(started_at)
    except (TypeError, ValueError):
        return 0.0
    return age.total_seconds() / 86_400


def measured_sentence(findings: Findings, run: RunInfo, covered: Coverage) -> str:
    """What was measured, on what, when, how much of it is conclusive, and what it leaves open."""
    ran = [record for record in findings.records if record.status.conclusive]
    if not ran:
        return f"No cell of {covered.planned:,} planned is conclusive ({run.date})."
    days = sorted({record.provenance.started_at[:10] for record in ran})
    runtimes = sorted({(short_python(r.python), short_torch(r.torch)) for r in ran})
    told = [f"Python {python} with torch {torch}" for python, torch in runtimes]
    places = unique(sorted(f"{record.attention} on {record.device}" for record in ran))
    when = days[0] if len(days) == 1 else f"between {days[0]} and {days[-1]}"
    return (
        f"Measured {when} on {enumerate_some(told, 4)} ({enumerate_some(places, 6)}):"
        f" {covered.conclusive:,} of {count(covered.planned, 'planned cell')}"
        f" {'is' if covered.planned == 1 else 'are'} conclusive{_left_open(findings, ran)}."
    )


def _left_open(findings: Findings, ran: Sequence[Record]) -> str:
    """How many releases are known of which nothing is."""
    measured = {record.transformers for record in ran if record.source is Source.INDEX}
    missing = len(findings.releases) - len(measured)
    if missing < 1:
        return ""
    known = count(len(findings.releases), "known release")
    return f"; {missing:,} of {known} {'has' if missing == 1 else 'have'} no answer"
