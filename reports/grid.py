"""The table: records as a pandas frame, and the grid of releases by cases as its pivot.

Cases whose column says the same for every release share one column of the grid, so that what
is equal is told once and the page stays small.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pandas as pd

from matrix.history import Axis, axis_of
from matrix.records import Defect, Status
from reports.stories import Common, common, where
from reports.verdicts import axis_key
from reports.words import model_key, scenario_key, unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.records import Record

COLUMNS: Final = (
    "transformers",
    "source",
    "ref",
    "commit",
    "released_at",
    "python",
    "torch",
    "model",
    "scenario",
    "attention",
    "device",
    "dtype",
    "status",
    "defect",
    "reason",
    "error",
    "error_reference",
    "tolerance",
    "first_length",
    "margin",
    "generated",
    "expected",
    "last_call",
    "trace",
    "attention_used",
    "message",
    "started_at",
    "check_revision",
    "packages",
)
"""Columns of results.csv, in their order."""


class _Mark(NamedTuple):
    """Status and defect of one record."""

    status: Status
    defect: Defect | None


_Marks = tuple[_Mark | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one column of the grid says of one release.

    Attributes:
        status: The status, or None where no record exists.
        defect: The defect, where affected.
        axis: The axis whose evidence the cell stands for.
    """

    status: Status | None
    defect: Defect | None
    axis: Axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Cases that say the same of every release.

    Attributes:
        model: The model.
        scenarios: Its scenarios.
        places: Backends, devices and runtimes, in words.
        axes: All the axes told by it.
    """

    model: str
    scenarios: tuple[str, ...]
    places: str
    axes: tuple[Axis, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Releases by cases. `rows[release][i]` belongs to `columns[i]`."""

    columns: tuple[Column, ...]
    rows: dict[str, tuple[Cell, ...]]


def frame(records: Sequence[Record]) -> pd.DataFrame:
    """One row for each record, with the columns of results.csv; in the order given."""
    data: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    append = [data[name].append for name in COLUMNS]
    for r in records:
        e, p = r.evidence, r.provenance
        values = (
            *(r.transformers, str(r.source), r.ref, r.commit, r.released_at, r.python, r.torch),
            *(r.model, r.scenario, r.attention, r.device, r.dtype, str(r.status)),
            *(None if r.defect is None else str(r.defect),),
            *(None if r.reason is None else str(r.reason),),
            *(e.error, e.error_reference, e.tolerance, e.first_length, e.margin),
            *(_row(e.generated), _row(e.expected), e.last_call, e.trace, e.attention_used),
            *(e.message, p.started_at, p.check_revision, p.packages),
        )
        for put, value in zip(append, values, strict=True):
            put(value)
    table = pd.DataFrame(data, columns=list(COLUMNS))
    return table.astype({"first_length": "Int64"})


def _row(tokens: tuple[int, ...] | None) -> str | None:
    return None if tokens is None else " ".join(map(str, tokens))


def grid(records: Sequence[Record]) -> Grid:
    """The grid of records that count (`verdicts.current`), newest release first."""
    if not records:
        return Grid(columns=(), rows={})
    points = [axis_of(record) for record in records]
    axes = sorted(set(points), key=axis_key)
    number = {axis: index for index, axis in enumerate(axes)}
    table = pd.DataFrame(
        {
            "release": [record.release for record in records],
            "axis": [number[point] for point in points],
            "mark": [_Mark(record.status, record.defect) for record in records],
        }
    )
    releases = list(reversed(unique(table["release"])))
    marks = table.pivot_table(
        index="release", columns="axis", values="mark", aggfunc="last", sort=False
    ).reindex(releases)
    content: dict[Axis, _Marks] = {
        axis: tuple(mark if isinstance(mark, _Mark) else None for mark in marks[number[axis]])
        for axis in axes
    }
    groups: defaultdict[tuple[Any, ...], list[Axis]] = defaultdict(list)
    for axis, column in content.items():
        groups[axis.model, *column].append(axis)
    shared = common(axes)
    members = sorted(groups.items(), key=lambda item: _column_key(item[0], item[1][0]))
    return Grid(
        columns=tuple(_column(members_of, shared) for _, members_of in members),
        rows={
            release: tuple(_cell(content[axes[0]][index], axes[0]) for _, axes in members)
            for index, release in enumerate(releases)
        },
    )


def _column_key(content: tuple[Any, ...], axis: Axis) -> tuple[object, ...]:
    """Columns that were ever affected come first, then the order of the catalog."""
    affected = any(isinstance(mark, _Mark) and mark.status is Status.AFFECTED for mark in content)
    return (model_key(axis.model), not affected, axis_key(axis))


def _column(axes: Sequence[Axis], shared: Common) -> Column:
    return Column(
        model=axes[0].model,
        scenarios=tuple(sorted({axis.scenario for axis in axes}, key=scenario_key)),
        places=where(axes, shared),
        axes=tuple(axes),
    )


def _cell(mark: _Mark | None, axis: Axis) -> Cell:
    if mark is None:
        return Cell(status=None, defect=None, axis=axis)
    return Cell(status=mark.status, defect=mark.defect, axis=axis)
