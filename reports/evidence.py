"""The page of one release: what each case showed, and the numbers behind it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from matrix.history import axis_of
from matrix.records import Source, Status
from reports.paths import axis_anchor, release_anchor, scenario_anchor
from reports.words import (
    DEFECT_MEANINGS,
    DEFECTS,
    REASONS,
    STATUSES,
    SYMBOLS,
    model_title,
    scenario_title,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.records import Controls, Evidence, Record
    from reports.run import RunInfo
    from reports.verdicts import Statement

Fact = tuple[str, str]
"""A label and its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """What one case showed in one cell.

    Attributes:
        anchor: Permanent anchor of it.
        place: Backend, device, data type and runtime.
        status: The status code; also the name of its style.
        frame: ``ok``, ``affected`` or ``other``: the style of its frame.
        open: Whether its numbers are unfolded.
        symbol: The status as one character.
        word: The status in a word or two, with the defect or the reason.
        meaning: What the defect does, in a sentence; empty otherwise.
        report: The bug report's three lines.
        facts: The numbers.
        log: End of a log, if something failed.
        notes: Anything else.
        packages: Key of the exact packages; empty if unknown.
        reproduce: Commands that run it again.
    """

    anchor: str
    place: str
    status: str
    frame: str
    open: bool
    symbol: str
    word: str
    meaning: str
    report: tuple[str, ...]
    facts: tuple[Fact, ...]
    log: str
    notes: tuple[str, ...]
    packages: str
    reproduce: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioView:
    """The cases of one model and scenario."""

    anchor: str
    model: str
    scenario: str
    title: str
    cases: tuple[CaseView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagesView:
    """The exact packages of cells of this release."""

    key: str
    anchor: str
    packages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseView:
    """A release's page.

    Attributes:
        name: The release.
        facts: What it is: version, commit, date.
        statements: What is said of it, model by model.
        scenarios: The evidence.
        packages: The exact packages of its cells.
        short: What is said of it, in one line.
        row: Anchor of its row on the first page.
    """

    name: str
    facts: tuple[Fact, ...]
    statements: tuple[Statement, ...]
    scenarios: tuple[ScenarioView, ...]
    packages: tuple[PackagesView, ...]
    short: str
    row: str


def number(value: float | None) -> str:
    """A measured number, to the digits that mean something: ``0.41``, ``3.2e-07``."""
    if value is None:
        return "—"
    if value == 0:
        return "0"
    return f"{value:.3g}" if 1e-3 <= abs(value) < 1e4 else f"{value:.1e}"


def release_view(
    name: str, records: Sequence[Record], statements: Sequence[Statement], run: RunInfo
) -> ReleaseView:
    """The page of release `name` from its records, which are in the order of the catalog."""
    sample = records[0]
    used = {record.provenance.packages for record in records}
    keys = sorted(key for key in run.packages if key in used)
    return ReleaseView(
        name=name,
        facts=_facts_of_release(sample),
        statements=tuple(statements),
        scenarios=tuple(
            ScenarioView(
                anchor=scenario_anchor(model, scenario),
                model=model_title(model),
                scenario=scenario,
                title=scenario_title(scenario),
                cases=tuple(_case_view(record, run) for record in group),
            )
            for (model, scenario), group in groupby(records, key=lambda r: (r.model, r.scenario))
        ),
        packages=tuple(
            PackagesView(key=key, anchor=f"packages-{key}", packages=run.packages[key])
            for key in keys
        ),
        short="; ".join(f"{s.model} {s.statement}" for s in statements) or "no statement",
        row=release_anchor(name),
    )


def _facts_of_release(record: Record) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    if record.source is not Source.INDEX:
        facts.append(("Version", record.transformers))
    if record.commit:
        facts.append(("Commit", record.commit))
    if record.released_at:
        facts.append(("Uploaded to the index", record.released_at[:10]))
    facts.append(("Checked", record.provenance.started_at))
    return tuple(facts)


def _case_view(record: Record, run: RunInfo) -> CaseView:
    e = record.evidence
    axis = axis_of(record)
    return CaseView(
        anchor=axis_anchor(axis),
        place=(
            f"{record.attention} · {record.device} {record.dtype} ·"
            f" Python {record.python} · torch {record.torch}"
        ),
        status=str(record.status),
        frame=str(record.status) if record.status.conclusive else "other",
        open=record.status is Status.AFFECTED,
        symbol=SYMBOLS[record.status],
        word=status_words(record),
        meaning=DEFECT_MEANINGS[record.defect] if record.defect else "",
        report=report_lines(e),
        facts=_facts(record),
        log=e.log or "",
        notes=e.notes,
        packages=_packages(record, run),
        reproduce=_reproduce(record),
    )


def _packages(record: Record, run: RunInfo) -> str:
    key = record.provenance.packages
    return key if key is not None and key in run.packages else ""


def status_words(record: Record) -> str:
    """``affected: prefix lost``, ``unsupported: no such attention backend``."""
    word = STATUSES[record.status]
    if record.defect is not None:
        return f"{word}: {DEFECTS[record.defect]}"
    if record.reason is not None:
        return f"{word}: {REASONS[record.reason]}"
    return word


def report_lines(evidence: Evidence) -> tuple[str, ...]:
    """The bug report's own three lines, as far as they were recorded."""
    lines: list[str] = []
    if evidence.last_call is not None:
        lines.append(f"last generation call: {evidence.last_call}")
    if evidence.generated is not None:
        lines.append(f"generated next token: {list(evidence.generated)}")
    if evidence.expected is not None:
        lines.append(f"uncached full-prefix next token: {list(evidence.expected)}")
    return tuple(lines)


def _facts(record: Record) -> tuple[Fact, ...]:
    e, p = record.evidence, record.provenance
    facts: list[tuple[str, str | None]] = [
        ("Error against the uncached forward", _against(e.error, e.tolerance)),
        ("Error against the independent reference", _against(e.error_reference, e.tolerance)),
        ("Oracles", e.oracles),
        ("Reading", e.reading),
        ("First length that differs", None if e.first_length is None else str(e.first_length)),
        ("Margin of the best token there", None if e.margin is None else number(e.margin)),
        ("Tokens fed + cached, forward by forward", e.trace),
        ("Fingerprint", _fingerprint(e)),
        ("Controls", None if e.controls is None else _controls(e.controls)),
        ("Attention that ran", e.attention_used),
        ("Seed", None if e.seed is None else str(e.seed)),
        ("Message", e.message),
        ("Device", p.device_name),
        ("Ran as", _ran_as(record)),
        ("Checked", p.started_at),
        ("Revision of the checks", p.check_revision),
    ]
    return tuple((label, value) for label, value in facts if value)


def _against(error: float | None, tolerance: float | None) -> str | None:
    if error is None:
        return None
    if tolerance is None:
        return number(error)
    relation = "within" if error <= tolerance else "beyond"
    return f"{number(error)}, {relation} the tolerance of {number(tolerance)}"


def _fingerprint(e: Evidence) -> str | None:
    if e.hypothesis is None:
        return None
    parts = [f"{e.hypothesis} reproduces the observed logits to {number(e.distance)}"]
    others = {
        name: value for name, value in sorted((e.distances or {}).items()) if name != e.hypothesis
    }
    if others:
        parts.append(", ".join(f"{name} {number(value)}" for name, value in others.items()))
    return "; others: ".join(parts)


def _controls(c: Controls) -> str:
    named = (
        ("below the boundary", c.below),
        ("short against long factors", c.power),
        ("last token alone", c.last_token),
        ("sabotage", c.sabotage),
    )
    return ", ".join(f"{label} {number(value)}" for label, value in named if value is not None)


def _ran_as(record: Record) -> str | None:
    p = record.provenance
    parts = [part for part in (p.process, p.isolation, p.platform) if part]
    return ", ".join(parts) or None


def _reproduce(record: Record) -> tuple[str, ...]:
    if record.status in (Status.NOT_RUN, Status.UNSUPPORTED):
        return ()
    if record.source is Source.INDEX:
        wanted = f"transformers=={record.transformers}"
    elif record.source is Source.GIT and record.commit:
        wanted = f"transformers @ git+https://github.com/huggingface/transformers@{record.commit}"
    else:
        return (f"python -m checks --reproduce {record.case}",)
    torch = record.torch.partition("+")[0]
    return (
        f'pip install "{wanted}" torch=={torch} numpy pytest',
        f"python -m checks --reproduce {record.case}",
    )
