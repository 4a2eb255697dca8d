"""A few real releases, measured then and there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from matrix.records import Defect, Evidence, Provenance, Record, Status
from tests.pipeline.harness import Done, Harness

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.real]

RELEASES = ("4.46.3", "5.16.1", "latest")
CROSSING = "phi3/decode-crossing/eager/cpu/float32"
BELOW = "phi3/below-boundary/eager/cpu/float32"


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory, runtimes: Path) -> Harness:
    """A checkout whose grid asks for a few releases and no network beside the index."""
    harness = Harness(folder=tmp_path_factory.mktemp("real"), runtimes=runtimes)
    harness.write_grid(run=RELEASES)
    return harness


@pytest.fixture(scope="module")
def done(harness: Harness) -> Done:
    """The run, without the releases between."""
    return harness.matrix("--no-refine")


def records_of(harness: Harness, done: Done) -> dict[tuple[str, str], Record]:
    """(release, case) -> record."""
    assert done.code == 0, done.output
    return {(record.release, record.case): record for record in harness.ledger.load()[0]}


def test_the_release_of_the_bug_report_loses_the_prefix(harness: Harness, done: Done) -> None:
    """5.16.1, in eager: as the report says, and below the boundary nothing is wrong."""
    records = records_of(harness, done)
    record = records["5.16.1", CROSSING]
    assert (record.status, record.defect) == (Status.AFFECTED, Defect.PREFIX_LOST)
    assert record.evidence.first_length == 9
    assert str(record.evidence.last_call).endswith("[[8], [8]], None)")
    assert record.evidence.generated != record.evidence.expected
    assert records["5.16.1", BELOW].status is Status.OK


def test_every_case_of_every_release_is_conclusive(harness: Harness, done: Done) -> None:
    """On this runtime, phi3 with eager and sdpa needs nothing that these releases lack."""
    records = records_of(harness, done)
    assert len(records) == 3 * 5 * 2
    assert {r.status for r in records.values()} <= {Status.OK, Status.AFFECTED}


def test_a_release_agrees_with_both_oracles(harness: Harness, done: Done) -> None:
    """The check does not call everything affected: 4.46.3 clears the cache and feeds the prefix."""
    record = records_of(harness, done)["4.46.3", CROSSING]
    assert record.status is Status.OK
    assert record.evidence.error is not None
    assert record.evidence.tolerance is not None
    assert record.evidence.error < record.evidence.tolerance / 10


def test_fresh_interpreters_give_the_same_records(
    harness: Harness, done: Done, tmp_path: Path
) -> None:
    """Forking is an optimisation: status, defect and every number of the evidence are the same."""
    forked = records_of(harness, done)
    isolated = Harness(folder=tmp_path, runtimes=harness.runtimes)
    isolated.write_grid(run=RELEASES)
    fresh = records_of(isolated, isolated.matrix("--isolated", "--no-refine"))
    assert {r.provenance.process for r in forked.values()} == {"fork"}
    assert {r.provenance.process for r in fresh.values()} == {"fresh"}
    assert {key: measured(r) for key, r in fresh.items()} == {
        key: measured(r) for key, r in forked.items()
    }


def measured(record: Record) -> tuple[Record, Evidence]:
    """A record without when and how it was made."""
    anywhere = Provenance(check_revision="", started_at="")
    return msgspec.structs.replace(record, provenance=anywhere), record.evidence


def test_a_cell_is_rebuilt_from_its_lock(harness: Harness, done: Done) -> None:
    """With exactly the packages of its record, and the same numbers."""
    before = records_of(harness, done)
    again = records_of(harness, harness.matrix("--releases", "5.16.1", "--locked", "--no-refine"))
    old, new = before["5.16.1", CROSSING], again["5.16.1", CROSSING]
    assert new.provenance.started_at > old.provenance.started_at
    assert new.provenance.packages == old.provenance.packages
    assert measured(new) == measured(old)
    folder = harness.folder / "work" / "layers" / "py3.11-torch2.13.0"
    assert (folder / "5.16.1-locked" / "transformers").is_dir()


def test_nothing_is_run_twice(harness: Harness, done: Done) -> None:
    """A second run right after the first has nothing to do."""
    records_of(harness, done)
    again = harness.matrix("--no-refine")
    assert again.code == 0
    assert "3.11/2.13.0: nothing to run" in again.output
