"""Build the view: the one place where findings become words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matrix.records import Source, Status
from reports.answer import Tone, answer_for
from reports.build_grid import VERDICT_SYMBOLS
from reports.build_models import model_view
from reports.measured import coverage, measured_sentence, moving_refs
from reports.method import METHOD
from reports.news import NO_NEWS, News
from reports.paths import release_anchor
from reports.verdicts import Verdict
from reports.view import Glance, RunView, View
from reports.words import (
    REASONS,
    STATUSES,
    VERDICTS,
    count,
    join,
    look,
    model_key,
    model_title,
    unique,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reports.answer import ModelAnswer
    from reports.findings import Findings
    from reports.measured import Coverage, MovingRef
    from reports.run import RunInfo
    from reports.statements import Statement
    from reports.view import ModelView

SUBJECT: Final = "LongRoPE crossing in transformers"

MOST_CHANGES: Final = 40
"""How many changes are told, the gravest; the feed has more of them."""

FILES: Final = (
    (
        "results.json",
        "Everything: records, intervals, statements. The schema is in the repository.",
    ),
    ("results.csv", "The records as a table."),
    ("osv.json", "The affected releases in the form of OSV."),
    ("constraints.txt", "What to point pip at."),
    ("badge.json", "The answer as an endpoint for shields.io."),
    ("feed.xml", "Every change as an Atom feed."),
    ("report.md", "This report as Markdown."),
)


def build(
    findings: Findings,
    run: RunInfo,
    news: News = NO_NEWS,
) -> View:
    """Put the findings in words.

    Args:
        findings: What the records say.
        run: The run that they are reported for.
        news: What is known of the runs before.
    """
    covered = coverage(findings.records, run)
    refs = moving_refs(findings.statements, findings.records, run)
    said = model_answers(findings, refs)
    measured = measured_sentence(findings, run, covered)
    answer = _answer(said)
    headline = _headline(said)
    return View(
        title=f"{headline} · {SUBJECT}",
        headline=headline,
        summary=" ".join((*answer, measured)),
        answer=answer,
        measured=measured,
        tone=said[0].tone if said else Tone.UNKNOWN,
        badge=said[0].headline if said else "not measured",
        date=run.date,
        generated_at=run.generated_at,
        coverage=covered,
        glances=_glances(findings, covered, refs),
        models=tuple(
            model_view(one, findings, full=False, every_model=one is said[0]) for one in said
        ),
        changes=None if news.changes is None else news.changes[:MOST_CHANGES],
        more_changes=max(len(news.changes or ()) - MOST_CHANGES, 0),
        since=news.since,
        runs=tuple(
            RunView(when=past.generated_at, href=past.report, summary=past.summary)
            for past in news.runs
        ),
        limits=_limits(findings, run),
        problems=(*run.problems, *news.problems),
        provenance=_provenance(findings, run),
        repository=_web_address(run.repository),
        method=METHOD,
        files=FILES,
        example_anchor=_example_anchor(findings),
    )


def full_models(findings: Findings, run: RunInfo) -> Iterator[ModelView]:
    """Every model with every case of it, for the models' own pages."""
    refs = moving_refs(findings.statements, findings.records, run)
    for answer in model_answers(findings, refs):
        yield model_view(answer, findings, full=True)


def model_answers(findings: Findings, refs: Sequence[MovingRef]) -> tuple[ModelAnswer, ...]:
    """The answer for each model, in the order of the catalog."""
    names = sorted({record.model for record in findings.records}, key=model_key)
    return tuple(
        answer_for(name, [s for s in findings.statements if s.model == name], refs, findings)
        for name in names
    )


def _web_address(text: str | None) -> str:
    """`text`, if a link may lead there."""
    return text if text is not None and text.startswith("https://") else ""


def _example_anchor(findings: Findings) -> str:
    newest = findings.records[-1].release if findings.records else "5.0.0"
    return release_anchor(newest)


def _answer(said: Sequence[ModelAnswer]) -> tuple[str, ...]:
    """The sentences of the first model, and in a few words what holds for the others."""
    if not said:
        return ("Nothing has been measured yet.",)
    others = [f"{model_title(one.model)}: {one.headline}" for one in said[1:]]
    return (*said[0].sentences, f"{'; '.join(others)}.") if others else said[0].sentences


def _headline(said: Sequence[ModelAnswer]) -> str:
    if not said:
        return "Nothing measured yet"
    text = said[0].headline
    return text[0].upper() + text[1:]


def _glances(
    findings: Findings, covered: Coverage, refs: Sequence[MovingRef]
) -> tuple[Glance, ...]:
    """What the newest release and the moving refs do for the first model, and the counts."""
    first = findings.records[0].model if findings.records else ""
    mine = [s for s in findings.statements if s.model == first]
    newest = [s for s in mine if s.source is Source.INDEX][-1:]
    glances = [_verdict_glance(f"Newest release, {s.transformers}", s) for s in newest]
    for ref in refs:
        if ref.model == first:
            parts = (
                f"{ref.ref} at {ref.commit[:9]}" if ref.commit else ref.ref,
                *((ref.measured_at,) if ref.measured_at else ()),
                *(("stale",) if ref.stale else ()),
            )
            glances.append(_verdict_glance(", ".join(parts), ref.statement))
    measured = {record.release for record in findings.records if record.status.conclusive}
    cells = f"{covered.conclusive:,} of {covered.planned:,}"
    return (
        *glances,
        Glance(label="Releases with an answer", value=f"{len(measured):,}", look=""),
        Glance(label="Planned cells conclusive", value=cells, look=""),
    )


def _verdict_glance(label: str, statement: Statement) -> Glance:
    verdict = statement.statement
    value = f"{VERDICT_SYMBOLS[verdict]} {VERDICTS[verdict]}"
    if statement.also_affected and verdict is not Verdict.AFFECTED:
        # Right in the core alone is no green light.
        others = count(len(statement.also_affected), "other way")
        return Glance(label=label, value=f"{value} in the core, wrong in {others}", look="")
    return Glance(label=label, value=value, look=look(verdict))


def _limits(findings: Findings, run: RunInfo) -> tuple[str, ...]:
    limits: list[str] = []
    why: dict[str, int] = {}
    for record in findings.records:
        if record.reason is not None:
            phrase = f"{STATUSES[record.status]}, {REASONS[record.reason]}"
            why[phrase] = why.get(phrase, 0) + 1
        elif record.status is Status.INCONCLUSIVE:
            phrase = f"{STATUSES[record.status]}, the numbers lie in the grey zone"
            why[phrase] = why.get(phrase, 0) + 1
    for phrase, number in sorted(why.items(), key=lambda item: (-item[1], item[0])):
        limits.append(f"{count(number, 'record')}: {phrase}.")
    ran = {record.device for record in findings.records if record.status.conclusive}
    if ran:
        limits.append(f"Nothing was measured on another device than {join(sorted(ran))}.")
    missing = set(run.releases) - {record.transformers for record in findings.records}
    if missing:
        have = "has" if len(missing) == 1 else "have"
        limits.append(f"{count(len(missing), 'release')} of the index {have} no record at all.")
    if findings.outdated:
        limits.append(
            f"{count(findings.outdated, 'record')} made by another revision of the checks"
            f" {'is' if findings.outdated == 1 else 'are'} left out."
        )
    if run.local:
        limits.append(
            f"{count(len(run.local), 'cell')} measured on this machine only, not in the"
            " committed ledger."
        )
    return tuple(limits)


def _provenance(findings: Findings, run: RunInfo) -> tuple[tuple[str, str], ...]:
    platforms = unique(
        sorted({r.provenance.platform for r in findings.records if r.provenance.platform})
    )
    facts = [
        ("Report made", run.generated_at),
        ("Revision of the checks", run.check_revision),
        ("Harness", run.harness_commit or ""),
        ("Platforms", join(platforms)),
        ("Records", f"{len(findings.records):,}"),
    ]
    return tuple((label, value) for label, value in facts if value)
