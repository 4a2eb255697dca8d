"""The grid of releases by cases, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from matrix.records import Status
from reports.grid import grid
from reports.paths import axis_anchor, release_anchor, release_page, scenario_anchor
from reports.picture import style
from reports.stories import ANY_CASE
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
    from collections.abc import Mapping, Sequence

    from matrix.records import Record
    from reports.findings import Findings
    from reports.grid import Cell, Column
    from reports.statements import Statement

VERDICT_SYMBOLS: Final = {
    Verdict.AFFECTED: SYMBOLS[Status.AFFECTED],
    Verdict.FIXED: SYMBOLS[Status.OK],
    Verdict.NOT_AFFECTED: SYMBOLS[Status.OK],
    Verdict.UNDER_INVESTIGATION: SYMBOLS[Status.INCONCLUSIVE],
}


_NOT_TESTED: Final = CellView(style="untested", symbol="", word="not tested", look="none", href="")


def verdict_view(statement: Statement) -> VerdictView:
    """A statement in words."""
    verdict = statement.statement
    if verdict is Verdict.AFFECTED:
        brief = join([DEFECTS[defect] for defect in statement.defects])
        detail = f"{brief}: {enumerate_some(statement.affected, 6)}"
    elif verdict is Verdict.UNDER_INVESTIGATION:
        brief = "" if statement.undecided else "no way of use has an answer"
        detail = enumerate_some(statement.undecided, 6) or brief
    else:
        brief = ""
        detail = f"{count(len(statement.right), 'way')} of use measured"
    if statement.also_affected:
        others = count(len(statement.also_affected), "way")
        brief = "; ".join(part for part in (brief, f"beyond the core: wrong in {others}") if part)
        detail = f"{detail}; beyond the core: {enumerate_some(statement.also_affected, 5)}"
    return VerdictView(
        model=model_title(statement.model),
        style=str(verdict),
        symbol=VERDICT_SYMBOLS[verdict],
        word=VERDICTS[verdict],
        brief=brief,
        detail=detail,
    )


def grid_view(
    model: str,
    records: Sequence[Record],
    findings: Findings,
    *,
    helps: Mapping[str, tuple[str, ...]],
    every_model: bool,
    max_cells: int | None,
) -> GridView:
    """The grid of one model.

    Args:
        model: The model.
        records: Its records, or the condensed ones.
        findings: What the records say.
        helps: Workarounds that help a release, where any was tried.
        every_model: Whether the rows tell the verdicts of the other models too, and have a row
            for every release.
        max_cells: How many cells there is room for; None for all.
    """
    table = grid(records)
    statements = [s for s in findings.statements if every_model or s.model == model]
    said: dict[str, list[VerdictView]] = {}
    for statement in statements:
        view = verdict_view(statement)
        if statement.model != model:
            view = replace(view, brief="", detail="")
        said.setdefault(statement.release, []).append(view)
    samples = {r.release: r for r in (findings.records if every_model else records)}
    shown = len(table.columns)
    if max_cells is not None:
        shown = min(shown, max(max_cells // max(len(samples), 1), 1))
    return GridView(
        columns=tuple(_column_view(column) for column in table.columns[:shown]),
        rows=tuple(
            _row_view(
                sample,
                said.get(release, []),
                table.rows.get(release, ())[:shown] or (None,) * shown,
                helps.get(release),
            )
            for release, sample in reversed(samples.items())
        ),
        verdicts=tuple(
            (str(verdict), word)
            for verdict, word in VERDICTS.items()
            if any(s.statement == verdict for s in statements)
        ),
        several=len({statement.model for statement in statements}) > 1,
        left_out=len(table.columns) - shown,
    )


def _row_view(
    sample: Record,
    verdicts: Sequence[VerdictView],
    cells: Sequence[Cell | None],
    helps: tuple[str, ...] | None,
) -> RowView:
    release = sample.release
    return RowView(
        name=release,
        anchor=release_anchor(release),
        href=release_page(release),
        date=_day(sample),
        commit=(sample.commit or "")[:9],
        verdicts=tuple(verdicts),
        cells=tuple(_cell_view(release, cell) for cell in cells),
        helps=None if helps is None else " ".join(helps),
    )


def _day(record: Record) -> str:
    when = record.released_at or (record.provenance.started_at if record.ref else "")
    return when[:10]


def _column_view(column: Column) -> ColumnView:
    return ColumnView(
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


def _cell_view(release: str, cell: Cell | None) -> CellView:
    if cell is None or cell.status is None:
        return _NOT_TESTED
    if cell.axis.attention == ANY_CASE:
        anchor = scenario_anchor(cell.axis.model, cell.axis.scenario)
    else:
        anchor = axis_anchor(cell.axis)
    return CellView(
        style=style(cell.status, cell.defect),
        symbol=SYMBOLS[cell.status],
        word=DEFECTS[cell.defect] if cell.defect else STATUSES[cell.status],
        look=look(cell.status),
        href=f"{release_page(release)}#{anchor}",
    )
