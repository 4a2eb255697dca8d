"""What a run found that somebody should hear of: the findings, each with an id that stays. Pure.

A finding is where a history changes: a release from which on something is affected, or right
again; or a release of which no way of use can be tested. It is *new* if the run before could
not know it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from matrix.history import Axis, Run, axis_of, histories, runs
from matrix.records import Defect, Record, Source, Status
from reports.words import CONTROL_SCENARIO, model_key, scenario_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reports.results import Results


class Kind(StrEnum):
    """What sort of finding it is; in the order in which they are told."""

    AFFECTED = "affected"
    FIXED = "fixed"
    UNTESTABLE = "untestable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One case on one runtime in which a finding shows.

    Attributes:
        record: What was measured on the release of the finding.
        after: The last conclusive release before, or None.
        last: The last release of the same run.
        before: The first conclusive release behind that run, or None.
    """

    record: Record
    after: str | None
    last: str
    before: str | None

    @property
    def axis(self) -> Axis:
        """The case and the runtime."""
        return axis_of(self.record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that somebody should hear of.

    Attributes:
        kind: What sort of finding it is.
        release: The release from which on it is so.
        model: The model; None for a release that cannot be tested.
        defect: The defect that begins or ends; None likewise.
        sightings: Where it shows, in the order of the catalog; never empty.
        new: Whether the run before could not know it.
        regression: Whether what is new in it was right before.
        ends: Ids of the findings that it ends, where something is right again.
    """

    kind: Kind
    release: str
    model: str | None
    defect: Defect | None
    sightings: tuple[Sighting, ...]
    new: bool
    regression: bool = False
    ends: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits, the same for the same thing in every run."""
        return finding_id(self.kind, self.release, self.model, self.defect)

    @property
    def moving(self) -> bool:
        """Whether the release is a ref that moves: then the same may happen again."""
        return self.sightings[0].record.source is not Source.INDEX


def finding_id(kind: Kind, release: str, model: str | None, defect: Defect | None) -> str:
    """Names what is found, and not when or where: two runs that find it agree."""
    parts = (kind, release, model or "", defect or "")
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """One sighting on its way into a finding."""

    sighting: Sighting
    new: bool
    ends: str | None = None


_Groups = defaultdict[tuple[Kind, str, str, Defect], list[_Seen]]


Point = tuple[Axis, str]
"""An axis and the name of a release on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What the run before knew.

    Attributes:
        releases: Names of the releases that it had a conclusive record of.
        axes: The axes that it had conclusive records on.
        stretches: The stretches on each axis, with status and defect.
        points: Its conclusive records of refs that move.
        untestable: Releases that it had tried in vain.
        same_checks: Whether it was measured by the same checks.
    """

    releases: frozenset[str]
    axes: frozenset[Axis]
    stretches: Mapping[Axis, tuple[Run, ...]]
    points: Mapping[Point, Record]
    untestable: frozenset[str]
    same_checks: bool


def find(previous: Results | None, now: Results) -> tuple[Finding, ...]:
    """Every finding of a run: those to tell, and those told before that may need an update.

    Without a run before, nothing is new: a first report is its own news.
    """
    known = None if previous is None else _before(previous, now)
    groups: _Groups = defaultdict(list)
    stretches = _stretches(now.records)
    for axis, history in stretches.items():
        for earlier, run in zip((None, *history), history, strict=False):
            _on_release(groups, axis, earlier, run, known)
    for (axis, name), record in _points(now.records).items():
        newest = stretches[axis][-1].records[-1] if axis in stretches else None
        _on_ref(groups, (axis, name), record, newest, known)
    found = [
        Finding(
            kind=kind,
            release=release,
            model=model,
            defect=defect,
            sightings=_sorted(one.sighting for one in seen),
            new=any(one.new for one in seen),
            regression=kind is Kind.AFFECTED
            and any(one.new and one.sighting.after is not None for one in seen),
            ends=tuple(sorted({one.ends for one in seen if one.ends})),
        )
        for (kind, release, model, defect), seen in groups.items()
    ]
    found += _untestable(now.records, known)
    return tuple(sorted(found, key=_order))


def _before(previous: Results, now: Results) -> Before:
    conclusive = [record for record in previous.records if record.status.conclusive]
    return Before(
        releases=frozenset(record.release for record in conclusive),
        axes=frozenset(axis_of(record) for record in conclusive),
        stretches=_stretches(previous.records),
        points=_points(previous.records),
        untestable=frozenset(_without_answer(previous.records)),
        same_checks=previous.check_revision == now.check_revision,
    )


def _stretches(records: Iterable[Record]) -> dict[Axis, tuple[Run, ...]]:
    return {axis: found for axis, history in histories(records).items() if (found := runs(history))}


def _points(records: Iterable[Record]) -> dict[Point, Record]:
    """The conclusive records of refs that move."""
    return {
        (axis_of(record), record.release): record
        for record in records
        if record.source is not Source.INDEX and record.status.conclusive
    }


def _on_release(
    groups: _Groups, axis: Axis, earlier: Run | None, run: Run, known: Before | None
) -> None:
    """What begins with `run`. Where one defect takes the place of another, the new one does."""
    sighting = Sighting(record=run.records[0], after=run.after, last=run.last, before=run.before)
    new = known is not None and _is_new(axis, run, known)
    if run.defect is not None:
        key = (Kind.AFFECTED, run.first, axis.model, run.defect)
        groups[key].append(_Seen(sighting=sighting, new=new))
    elif earlier is not None and earlier.defect is not None:
        ends = finding_id(Kind.AFFECTED, earlier.first, axis.model, earlier.defect)
        key = (Kind.FIXED, run.first, axis.model, earlier.defect)
        groups[key].append(_Seen(sighting=sighting, new=new, ends=ends))


def _is_new(axis: Axis, run: Run, known: Before) -> bool:
    """Whether the run before could not know this stretch.

    A stretch that has only grown is not new, nor is one that other checks see for the first
    time in a release that was measured before, nor one on a runtime that was not measured.
    """
    if run.first not in known.releases:
        return not _grew(axis, run, known)
    if not known.same_checks or axis not in known.axes:
        return False
    return not _grew(axis, run, known)


def _grew(axis: Axis, run: Run, known: Before) -> bool:
    """Whether this axis had an equal stretch that shares releases with `run`."""
    first, last = Version(run.first), Version(run.last)
    return any(
        (was.status, was.defect) == (run.status, run.defect)
        and Version(was.first) <= last
        and first <= Version(was.last)
        for was in known.stretches.get(axis, ())
    )


def _on_ref(
    groups: _Groups, point: Point, record: Record, newest: Record | None, known: Before | None
) -> None:
    """What a ref shows that the newest release, or the ref itself before, did not."""
    axis, name = point
    was = known.points.get(point) if known else None
    others = [other.defect for other in (newest, was) if other is not None]
    sighting = Sighting(
        record=record, after=newest.transformers if newest else None, last=name, before=None
    )
    new = known is not None and _is_new_on_ref(record, newest, was, known)
    if record.defect is not None:
        if any(defect != record.defect for defect in others):
            key = (Kind.AFFECTED, name, axis.model, record.defect)
            groups[key].append(_Seen(sighting=sighting, new=new))
        return
    for defect in dict.fromkeys(others):
        if defect is not None:
            ends = finding_id(Kind.AFFECTED, name, axis.model, defect)
            key = (Kind.FIXED, name, axis.model, defect)
            groups[key].append(_Seen(sighting=sighting, new=new, ends=ends))


def _is_new_on_ref(
    record: Record, newest: Record | None, was: Record | None, known: Before
) -> bool:
    """Whether the run before could not know this of a ref.

    Where it had no answer, the newest release stands for what was right or wrong; and where it
    was measured by other checks, what these see in that release too is no news.
    """
    if was is None:
        return record.release not in known.releases or axis_of(record) in known.axes
    if not known.same_checks and (newest is None or newest.defect == record.defect):
        return False
    return was.defect != record.defect


def _untestable(records: Sequence[Record], known: Before | None) -> Iterator[Finding]:
    for release, failed in _without_answer(records).items():
        yield Finding(
            kind=Kind.UNTESTABLE,
            release=release,
            model=None,
            defect=None,
            sightings=_sorted(
                Sighting(record=record, after=None, last=release, before=None) for record in failed
            ),
            new=known is not None and release not in known.untestable,
        )


def _without_answer(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The releases that were tried in vain, with what came instead of an answer.

    That the control scenario ran is no answer. Nor is what a release does not have a failure.
    """
    answered: set[str] = set()
    failed: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record.status.conclusive and record.scenario != CONTROL_SCENARIO:
            answered.add(record.release)
        elif record.status in (Status.ERROR, Status.INCONCLUSIVE):
            failed[record.release].append(record)
    return {release: found for release, found in failed.items() if release not in answered}


_KINDS: Final = tuple(Kind)


def _order(finding: Finding) -> tuple[object, ...]:
    release = (1, Version("0")) if finding.moving else (0, Version(finding.release))
    return (
        not finding.new,
        _KINDS.index(finding.kind),
        release,
        finding.release,
        model_key(finding.model or ""),
        finding.defect or "",
    )


def _sorted(sightings: Iterable[Sighting]) -> tuple[Sighting, ...]:
    return tuple(
        sorted(sightings, key=lambda one: (scenario_key(one.axis.scenario), one.axis, one.last))
    )
