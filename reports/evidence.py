"""The page of one release: what each case showed, and the numbers behind it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from matrix.history import axis_of
from matrix.records import Source, Status
from reports.cells import Cell, CellRunView, cell_anchors, cell_of, cell_views, number
from reports.condense import WORST_FIRST
from reports.paths import axis_anchor, release_anchor, scenario_anchor
from reports.words import (
    DEFECT_MEANINGS,
    DEFECTS,
    REASONS,
    STATUSES,
    SYMBOLS,
    VERDICTS,
    look,
    model_title,
    scenario_title,
    workaround_title,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.records import Controls, Evidence, Record
    from reports.run import RunInfo
    from reports.statements import Statement
    from reports.view import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """What one case showed in one cell.

    Attributes:
        anchor: Permanent anchor of it.
        place: Backend, device, data type and runtime.
        frame: ``ok``, ``affected`` or ``other``: the style of its frame.
        open: Whether its numbers are unfolded.
        look: The style of its status.
        word: The status in a word or two, with its symbol, and the defect or the reason.
        error: The error beside its tolerance, in a few words; empty if none was measured.
        meaning: What the defect does, in a sentence; empty otherwise.
        report: The bug report's three lines.
        facts: The numbers.
        log: End of a log, if something failed.
        notes: Anything else.
        cell: Anchor of the cell that it was measured in.
        reproduce: Command that runs it again where that cell's packages are installed.
    """

    anchor: str
    place: str
    frame: str
    open: bool
    look: str
    word: str
    error: str
    meaning: str
    report: str
    facts: tuple[Fact, ...]
    log: str
    notes: tuple[str, ...]
    cell: str
    reproduce: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioView:
    """The cases of one model and scenario; `style`, `symbol` and `word` are its worst case's."""

    anchor: str
    model: str
    scenario: str
    title: str
    style: str
    symbol: str
    word: str
    cases: tuple[CaseView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseView:
    """A release's page.

    Attributes:
        name: The release.
        facts: What it is: version, commit, date.
        statements: What is said of it, model by model.
        scenarios: The evidence.
        cells: The runs of its cells that the evidence comes from.
        short: What is said of it, in one line.
        row: Anchor of its row on the first page.
    """

    name: str
    facts: tuple[Fact, ...]
    statements: tuple[Statement, ...]
    scenarios: tuple[ScenarioView, ...]
    cells: tuple[CellRunView, ...]
    short: str
    row: str


def release_view(
    name: str, records: Sequence[Record], statements: Sequence[Statement], run: RunInfo
) -> ReleaseView:
    """The page of release `name` from its records, which are in the order of the catalog."""
    anchors = cell_anchors(records)
    return ReleaseView(
        name=name,
        facts=_facts_of_release(records[0]),
        statements=tuple(statements),
        scenarios=tuple(
            _scenario_view(model, scenario, list(group), anchors)
            for (model, scenario), group in groupby(records, key=lambda r: (r.model, r.scenario))
        ),
        cells=cell_views(records, anchors, run),
        short="; ".join(f"{model_title(s.model)} {VERDICTS[s.statement]}" for s in statements)
        or "no statement",
        row=release_anchor(name),
    )


def _scenario_view(
    model: str, scenario: str, records: Sequence[Record], anchors: dict[Cell, str]
) -> ScenarioView:
    worst = min(records, key=lambda record: WORST_FIRST[record.status])
    return ScenarioView(
        anchor=scenario_anchor(model, scenario),
        model=model_title(model),
        scenario=scenario,
        title=scenario_title(scenario),
        style=str(worst.status),
        symbol=SYMBOLS[worst.status],
        word=status_words(worst),
        cases=tuple(_case_view(record, anchors[cell_of(record)]) for record in records),
    )


def _facts_of_release(record: Record) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    if record.source is not Source.INDEX:
        facts.append(("Version", record.transformers))
    if record.commit:
        facts.append(("Commit", record.commit))
    if record.released_at:
        facts.append(("Uploaded to the index", record.released_at[:10]))
    return tuple(facts)


def _case_view(record: Record, cell: str) -> CaseView:
    e = record.evidence
    axis = axis_of(record)
    return CaseView(
        anchor=axis_anchor(axis),
        place=(
            f"{record.attention} · {record.device} {record.dtype} ·"
            f" Python {record.python} · torch {record.torch}"
        ),
        frame=str(record.status) if record.status.conclusive else "other",
        open=record.status is Status.AFFECTED,
        look=look(record.status),
        word=f"{SYMBOLS[record.status]} {status_words(record)}",
        error=_error(e),
        meaning=DEFECT_MEANINGS[record.defect] if record.defect else "",
        report="\n".join(report_lines(e)),
        facts=_facts(record),
        log=e.log or "",
        notes=e.notes,
        cell=cell,
        reproduce=_reproduce(record),
    )


def _error(e: Evidence) -> str:
    if e.error is None or e.tolerance is None:
        return ""
    return f"error {number(e.error)}, tolerance {number(e.tolerance)}"


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
    e = record.evidence
    facts: list[tuple[str, str | None]] = [
        ("Error against the uncached forward", _against(e.error, e.tolerance)),
        ("Error against the independent reference", _against(e.error_reference, e.tolerance)),
        ("Oracles", e.oracles),
        ("Reading", e.reading),
        ("First length that differs", None if e.first_length is None else str(e.first_length)),
        ("Margin of the best token there", None if e.margin is None else number(e.margin)),
        ("Tokens fed + cached, forward by forward", e.trace),
        ("Fingerprint", _fingerprint(e)),
        ("Workarounds tried", workarounds_tried(e)),
        ("Controls", None if e.controls is None else _controls(e.controls)),
        ("Attention that ran", e.attention_used),
        ("Seed", None if e.seed is None else str(e.seed)),
        ("Message", e.message),
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


def workarounds_tried(e: Evidence) -> str | None:
    """Each workaround and what the case showed under it; None where none was tried."""
    if not e.workarounds:
        return None
    return "; ".join(
        f"{workaround_title(name)}: {SYMBOLS[status]} {STATUSES[status]}"
        for name, status in e.workarounds.items()
    )


def _controls(c: Controls) -> str:
    named = (
        ("below the boundary", c.below),
        ("short against long factors", c.power),
        ("last token alone", c.last_token),
        ("sabotage", c.sabotage),
    )
    return ", ".join(f"{label} {number(value)}" for label, value in named if value is not None)


def _reproduce(record: Record) -> str:
    if record.status in (Status.NOT_RUN, Status.UNSUPPORTED):
        return ""
    return f"python -m checks --reproduce {record.case}"
