"""From a plan to jobs, from what the jobs bring to the ledger, and the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix import ci
from matrix.ci_gate import why_red
from matrix.ci_jobs import Job, describe_jobs, make_jobs, plans_by_device
from matrix.ci_shards import accept, cells_of
from matrix.devices import present_devices
from matrix.errors import OptionsError
from matrix.grid import Limits, Runtime
from matrix.ledger import Ledger
from matrix.plan import Plan, PlannedCell
from tests.matrix.factory import CASE, REVISION, record, release

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matrix.records import Record

CUDA = CASE.replace("/cpu/", "/cuda/")


def plan_of(
    versions: Sequence[str], *, cases: tuple[str, ...] = (CASE,), runtimes: int = 1
) -> Plan:
    """A plan with a cell for each version on each of so many runtimes."""
    chosen = tuple(Runtime(python=f"3.{11 + number}", torch="2.13.0") for number in range(runtimes))
    cells = tuple(
        PlannedCell(release=release(version), runtime=runtime.name, cases=cases)
        for runtime in chosen
        for version in versions
    )
    return Plan(
        check_revision=REVISION,
        made_at="2026-01-01T00:00:00Z",
        names={runtime.name: runtime.name for runtime in chosen},
        package="transformers",
        runtimes=chosen,
        releases=tuple(release(version) for version in versions),
        stable=(),
        cases=cases,
        absent=(),
        cells=cells,
        known=0,
        requested=tuple(cell.name for cell in cells),
        limits=Limits(seconds_per_case=1, seconds_per_cell=1, memory_per_cell_mb=1, workers=0),
        stale_after_days=7,
        refine=True,
    )


def names(count: int) -> list[str]:
    """So many versions."""
    return [f"1.{number}" for number in range(count)]


@given(
    cells=st.integers(1, 60),
    runtimes=st.integers(1, 4),
    seconds=st.floats(0.5, 500),
    most=st.integers(4, 40),
)
def test_every_cell_is_in_one_job_and_there_are_never_too_many(
    cells: int, runtimes: int, seconds: float, most: int
) -> None:
    """Whatever the size of the plan and of a job."""
    plans = plans_by_device(plan_of(names(cells), runtimes=runtimes))
    jobs = make_jobs(plans, seconds_per_job=seconds, most=most)
    assert 1 <= len(jobs) <= most
    given_out = [cell.name for job in jobs for cell in cells_of(plans[job.device], job)]
    assert sorted(given_out) == sorted(cell.name for cell in plans["cpu"].cells)
    assert all(job.cells for job in jobs)
    assert len({job.id for job in jobs}) == len(jobs)


def test_cases_on_a_gpu_are_jobs_of_their_own() -> None:
    """A machine is asked only for the cases of its device."""
    plans = plans_by_device(plan_of(names(2), cases=(CASE, CUDA)))
    assert {d: {c.cases for c in plan.cells} for d, plan in plans.items()} == {
        "cpu": {(CASE,)},
        "cuda": {(CUDA,)},
    }
    assert [job.id for job in make_jobs(plans)] == ["cpu-1", "cuda-1"]


def test_a_plan_can_be_made_for_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that makes it has no GPU."""
    monkeypatch.setenv("MATRIX_DEVICES", "cuda cpu")
    assert present_devices() == ("cpu", "cuda")


def test_more_runtimes_than_jobs_cannot_be() -> None:
    """The message says what to choose fewer of."""
    with pytest.raises(OptionsError, match="3 runtimes, and one run may have 2 jobs"):
        make_jobs(plans_by_device(plan_of(["1.0"], runtimes=3)), most=2)


def test_the_summary_says_what_the_run_will_cost() -> None:
    """In minutes and cells, from the plan's own estimate."""
    plan = plan_of(names(30))
    text = describe_jobs(plan, make_jobs(plans_by_device(plan), seconds_per_job=40))
    assert "30 cells to run in 2 jobs, 0 known already. Expected: 1.1 min of work" in text
    assert "| cpu-2 | 3.11/2.13.0 | cpu | 2/2 | 15 | 15 | 0.5 min |" in text


JOBS = (
    Job(
        id="cpu-1",
        device="cpu",
        runtime="3.11/2.13.0",
        shard="1/1",
        cells=2,
        cases=2,
        seconds=4.2,
    ),
)
PLANS = plans_by_device(plan_of(["1.0", "2.0"]))


def brought(*records: Record) -> dict[str, Sequence[Record]]:
    """What the one job hands over."""
    return {"cpu-1": records}


def test_a_job_that_did_what_it_should_is_no_trouble() -> None:
    """All of its records count."""
    records = (record("1.0"), record("2.0", "lost"))
    arrived = accept(PLANS, JOBS, brought(*records))
    assert (arrived.records, arrived.trouble) == (records, ())


def test_a_release_cannot_speak_for_another() -> None:
    """Records that a job was not asked for are left out and named: its code may have made them."""
    forged = record("9.0"), record("1.0", case=CUDA), record("1.0", python="3.12.1")
    arrived = accept(PLANS, JOBS, brought(record("1.0"), record("2.0"), *forged))
    assert [one.release for one in arrived.records] == ["1.0", "2.0"]
    assert arrived.trouble == (
        "Job cpu-1 (3.11/2.13.0, shard 1/1, 2 cells) brought 3 records that it was not asked for.",
    )


def test_a_record_cannot_name_a_file_elsewhere() -> None:
    """What leads to a lock is a digest, and no path."""
    sly = record("1.0")
    provenance = msgspec.structs.replace(sly.provenance, packages="../../secret")
    sly = msgspec.structs.replace(sly, provenance=provenance)
    arrived = accept(PLANS, JOBS, brought(sly, record("2.0")))
    assert [one.release for one in arrived.records] == ["2.0"]


def test_a_job_that_stopped_half_way_is_named_with_what_it_left() -> None:
    """What it did counts."""
    arrived = accept(PLANS, JOBS, brought(record("1.0")))
    assert len(arrived.records) == 1
    assert arrived.trouble == (
        "Job cpu-1 (3.11/2.13.0, shard 1/1, 2 cells) left cells unfinished: 2.0 3.11/2.13.0.",
    )


def test_a_job_that_never_came_is_named() -> None:
    """And nothing is made up for it."""
    arrived = accept(PLANS, JOBS, {})
    assert arrived.records == ()
    assert arrived.trouble == ("Job cpu-1 (3.11/2.13.0, shard 1/1, 2 cells) did not deliver.",)


@pytest.mark.parametrize(
    "words", ["pr:12345", "all pr:1", "git:https://forge.example/x@main", "path:../transformers"]
)
def test_a_run_that_keeps_refuses_what_anybody_may_have_written(words: str) -> None:
    """And says where it can be run."""
    with pytest.raises(OptionsError) as caught:
        ci.inputs({"RELEASES": words}, untrusted=False)
    assert "`try`" in caught.value.advice
    assert ci.inputs({"RELEASES": words}, untrusted=True) == ["--releases", *words.split()]


def test_what_was_typed_is_words_and_never_a_shells() -> None:
    """Also where a shell would do something with it; what is empty is left to the grid."""
    environ = {"RELEASES": "main >=5,<6 $(id)", "SCENARIOS": " ", "RUNTIMES": "all"}
    assert ci.inputs(environ, untrusted=False) == [
        *("--releases", "main", ">=5,<6", "$(id)"),
        *("--runtimes", "all"),
    ]


def test_the_shipped_ledger_starts_one_that_is_kept_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known there stays, unless only the shipped record is of these checks."""
    shipped, kept = Ledger(tmp_path / "shipped"), Ledger(tmp_path / "kept")
    monkeypatch.setattr(ci, "SHIPPED", shipped.root)
    monkeypatch.setattr(ci, "check_revision", lambda: "b" * 12)
    monkeypatch.setenv("MATRIX_LEDGER", str(kept.root))
    old, now = "a" * 12, "b" * 12
    shipped.add([record("1.0", revision=now), record("2.0", "ok", revision=old)], replace=False)
    shipped.add([record("3.0", "ok", revision=now)], replace=False)
    kept.add(
        [record("1.0", "lost", revision=old), record("2.0", "lost", revision=now)], replace=False
    )
    kept.add([record("3.0", "lost", revision=now)], replace=False)
    ci.adopt()
    found, _ = kept.load()
    assert [(one.release, str(one.status), one.provenance.check_revision) for one in found] == [
        ("1.0", "ok", now),
        ("2.0", "affected", now),
        ("3.0", "affected", now),
    ]


WELL = {"plan": "success", "cells": "success", "report": "success", "publish": "success"}
REGRESSION = {"title": "x loses the prefix", "new": True, "regression": True}


@pytest.mark.parametrize(
    ("needs", "findings", "trouble", "reasons"),
    [
        (WELL, [], [], []),
        ({"plan": "success", "cells": "skipped", "report": "skipped"}, [], [], []),
        (WELL, [REGRESSION], [], ["New regression: x loses the prefix"]),
        (WELL, [REGRESSION | {"new": False}], [], []),
        (WELL, [REGRESSION | {"regression": False}], [], []),
        (WELL, [], ["Job cpu-1 did not deliver."], ["Job cpu-1 did not deliver."]),
        ({"plan": "failure", "cells": "skipped"}, [], [], ["The job plan ended in failure."]),
        (WELL | {"publish": "failure"}, [], [], ["The job publish ended in failure."]),
    ],
    ids=[
        "all well",
        "nothing to do",
        "a new regression",
        "one that was told",
        "a fix",
        "a job is missing",
        "the index is unreachable",
        "the page was not published",
    ],
)
def test_the_gate(
    needs: dict[str, str],
    findings: list[dict[str, object]],
    trouble: list[str],
    reasons: list[str],
) -> None:
    """Red for a new regression and for trouble with infrastructure, for nothing else."""
    assert list(why_red(needs, findings, trouble)) == reasons
