"""Write the site: the one place of the report that touches the file system."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from reports import render
from reports.build import build, full_models
from reports.build_grid import verdict_view
from reports.changes import Said, compare, remembered
from reports.escape import clean
from reports.evidence import release_view
from reports.findings import conclude
from reports.news import News
from reports.outputs.badge import badge
from reports.outputs.constraints import constraints_txt
from reports.outputs.csvfile import results_csv
from reports.outputs.feed import feed
from reports.outputs.osv import osv
from reports.paths import release_page
from reports.previous import kept_files, kept_runs, read_previous
from reports.results import PastRun, encode, results

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from matrix.records import Record
    from reports.changes import Change
    from reports.findings import Findings
    from reports.previous import Previous
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
    before = read_previous(previous)
    findings = conclude(records, run)
    material = _material(findings, run, before)
    for path, content in files(material):
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return Answer(summary=material.view.summary, view=material.view, site=site)


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Everything that the files of a site are made of.

    Attributes:
        findings: What the records say.
        run: The run that they are reported for.
        view: The findings in words.
        changes: Every change that the site remembers.
        runs: Every run that the site keeps.
        kept: Files of former runs, path and content.
    """

    findings: Findings
    run: RunInfo
    view: View
    changes: tuple[Change, ...]
    runs: tuple[PastRun, ...]
    kept: tuple[tuple[str, bytes], ...]


def _material(findings: Findings, run: RunInfo, before: Previous) -> Material:
    said = before.said
    new = None
    if said is not None:
        now = Said(
            check_revision=run.check_revision,
            records=findings.records,
            statements=findings.statements,
        )
        new = compare(said, now, run.generated_at)
    earlier = kept_runs(before)
    news = News(
        changes=new,
        since=before.results.generated_at if before.results else "",
        runs=earlier,
        problems=(before.problem,) if before.problem else (),
    )
    view = build(findings, run, news)
    this = PastRun(
        generated_at=run.generated_at, check_revision=run.check_revision, summary=view.summary
    )
    return Material(
        findings=findings,
        run=run,
        view=view,
        changes=remembered(new or (), before.results.changes if before.results else ()),
        runs=(this, *(past for past in earlier if past.generated_at != this.generated_at)),
        kept=tuple(kept_files(before)),
    )


def files(material: Material) -> Iterator[tuple[str, bytes]]:
    """Every file of the site, path and content, one after the other."""
    view = material.view
    page = render.html().get_template("index.html.j2")
    yield "index.html", _text(page.render(view=view, root=""))
    yield from material.kept
    report, packed = material.runs[0].files
    for name, content in machine_readable(material):
        yield name, content
        yield f"{STABLE}/{name}", content
        if name == "report.md":
            yield report, content
        if name == "results.json":
            # Thirty large ones are kept; without a time in it, the same bytes each time.
            yield packed, gzip.compress(content, mtime=0)
    yield from _model_pages(material)
    yield from _release_pages(material.findings, view, material.run)


def machine_readable(material: Material) -> Iterator[tuple[str, bytes]]:
    """The files for programs, and the Markdown."""
    findings, view, run = material.findings, material.view, material.run
    yield "report.md", _text(render.markdown().get_template("report.md.j2").render(view=view))
    yield "results.json", encode(results(findings, view, run, material.changes, material.runs))
    yield "results.csv", results_csv(findings.records)
    yield "osv.json", encode(osv(findings, view, run))
    yield "badge.json", encode(badge(view))
    yield "feed.xml", feed(view, material.changes, run)
    yield "constraints.txt", constraints_txt(view)


def _model_pages(material: Material) -> Iterator[tuple[str, bytes]]:
    template = render.html().get_template("model.html.j2")
    for model in full_models(material.findings, material.run):
        content = template.render(view=material.view, model=model, root="../../")
        yield model.href, _text(content)


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
    return clean(content).encode()
