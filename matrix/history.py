"""Histories: what one case showed from release to release, and where it changed.

Pure functions on records, shared by refinement (which releases to run next) and by the
report (intervals and statements). A history may change any number of times and in both
directions; nothing here assumes one first bad and one first good release.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from packaging.version import Version

from matrix.records import Source, short_python, short_torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from matrix.records import Defect, Record, Status


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Axis:
    """One case on one runtime: everything of a record that is not its release."""

    model: str
    scenario: str
    attention: str
    device: str
    dtype: str
    python: str
    torch: str
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Neighbouring conclusive records of one history with the same status and defect.

    Attributes:
        status: `ok` or `affected`.
        defect: Cause, where affected.
        records: The records, in version order; never empty.
        after: The last conclusive release before the run, or None.
        before: The first conclusive release after the run, or None.
        unknown: Releases inside the run that were recorded but are not conclusive.
    """

    status: Status
    defect: Defect | None
    records: tuple[Record, ...]
    after: str | None
    before: str | None
    unknown: tuple[str, ...]

    @property
    def first(self) -> str:
        """The first release of the run."""
        return self.records[0].transformers

    @property
    def last(self) -> str:
        """The last release of the run."""
        return self.records[-1].transformers


def axis_of(record: Record) -> Axis:
    """The axis on which `record` is one point."""
    return _axis(
        record.model,
        record.scenario,
        record.attention,
        record.device,
        record.dtype,
        record.python,
        record.torch,
        record.provenance.extras,
    )


@cache
def _axis(
    model: str,
    scenario: str,
    attention: str,
    device: str,
    dtype: str,
    python: str,
    torch: str,
    extras: tuple[str, ...],
) -> Axis:
    """Remembered: thousands of records lie on a few hundred axes."""
    return Axis(
        model=model,
        scenario=scenario,
        attention=attention,
        device=device,
        dtype=dtype,
        python=short_python(python),
        torch=short_torch(torch),
        extras=extras,
    )


def split_by_revision(
    records: Iterable[Record], check_revision: str
) -> tuple[list[Record], list[Record]]:
    """Records made by the checks at `check_revision`, and the outdated rest.

    Two revisions of the checks may measure differently, so their records never share a
    history: build histories from either list, not from both.
    """
    current: list[Record] = []
    outdated: list[Record] = []
    for record in records:
        made_by = record.provenance.check_revision
        (current if made_by == check_revision else outdated).append(record)
    return current, outdated


def histories(records: Iterable[Record]) -> dict[Axis, tuple[Record, ...]]:
    """Each axis with its records of published releases, in version order.

    Moving refs and local paths have no place in the order of releases and are left out. Of
    two records of the same release the one that began later counts.
    """
    points: defaultdict[Axis, dict[Version, Record]] = defaultdict(dict)
    versions: dict[str, Version] = {}
    for record in records:
        if record.source is not Source.INDEX:
            continue
        version = versions.get(record.transformers)
        if version is None:
            version = versions[record.transformers] = Version(record.transformers)
        history = points[axis_of(record)]
        known = history.get(version)
        if known is None or known.provenance.started_at <= record.provenance.started_at:
            history[version] = record
    return {
        axis: tuple(record for _, record in sorted(points[axis].items())) for axis in sorted(points)
    }


def _outcome(record: Record) -> tuple[Status, Defect | None]:
    return record.status, record.defect


def runs(
    history: Sequence[Record], outcome: Callable[[Record], object] = _outcome
) -> tuple[Run, ...]:
    """Cut a history, in version order, where the outcome changes: status or defect.

    Records that are not conclusive are stepped around: they belong to no run, and where one
    stands between two equal records it is named in the run's `unknown`.
    """
    groups: list[tuple[list[Record], list[str]]] = []
    pending: list[str] = []
    for record in history:
        if not record.status.conclusive:
            pending.append(record.transformers)
            continue
        if groups and outcome(groups[-1][0][-1]) == outcome(record):
            groups[-1][0].append(record)
            groups[-1][1].extend(pending)
        else:
            groups.append(([record], []))
        pending = []
    return tuple(
        Run(
            status=members[0].status,
            defect=members[0].defect,
            records=tuple(members),
            after=groups[index - 1][0][-1].transformers if index else None,
            before=groups[index + 1][0][0].transformers if index + 1 < len(groups) else None,
            unknown=tuple(unknown),
        )
        for index, (members, unknown) in enumerate(groups)
    )
