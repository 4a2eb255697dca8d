"""The text of a finding's issue. Pure; whatever comes from a cell is escaped here.

The first line of a body is a comment that nobody sees: it carries the id of the finding, by
which the issue is found again.
"""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Final

import msgspec

from matrix.history import axis_of
from matrix.records import Source, short_torch
from reports.cells import number
from reports.escape import escape_markdown, markdown_code, markdown_fence, one_line
from reports.evidence import workarounds_tried
from reports.paths import axis_anchor, release_page
from reports.watch_findings import Kind
from reports.words import (
    DEFECT_MEANINGS,
    DEFECT_VERBS,
    DEFECTS,
    REASONS,
    join,
    model_title,
    scenario_title,
    stretch,
    unique,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matrix.records import Record
    from reports.watch_findings import Finding, Sighting

MOST_ROWS: Final = 40
"""So many sightings are listed; the page has them all."""
MOST_LOG: Final = 3000
"""So many characters of a log are shown: its end."""


class Issue(msgspec.Struct, frozen=True, kw_only=True):
    """A finding as `reports.watch_issues` takes it.

    Attributes:
        id: Id of the finding.
        kind: Its kind.
        title: Title of the issue, plain text.
        body: Its body, Markdown, with the id in its first line.
        new: Whether an issue may be opened for it.
        regression: Whether it turns the run red.
        recurs: Whether the same may happen again: then a closed issue is opened again.
        ends: Ids of the findings that this one ends.
    """

    id: str
    kind: str
    title: str
    body: str
    new: bool
    regression: bool
    recurs: bool
    ends: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Where the page and this run are; empty where that is not known.

    Attributes:
        site: Address of the page, ending in a slash.
        repository: Address of this repository.
    """

    site: str = ""
    repository: str = ""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Links:
        """As the platform tells: `MATRIX_SITE_URL`, or where it publishes a repository."""
        server, name = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
        owner, _, project = name.partition("/")
        host = f"{owner.lower()}.github.io"
        usual = f"https://{host}/" if project.lower() == host else f"https://{host}/{project}/"
        site = environ.get("MATRIX_SITE_URL") or (usual if project else "")
        return cls(
            site=site if not site or site.endswith("/") else f"{site}/",
            repository=f"{server}/{name}" if server and name else "",
        )


def issue(finding: Finding, links: Links) -> Issue:
    """The issue that tells of a finding."""
    return Issue(
        id=finding.id,
        kind=str(finding.kind),
        title=title(finding),
        body=body(finding, links),
        new=finding.new,
        regression=finding.regression,
        recurs=finding.moving,
        ends=finding.ends,
    )


def title(finding: Finding) -> str:
    """One line of plain text; an at sign in it calls nobody."""
    release = f"transformers {finding.release}"
    if finding.defect is None or finding.model is None:
        text = f"{release} cannot be tested: {_reasons(finding)}"
    elif finding.kind is Kind.AFFECTED:
        text = f"{release} {DEFECT_VERBS[finding.defect]} ({model_title(finding.model)})"
    else:
        text = f"{release}: {DEFECTS[finding.defect]} is fixed ({model_title(finding.model)})"
    return one_line(text).replace("@", "@\u2060")[:200]


def _reasons(finding: Finding) -> str:
    reasons = (one.record.reason for one in finding.sightings)
    words = unique(REASONS[reason] for reason in reasons if reason is not None)
    return join(words) or "no measurement was conclusive"


def body(finding: Finding, links: Links) -> str:
    """The whole text, with the evidence of one sighting and the way to see it oneself."""
    sample = finding.sightings[0]
    parts = [
        marker(finding.id),
        _lead(finding),
        _table(finding) if finding.defect is not None else "",
        f"## Evidence\n\n{_evidence(sample.record, links)}",
        _reproducer(sample.record) if finding.defect is not None else _log(sample.record),
        _footer(finding, links),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def marker(identity: str) -> str:
    """The line by which an issue is found again."""
    return f"<!-- longrope-matrix finding {identity} -->"


def _lead(finding: Finding) -> str:
    release = escape_markdown(finding.release)
    commit = finding.sightings[0].record.commit
    name = f"transformers {release}" + (f" at {markdown_code(commit)}" if commit else "")
    if finding.defect is None or finding.model is None:
        reasons = escape_markdown(_reasons(finding))
        return f"**{name} cannot be tested: {reasons}.** Nothing is said of it until it can be."
    model, ways = escape_markdown(model_title(finding.model)), _ways(finding.sightings)
    if finding.kind is Kind.AFFECTED:
        verb, meaning = DEFECT_VERBS[finding.defect], DEFECT_MEANINGS[finding.defect]
        return f"**{name} {verb} with {model}.** {meaning}\n\nWays of use: {ways}."
    what = DEFECTS[finding.defect]
    return f"**{name} is right again with {model}: {what} is fixed.**\n\nWays of use: {ways}."


def _ways(sightings: Sequence[Sighting]) -> str:
    names = unique(scenario_title(one.axis.scenario) for one in sightings)
    return escape_markdown("; ".join(names))


def _table(finding: Finding) -> str:
    word = "affected" if finding.kind is Kind.AFFECTED else "right"
    head = ("way of use", "attention", "device", "Python", "torch", "tested before", word)
    lines = [_line(*head, "tested after"), "|---" * (len(head) + 1) + "|"]
    lines += [_row(one) for one in finding.sightings[:MOST_ROWS]]
    if (more := len(finding.sightings) - MOST_ROWS) > 0:
        lines.append(f"\nAnd {more} more cases, on the page.")
    return "\n".join(lines)


def _row(one: Sighting) -> str:
    axis, first = one.axis, one.record.release
    return _line(
        axis.scenario,
        axis.attention,
        f"{axis.device} {axis.dtype}",
        axis.python,
        "+".join([axis.torch, *axis.extras]),
        one.after or "nothing",
        stretch(first, one.last),
        one.before or "nothing",
    )


def _line(*cells: str) -> str:
    return "| " + " | ".join(escape_markdown(cell) for cell in cells) + " |"


def _evidence(record: Record, links: Links) -> str:
    evidence = record.evidence
    place = f"{record.case} on Python {record.python}, torch {record.torch}"
    where: str = markdown_code(place)
    if links.site:
        page = f"{links.site}{release_page(record.release)}#{axis_anchor(axis_of(record))}"
        where = f"[{where}]({page})"
    lines = [f"{where}, measured {escape_markdown(record.provenance.started_at)}:"]
    said = [
        f"last generation call: {evidence.last_call}" if evidence.last_call else "",
        f"generated next token: {list(evidence.generated)}" if evidence.generated else "",
        f"uncached full-prefix next token: {list(evidence.expected)}" if evidence.expected else "",
        f"tokens fed + cached: {evidence.trace}" if evidence.trace else "",
        f"message: {evidence.message}" if evidence.message else "",
    ]
    if told := "\n".join(one_line(line)[:MOST_LOG] for line in said if line):
        lines.append(markdown_fence(told))
    if evidence.error is not None:
        lines.append(
            f"Relative error {number(evidence.error)} against the uncached forward,"
            f" {number(evidence.error_reference)} against the independent reference;"
            f" the tolerance is {number(evidence.tolerance)}."
        )
    if evidence.hypothesis is not None:
        lines.append(
            f"The hypothesis {markdown_code(evidence.hypothesis)} reproduces the observed logits"
            f" to {number(evidence.distance)}."
        )
    if tried := workarounds_tried(evidence):
        lines.append(f"Without another release, tried on it: {escape_markdown(tried)}.")
    return "\n\n".join(lines)


def _log(record: Record) -> str:
    log = record.evidence.log
    if not log:
        return ""
    return f"## End of the log\n\n{markdown_fence(log[-MOST_LOG:].strip())}"


def _reproducer(record: Record) -> str:
    """The commands that measure it again, and those that make a script without the matrix."""
    chosen = {
        "releases": record.release,
        "runtimes": record.runtime,
        "models": record.model,
        "scenarios": record.scenario,
        "attention": record.attention,
        "devices": record.device,
        "dtypes": record.dtype,
    }
    options = " ".join(f"--{name} {quote(value)}" for name, value in chosen.items())
    measure = f"nox -s matrix -- --fresh --no-refine {options}"
    lines = ["## Reproduce", "In a checkout of the matrix:", _commands(measure)]
    if record.source is Source.INDEX:
        wanted = quote(f"transformers=={record.transformers}")
        lines += [
            "Or by a script that needs only these packages, and shows the difference by itself:",
            _commands(
                f"pip install {wanted} torch=={quote(short_torch(record.torch))} numpy",
                f"python -m checks --reproduce {quote(record.case)} > crossing.py",
                "python crossing.py",
            ),
        ]
    return "\n\n".join(lines)


def _commands(*commands: str) -> str:
    return markdown_fence("\n".join(one_line(command) for command in commands))


def _footer(finding: Finding, links: Links) -> str:
    told = [f"Finding {finding.id}, kept up to date by the scheduled run while it is open."]
    if links.site:
        told.append(f"[The whole report]({links.site}).")
    if links.repository:
        told.append(f"[How it is measured]({links.repository}).")
    return f"<sub>{' '.join(told)}</sub>"
