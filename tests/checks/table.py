"""The table that the planting tests fill and the terminal shows at the end."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One plant on one case, and what the check said."""

    planted: str
    case: str
    expected: str
    status: str
    named: str

    @property
    def found(self) -> bool:
        """Whether a defect was called affected, or a harmless change ok."""
        return self.status == ("ok" if self.expected == "ok" else "affected")


@dataclass
class Table:
    """Rows in the order in which they were measured."""

    rows: list[Row] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.rows)

    def lines(self) -> list[str]:
        """The table as text, with its sums."""
        head = ("planted", "scenario / attention", "should be", "is", "named")
        body = [(row.planted, row.case, row.expected, row.status, row.named) for row in self.rows]
        widths = [max(len(line[column]) for line in (head, *body)) for column in range(5)]
        lines = [
            "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
            for line in (head, *body)
        ]
        planted = [row for row in self.rows if row.expected != "ok"]
        harmless = [row for row in self.rows if row.expected == "ok"]
        sums = (
            f"planted {len(planted)}, found {sum(row.found for row in planted)}, "
            f"named {sum(row.named == row.expected for row in planted)}; "
            f"harmless {len(harmless)}, false alarms "
            f"{sum(row.status == 'affected' for row in harmless)}"
        )
        return [*lines, sums]


TABLE = Table()
