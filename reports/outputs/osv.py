"""osv.json: the affected releases in the form of the OSV schema.

The id belongs to nobody's database and says so. Ranges cover what was measured: a release
without an answer is in no range, and `fixed` stands only where the fixed release was measured
right behind the affected ones; otherwise the range ends with `last_affected`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from matrix.records import Source
from reports.spans import skips_a_minor
from reports.verdicts import Verdict
from reports.words import model_key, model_title, unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.findings import Findings
    from reports.run import RunInfo
    from reports.statements import Statement
    from reports.view import View

OSV_SCHEMA_VERSION: Final = "1.6.0"
ID: Final = "LOCAL-longrope-crossing"


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """The package that is affected."""

    ecosystem: str = "PyPI"
    name: str = "transformers"
    purl: str = "pkg:pypi/transformers"


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One end of a range; exactly one member is set."""

    introduced: str | None = None
    fixed: str | None = None
    last_affected: str | None = None


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of affected releases."""

    type: str = "ECOSYSTEM"
    events: tuple[Event, ...]


class Affected(msgspec.Struct, frozen=True, kw_only=True):
    """What is affected for one model."""

    package: Package
    ranges: tuple[Range, ...]
    versions: tuple[str, ...]
    ecosystem_specific: dict[str, Any]


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """A link to more."""

    type: str
    url: str


class Osv(msgspec.Struct, frozen=True, kw_only=True):
    """An OSV entry."""

    schema_version: str
    id: str
    modified: str
    summary: str
    details: str
    affected: tuple[Affected, ...]
    references: tuple[Reference, ...]
    database_specific: dict[str, Any]


def osv(findings: Findings, view: View, run: RunInfo) -> Osv:
    """The entry of a report; `affected` is empty where no release is."""
    models = sorted({statement.model for statement in findings.statements}, key=model_key)
    entries = (
        _affected(model, [s for s in findings.statements if s.model == model], findings.releases)
        for model in models
    )
    return Osv(
        schema_version=OSV_SCHEMA_VERSION,
        id=ID,
        modified=run.generated_at,
        summary=f"LongRoPE crossing of transformers: {view.badge}",
        details=view.summary,
        affected=tuple(entry for entry in entries if entry is not None),
        references=(Reference(type="EVIDENCE", url=run.site_url),) if run.site_url else (),
        database_specific={
            "check_revision": run.check_revision,
            "note": "Measured by a test harness; not an entry of any vulnerability database.",
        },
    )


def _affected(
    model: str, statements: Sequence[Statement], releases: Sequence[str]
) -> Affected | None:
    said = {s.transformers: s for s in statements if s.source is Source.INDEX}
    wrong = [s for s in said.values() if s.statement is Verdict.AFFECTED]
    if not wrong:
        return None
    defects = unique(str(defect) for s in wrong for defect in s.defects)
    scenarios = unique(name for s in wrong for name in s.affected)
    return Affected(
        package=Package(),
        ranges=_ranges(said, releases),
        versions=tuple(s.transformers for s in wrong),
        ecosystem_specific={
            "model": model_title(model),
            "defects": defects,
            "scenarios": scenarios,
        },
    )


def _ranges(said: dict[str, Statement], releases: Sequence[str]) -> tuple[Range, ...]:
    """A range for each stretch of affected releases with nothing unknown between them.

    As in the report's own sentences, no range bridges a whole minor release that was not tested.
    """
    found: list[Range] = []
    start: str | None = None
    last = ""
    for name in releases:
        statement = said.get(name)
        verdict = None if statement is None else statement.statement
        skips = start is not None and skips_a_minor(last, name)
        if start is not None and (verdict is not Verdict.AFFECTED or skips):
            fixed = verdict is not None and verdict.right and not skips
            found.append(_range(start, Event(fixed=name) if fixed else Event(last_affected=last)))
            start = None
        if verdict is Verdict.AFFECTED:
            start, last = start or name, name
    if start is not None:
        found.append(_range(start, Event(last_affected=last)))
    return tuple(found)


def _range(start: str, end: Event) -> Range:
    return Range(events=(Event(introduced=start), end))
