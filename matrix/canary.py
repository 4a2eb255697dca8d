"""Whether what is recorded comes out the same on this machine.

The ledger was measured elsewhere. Its first use on a machine measures a few cells again,
those beside the boundaries, where a different result would matter most. A difference is a
finding: it is shown, and overwrites nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrix.history import histories, runs, split_by_revision
from matrix.ledger import Difference, Ledger, disagree
from matrix.plan import PlannedCell

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from matrix.plan import Plan
    from matrix.records import Record

MOST_CELLS = 4
"""How many cells are measured again."""


def again_ledger(work: Path) -> Ledger:
    """Where the second measurements are kept, apart from the others."""
    return Ledger(work / "again")


def choose_again(plan: Plan, recorded: Iterable[Record], runtime: str) -> tuple[PlannedCell, ...]:
    """A few recorded cells beside the boundaries: the newest first, for the plan's cases."""
    cases = set(plan.cases)
    current, _ = split_by_revision(recorded, plan.check_revision)
    mine = [record for record in current if record.runtime == runtime and record.case in cases]
    beside: dict[str, set[str]] = {}
    for history in histories(mine).values():
        for run in runs(history)[:-1]:
            assert run.before is not None
            for version in (run.last, run.before):
                beside.setdefault(version, set())
    for record in mine:
        if record.transformers in beside:
            beside[record.transformers].add(record.case)
    stable = {release.version: release for release in plan.stable}
    newest_first = [version for version in reversed(stable) if version in beside]
    return tuple(
        PlannedCell(
            release=stable[version],
            runtime=runtime,
            cases=tuple(case for case in plan.cases if case in beside[version]),
        )
        for version in newest_first[:MOST_CELLS]
    )


def disagreements(recorded: Sequence[Record], measured: Sequence[Record]) -> tuple[Difference, ...]:
    """Where a second measurement under the same checks came out otherwise."""
    again = {record.release for record in measured}  # a few of very many
    known = {_key(record): record for record in recorded if record.release in again}
    return tuple(
        Difference(known=known[_key(record)], measured=record)
        for record in measured
        if _key(record) in known and disagree(known[_key(record)], record)
    )


def _key(record: Record) -> tuple[str, str, str, str]:
    return record.release, record.runtime, record.case, record.provenance.check_revision
