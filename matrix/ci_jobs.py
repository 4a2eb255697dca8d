"""From a plan to the jobs of a CI run: how many shards, on what sort of machine. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec

from matrix.errors import OptionsError
from matrix.plan import PlannedCell, shard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matrix.plan import Plan

MOST_JOBS: Final = 256
"""The platform starts no more jobs than this from one matrix."""

SECONDS_PER_JOB: Final = 1200.0
"""Expected work, on one core, that a job is given: much more than what it takes to start one."""

SECONDS_TO_START: Final = 90.0
"""What a job is taken to cost beside its cells: a machine, the harness, and torch."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One job: a shard of the cells of one runtime, on machines with one device.

    Attributes:
        id: Its name, and that of its artifact: ``cpu-1``.
        device: The device that its machine must have; its plan is ``DEVICE.json``.
        runtime: Name of the runtime.
        shard: ``I/N``, as ``--shard`` takes it.
        cells: How many cells it runs.
        cases: How many cases these have.
        seconds: Expected cost of its cells on one core.
    """

    id: str
    device: str
    runtime: str
    shard: str
    cells: int
    cases: int
    seconds: float


def plans_by_device(plan: Plan) -> dict[str, Plan]:
    """The plan for the machines of each device: the same cells, with the cases for it alone.

    A device for which there is nothing to run has no plan.
    """
    devices = dict.fromkeys(_device(case) for cell in plan.cells for case in cell.cases)
    return {device: _on_device(plan, device) for device in devices}


def _on_device(plan: Plan, device: str) -> Plan:
    cells: list[PlannedCell] = []
    for cell in plan.cells:
        cases = tuple(case for case in cell.cases if _device(case) == device)
        if cases:
            cells.append(msgspec.structs.replace(cell, cases=cases))
    return msgspec.structs.replace(plan, cells=tuple(cells))


def _device(case: str) -> str:
    return case.split("/")[3]


def make_jobs(
    plans: Mapping[str, Plan],
    *,
    seconds_per_job: float = SECONDS_PER_JOB,
    most: int = MOST_JOBS,
) -> tuple[Job, ...]:
    """The jobs that run these plans: shards of about `seconds_per_job`, at most `most` in all.

    Where there would be more jobs than that, each is given more to do.

    Raises:
        OptionsError: There are more pairs of a device and a runtime than jobs.
    """
    groups = {
        (device, runtime.name): cells
        for device, plan in plans.items()
        for runtime in plan.runtimes
        if (cells := plan.cells_of(runtime.name))
    }
    if len(groups) > most:
        raise OptionsError(
            f"The plan needs {len(groups)} runtimes, and one run may have {most} jobs.",
            advice="Choose fewer runtimes, in matrix/grid.toml or with --runtimes.",
        )
    counts = _shards(groups, seconds_per_job)
    while sum(counts.values()) > most:
        seconds_per_job *= 1.25
        counts = _shards(groups, seconds_per_job)
    jobs: list[Job] = []
    for (device, runtime), cells in groups.items():
        count = counts[device, runtime]
        for index in range(1, count + 1):
            mine = shard(cells, index, count)
            number = 1 + sum(job.device == device for job in jobs)
            jobs.append(
                Job(
                    id=f"{device}-{number}",
                    device=device,
                    runtime=runtime,
                    shard=f"{index}/{count}",
                    cells=len(mine),
                    cases=sum(len(cell.cases) for cell in mine),
                    seconds=round(sum(cell.expected_seconds for cell in mine), 1),
                )
            )
    return tuple(jobs)


def _shards(
    groups: Mapping[tuple[str, str], Sequence[PlannedCell]], seconds_per_job: float
) -> dict[tuple[str, str], int]:
    """How many shards each group gets: never more than it has cells."""
    return {
        key: min(
            len(cells),
            math.ceil(sum(cell.expected_seconds for cell in cells) / seconds_per_job),
        )
        for key, cells in groups.items()
    }


def describe_jobs(plan: Plan, jobs: Sequence[Job]) -> str:
    """What will run and what it may cost, in Markdown for the summary of the job."""
    lines = ["## Plan", ""]
    if jobs:
        seconds = sum(job.seconds for job in jobs)
        started = seconds + SECONDS_TO_START * len(jobs)
        told = (
            f"{_count(len(plan.cells), 'cell')} to run in {_count(len(jobs), 'job')}, "
            f"{plan.known} known already. Expected: {_minutes(seconds)} of work on one core, "
            f"{_minutes(started)} with starting the jobs."
        )
        lines += [
            told,
            "",
            "| job | runtime | device | shard | cells | cases | expected |",
            "|---|---|---|---|---:|---:|---:|",
        ]
        lines += [
            f"| {job.id} | {job.runtime} | {job.device} | {job.shard} | {job.cells} |"
            f" {job.cases} | {_minutes(job.seconds)} |"
            for job in jobs
        ]
    else:
        lines.append(f"Nothing to run: all {plan.known} cells are known.")
    return "\n".join([*lines, "", ""])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"
