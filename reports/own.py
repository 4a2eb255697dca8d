"""``python -m reports.own TEST …``: run the user's own tests on the grid, and say what came of it.

Written are ``own.json`` (everything), ``own.csv`` (a row for each release and test) and
``own.md``, which says the same as the terminal.
"""

from __future__ import annotations

import csv
import io
import sys
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from matrix.errors import INTERRUPTED, HarnessError
from matrix.ledger import write_atomically
from matrix.own_command import OwnReporter, OwnSession
from matrix.own_options import parse_own_options
from matrix.work import ROOT
from reports.escape import clean, escape_markdown
from reports.outputs.csvfile import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from matrix.own_results import Interval, OwnCell, OwnRun

SITE = ROOT / "reports" / "own"
DECIDED: Final = ("passed", "failed")
"""What decides; everything else is unknown, and looks it."""
SYMBOLS: Final = {"passed": "✓", "failed": "✕"}
STYLES: Final = {"passed": "green", "failed": "red"}
COLUMNS: Final = (
    "transformers",
    "release",
    "source",
    "commit",
    "released_at",
    "runtime",
    "python",
    "torch",
    "status",
    "reason",
    "test",
    "outcome",
    "message",
)
"""Columns of own.csv: of the cell first, of the test then."""


def main(arguments: Sequence[str]) -> int:
    """Run the tests and say what came of it; returns the exit code."""
    reporter = OwnReporter()
    try:
        options = parse_own_options(arguments, prog="nox -s own --")
        site = options.grid.site or SITE
        session = OwnSession(options, reporter)
        code = 0
        try:
            session.run()
        except KeyboardInterrupt:
            code = INTERRUPTED
            reporter.say("\nown: stopped. What was finished is below; the rest was not run.")
        if session.plan is not None:
            result = session.result()
            write(result, site)
            print_result(result, site, Console(highlight=False))
    except HarnessError as error:
        reporter.say(f"\nown: {error.message}\n  → {error.advice}")
        return error.exit_code
    return code


def write(result: OwnRun, site: Path) -> None:
    """Write the files.

    Raises:
        DiskFullError: No space is left.
    """
    site.mkdir(parents=True, exist_ok=True)
    encoded = msgspec.json.format(msgspec.json.encode(result), indent=2)
    write_atomically(site / "own.json", encoded + b"\n")
    write_atomically(site / "own.csv", own_csv(result).encode())
    write_atomically(site / "own.md", own_markdown(result).encode())


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        status: ``passed``, ``failed``, or what is unknown.
        releases: Which.
        why: The reason, if there is one to give.
    """

    status: str
    releases: str
    why: str

    @property
    def word(self) -> str:
        """The status, with a mark before it."""
        return f"{SYMBOLS.get(self.status, '?')} {self.status}"


def rows(result: OwnRun, runtime: str) -> tuple[Row, ...]:
    """Intervals first, then what has no place in the order of releases, then what is unknown."""
    cells = [cell for cell in result.cells if cell.runtime == runtime]
    moving = [cell for cell in cells if cell.source != "index" and cell.status in DECIDED]
    unknown = [cell for cell in cells if cell.status not in DECIDED]
    return (
        *(_interval_row(one) for one in result.intervals if one.runtime == runtime),
        *(Row(cell.status, _called(cell), _why(cell)) for cell in moving),
        *_unknown_rows(unknown),
    )


def _interval_row(interval: Interval) -> Row:
    span = interval.first
    if interval.last != interval.first:
        span = f"{interval.first} to {interval.last} ({interval.tested} tested)"
    notes = [interval.message or ""]
    if interval.undecided:
        notes.append(f"unknown in between: {', '.join(interval.undecided)}")
    return Row(interval.status, span, "; ".join(note for note in notes if note))


def _unknown_rows(cells: Sequence[OwnCell]) -> Iterator[Row]:
    """Cells that decide nothing, those together that stand together and have the same cause."""

    def cause(cell: OwnCell) -> tuple[object, ...]:
        return cell.status, cell.reason, (cell.message or "").replace(cell.transformers, "")

    for _, group in groupby(cells, key=cause):
        alike = list(group)
        yield Row(alike[0].status, ", ".join(map(_called, alike)), _why(alike[0]))


def _called(cell: OwnCell) -> str:
    return f"{cell.release} ({cell.commit[:12]})" if cell.commit else cell.release


def _why(cell: OwnCell) -> str:
    if cell.status == "passed":
        return ""
    return ": ".join(part for part in (cell.reason, cell.message) if part)


def sentences(result: OwnRun, runtime: str) -> tuple[str, ...]:
    """Where failing begins and ends on a runtime."""
    statuses = [cell.status for cell in result.cells if cell.runtime == runtime]
    told: list[str] = []
    for one in result.failing:
        if one.runtime == runtime:
            before, after = one.last_passed_before, one.first_passed_after
            begins = ", the first that was decided"
            if before:
                begins = f" ({before} passes{_gap(result, runtime, one.first)})"
            ends = "none after it passes"
            if after:
                gap = _gap(result, runtime, after)
                ends = f"the first to pass after it is {after}{f' ({gap[2:]})' if gap else ''}"
            told.append(f"Fails from {one.first}{begins}; {ends}.")
    if not told:
        passed = statuses.count("passed")
        told.append(f"Fails nowhere; passes on {passed}." if passed else "Nothing was decided.")
    unknown = len([status for status in statuses if status not in DECIDED])
    if unknown:
        told.append(f"Unknown on {unknown} of {len(statuses)}.")
    return tuple(told)


def _gap(result: OwnRun, runtime: str, first: str) -> str:
    """How many releases just before the interval that begins with `first` were not tried."""
    starting = (one for one in result.intervals if (one.runtime, one.first) == (runtime, first))
    count = next((one.untested_between for one in starting), 0)
    return f", {count} between not tested" if count else ""


def _runtimes(result: OwnRun) -> list[str]:
    return list(dict.fromkeys(cell.runtime for cell in result.cells))


def print_result(result: OwnRun, site: Path, console: Console) -> None:
    """Print the table of each runtime, what it says, and where the files are."""
    for runtime in _runtimes(result):
        title = f"\n{', '.join(result.tests)} on {result.package}, {runtime}"
        console.print(Text(clean(title), style="bold"), soft_wrap=True)
        table = Table(box=SIMPLE)
        for name in ("releases", "outcome", "why"):
            table.add_column(name, overflow="fold")
        for row in rows(result, runtime):
            style = STYLES.get(row.status, "yellow")
            table.add_row(clean(row.releases), Text(row.word, style=style), Text(clean(row.why)))
        console.print(table)
        for sentence in sentences(result, runtime):
            console.print(Text(clean(sentence)))
    for problem in result.problems:
        console.print(Text(clean(problem), style="yellow"))
    console.print(Text(f"Files: {site}/own.md, own.csv, own.json"), soft_wrap=True)


def own_markdown(result: OwnRun) -> str:
    """The tables and sentences as Markdown."""
    lines = [f"# {escape_markdown(', '.join(result.tests))} on {escape_markdown(result.package)}"]
    for runtime in _runtimes(result):
        lines += ["", f"## {escape_markdown(runtime)}", ""]
        lines += [escape_markdown(sentence) for sentence in sentences(result, runtime)]
        lines += ["", "| releases | outcome | why |", "|---|---|---|"]
        for row in rows(result, runtime):
            cells = (row.releases, row.word, row.why)
            lines.append(f"| {' | '.join(escape_markdown(cell) for cell in cells)} |")
    if result.problems:
        lines += ["", *(f"- {escape_markdown(problem)}" for problem in result.problems)]
    return "\n".join([*lines, "", f"Made {result.generated_at}.", ""])


def own_csv(result: OwnRun) -> str:
    """A row for each test in each cell; a cell without tests has one row, which names none."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for cell in result.cells:
        shared = [getattr(cell, name) or "" for name in COLUMNS[:10]]
        tests = [(one.test, str(one.outcome), one.message) for one in cell.tests]
        for test in tests or [("", "", cell.message or "")]:
            writer.writerow([harmless(str(value)) for value in (*shared, *test)])
    return out.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
