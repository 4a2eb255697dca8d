"""results.csv: the table of records, safe to open in a spreadsheet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reports.escape import clean
from reports.grid import frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from matrix.records import Record

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def results_csv(records: Sequence[Record]) -> bytes:
    """One line for each record, RFC 4180, UTF-8.

    A text that a spreadsheet could take for a formula gets an apostrophe in front (OWASP, "CSV
    injection"); numbers are numbers and stay.
    """
    table = frame(records)
    for name in table.columns:
        column = table[name]
        if not _is_number(column):
            table[name] = column.map({text: harmless(text) for text in column.dropna().unique()})
    text = table.to_csv(index=False, lineterminator="\r\n")
    return text.encode()


def _is_number(column: pd.Series[Any]) -> bool:
    return column.dtype.kind in "fiu"


def harmless(value: str) -> str:
    """`value`, clean, and no formula for any spreadsheet."""
    text = clean(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
