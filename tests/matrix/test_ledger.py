"""The ledger: what is written is read back, what is damaged is named, nothing is lost."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from matrix.errors import CorruptFileError
from matrix.ledger import Ledger, is_settled, read_file
from matrix.records import Controls, Evidence
from tests.matrix.factory import CASE, record

if TYPE_CHECKING:
    from pathlib import Path

OTHER = "phi3/left-padded/sdpa/cpu/float32"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """An empty ledger."""
    return Ledger(tmp_path / "ledger")


def test_records_come_back_as_they_were(ledger: Ledger) -> None:
    """Evidence and provenance included; one file for each release and runtime."""
    evidence = Evidence(
        error=1.5, generated=(1, 2), controls=Controls(below=1e-7), distances={"stale_keys": None}
    )
    records = [
        record("1.0", "lost", evidence=evidence),
        record("1.0", "ok", case=OTHER),
        record("1.0", "ok", torch="2.9.1"),
        record("1.1.dev0", "ok", ref="main", commit="c" * 40),
    ]
    ledger.add(records, replace=False)
    found, damaged = ledger.load()
    assert sorted(found, key=str) == sorted(records, key=str)
    assert damaged == ()
    files = {path.relative_to(ledger.root).as_posix() for path in ledger.root.glob("*/*.jsonl")}
    assert files == {
        "py3.11-torch2.13.0/1.0.jsonl",
        "py3.11-torch2.9.1/1.0.jsonl",
        f"py3.11-torch2.13.0/git-{'c' * 12}.jsonl",
    }


def test_the_same_records_give_the_same_bytes(ledger: Ledger) -> None:
    """Whatever order they come in, and however often."""
    records = [record("1.0", "lost"), record("1.0", "ok", case=OTHER)]
    ledger.add(records, replace=False)
    path = ledger.path_of(records[0])
    first = path.read_bytes()
    ledger.add(reversed(records), replace=True)
    assert path.read_bytes() == first
    assert first.count(b"\n") == 3


def test_of_the_same_revision_the_first_stays_and_a_difference_is_told(ledger: Ledger) -> None:
    """A recorded verdict is never overwritten by a run that came out otherwise."""
    ledger.add([record("1.0", "ok")], replace=False)
    (difference,) = ledger.add([record("1.0", "lost")], replace=False)
    assert "recorded as ok, measured here as affected (prefix_lost)" in str(difference)
    assert [r.status for r in ledger.load()[0]] == ["ok"]
    ledger.add([record("1.0", "lost")], replace=True)
    assert [r.status for r in ledger.load()[0]] == ["affected"]


def test_failures_and_other_revisions_give_way(ledger: Ledger) -> None:
    """What failed is tried again; what other checks measured is outdated."""
    ledger.add(
        [record("1.0", "error"), record("1.0", "ok", case=OTHER, revision="old")], replace=False
    )
    assert (
        ledger.add([record("1.0", "lost"), record("1.0", "lost", case=OTHER)], replace=False) == ()
    )
    assert {r.status for r in ledger.load()[0]} == {"affected"}


@pytest.mark.parametrize(
    "damage", [b"not json\n", b'{"kind":"case","case":"a/b/c/d/e","status":"ok"}\n']
)
def test_a_damaged_file_is_named_and_the_others_are_used(ledger: Ledger, damage: bytes) -> None:
    """And writing to it keeps the damaged one beside the new."""
    ledger.add([record("1.0"), record("2.0")], replace=False)
    path = ledger.path_of(record("1.0"))
    path.write_bytes(damage)
    found, damaged = ledger.load()
    assert [r.transformers for r in found] == ["2.0"]
    assert [one.path for one in damaged] == [path]
    with pytest.raises(CorruptFileError):
        read_file(path)
    ledger.add([record("1.0")], replace=False)
    assert len(ledger.load()[0]) == 2
    assert path.with_suffix(".damaged").read_bytes() == damage


def test_an_unknown_status_is_damage_not_a_verdict(ledger: Ledger) -> None:
    """A word that is not in the contract is never taken for one that is."""
    ledger.add([record("1.0")], replace=False)
    path = ledger.path_of(record("1.0"))
    path.write_bytes(path.read_bytes().replace(b'"ok"', b'"fine"'))
    assert "fine" in ledger.load()[1][0].reason


def test_several_writers_do_not_spoil_each_other(ledger: Ledger) -> None:
    """Twenty at once, to the same file."""
    cases = [f"phi3/decode-crossing/eager/cpu/case{number}" for number in range(20)]
    threads = [
        threading.Thread(
            target=ledger.add, args=([record("1.0", case=case)],), kwargs={"replace": False}
        )
        for case in cases
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {r.case for r in ledger.load()[0]} == set(cases)


def test_a_lock_is_kept_once_for_each_set_of_packages(ledger: Ledger) -> None:
    """Its key depends on nothing but the set."""
    one = ledger.add_lock({"b": "2", "a": "1"})
    assert ledger.add_lock({"a": "1", "b": "2"}) == one
    assert ledger.lock(one) == {"a": "1", "b": "2"}
    assert ledger.lock("none") is None


@pytest.mark.parametrize(
    ("outcome", "settled"),
    [("ok", True), ("lost", True), ("unclear", True), ("unsupported", True), ("error", False)],
)
def test_only_failures_are_tried_again(outcome: str, settled: bool) -> None:
    """What was measured, or cannot be, would come out the same."""
    assert is_settled(record("1.0", outcome)) is settled
    assert record("1.0").case == CASE


def test_a_large_ledger_loads_in_seconds(ledger: Ledger) -> None:
    """100,000 records: 500 releases with 200 cases each."""
    evidence = Evidence(error=1.5e-6, trace="4+0 1+4 1+5 1+6 1+7 9+0 1+9", generated=(1, 2))
    cases = [f"phi3/scenario{number}/eager/cpu/float32" for number in range(200)]
    for number in range(500):
        of_one = [record(f"{number}.0", case=case, evidence=evidence) for case in cases]
        ledger.add(of_one, replace=False)
    began = time.process_time()
    found, damaged = ledger.load()
    assert time.process_time() - began < 10
    assert (len(found), damaged) == (100_000, ())
