"""From records to verdicts: intervals of a case, statements about a release.

Pure functions on records. Only `ok` and `affected` decide anything; whatever else a record
says is carried along as unknown, and never counted as right.
"""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

import msgspec
from packaging.version import Version

from matrix.history import Axis, axis_of, histories, runs, split_by_revision
from matrix.records import Defect, Source, Status
from reports.words import CONTROL_SCENARIO, model_key, scenario_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matrix.history import Run
    from matrix.records import Record


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


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about one model in one release.

    Attributes:
        transformers: Version of the release.
        source: Where it was installed from.
        ref: What was asked for, where that moves.
        commit: The commit behind `ref`.
        released_at: When it was uploaded to the index.
        model: Name of the model.
        statement: The verdict.
        defects: Defects seen, in the order of their definition, and the scenarios of each.
        affected: Scenarios that are affected.
        undecided: Scenarios that keep the release from being called right.
        right: Scenarios measured and right, controls left out.
        conclusive: How many records decide it.
        inconclusive: How many records tried to, in vain. `unsupported` and `not_run` are
            in neither number.
    """

    transformers: str
    source: Source
    ref: str | None
    commit: str | None
    released_at: str | None
    model: str
    statement: Verdict
    defects: dict[Defect, tuple[str, ...]]
    affected: tuple[str, ...]
    undecided: tuple[str, ...]
    right: tuple[str, ...]
    conclusive: int
    inconclusive: int

    @property
    def release(self) -> str:
        """Name of the release: its version, or the ref that was asked for."""
        return self.transformers if self.ref is None else self.ref


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


def release_key(item: Record | Statement) -> tuple[int, Version, str]:
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


def statements(records: Iterable[Record]) -> tuple[Statement, ...]:
    """A statement for every release and model that has a record which could decide it.

    A release is `affected` if any record of it is. It is called right only if every way of
    use that an earlier release got wrong was measured on it and is right, and nothing that was
    tried on it failed to give an answer; otherwise it is `under_investigation`. The control
    scenario alone decides nothing. A release that does not have the model gets no statement.

    Published releases are taken in version order; a moving ref comes after all of them.
    """
    by_model: defaultdict[str, defaultdict[tuple[int, Version, str], list[Record]]]
    by_model = defaultdict(lambda: defaultdict(list))
    for record in records:
        by_model[record.model][release_key(record)].append(record)
    found: list[Statement] = []
    for model in sorted(by_model, key=model_key):
        affected_before: set[str] = set()
        for key, group in sorted(by_model[model].items()):
            statement = _statement(model, group, affected_before)
            if statement is None:
                continue
            found.append(statement)
            if key[0] == 0:
                affected_before.update(statement.affected)
    return tuple(sorted(found, key=lambda s: (model_key(s.model), release_key(s))))


def _statement(
    model: str, records: Sequence[Record], affected_before: set[str]
) -> Statement | None:
    by_scenario: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_scenario[record.scenario].append(record)
    affected: list[str] = []
    undecided: list[str] = []
    right: list[str] = []
    supported = False
    for scenario in sorted(by_scenario, key=scenario_key):
        group = by_scenario[scenario]
        supported |= any(record.status is not Status.UNSUPPORTED for record in group)
        if any(record.status is Status.AFFECTED for record in group):
            affected.append(scenario)
        elif _has_open_case(group):
            undecided.append(scenario)
        elif scenario != CONTROL_SCENARIO and any(r.status is Status.OK for r in group):
            right.append(scenario)
    if not supported:
        return None
    missing = affected_before.difference(affected, right, undecided)
    undecided.extend(sorted(missing, key=scenario_key))
    if affected:
        verdict = Verdict.AFFECTED
    elif undecided or not right:
        verdict = Verdict.UNDER_INVESTIGATION
    else:
        verdict = Verdict.FIXED if affected_before else Verdict.NOT_AFFECTED
    seen = {(record.defect, record.scenario) for record in records}
    sample = records[-1]
    return Statement(
        transformers=sample.transformers,
        source=sample.source,
        ref=sample.ref,
        commit=sample.commit,
        released_at=sample.released_at,
        model=model,
        statement=verdict,
        defects={
            defect: names
            for defect in Defect
            if (names := tuple(name for name in affected if (defect, name) in seen))
        },
        affected=tuple(affected),
        undecided=tuple(undecided),
        right=tuple(right),
        conclusive=sum(record.status.conclusive for record in records),
        inconclusive=sum(
            record.status in (Status.INCONCLUSIVE, Status.ERROR) for record in records
        ),
    )


def _has_open_case(records: Iterable[Record]) -> bool:
    """Whether a case was tried and no runtime gave an answer for it.

    A release that one runtime is too old for is not in doubt when another runtime decided.
    """
    decided: set[str] = set()
    tried: set[str] = set()
    for record in records:
        if record.status.conclusive:
            decided.add(record.case)
        elif record.status in (Status.INCONCLUSIVE, Status.ERROR):
            tried.add(record.case)
    return bool(tried - decided)
