"""The committed ledger in use: recorded once, trusted after a second look, gathered from shards."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from matrix.ledger import Ledger
from tests.fixture_index import PACKAGE
from tests.pipeline.harness import Harness

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.records import Record

pytestmark = pytest.mark.slow

RELEASES = ("1.0.0", "1.0.1", "1.1.0", "1.1.1", "1.2.0")


def checkout(folder: Path, runtimes: Path, index: str, ledger: Path | None = None) -> Harness:
    """A checkout of its own, which begins with a copy of `ledger`."""
    harness = Harness(folder=folder, runtimes=runtimes, index=index)
    folder.mkdir(parents=True, exist_ok=True)
    harness.write_grid(package=PACKAGE, since="1.0.0", run=RELEASES, scenarios=("decode-crossing",))
    if ledger is not None:
        shutil.copytree(ledger, folder / "ledger")
    return harness


def verdicts(records: tuple[Record, ...]) -> dict[tuple[str, str], tuple[str, str | None]]:
    """(release, case) -> (status, defect)."""
    return {(r.release, r.case): (r.status, r.defect) for r in records}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, runtimes: Path, fixture_index: str) -> Path:
    """A ledger that one machine has recorded."""
    harness = checkout(tmp_path_factory.mktemp("first") / "a", runtimes, fixture_index)
    done = harness.matrix("--record")
    assert done.code == 0, done.output
    assert not harness.ledger.load()[0]
    return harness.folder / "ledger"


def test_what_is_recorded_is_looked_at_again_once_on_another_machine(
    recorded: Path, tmp_path: Path, runtimes: Path, fixture_index: str
) -> None:
    """The cells beside the boundaries; a second run there has nothing to do at all."""
    harness = checkout(tmp_path / "b", runtimes, fixture_index, recorded)
    first = harness.matrix()
    assert first.code == 0, first.output
    assert "known already: 5 cells" in first.output
    assert "measuring 4 recorded cells again" in first.output
    assert "they came out the same here" in first.output
    second = harness.matrix()
    assert "nothing to run" in second.output


def test_a_difference_is_shown_and_overwrites_nothing(
    recorded: Path, tmp_path: Path, runtimes: Path, fixture_index: str
) -> None:
    """In the terminal and in the report."""
    harness = checkout(tmp_path / "c", runtimes, fixture_index, recorded)
    path = harness.folder / "ledger" / "py3.11-torch2.13.0" / "1.0.1.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    eager = next(i for i, line in enumerate(lines) if b"/eager/" in line)
    lines[eager] = lines[eager].replace(
        b'"status":"ok"', b'"status":"affected","defect":"stale_keys"'
    )
    path.write_bytes(b"".join(lines))
    tampered = path.read_bytes()
    done = harness.matrix()
    words = "recorded as affected (stale_keys), measured here as ok"
    assert words in done.output
    assert path.read_bytes() == tampered
    assert "measured here as ok" in (harness.site / "report.md").read_text(encoding="utf-8")


def test_shards_together_are_the_whole_run(
    recorded: Path, tmp_path: Path, runtimes: Path, fixture_index: str
) -> None:
    """In any order, one of them twice; and what a lost one would have brought is `not_run`."""
    shards = [checkout(tmp_path / f"shard{n}", runtimes, fixture_index) for n in (1, 2)]
    plan = tmp_path / "plan.json"
    assert shards[0].run("matrix", "plan", "--plan", str(plan)).code == 0
    for number, harness in enumerate(shards, start=1):
        options = ("--plan", str(plan), "--shard", f"{number}/2")
        done = harness.run("matrix", "cells", "3.11/2.13.0", *options)
        assert done.code == 0, done.output
    sizes = [len({r.release for r in harness.ledger.load()[0]}) for harness in shards]
    assert sorted(sizes) == [2, 3]
    whole = checkout(tmp_path / "whole", runtimes, fixture_index)
    one, two = (str(harness.ledger.root) for harness in shards)
    assert whole.run("matrix", "gather", two).code == 0
    lost = whole.run("reports", "--plan", str(plan), "--site", str(whole.site))
    assert lost.code == 0, lost.output
    results = (whole.site / "results.csv").read_text(encoding="utf-8")
    assert results.count("not_selected") == 2 * sizes[0]
    assert whole.run("matrix", "gather", one, two).code == 0
    assert verdicts(whole.ledger.load()[0]) == verdicts(Ledger(recorded).load()[0])
    locks = {record.provenance.packages for record in whole.ledger.load()[0]}
    assert all(key and whole.ledger.lock(key) for key in locks)
