"""What is new since the run before, and why."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from matrix.history import axis_of
from matrix.records import Source, Status
from reports.verdicts import Verdict, release_key
from reports.words import (
    DEFECTS,
    REASONS,
    VERDICTS,
    count,
    enumerate_some,
    join,
    model_key,
    model_title,
    unique,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matrix.history import Axis
    from matrix.records import Record
    from reports.statements import Statement

MOST_KEPT: Final = 200
"""How many changes a site remembers, this run's and those of the runs before it."""


class Kind(StrEnum):
    """What sort of difference a change is; in the order in which they are told."""

    NEWLY_AFFECTED = "newly_affected"
    NEWLY_FIXED = "newly_fixed"
    NEW_RELEASE = "new_release"
    NEWLY_UNKNOWN = "newly_unknown"
    OTHER_DEFECT = "other_defect"
    RESTATED = "restated"
    GONE = "gone"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One difference between two runs.

    Attributes:
        at: When the run that saw it was made.
        kind: What sort of difference it is.
        release: The release.
        model: The model.
        before: What was said of it; null for a new release.
        after: What is said now; null for one that is gone.
        text: The change in a sentence.
        why: What made the difference, as far as the records tell.
    """

    at: str
    kind: Kind
    release: str
    model: str
    before: Verdict | None
    after: Verdict | None
    text: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What one run said: the part of its results that changes are found in."""

    check_revision: str
    records: tuple[Record, ...]
    statements: tuple[Statement, ...]


def compare(before: Said, after: Said, at: str) -> tuple[Change, ...]:
    """Every statement that differs, the gravest first, then the newest release.

    Args:
        before: What the run before said.
        after: What this run says.
        at: When this run was made.
    """
    old = {(s.release, s.model): s for s in before.statements}
    new = {(s.release, s.model): s for s in after.statements}
    old_records = _by_statement(before.records)
    new_records = _by_statement(after.records)
    found: list[tuple[Statement, Change]] = []
    for key in old.keys() | new.keys():
        was, now = old.get(key), new.get(key)
        kind = _kind(was, now)
        if kind is None:
            continue
        statement = now or was
        assert statement is not None
        change = Change(
            at=at,
            kind=kind,
            release=statement.release,
            model=statement.model,
            before=None if was is None else was.statement,
            after=None if now is None else now.statement,
            text=_text(was, now),
            why=_why(before, after, was, now, old_records[key], new_records[key]),
        )
        found.append((statement, change))
    order = list(Kind)
    found.sort(key=lambda item: release_key(item[0]), reverse=True)
    found.sort(key=lambda item: (order.index(item[1].kind), model_key(item[1].model)))
    return tuple(change for _, change in found)


def remembered(new: Sequence[Change], earlier: Iterable[Change]) -> tuple[Change, ...]:
    """This run's changes and the earlier ones, newest run first, as many as a site keeps."""
    runs = {change.at for change in new}
    kept = [*new, *(change for change in earlier if change.at not in runs)]
    return tuple(kept[:MOST_KEPT])


_Points = dict["Axis", "Record"]


def _by_statement(records: Iterable[Record]) -> defaultdict[tuple[str, str], _Points]:
    groups: defaultdict[tuple[str, str], _Points] = defaultdict(dict)
    for record in records:
        groups[record.release, record.model][axis_of(record)] = record
    return groups


def _kind(was: Statement | None, now: Statement | None) -> Kind | None:
    if now is None:
        return Kind.GONE
    if was is None:
        return Kind.NEWLY_AFFECTED if now.statement is Verdict.AFFECTED else Kind.NEW_RELEASE
    if was.statement is now.statement:
        return Kind.OTHER_DEFECT if _wrong(was) != _wrong(now) else None
    if now.statement is Verdict.AFFECTED:
        return Kind.NEWLY_AFFECTED
    if now.statement is Verdict.UNDER_INVESTIGATION:
        return Kind.NEWLY_UNKNOWN
    return Kind.RESTATED if was.statement.right else Kind.NEWLY_FIXED


def _wrong(statement: Statement) -> tuple[object, ...]:
    return statement.defects, statement.also_affected


def _text(was: Statement | None, now: Statement | None) -> str:
    statement = now or was
    assert statement is not None
    name = f"transformers {statement.release}, {model_title(statement.model)}"
    if now is None:
        return f"{name}: no longer reported."
    if was is None:
        return f"{name}: {_said(now)}, new in this report."
    return f"{name}: {_said(now)}, before: {_said(was)}."


def _said(statement: Statement) -> str:
    word = VERDICTS[statement.statement]
    if statement.defects:
        word = f"{word} by {join([DEFECTS[defect] for defect in statement.defects])}"
    if statement.also_affected:
        word = f"{word}, and wrong in {count(len(statement.also_affected), 'other way')} of use"
    return word


def _why(
    before: Said,
    after: Said,
    was: Statement | None,
    now: Statement | None,
    old: _Points,
    new: _Points,
) -> str:
    """The likeliest cause, the plainest first."""
    if was is None:
        published = now is not None and now.source is Source.INDEX
        return "A release that was not in the report before." if published else "A new ref."
    if now is None:
        return "It has no record in this run."
    if was.commit != now.commit:
        return f"{now.release} stands for another commit now."
    if before.check_revision != after.check_revision:
        return "The checks have changed."
    trouble = [
        REASONS[record.reason]
        for record in new.values()
        if record.status is Status.ERROR and record.reason is not None
    ]
    if now.statement is Verdict.UNDER_INVESTIGATION and trouble:
        return f"Trouble while measuring: {enumerate_some(unique(trouble), 3)}."
    changed = [
        axis for axis in old.keys() & new.keys() if _outcome(old[axis]) != _outcome(new[axis])
    ]
    if any(old[axis].provenance.packages != new[axis].provenance.packages for axis in changed):
        return "Other packages were installed beside it."
    if changed:
        return "The same release, checks and packages gave another result."
    if old.keys() != new.keys():
        return "Other ways of use were measured."
    return "What is known of earlier releases has changed."


def _outcome(record: Record) -> tuple[object, ...]:
    return record.status, record.defect
