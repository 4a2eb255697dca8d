"""The answer: one or two sentences, a title, a message for the badge.

Everything here is made from statements; no release is named that was not measured, and no
number is told that is not in the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from matrix.records import Source, Status, short_python, short_torch
from reports.spans import Sighting, Span, sightings, spans
from reports.verdicts import Verdict
from reports.words import (
    DEFECT_VERBS,
    count,
    enumerate_some,
    join,
    model_title,
    stretch,
    unique,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matrix.records import Record
    from reports.findings import Findings
    from reports.run import RunInfo
    from reports.verdicts import Statement

_SPANS_TOLD = 2
_DEFECTS_TOLD = 3
_WAYS_TOLD = 4


class Tone(StrEnum):
    """How the answer looks: the newest decided release is right, wrong, or not known."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """What is said of one model.

    Attributes:
        model: The model.
        sentences: What says it: who is affected, what is fixed, what the moving refs do.
        headline: The same in a few words, for titles and the badge.
        tone: How it looks.
        spans: Its history.
        refs: The moving refs among its statements.
    """

    model: str
    sentences: tuple[str, ...]
    headline: str
    tone: Tone
    spans: tuple[Span, ...]
    refs: tuple[MovingRef, ...]


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


def answer_for(
    model: str,
    statements: Sequence[Statement],
    refs: Sequence[MovingRef],
    findings: Findings,
) -> ModelAnswer:
    """What is said of `model`.

    Args:
        model: The model.
        statements: The statements about it, in release order.
        refs: The moving refs among them.
        findings: What the records say.
    """
    history = spans(statements, findings.releases)
    seen = sightings((r for r in findings.records if r.model == model), findings.releases)
    mine = tuple(ref for ref in refs if ref.model == model)
    sentences, headline, tone = _say(model, history, seen, statements)
    return ModelAnswer(
        model=model,
        sentences=tuple(text for text in (*sentences, _refs_sentence(mine)) if text),
        headline=headline,
        tone=tone,
        spans=history,
        refs=mine,
    )


def _say(
    model: str,
    history: Sequence[Span],
    seen: Sequence[Sighting],
    statements: Sequence[Statement],
) -> tuple[tuple[str, ...], str, Tone]:
    """Sentences, headline and tone of a history."""
    if not history:
        sentence = f"Nothing conclusive has been measured for {model_title(model)} yet."
        return (sentence,), "not decided yet", Tone.UNKNOWN
    wrong = [span for span in history if span.affected]
    newest = history[-1]
    tail = _undecided_after(newest.last, statements)
    if wrong:
        tone = Tone.BAD if newest.affected else Tone.GOOD
        sentences = (_affected_sentence(model, seen), f"{_fixed_sentence(newest)}{tail}.")
        return sentences, _headline(wrong, newest), tone
    place = stretch(newest.first, newest.last)
    sentence = (
        f"None of the {count(len(newest.releases), 'release')} of transformers measured, {place},"
        f" gets the LongRoPE crossing of {model_title(model)} wrong{tail}."
    )
    return (sentence,), f"not affected: {place}", Tone.GOOD


def _affected_sentence(model: str, seen: Sequence[Sighting]) -> str:
    """What is affected, by what, in which ways of use.

    Tells the longest sighting of each defect, the newest first, and how many more there are.
    """
    longest: dict[object, Sighting] = {}
    for sighting in seen:
        known = longest.get(sighting.defect)
        if known is None or len(known.releases) < len(sighting.releases):
            longest[sighting.defect] = sighting
    told = [sighting for sighting in seen if sighting in longest.values()][:_DEFECTS_TOLD]
    newest = told[0]
    first = (
        f"In transformers {stretch(newest.first, newest.last)}, {model_title(model)}"
        f" {DEFECT_VERBS[newest.defect]} when a sequence grows across the LongRoPE boundary"
        f" {_ways(newest)}"
    )
    parts = [first]
    parts.extend(
        f"in {stretch(sighting.first, sighting.last)} it {DEFECT_VERBS[sighting.defect]}"
        f" {_ways(sighting)}"
        for sighting in told[1:]
    )
    rest = len(seen) - len(told)
    if rest:
        parts.append(f"{count(rest, 'more interval is', 'more intervals are')} told below")
    return f"{'; '.join(parts)}."


def _ways(sighting: Sighting) -> str:
    return f"({enumerate_some(sighting.ways, _WAYS_TOLD)})"


def _fixed_sentence(newest: Span) -> str:
    if newest.affected:
        return f"No fixed release has been measured: {newest.last} is still affected"
    first = f"{newest.first} is the first fixed release"
    if newest.unknown_before:
        first = (
            f"{newest.first} is the first release measured as fixed"
            f" ({count(newest.unknown_before, 'release')} before it not decided)"
        )
    if newest.first == newest.last:
        return first
    return f"{first}, and {newest.last}, the newest measured, is fixed too"


def _undecided_after(last: str, statements: Sequence[Statement]) -> str:
    names = [s.transformers for s in statements if s.source is Source.INDEX]
    later = names[names.index(last) + 1 :]
    if not later:
        return ""
    return f"; {enumerate_some(later, 3)} {'is' if len(later) == 1 else 'are'} not decided"


def _refs_sentence(refs: Sequence[MovingRef]) -> str:
    if not refs:
        return ""
    words = {
        Verdict.AFFECTED: "is affected",
        Verdict.FIXED: "is fixed",
        Verdict.NOT_AFFECTED: "is not affected",
        Verdict.UNDER_INVESTIGATION: "is not decided",
    }
    parts = []
    for ref in refs:
        commit = f"{ref.commit[:9]}, " if ref.commit else ""
        day = f"{ref.measured_at}" if ref.measured_at else "not measured"
        stale = ", stale" if ref.stale else ""
        parts.append(f"{ref.ref} ({commit}{day}{stale}) {words[ref.statement.statement]}")
    return f"{'; '.join(parts)}."


def _headline(wrong: Sequence[Span], newest: Span) -> str:
    told = list(reversed(wrong))[:_SPANS_TOLD]
    places = [stretch(span.first, span.last) for span in reversed(told)]
    rest = len(wrong) - len(told)
    more = f" (and {count(rest, 'earlier interval')})" if rest else ""
    if newest.affected:
        return f"affected: {join(places)}{more}, not fixed yet"
    return f"affected: {join(places)}{more}; fixed in {newest.first}"


def measured_sentence(records: Sequence[Record], run: RunInfo, covered: Coverage) -> str:
    """What was measured, on what, when, and how much of it is conclusive."""
    ran = [record for record in records if record.status.conclusive]
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
        f" {'is' if covered.planned == 1 else 'are'} conclusive."
    )
