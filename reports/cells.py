"""The runs of cells that the evidence on a release's page comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from matrix.records import Provenance, Source, short_torch
from reports.paths import slug

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.records import Record
    from reports.run import RunInfo
    from reports.view import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRunView:
    """One run of a cell: what all its cases have in common.

    Attributes:
        anchor: Anchor of it.
        runtime: Its Python and torch.
        facts: When, where and how it ran.
        install: Command that installs the same release on the same torch; empty if there is none.
        packages: The exact packages; empty if they are not known.
    """

    anchor: str
    runtime: str
    facts: tuple[Fact, ...]
    install: str
    packages: tuple[str, ...]


def number(value: float | None) -> str:
    """A measured number, to the digits that mean something: ``0.41``, ``3.2e-07``."""
    if value is None:
        return "—"
    if value == 0:
        return "0"
    return f"{value:.3g}" if 1e-3 <= abs(value) < 1e4 else f"{value:.1e}"


Cell = tuple[str, str, Provenance]
"""Python, torch, and where it came from: records that share them were made in one run."""


def cell_of(record: Record) -> Cell:
    """The run of a cell that made `record`."""
    return record.python, record.torch, record.provenance


def cell_anchors(records: Sequence[Record]) -> dict[Cell, str]:
    """An anchor for each run of a cell; later runs of the same runtime are numbered."""
    anchors: dict[Cell, str] = {}
    used: dict[str, int] = {}
    for record in sorted(records, key=lambda r: r.provenance.started_at):
        cell = cell_of(record)
        if cell in anchors:
            continue
        name = f"cell-{slug(record.runtime.replace('/', '-'))}"
        used[name] = used.get(name, 0) + 1
        anchors[cell] = name if used[name] == 1 else f"{name}-{used[name]}"
    return anchors


def cell_views(
    records: Sequence[Record], anchors: dict[Cell, str], run: RunInfo
) -> tuple[CellRunView, ...]:
    """The runs that the records come from, in the order of their anchors."""
    samples = {cell_of(record): record for record in records}
    return tuple(_cell_view(cell, samples[cell], anchor, run) for cell, anchor in anchors.items())


def _cell_view(cell: Cell, record: Record, anchor: str, run: RunInfo) -> CellRunView:
    python, torch, p = cell
    facts = (
        ("Checked", p.started_at),
        ("Took", None if p.seconds is None else f"{number(p.seconds)} s"),
        ("Platform", p.platform),
        ("Device", p.device_name),
        ("Python", p.python_build or python),
        ("Ran as", ", ".join(part for part in (p.process, p.isolation) if part)),
        ("Revision of the checks", p.check_revision),
        ("Harness", p.harness_commit),
        ("Packages", p.packages),
    )
    return CellRunView(
        anchor=anchor,
        runtime=f"Python {python}, torch {torch}",
        facts=tuple((label, value) for label, value in facts if value),
        install=_install(record),
        packages=run.packages.get(p.packages or "", ()),
    )


def _install(record: Record) -> str:
    if record.source is Source.INDEX:
        wanted = f"transformers=={record.transformers}"
    elif record.source is Source.GIT and record.commit:
        wanted = f"transformers @ git+https://github.com/huggingface/transformers@{record.commit}"
    else:
        return ""
    return f'pip install "{wanted}" torch=={short_torch(record.torch)} numpy pytest'
