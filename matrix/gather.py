"""Gathering: the records of both ledgers, and what was asked for and is not in either.

Pure. Shards may arrive in any order, twice, or not at all: what is missing is `not_run`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from matrix.plan import Known
from matrix.records import Evidence, Provenance, Reason, Record, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from matrix.grid import Runtime
    from matrix.plan import Plan
    from matrix.releases import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What there is to report.

    Attributes:
        records: One for each case of each cell that is recorded or was asked for.
        local: (release, runtime) of cells with a record that the committed ledger lacks.
    """

    records: tuple[Record, ...]
    local: tuple[tuple[str, str], ...]


def gather(committed: Sequence[Record], local: Sequence[Record], plan: Plan | None) -> Gathered:
    """Put both ledgers together; with a plan, add `not_run` for what it asked for in vain.

    Of two records of one case of one cell, the one of the plan's revision of the checks
    counts; of two of the same revision the local one, which somebody has just asked for. Of a
    ref that has moved on, only the newest commit is kept.
    """
    revision = plan.check_revision if plan else None
    chosen: dict[tuple[str, str, str], Record] = {}
    origin: dict[tuple[str, str, str], bool] = {}
    for is_local, records in ((False, committed), (True, local)):
        for record in records:
            key = (record.release, record.runtime, record.case)
            if key not in chosen or _rank(chosen[key], revision) <= _rank(record, revision):
                chosen[key] = record
                origin[key] = is_local
    kept = list(_newest_commits(chosen.values()))
    names = {(r.release, r.runtime) for r in kept if origin[r.release, r.runtime, r.case]}
    missing = _missing(plan, kept) if plan else ()
    return Gathered(records=(*kept, *missing), local=tuple(sorted(names)))


def _rank(record: Record, revision: str | None) -> tuple[bool, bool, str]:
    provenance = record.provenance
    newest = provenance.started_at
    return provenance.check_revision == revision, record.status is not Status.ERROR, newest


def _newest_commits(records: Iterable[Record]) -> Iterator[Record]:
    """Leave out what was measured on commits that their ref has left behind."""
    records = tuple(records)
    newest: dict[tuple[str, str], Record] = {}
    for record in records:
        key = (record.release, record.runtime)
        if key not in newest or newest[key].provenance.started_at < record.provenance.started_at:
            newest[key] = record
    for record in records:
        if record.commit == newest[record.release, record.runtime].commit:
            yield record


def _missing(plan: Plan, records: Sequence[Record]) -> Iterator[Record]:
    """Records for cases that were asked for and that nothing was run of."""
    known = Known(records, plan.check_revision, any_status=True)
    for runtime in plan.runtimes:
        for release in plan.releases:
            reason, message = Reason.NOT_SELECTED, "not run yet"
            if release.unreachable:
                reason, message = Reason.UNREACHABLE, release.unreachable
            for case in known.missing(release, runtime.name, plan.cases, always=False):
                yield _not_run(plan, release, runtime, case, reason, message)
            for case in known.missing(release, runtime.name, plan.absent, always=False):
                device = case.split("/")[3]
                text = f"this machine has no {device}"
                yield _not_run(plan, release, runtime, case, Reason.NO_DEVICE, text)


def _not_run(
    plan: Plan, release: Release, runtime: Runtime, case: str, reason: Reason, message: str
) -> Record:
    model, scenario, attention, device, dtype = case.split("/")
    return Record(
        transformers=release.version,
        source=release.source,
        ref=release.ref,
        commit=release.commit,
        released_at=release.released_at,
        python=runtime.python,
        torch=runtime.torch,
        model=model,
        scenario=scenario,
        attention=attention,
        device=device,
        dtype=dtype,
        status=Status.NOT_RUN,
        defect=None,
        reason=reason,
        evidence=Evidence(message=message),
        provenance=Provenance(
            check_revision=plan.check_revision, started_at=plan.made_at, extras=runtime.extras
        ),
    )
