"""Every way that a cell can end, produced for real by a fixture package of its own."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from matrix.records import Defect, Reason, Record, Status
from tests.fixture_index import PACKAGE
from tests.pipeline.harness import Done, Harness

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

CROSSING = "phi3/decode-crossing/eager/cpu/float32"


@pytest.fixture(scope="module")
def harness(
    tmp_path_factory: pytest.TempPathFactory, runtimes: Path, fixture_index: str
) -> Harness:
    """A checkout whose grid asks for every fixture release."""
    harness = Harness(
        folder=tmp_path_factory.mktemp("outcomes"), runtimes=runtimes, index=fixture_index
    )
    harness.write_grid(
        package=PACKAGE,
        since="1.0.0",
        run=("all", "main"),
        scenarios=("below-boundary", "decode-crossing"),
        # The release that hangs meets both limits: of the case first, of the cell then.
        case_seconds=10,
        seconds=25,
    )
    return harness


@pytest.fixture(scope="module")
def done(harness: Harness) -> Done:
    """The run of the whole pipeline over all fixture releases."""
    return harness.matrix()


@pytest.fixture(scope="module")
def records(harness: Harness, done: Done) -> dict[tuple[str, str], Record]:
    """(release, case) -> record of that run."""
    assert done.code == 0, done.output
    found, damaged = harness.ledger.load()
    assert not damaged
    return {(record.release, record.case): record for record in found}


@pytest.mark.parametrize(
    ("release", "status", "cause"),
    [
        ("1.0.0", Status.OK, None),
        ("1.1.0", Status.AFFECTED, Defect.PREFIX_LOST),
        ("1.2.0", Status.OK, None),
        ("1.3.0", Status.ERROR, Reason.INSTALL_FAILED),
        ("1.4.0", Status.OK, None),
        ("1.4.1", Status.ERROR, Reason.DEPENDENCY_CONFLICT),
        ("1.5.0", Status.ERROR, Reason.IMPORT_FAILED),
        ("1.6.0", Status.ERROR, Reason.CRASHED),
        ("1.7.0", Status.ERROR, Reason.TIMEOUT),
        ("1.8.0", Status.ERROR, Reason.OUT_OF_MEMORY),
        ("1.9.0", Status.UNSUPPORTED, Reason.NO_MODEL),
    ],
)
def test_each_outcome_has_its_record(
    records: dict[tuple[str, str], Record], release: str, status: Status, cause: str | None
) -> None:
    """What a release does to its process is its own record, with a status and a reason."""
    record = records[release, CROSSING]
    assert (record.status, record.defect or record.reason) == (status, cause)


def test_every_case_of_every_release_has_a_record(
    records: dict[tuple[str, str], Record],
) -> None:
    """A release that kills its process costs no other release, and none of its cases is lost."""
    releases = {release for release, _ in records}
    cases = {case for _, case in records}
    assert len(cases) == 4
    assert set(records) == {(release, case) for release in releases for case in cases}
    assert len(releases) == 13


def test_yanked_and_pre_releases_are_left_out(records: dict[tuple[str, str], Record]) -> None:
    """Neither runs unless it is named."""
    assert not {release for release, _ in records} & {"1.10.0", "1.11.0rc1"}


def test_a_conflict_gets_an_environment_of_its_own(
    records: dict[tuple[str, str], Record],
) -> None:
    """The record says on what it ran."""
    own, layer = records["1.4.0", CROSSING].provenance, records["1.2.0", CROSSING].provenance
    assert (own.isolation, own.process) == ("environment", "fresh")
    assert (layer.isolation, layer.process) == ("layer", "fork")


def test_the_bug_reports_lines_are_in_the_evidence(
    records: dict[tuple[str, str], Record],
) -> None:
    """Whoever knows the report recognises the call that lost the prefix."""
    evidence = records["1.1.0", CROSSING].evidence
    assert evidence.last_call is not None
    assert evidence.last_call.endswith("[[8], [8]], None)")
    assert evidence.generated != evidence.expected
    assert evidence.trace is not None
    assert "1+0" in evidence.trace.split()


def test_the_report_names_interval_and_neighbours(harness: Harness, records: object) -> None:
    """Affected 1.1.0 to 1.1.1, between 1.0.1 and 1.2.0; what was not decided is no part of it."""
    results = json.loads((harness.site / "results.json").read_text(encoding="utf-8"))
    affected = [
        interval
        for interval in results["intervals"]
        if interval["scenario"] == "decode-crossing"
        and interval["attention"] == "eager"
        and interval["status"] == "affected"
    ]
    assert [(i["after"], i["first"], i["last"], i["before"]) for i in affected] == [
        ("1.0.1", "1.1.0", "1.1.1", "1.2.0")
    ]


def test_a_missing_device_and_an_unreachable_ref_are_reported_as_not_run(
    harness: Harness, records: object
) -> None:
    """Nothing was measured there, and the report says why."""
    with (harness.site / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    on_main = {row["reason"] for row in rows if row["ref"] == "main" and row["device"] == "cpu"}
    on_cuda = {(row["status"], row["reason"]) for row in rows if row["device"] == "cuda"}
    assert on_main == {"unreachable"}
    assert on_cuda == {("not_run", "no_device")}


def test_a_second_run_runs_only_what_failed(harness: Harness, records: object) -> None:
    """What is settled is not run again; what crashed or could not be installed is."""
    again = harness.run("matrix", "plan", "--json")
    assert again.code == 0
    start = again.output.index("{\n")
    plan, _ = json.JSONDecoder().raw_decode(again.output[start:])
    assert {cell["release"]["version"] for cell in plan["cells"]} == {
        "1.3.0",
        "1.4.1",
        "1.5.0",
        "1.6.0",
        "1.7.0",
        "1.8.0",
    }


def test_yanked_and_pre_releases_run_when_named(harness: Harness, done: Done) -> None:
    """Naming one is enough to have it measured."""
    again = harness.matrix("--releases", "1.10.0", "1.11.0rc1", "--no-refine")
    assert again.code == 0, again.output
    found, _ = harness.ledger.load()
    named = {r.release: r.status for r in found if r.case == CROSSING}
    assert named["1.10.0"] == named["1.11.0rc1"] == Status.AFFECTED
