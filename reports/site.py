"""Write the site: the one place of the report that touches the file system."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from reports import csvfile, render
from reports.build import build
from reports.build_grid import verdict_view
from reports.evidence import release_view
from reports.findings import conclude
from reports.paths import release_page
from reports.results import encode, results

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from matrix.records import Record
    from reports.findings import Findings
    from reports.run import RunInfo
    from reports.view import View

STABLE: Final = "v1"
"""Folder of the machine-readable files under paths that stay as long as their form does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a terminal prints at the end of a run.

    Attributes:
        summary: The answer in one or two sentences.
        view: Everything else that the report says.
        site: Where the site is.
    """

    summary: str
    view: View
    site: Path

    @property
    def page(self) -> Path:
        """The first page."""
        return self.site / "index.html"


def render_site(
    records: Sequence[Record],
    run: RunInfo,
    site: Path,
    previous: Path | None = None,
) -> Answer:
    """Write the whole site.

    The same arguments give the same bytes.

    Args:
        records: Every record of the ledger and of this run, in any order.
        run: The run that they are reported for.
        site: Folder to write; files of a former site in it are overwritten.
        previous: Site, or results.json, of the run before; its differences are reported.

    Raises:
        OSError: A file cannot be written.
    """
    findings = conclude(records, run)
    view = build(findings, run)
    for path, content in files(findings, view, run):
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return Answer(summary=view.summary, view=view, site=site)


def files(findings: Findings, view: View, run: RunInfo) -> Iterator[tuple[str, bytes]]:
    """Every file of the site, path and content, one after the other."""
    page = render.html().get_template("index.html.j2")
    yield "index.html", _text(page.render(view=view, root=""))
    yield "report.md", _text(render.markdown().get_template("report.md.j2").render(view=view))
    for name, content in machine_readable(findings, view, run):
        yield name, content
        yield f"{STABLE}/{name}", content
    yield from _release_pages(findings, view, run)


def machine_readable(findings: Findings, view: View, run: RunInfo) -> Iterator[tuple[str, bytes]]:
    """The files for programs."""
    yield "results.json", encode(results(findings, view, run))
    yield "results.csv", csvfile.results_csv(findings.records)


def _release_pages(findings: Findings, view: View, run: RunInfo) -> Iterator[tuple[str, bytes]]:
    template = render.html().get_template("release.html.j2")
    for release, group in groupby(findings.records, key=lambda record: record.release):
        statements = [s for s in findings.statements if s.release == release]
        content = template.render(
            view=view,
            release=release_view(release, list(group), statements, run),
            verdicts=[verdict_view(statement) for statement in statements],
            root="../../",
        )
        yield release_page(release), _text(content)


def _text(content: str) -> bytes:
    return content.encode("utf-8", "replace")
