"""The grid of releases by cases, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matrix.records import Status
from reports.grid import grid
from reports.paths import axis_anchor, release_anchor, release_page
from reports.picture import style
from reports.verdicts import Verdict
from reports.view import CellView, ColumnView, GridView, RowView, VerdictView
from reports.words import (
    DEFECTS,
    STATUSES,
    SYMBOLS,
    VERDICTS,
    count,
    enumerate_some,
    join,
    look,
    model_title,
    unique,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.records import Record
    from reports.answer import MovingRef
    from reports.findings import Findings
    from reports.grid import Cell, Column
    from reports.verdicts import Statement

VERDICT_SYMBOLS: Final = {
    Verdict.AFFECTED: SYMBOLS[Status.AFFECTED],
    Verdict.FIXED: SYMBOLS[Status.OK],
    Verdict.NOT_AFFECTED: SYMBOLS[Status.OK],
    Verdict.UNDER_INVESTIGATION: SYMBOLS[Status.INCONCLUSIVE],
}


def verdict_view(statement: Statement) -> VerdictView:
    """A statement in words."""
    verdict = statement.statement
    if verdict is Verdict.AFFECTED:
        by = join([DEFECTS[defect] for defect in statement.defects])
        detail = f"{by}: {enumerate_some(statement.affected, 4)}"
    elif verdict is Verdict.UNDER_INVESTIGATION:
        detail = enumerate_some(statement.undecided, 4) or "no way of use has an answer"
    else:
        detail = f"{count(len(statement.right), 'way')} of use measured"
    model = model_title(statement.model)
    return VerdictView(
        model=model,
        style=str(verdict),
        symbol=VERDICT_SYMBOLS[verdict],
        word=VERDICTS[verdict],
        detail=detail,
        say=f"{model} {VERDICTS[verdict]} ({detail})",
    )


def grid_view(findings: Findings, refs: Sequence[MovingRef]) -> GridView:
    """The grid of the findings; moving refs that are stale are marked."""
    table = grid(findings.records)
    said: dict[str, list[VerdictView]] = {}
    for statement in findings.statements:
        said.setdefault(statement.release, []).append(verdict_view(statement))
    samples = {record.release: record for record in findings.records}
    stale = {ref.ref for ref in refs if ref.stale}
    return GridView(
        columns=tuple(_column_view(column) for column in table.columns),
        rows=tuple(
            RowView(
                name=release,
                anchor=release_anchor(release),
                href=release_page(release),
                date=_day(samples[release]),
                commit=(samples[release].commit or "")[:9],
                stale=release in stale,
                verdicts=tuple(said.get(release, ())),
                cells=tuple(_cell_view(release, cell) for cell in cells),
            )
            for release, cells in table.rows.items()
        ),
        models=unique(model_title(column.model) for column in table.columns),
        verdicts=tuple(
            (str(verdict), word)
            for verdict, word in VERDICTS.items()
            if any(s.statement is verdict for s in findings.statements)
        ),
        mixed=any(column.mixed for column in table.columns),
    )


def _day(record: Record) -> str:
    when = record.released_at or (record.provenance.started_at if record.ref else "")
    return when[:10]


def _column_view(column: Column) -> ColumnView:
    return ColumnView(
        model=model_title(column.model),
        scenarios=column.scenarios,
        places=column.places,
        words=" ".join(
            unique(
                word
                for axis in column.axes
                for word in (axis.model, axis.scenario, axis.attention, axis.device, axis.dtype)
            )
        ),
    )


def _cell_view(release: str, cell: Cell) -> CellView:
    if cell.status is None:
        return CellView(style="untested", symbol="", word="not tested", look="none", href="")
    return CellView(
        style=style(cell.status, cell.defect),
        symbol=SYMBOLS[cell.status],
        word=DEFECTS[cell.defect] if cell.defect else STATUSES[cell.status],
        look=look(cell.status),
        href=f"{release_page(release)}#{axis_anchor(cell.axis)}",
    )
