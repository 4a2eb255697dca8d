"""What is written and said of the user's own tests."""

from __future__ import annotations

import csv
import io

from matrix.own_results import Failing, Interval, OneTest, Outcome, OwnCell, OwnRun
from matrix.records import Reason, Source
from reports.own import own_csv, own_markdown, rows, sentences

RUNTIME = "3.11/2.13.0"


def cell(release: str, status: str, *tests: OneTest, reason: Reason | None = None) -> OwnCell:
    """A cell."""
    return OwnCell(
        release=release,
        transformers=release,
        source=Source.GIT if release == "main" else Source.INDEX,
        commit="0123456789abcdef" if release == "main" else None,
        released_at=None,
        runtime=RUNTIME,
        python="3.11.7",
        torch="2.13.0+cpu",
        status=status,
        reason=reason,
        message=None if status == "passed" else f"because of {release}",
        isolation=None,
        process=None,
        seconds=1.0,
        tests=tests,
    )


def run(*cells: OwnCell, failing: tuple[Failing, ...] = (), untested: int = 0) -> OwnRun:
    """A run with these cells, and the interval that begins at 2.0."""
    interval = Interval(
        runtime=RUNTIME,
        status="failed",
        message="=no|one",
        first="2.0",
        last="2.0",
        tested=1,
        after="1.0",
        before=None,
        untested_between=untested,
        undecided=(),
    )
    return OwnRun(
        tests=("test_a.py",),
        package="transformers",
        generated_at="2026-01-01T00:00:00Z",
        harness_commit=None,
        cells=cells,
        intervals=(interval,) if failing else (),
        failing=failing,
        problems=(),
    )


FAILS = Failing(
    runtime=RUNTIME, first="2.0", last="2.0", last_passed_before="1.0", first_passed_after=None
)


def test_nothing_decided_is_no_pass() -> None:
    """It is said in words and shown with a question mark."""
    result = run(cell("1.0", "skipped"), cell("1.1", "error", reason=Reason.INSTALL_FAILED))
    assert sentences(result, RUNTIME) == ("Nothing was decided.", "Unknown on 2 of 2.")
    assert "✓" not in own_markdown(result)
    assert [row.word for row in rows(result, RUNTIME)] == ["? skipped", "? error"]


def test_unknown_releases_with_the_same_cause_share_a_row() -> None:
    """Though each message names its own release."""
    broken = [cell(name, "error", reason=Reason.INSTALL_FAILED) for name in ("1.0", "1.1")]
    (row,) = rows(run(*broken), RUNTIME)
    assert (row.releases, row.why) == ("1.0, 1.1", "install_failed: because of 1.0")


def test_a_boundary_that_is_not_exact_says_so() -> None:
    """With how many releases are in between."""
    result = run(cell("1.0", "passed"), cell("2.0", "failed"), failing=(FAILS,), untested=3)
    assert sentences(result, RUNTIME) == (
        "Fails from 2.0 (1.0 passes, 3 between not tested); none after it passes.",
    )


def test_what_moves_stands_apart_with_its_commit() -> None:
    """It has no place in the order of releases."""
    (row,) = rows(run(cell("main", "passed")), RUNTIME)
    assert (row.word, row.releases) == ("✓ passed", "main (0123456789ab)")


def test_a_table_is_safe_to_open() -> None:
    """No formula for a spreadsheet, no markup for Markdown; a cell without tests has a row."""
    test = OneTest(test="test_a.py::test_b", outcome=Outcome.FAILED, message="=no|one")
    result = run(cell("1.0", "error"), cell("2.0", "failed", test), failing=(FAILS,))
    table = list(csv.DictReader(io.StringIO(own_csv(result))))
    assert [(row["release"], row["test"], row["outcome"]) for row in table] == [
        ("1.0", "", ""),
        ("2.0", "test_a.py::test_b", "failed"),
    ]
    assert table[1]["message"] == "'=no|one"
    assert "| \\=no\\|one |" in own_markdown(result)
