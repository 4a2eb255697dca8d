"""The answer: one or two sentences, a title, a message for the badge.

Everything here is made from statements; no release is named that was not measured, and no
number is told that is not in the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from matrix.records import Source
from reports.spans import Sighting, Span, ranges, sightings, skips_a_minor, spans
from reports.statements import Statement, core_scenarios
from reports.verdicts import Verdict
from reports.words import (
    DEFECT_VERBS,
    count,
    enumerate_some,
    model_title,
    stretch,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.findings import Findings
    from reports.measured import MovingRef

_SPANS_TOLD = 2
_RANGES_TOLD = 4
_DEFECTS_TOLD = 3
_WAYS_TOLD = 4
_EXCEPTIONS_TOLD = 12


class Tone(StrEnum):
    """How the answer looks: the newest decided release is right, wrong, or not known."""

    GOOD = "good"
    PARTLY = "partly"
    BAD = "bad"
    UNKNOWN = "unknown"


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
    records = [record for record in findings.records if record.model == model]
    core = core_scenarios(record.scenario for record in records)
    seen = sightings((r for r in records if r.scenario in core), findings.releases)
    mine = tuple(ref for ref in refs if ref.model == model)
    sentences, headline, tone = _say(model, history, seen, statements)
    exceptions = _exceptions(history[-1].last, statements) if history else ()
    if exceptions and tone is Tone.GOOD:
        tone = Tone.PARTLY
        headline = f"{headline}, but not in every way of use"
    return ModelAnswer(
        model=model,
        sentences=tuple(
            text
            for text in (
                *sentences,
                _beyond_sentence(history[-1].last, exceptions) if exceptions else "",
                _refs_sentence(mine),
            )
            if text
        ),
        headline=headline,
        tone=tone,
        spans=history,
        refs=mine,
    )


def _exceptions(newest: str, statements: Sequence[Statement]) -> tuple[str, ...]:
    """Ways of use beyond the core that the newest decided release gets wrong."""
    return next(
        (
            s.also_affected
            for s in statements
            if s.source is Source.INDEX and s.transformers == newest
        ),
        (),
    )


def _beyond_sentence(newest: str, exceptions: Sequence[str]) -> str:
    return (
        f"Beyond the core ways of use, {newest} still goes wrong in"
        f" {enumerate_some(exceptions, _EXCEPTIONS_TOLD)}."
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
        sentences = (_affected_sentence(model, seen), f"{_fixed_sentence(history)}{tail}.")
        return sentences, _headline(wrong, history), tone
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
        f"In transformers {_places(newest.releases)}, {model_title(model)}"
        f" {DEFECT_VERBS[newest.defect]} when a sequence grows across the LongRoPE boundary"
        f" {_ways(newest)}"
    )
    parts = [first]
    parts.extend(
        f"in {_places(sighting.releases)} it {DEFECT_VERBS[sighting.defect]} {_ways(sighting)}"
        for sighting in told[1:]
    )
    rest = len(seen) - len(told)
    if rest:
        parts.append(f"{count(rest, 'more interval is', 'more intervals are')} told below")
    return f"{'; '.join(parts)}."


def _ways(sighting: Sighting) -> str:
    return f"({enumerate_some(sighting.ways, _WAYS_TOLD)})"


def _places(releases: Sequence[str]) -> str:
    return enumerate_some(ranges(releases), _RANGES_TOLD)


def _fixed_sentence(history: Sequence[Span]) -> str:
    newest = history[-1]
    if newest.affected:
        return f"No fixed release has been measured: {newest.last} is still affected"
    first = f"{newest.first} is the first fixed release"
    if not _sharp(history):
        first = f"{newest.first} is the first release measured as fixed"
    if newest.unknown_before:
        first += f" ({count(newest.unknown_before, 'release')} before it not decided)"
    if newest.first == newest.last:
        return first
    return f"{first}, and {newest.last}, the newest measured, is fixed too"


def _sharp(history: Sequence[Span]) -> bool:
    """Whether nothing lies between the newest span and the one before it."""
    before, newest = history[-2:]
    return not newest.unknown_before and not skips_a_minor(before.last, newest.first)


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


def _headline(wrong: Sequence[Span], history: Sequence[Span]) -> str:
    newest = history[-1]
    told = list(reversed(wrong))[:_SPANS_TOLD]
    places = [place for span in reversed(told) for place in ranges(span.releases)]
    rest = len(wrong) - len(told)
    more = f" (and {count(rest, 'earlier interval')})" if rest else ""
    affected = f"affected: {enumerate_some(places, _RANGES_TOLD)}{more}"
    if newest.affected:
        return f"{affected}, not fixed yet"
    return f"{affected}; fixed {'in' if _sharp(history) else 'by'} {newest.first}"
