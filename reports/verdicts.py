"""From records to verdicts: which records count, in which order, and the intervals of a case.

Pure functions on records. Only `ok` and `affected` decide anything; whatever else a record
says is carried along as unknown, and never counted as right.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Protocol

import msgspec
from packaging.version import Version

from matrix.history import Axis, axis_of, histories, runs, split_by_revision
from matrix.records import Defect, Source, Status
from reports.words import model_key, scenario_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matrix.history import Run
    from matrix.records import Record


class Released(Protocol):
    """What is said of a release: a record, or a statement."""

    @property
    def transformers(self) -> str:
        """Version of the release."""

    @property
    def source(self) -> Source:
        """Where it was installed from."""

    @property
    def release(self) -> str:
        """Name of the release."""


class Verdict(StrEnum):
    """What is said of a release, in the words of VEX and OSV."""

    AFFECTED = "affected"
    FIXED = "fixed"
    NOT_AFFECTED = "not_affected"
    UNDER_INVESTIGATION = "under_investigation"

    @property
    def right(self) -> bool:
        """Whether the release was measured and found right."""
        return self in (Verdict.FIXED, Verdict.NOT_AFFECTED)


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A run of tested releases with the same status and defect, on one axis.

    Attributes:
        model: Name of the model.
        scenario: Way to reach the crossing.
        attention: Attention backend.
        device: Device.
        dtype: Data type.
        python: Python of the runtime, without its patch.
        torch: torch of the runtime, without its build.
        status: `ok` or `affected`.
        defect: Cause, where affected.
        first: First release of the run.
        last: Last release of the run.
        after: Last conclusive release before the run, or None.
        before: First conclusive release after the run, or None.
        untested_between: Known but undecided releases between the run and those neighbours.
        unknown: Known but undecided releases inside the run.
    """

    model: str
    scenario: str
    attention: str
    device: str
    dtype: str
    python: str
    torch: str
    status: Status
    defect: Defect | None
    first: str
    last: str
    after: str | None
    before: str | None
    untested_between: int
    unknown: tuple[str, ...]

    @property
    def axis(self) -> Axis:
        """The axis it lies on."""
        return Axis(
            model=self.model,
            scenario=self.scenario,
            attention=self.attention,
            device=self.device,
            dtype=self.dtype,
            python=self.python,
            torch=self.torch,
        )

    @property
    def outcome(self) -> tuple[object, ...]:
        """Everything but the axis: equal outcomes tell the same story."""
        return (
            self.status,
            self.defect,
            self.first,
            self.last,
            self.after,
            self.before,
            self.untested_between,
            self.unknown,
        )


@cache
def version(text: str) -> Version:
    """`Version`, remembered: a report compares the same few hundred versions very often."""
    return Version(text)


def current(records: Iterable[Record], check_revision: str) -> tuple[Record, ...]:
    """The records that count: of this revision of the checks, the latest of each cell and case.

    Sorted by release, then by axis in the order of the catalog.
    """
    latest: dict[tuple[str, Source, Axis], Record] = {}
    for record in split_by_revision(records, check_revision)[0]:
        key = (record.release, record.source, axis_of(record))
        known = latest.get(key)
        if known is None or known.provenance.started_at <= record.provenance.started_at:
            latest[key] = record
    return tuple(sorted(latest.values(), key=_record_key))


def _record_key(record: Record) -> tuple[object, ...]:
    return (*release_key(record), *axis_key(axis_of(record)))


def release_key(item: Released) -> tuple[int, Version, str]:
    """Like `matrix.records.release_order`, for statements too, and quick."""
    if item.source is Source.INDEX:
        return (0, version(item.transformers), "")
    return (1, version("0"), item.release)


@cache
def axis_key(axis: Axis) -> tuple[object, ...]:
    """Sort key of an axis: models and scenarios in the order of the catalog."""
    return (
        model_key(axis.model),
        scenario_key(axis.scenario),
        axis.attention,
        axis.device,
        axis.dtype,
        _numbers(axis.python),
        _numbers(axis.torch),
    )


def _numbers(text: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in text.split("."))


def known_releases(records: Iterable[Record], offered: Iterable[str] = ()) -> tuple[str, ...]:
    """Every published release that anybody recorded or the index offered, in version order."""
    names = {record.transformers for record in records if record.source is Source.INDEX}
    return tuple(sorted(names | set(offered), key=version))


def intervals(records: Iterable[Record], offered: Iterable[str] = ()) -> tuple[Interval, ...]:
    """Every run of every axis, axes in the order of the catalog, runs in version order."""
    kept = list(records)
    releases = known_releases(kept, offered)
    position = {name: index for index, name in enumerate(releases)}
    return tuple(
        _interval(axis, run, releases, position)
        for axis, history in sorted(histories(kept).items(), key=lambda item: axis_key(item[0]))
        for run in runs(history)
    )


def _interval(axis: Axis, run: Run, releases: Sequence[str], position: dict[str, int]) -> Interval:
    first, last = position[run.first], position[run.last]
    decided = {record.transformers for record in run.records}
    gap_before = 0 if run.after is None else first - position[run.after] - 1
    gap_after = 0 if run.before is None else position[run.before] - last - 1
    return Interval(
        model=axis.model,
        scenario=axis.scenario,
        attention=axis.attention,
        device=axis.device,
        dtype=axis.dtype,
        python=axis.python,
        torch=axis.torch,
        status=run.status,
        defect=run.defect,
        first=run.first,
        last=run.last,
        after=run.after,
        before=run.before,
        untested_between=gap_before + gap_after,
        unknown=tuple(name for name in releases[first : last + 1] if name not in decided),
    )
