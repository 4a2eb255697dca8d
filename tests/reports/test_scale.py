"""Large ledgers: bounded time, a small first page, Markdown that fits a job summary."""

from __future__ import annotations

import gzip
import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from reports.__main__ import main
from reports.build_models import MOST_CELLS
from reports.site import render_site
from reports.words import SCENARIOS
from tests.reports.factory import RUN, record

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.records import Record

RELEASES = tuple(f"{4 + index // 60}.{index % 60}.0" for index in range(105))
RUNTIMES = (
    ("3.11.7", "2.13.0+cpu"),
    ("3.12.1", "2.13.0+cpu"),
    ("3.12.1", "2.14.0+cpu"),
    ("3.13.0", "2.14.0+cpu"),
    ("3.10.1", "2.6.0+cpu"),
    ("3.9.1", "2.2.0+cpu"),
)
CASES = tuple(
    (model, scenario, attention)
    for model in ("phi3", "phimoe")
    for scenario in SCENARIOS
    for attention in ("eager", "sdpa", "flex_attention", "flash_attention_2")
)[:150]


def large(runtimes: int, *, alike: bool) -> list[Record]:
    """105 releases by 150 cases by runtimes; `alike` cases share a dozen histories."""
    made = {name: record("1.0", name) for name in ("ok", "prefix_lost", "stale_keys", "timeout")}
    found: list[Record] = []
    for index, release in enumerate(RELEASES):
        for number, (model, scenario, attention) in enumerate(CASES):
            turn = number % 12 if alike else number
            outcome = "ok"
            if turn % 3 and 30 + turn % 20 < index < 70 + turn % 30:
                outcome = "prefix_lost"
            if index < 10 + turn % 6:
                outcome = "stale_keys"
            if not alike and index == number * 5 % 105:
                outcome = "timeout"
            for python, torch in RUNTIMES[:runtimes]:
                found.append(
                    msgspec.structs.replace(
                        made[outcome],
                        transformers=release,
                        model=model,
                        scenario=scenario,
                        attention=attention,
                        python=python,
                        torch=torch,
                    )
                )
    return found


@pytest.mark.parametrize("alike", [True, False], ids=["a-dozen-histories", "all-different"])
def test_the_first_page_stays_small(tmp_path: Path, *, alike: bool) -> None:
    """105 releases by 150 cases: under 300 kB uncompressed, whatever the histories are."""
    answer = render_site(large(1, alike=alike), RUN, tmp_path)
    content = (tmp_path / "index.html").read_bytes()
    assert len(content) < 300_000
    assert len(gzip.compress(content)) < 60_000
    first = answer.view.first
    assert first is not None
    assert len(first.grid.rows) == len(RELEASES)
    assert len(first.grid.rows) * len(first.grid.columns) <= MOST_CELLS
    assert (tmp_path / "report.md").stat().st_size < 2**20 // 4


@pytest.mark.slow
def test_the_first_page_of_the_ledger_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is committed here is what is published."""
    monkeypatch.setenv("MATRIX_WORK", str(tmp_path / "work"))
    assert main(["--site", str(tmp_path / "site")]) == 0
    content = (tmp_path / "site" / "index.html").read_bytes()
    assert len(content) < 300_000
    assert len(gzip.compress(content)) < 60_000


@pytest.mark.slow
def test_a_hundred_thousand_records_are_quick(tmp_path: Path) -> None:
    """10 s on an idle two-core machine.

    Told in processor time and as a multiple of a yardstick, so that it says the same on a slow
    or busy machine: about 75 were measured, twice that fails.
    """
    records = large(6, alike=False)
    yardstick = _yardstick()
    started = time.process_time()
    render_site(records, RUN, tmp_path)
    took = time.process_time() - started
    assert len(records) == 94_500
    assert took / len(records) < 150 * yardstick


def _yardstick() -> float:
    """Seconds that this machine takes to format a number, split it, and keep it by name."""
    started = time.process_time()
    kept = {f"{number:,} records": str(number).split("0") for number in range(200_000)}
    return (time.process_time() - started) / len(kept)
